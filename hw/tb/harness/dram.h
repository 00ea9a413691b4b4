// A memory channel of DRAM behind a controller: bursts become accesses, which wait in a bounded queue and are served
// first ready, first come, with open rows. It moves no data: it says when it would have been moved.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "dram_burst.h"
#include "dram_settings.h"
#include "dram_timing.h"
#include "ring.h"

// The caller's clock never goes back. A burst is begun, asked after, and ended, which frees its number. What is written
// counts as written once it has a place in the queue. Reads and writes are overtaken only within their queues, but for
// a read of what still waits to be written, which is answered at once.
class DramChannel {
public:
    DramStatistics statistics{};
    std::vector<DramCommand>* commands = nullptr;  // where they are recorded, if anywhere

    explicit DramChannel(const DramSettings& settings)
        : s_(settings), timing_(settings), due_(interval(0)), wake_(due_), next_(due_) {
        for (auto& queue : queues_) queue.reserve(s_.queue);
    }

    // A burst arrives; returns its number.
    unsigned begin(bool write, std::uint64_t address, std::uint64_t bytes, std::uint64_t clock) {
        unsigned number = unsigned(bursts_.size());
        if (free_.empty()) bursts_.emplace_back();
        else {
            number = free_.back();
            free_.pop_back();
        }
        if (s_.close && !waiting() && timing_.all_closed()) {  // it begins anew
            writing_ = false;
            moved_ = 0;
        }
        bursts_[number].begin(address >> s_.access_shift, (address + bytes - 1) >> s_.access_shift);
        waiting_[write].push(number);
        ++running_;
        now_ = std::max(now_, clock);
        feed(write);
        next_ = std::min(next_, now_);
        return number;
    }

    // When all that a burst reads will have come, or all that it writes has a place; NEVER if that is not known.
    std::uint64_t when(unsigned number) const { return bursts_[number].when(); }

    // The same of some of its bytes.
    std::uint64_t when(unsigned number, std::uint64_t address, std::uint64_t bytes) const {
        return bursts_[number].when(address >> s_.access_shift, (address + bytes - 1) >> s_.access_shift);
    }

    void end(unsigned number) {
        free_.push_back(number);
        --running_;
    }

    // Gives all commands up to a clock, inclusive.
    void advance(std::uint64_t clock) {
        while (next_ <= clock) {
            now_ = std::max(now_, next_);
            step();
        }
        now_ = std::max(now_, clock);
    }

    // The clock at which something will be done, or may be, if no burst comes before.
    std::uint64_t next() const { return next_; }
    bool running() const { return running_; }                               // bursts that were not ended
    bool waiting() const { return queues_[0].size() + queues_[1].size(); }  // accesses
    const DramSettings& settings() const { return s_; }

private:
    static constexpr unsigned NONE = ~0u;

    struct Access {
        std::uint64_t since;
        std::uint32_t bank, row, column, burst, index;
        bool activated;  // a row was opened for it
    };
    using Queue = std::vector<Access>;  // by age

    DramSettings s_;
    DramTiming timing_;
    std::vector<DramBurst> bursts_;
    std::vector<unsigned> free_;
    unsigned running_ = 0;
    Ring<unsigned> waiting_[2];  // bursts that are not wholly in the queue: reads, writes
    Queue queues_[2];
    bool writing_ = false, moved_writes_ = false;  // which queue is served; what the bus moved last
    std::uint64_t moved_ = 0;                      // accesses since it is
    std::uint64_t now_ = 0, row_commands_ = 0;     // no row command before that
    std::uint64_t refreshes_ = 0, due_, wake_, next_;

    // The clock of a refresh, by its number from 0.
    std::uint64_t interval(std::uint64_t number) const {
        return (number + 1) * s_.refi / (s_.refresh_banks ? timing_.banks() : 1);
    }

    void wake(std::uint64_t clock) { wake_ = std::min(wake_, std::max(clock, now_ + 1)); }

    // What can be done at `now_`: a command to a row and one to a column at most; then when to look again.
    void step() {
        const bool due = now_ >= due_;
        wake_ = due ? DramBurst::NEVER : due_;
        if (due && !s_.refresh_banks) refresh_all();
        else {
            const unsigned refreshed = due ? unsigned(refreshes_ % timing_.banks()) : NONE;
            steer();
            const unsigned held = hold();
            column(held, refreshed);
            if (due) refresh_bank(refreshed);
            row(held, refreshed);
            if (s_.close) close(refreshed);
        }
        next_ = wake_;
    }

