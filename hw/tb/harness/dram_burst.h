// A burst under way in a channel of DRAM: some accesses in a row, and when each is done, as far as that is known.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

struct DramBurst {
    static constexpr std::uint64_t NEVER = ~0ull;

    std::uint64_t first = 0, entered = 0;  // the number of its first access; how many are in the queue, or were

    void begin(std::uint64_t from, std::uint64_t to) {
        first = from;
        when_.assign(to - from + 1, NEVER);
        entered = known_ = end_ = 0;
    }

    bool all_entered() const { return entered == when_.size(); }

    // The access with that place in the burst will be done at a clock.
    void tell(std::uint64_t index, std::uint64_t clock) {
        when_[index] = clock;
        end_ = std::max(end_, clock);
        ++known_;
    }

    // When all of it will be done, or the accesses `from` to `to`; NEVER if that is not known.
    std::uint64_t when() const { return known_ == when_.size() ? end_ : NEVER; }
    std::uint64_t when(std::uint64_t from, std::uint64_t to) const {
        return *std::max_element(when_.begin() + (from - first), when_.begin() + (to - first + 1));
    }

private:
    std::uint64_t known_ = 0, end_ = 0;
    std::vector<std::uint64_t> when_;
};
