// What a memory channel is made of, what it counts and what it does, as Python knows them (`hw/tb/harness/dram.py`).
#pragma once

#include <cstdint>

// Times in clocks of the device, as in `hw.params.dram`. `clocks` are those of a cycle of the data path.
struct DramSettings {
    std::uint32_t clocks;
    std::uint32_t access_shift, group_shift, bank_shift, row_shift, column_shift;  // lowest bits in an address
    std::uint32_t group_bits, bank_bits, row_bits, column_bits;
    std::uint32_t bl, cl, cwl, gap, rcd_read, rcd_write, rp, ras, rc;
    std::uint32_t ccd_s, ccd_l, ccd_l_write, rrd_s, rrd_l, faw, wtr_s, wtr_l, wr, rtp;
    std::uint32_t refi, rfc, rfc_bank, rrefd, refresh_banks;  // refresh_banks: a bank after the other, not all at once
    std::uint32_t queue, high, low, batch, patience, close;
};

struct DramStatistics {
    std::uint64_t reads, writes;         // accesses on the data bus
    std::uint64_t hits, forwarded;       // accesses that found their row open; reads of what still waits to be written
    std::uint64_t activations, conflicts, turnarounds, refreshes;  // conflicts: rows closed for another
    std::uint64_t refresh_clocks;        // in which all banks wait for a refresh to be made or to end
    std::uint64_t longest_wait;          // of an access in its queue
    std::uint64_t clocks;                // to the end of the last data
};

enum class DramCommandKind : std::uint32_t { ACTIVATE, PRECHARGE, READ, WRITE, PRECHARGE_ALL, REFRESH_ALL, REFRESH_BANK };

// Banks are numbered over all groups, those of a group together.
struct DramCommand {
    std::uint64_t clock;
    DramCommandKind kind;
    std::uint32_t bank, row, column;
};