    // Takes as much of what waits as there is room for.
    void feed(bool write) {
        Ring<unsigned>& waiting = waiting_[write];
        Queue& queue = queues_[write];
        while (!waiting.empty() && queue.size() < s_.queue) {
            const unsigned number = waiting.front();
            DramBurst& burst = bursts_[number];
            const std::uint64_t index = burst.entered++;
            const Access access = place(burst.first + index, number, index);
            const bool forwarded = !write && queued_to_write(access);
            statistics.forwarded += forwarded;
            if (!forwarded) queue.push_back(access);
            if (forwarded || write) burst.tell(index, now_);
            if (burst.all_entered()) waiting.pop();
        }
    }

    Access place(std::uint64_t number, unsigned burst, std::uint64_t index) const {
        const std::uint64_t address = number << s_.access_shift;
        const auto field = [address](unsigned shift, unsigned bits) {
            return std::uint32_t(address >> shift & ((1ull << bits) - 1));
        };
        const std::uint32_t bank = field(s_.group_shift, s_.group_bits) << s_.bank_bits | field(s_.bank_shift, s_.bank_bits);
        return {now_, bank, field(s_.row_shift, s_.row_bits), field(s_.column_shift, s_.column_bits), burst,
                std::uint32_t(index), false};
    }

    bool queued_to_write(const Access& access) const {
        return std::any_of(queues_[1].begin(), queues_[1].end(), [&access](const Access& other) {
            return other.bank == access.bank && other.row == access.row && other.column == access.column;
        });
    }

    bool aged(const Queue& queue) const { return !queue.empty() && queue[0].since + s_.patience <= now_; }

    // Decides which queue is served. Writes wait until there are `high` of them, or one has waited for long and reads
    // have had a batch, and are served until `low` are left, or reads have waited for a batch.
    void steer() {
        const Queue &reads = queues_[0], &writes = queues_[1];
        const bool enough = moved_ >= s_.batch;
        bool turn;
        if (writing_) turn = !reads.empty() && (enough || writes.empty() || (writes.size() <= s_.low && !aged(writes)));
        else turn = !writes.empty() && (reads.empty() || writes.size() >= s_.high || (enough && aged(writes)));
        if (!turn) return;
        writing_ = !writing_;
        moved_ = 0;
    }

    // The bank that only the oldest access may use, because it has waited for too long.
    unsigned hold() const { return aged(queues_[writing_]) ? queues_[writing_][0].bank : NONE; }

    // Whether an access only waits for its column command.
    bool hits(const Access& access, unsigned held, unsigned refreshed) const {
        return timing_.open(access.bank, access.row) && access.bank != refreshed &&
               (access.bank != held || access.row == queues_[writing_][0].row);
    }

    // The oldest access whose row is open and whose time has come moves its data.
    void column(unsigned held, unsigned refreshed) {
        Queue& queue = queues_[writing_];
        if (queue.empty()) return;
        if (timing_.bus(writing_) > now_) return wake(timing_.bus(writing_));
        for (auto access = queue.begin(); access != queue.end(); ++access) {
            if (!hits(*access, held, refreshed)) continue;
            const std::uint64_t clock = timing_.column(access->bank, writing_);
            if (clock > now_) {
                wake(clock);
                continue;
            }
            move(*access);
            queue.erase(access);
            feed(writing_);
            return wake(timing_.bus(writing_));
        }
    }

    void move(const Access& access) {
        std::uint64_t end = now_ + s_.bl;
        if (writing_) {
            timing_.written(access.bank, now_);
            end += s_.cwl;
            ++statistics.writes;
        } else {
            timing_.read(access.bank, now_);
            end += s_.cl;
            ++statistics.reads;
            bursts_[access.burst].tell(access.index, end);
        }
        note(writing_ ? DramCommandKind::WRITE : DramCommandKind::READ, access.bank, access.row, access.column);
        statistics.hits += !access.activated;
        statistics.turnarounds += moved_writes_ != writing_;
        statistics.longest_wait = std::max(statistics.longest_wait, now_ - access.since);
        statistics.clocks = std::max(statistics.clocks, end);
        moved_writes_ = writing_;
        ++moved_;
    }

