// One bus for reads and writes: at most a beat a cycle, and a turnaround between the two.
#pragma once

#include <cstdint>

class SharedBus {
public:
    void behave(std::uint32_t turnaround, std::uint32_t batch) { turnaround_ = turnaround, batch_ = batch; }

    // Decides for a cycle, given who has a beat to move. The bus turns if the others have one, and these have none or
    // have moved a batch; never while a read stands that was not taken. Returns whether it does.
    bool decide(bool reads, bool writes, bool standing, std::uint64_t cycle) {
        const bool mine = writing_ ? writes : reads, others = writing_ ? reads : writes;
        const bool turns = !standing && others && (!mine || moved_ >= batch_);
        if (turns) {
            writing_ = !writing_;
            moved_ = 0;
            free_ = cycle + turnaround_;
        }
        reads_ = !writing_ && cycle >= free_;
        writes_ = writing_ && cycle >= free_;
        return turns;
    }

    bool reads() const { return reads_; }
    bool writes() const { return writes_; }
    void moved() { ++moved_; }

private:
    std::uint32_t turnaround_ = 0, batch_ = 1;
    bool writing_ = false, reads_ = false, writes_ = false;
    std::uint64_t moved_ = 0, free_ = 0;
};
