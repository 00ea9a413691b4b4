// When each command may be given: the timing rules of a DRAM channel, kept as the earliest clocks of what comes next.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "dram_settings.h"

class DramTiming {
public:
    explicit DramTiming(const DramSettings& settings)
        : s_(settings), banks_(1u << (s_.group_bits + s_.bank_bits)), groups_(1u << s_.group_bits) {}

    unsigned banks() const { return unsigned(banks_.size()); }
    bool open(unsigned bank) const { return banks_[bank].open; }
    bool open(unsigned bank, std::uint32_t row) const { return banks_[bank].open && banks_[bank].row == row; }

    // The earliest clock for a command; for a column command `bus` says what holds for all banks.
    std::uint64_t bus(bool write) const { return all_.column[write]; }
    std::uint64_t column(unsigned bank, bool write) const {
        return std::max(banks_[bank].column[write], group(bank).column[write]);
    }
    std::uint64_t precharge(unsigned bank) const { return banks_[bank].precharge; }
    std::uint64_t activate(unsigned bank) const {
        return std::max({banks_[bank].activate, group(bank).activate, all_.activate, window_[oldest_]});
    }
    std::uint64_t refresh(unsigned bank) const { return std::max(banks_[bank].activate, all_.activate); }
    std::uint64_t precharge_all() const {
        std::uint64_t clock = 0;
        for (const Bank& bank : banks_)
            if (bank.open) clock = std::max(clock, bank.precharge);
        return clock;
    }
    std::uint64_t refresh_all() const {
        std::uint64_t clock = 0;
        for (const Bank& bank : banks_) clock = std::max(clock, bank.activate);
        return clock;
    }
    bool all_closed() const {
        return std::none_of(banks_.begin(), banks_.end(), [](const Bank& bank) { return bank.open; });
    }

    // Since when a bank has an open row without a command for it.
    std::uint64_t used(unsigned bank) const { return banks_[bank].used; }

    // A command is given at a clock.
    void activated(unsigned bank, std::uint32_t row, std::uint64_t clock) {
        Bank& b = banks_[bank];
        b.open = true;
        b.row = row;
        b.used = clock;
        b.column[0] = clock + s_.rcd_read;
        b.column[1] = clock + s_.rcd_write;
        b.precharge = clock + s_.ras;
        b.activate = clock + s_.rc;
        group(bank).activate = clock + s_.rrd_l;
        all_.activate = std::max(all_.activate, clock + s_.rrd_s);
        window_[oldest_] = clock + s_.faw;
        oldest_ = (oldest_ + 1) % WINDOW;
    }

    void precharged(unsigned bank, std::uint64_t clock) {
        Bank& b = banks_[bank];
        b.open = false;
        b.activate = std::max(b.activate, clock + s_.rp);
    }

    void precharged_all(std::uint64_t clock) {
        for (unsigned bank = 0; bank < banks(); ++bank)
            if (open(bank)) precharged(bank, clock);
    }

    void read(unsigned bank, std::uint64_t clock) {
        banks_[bank].used = clock;
        later(banks_[bank].precharge, clock + s_.rtp);
        later(group(bank).column[0], clock + s_.ccd_l);
        later(all_.column[0], clock + std::max(s_.ccd_s, s_.bl));
        later(all_.column[1], clock + s_.cl + s_.bl + s_.gap - s_.cwl);
    }

    void written(unsigned bank, std::uint64_t clock) {
        const std::uint64_t end = clock + s_.cwl + s_.bl;
        banks_[bank].used = clock;
        later(banks_[bank].precharge, end + s_.wr);
        later(group(bank).column[0], end + s_.wtr_l);
        later(group(bank).column[1], clock + s_.ccd_l_write);
        later(all_.column[0], end + s_.wtr_s);
        later(all_.column[1], clock + std::max(s_.ccd_s, s_.bl));
    }

    void refreshed(unsigned bank, std::uint64_t clock) {
        banks_[bank].activate = clock + s_.rfc_bank;
        later(all_.activate, clock + s_.rrefd);
    }

    void refreshed_all(std::uint64_t clock) {
        for (Bank& bank : banks_) bank.activate = clock + s_.rfc;
    }

private:
    static constexpr unsigned WINDOW = 4;  // activations, of which tFAW speaks

    struct Bank {
        std::uint64_t activate = 0, precharge = 0, column[2] = {0, 0}, used = 0;  // column: of reads, and of writes
        std::uint32_t row = 0;
        bool open = false;
    };
    struct Shared {  // by the banks of a group, or by all
        std::uint64_t activate = 0, column[2] = {0, 0};
    };

    DramSettings s_;
    std::vector<Bank> banks_;
    std::vector<Shared> groups_;
    Shared all_;
    std::uint64_t window_[WINDOW] = {};
    unsigned oldest_ = 0;

    Shared& group(unsigned bank) { return groups_[bank >> s_.bank_bits]; }
    const Shared& group(unsigned bank) const { return groups_[bank >> s_.bank_bits]; }

    static void later(std::uint64_t& earliest, std::uint64_t clock) { earliest = std::max(earliest, clock); }
};