    // Opens a row for the oldest access that needs one, or closes one for it that nothing else waits for.
    void row(unsigned held, unsigned refreshed) {
        Queue& queue = queues_[writing_];
        std::uint64_t seen = refreshed == NONE ? 0 : bit(refreshed);
        for (const Access& access : queue)
            if (hits(access, held, refreshed)) seen |= bit(access.bank);
        for (Access& access : queue) {
            if (seen & bit(access.bank)) continue;
            seen |= bit(access.bank);
            if (access.bank == held && access.row != queue[0].row) continue;
            const bool open = timing_.open(access.bank);
            const std::uint64_t earliest = open ? timing_.precharge(access.bank) : timing_.activate(access.bank);
            const std::uint64_t clock = std::max(earliest, row_commands_);
            if (clock > now_) {
                wake(clock);
                continue;
            }
            if (open) {
                timing_.precharged(access.bank, now_);
                note(DramCommandKind::PRECHARGE, access.bank, 0, 0);
                ++statistics.conflicts;
            } else {
                timing_.activated(access.bank, access.row, now_);
                note(DramCommandKind::ACTIVATE, access.bank, access.row, 0);
                ++statistics.activations;
                access.activated = true;
            }
            row_commands_ = now_ + 1;
            wake(now_ + 1);
        }
    }

    // Closes the rows that nothing has wanted for `close` clocks.
    void close(unsigned refreshed) {
        for (unsigned bank = 0; bank < timing_.banks(); ++bank) {
            if (!timing_.open(bank) || bank == refreshed || wanted(bank)) continue;
            const std::uint64_t idle = std::max(timing_.used(bank) + s_.close, timing_.precharge(bank));
            const std::uint64_t clock = std::max(idle, row_commands_);
            if (clock > now_) {
                wake(clock);
                continue;
            }
            timing_.precharged(bank, now_);
            note(DramCommandKind::PRECHARGE, bank, 0, 0);
            row_commands_ = now_ + 1;
        }
    }

    // Whether an access waits for the row that is open.
    bool wanted(unsigned bank) const {
        const auto hit = [this, bank](const Access& each) { return each.bank == bank && timing_.open(bank, each.row); };
        return std::any_of(std::begin(queues_), std::end(queues_), [&hit](const Queue& queue) {
            return std::any_of(queue.begin(), queue.end(), hit);
        });
    }

    // Closes all rows, and refreshes all banks; nothing else is done before that.
    void refresh_all() {
        const bool closed = timing_.all_closed();
        const std::uint64_t earliest = closed ? timing_.refresh_all() : timing_.precharge_all();
        const std::uint64_t clock = std::max(earliest, row_commands_);
        if (clock > now_) return wake(clock);
        row_commands_ = now_ + 1;
        wake(now_ + 1);
        if (!closed) {
            timing_.precharged_all(now_);
            return note(DramCommandKind::PRECHARGE_ALL, 0, 0, 0);
        }
        timing_.refreshed_all(now_);
        note(DramCommandKind::REFRESH_ALL, 0, 0, 0);
        statistics.refresh_clocks += now_ + s_.rfc - due_;
        refreshed();
    }

    // Closes the row of a bank, and refreshes it.
    void refresh_bank(unsigned bank) {
        const bool open = timing_.open(bank);
        const std::uint64_t clock = std::max(open ? timing_.precharge(bank) : timing_.refresh(bank), row_commands_);
        if (clock > now_) return wake(clock);
        row_commands_ = now_ + 1;
        wake(now_ + 1);
        if (open) {
            timing_.precharged(bank, now_);
            return note(DramCommandKind::PRECHARGE, bank, 0, 0);
        }
        timing_.refreshed(bank, now_);
        note(DramCommandKind::REFRESH_BANK, bank, 0, 0);
        refreshed();
    }

    void refreshed() {
        ++statistics.refreshes;
        due_ = interval(++refreshes_);
        wake(due_);
    }

    void note(DramCommandKind kind, unsigned bank, std::uint32_t row, std::uint32_t column) {
        if (commands) commands->push_back({now_, kind, bank, row, column});
    }

    static std::uint64_t bit(unsigned bank) { return 1ull << bank; }
};
