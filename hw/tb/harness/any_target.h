// How memory behind AXI4 behaves, and what it counts: what can be asked of every target, whatever is behind it.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>

#include "dram.h"
#include "random.h"
#include "shared_bus.h"

// Latency is from the address of a read, or the last beat of a write, to the first answer; with a channel of DRAM it
// comes on top of what that takes. `outstanding` holds for reads and for writes. `shared`: reads and writes have one
// bus, whose settings are the next two.
struct TargetBehaviour {
    std::uint32_t latency, jitter, reorder, interleave, outstanding, shared, turnaround, batch;
    double address_willing, data_willing, answer_willing;
};

struct TargetStatistics {
    std::uint64_t read_bursts, read_beats, read_busy, most_reads, write_bursts, write_beats, write_busy, most_writes,
        turns;
};

// Errors that are still to be made, or that were delivered.
struct Faults {
    std::uint64_t writes, reads, spoilt;
};

class AnyTarget {
public:
    static constexpr std::uint64_t EVERY = ~std::uint64_t(0);

    TargetStatistics statistics{};
    Faults wanted{}, delivered{};
    std::uint64_t failing_beat = EVERY;  // of reads that fail; those without it do not

    void behave(const TargetBehaviour& behaviour) {
        behaviour_ = behaviour;
        address_willing_ = Chance(behaviour.address_willing);
        data_willing_ = Chance(behaviour.data_willing);
        answer_willing_ = Chance(behaviour.answer_willing);
        bus_.behave(behaviour.turnaround, behaviour.batch);
    }

    // Puts a channel of DRAM behind it, or, without settings, takes it away; not while a burst is under way there.
    bool equip(const DramSettings* settings) {
        if (dram_ && settings && !std::memcmp(settings, &dram_->settings(), sizeof *settings)) return true;
        if (dram_ && dram_->running()) return false;
        dram_ = settings ? std::make_unique<DramChannel>(*settings) : nullptr;
        return true;
    }

    DramStatistics dram_statistics() const { return dram_ ? dram_->statistics : DramStatistics{}; }

protected:
    TargetBehaviour behaviour_{};
    Chance address_willing_, data_willing_, answer_willing_;
    SharedBus bus_;
    std::unique_ptr<DramChannel> dram_;
};
