// What a requester can reach: regions of its addresses, each a buffer of the caller, in place.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "beat.h"
#include "random.h"
#include "top_ports.h"

struct Region {
    std::uint64_t begin, end;
    std::uint8_t* bytes;
    bool writable;

    bool holds(std::uint64_t address) const { return begin <= address && address < end; }
};

class Regions {
public:
    // Regions begin at multiples of 4096, and do not overlap: whether this one was taken.
    bool map(const Region& region) {
        const auto next = after(region.begin);
        if (next != regions_.end() && next->begin < region.end) return false;
        if (next != regions_.begin() && (next - 1)->end > region.begin) return false;
        regions_.insert(next, region);
        return true;
    }

    // Whether there was one that begins there.
    bool unmap(std::uint64_t address) {
        const auto next = after(address);
        if (next == regions_.begin() || (next - 1)->begin != address) return false;
        regions_.erase(next - 1);
        return true;
    }

    // The region of an address, or none; `last` is where the one who asks found his last.
    const Region* find(std::uint64_t address, std::size_t& last) const {
        if (last < regions_.size() && regions_[last].holds(address)) return &regions_[last];
        const auto next = after(address);
        if (next == regions_.begin() || !(next - 1)->holds(address)) return nullptr;
        last = std::size_t(next - 1 - regions_.begin());
        return &regions_[last];
    }

private:
    std::vector<Region> regions_;  // by their addresses

    std::vector<Region>::const_iterator after(std::uint64_t address) const {
        return std::upper_bound(regions_.begin(), regions_.end(), address,
                                [](std::uint64_t value, const Region& region) { return value < region.begin; });
    }
};

// The storage of a `Target` that reaches regions. What is not mapped is DECERR, a write to what may only be read SLVERR.
class Window {
public:
    static constexpr bool UNIQUE_IDS = false, CRCS = false;

    explicit Window(const Regions& regions) : regions_(regions) {}

    const char* wrong(std::uint64_t, std::uint64_t) const { return nullptr; }

    // A beat that begins in a region is read; bytes past its end are noise.
    Response read(std::uint64_t address, std::uint8_t* data, Random& random) {
        const std::uint64_t base = address / BEAT_BYTES * BEAT_BYTES;
        const Region* region = regions_.find(address, last_read_);
        const std::uint64_t there = region ? std::min<std::uint64_t>(BEAT_BYTES, region->end - base) : 0;
        if (there) std::memcpy(data, region->bytes + (base - region->begin), there);
        for (std::uint64_t i = there; i < BEAT_BYTES; ++i) data[i] = std::uint8_t(random());
        return region ? OKAY : DECERR;
    }

    // What is in a region is written, whatever becomes of the rest.
    Response write(std::uint64_t base, const Beat& beat) {
        const unsigned written = beat.written();
        if (!written) return OKAY;
        const Region* region = regions_.find(base, last_write_);
        if (!region) return DECERR;
        if (!region->writable) return SLVERR;
        const std::uint64_t there = region->end - base;
        std::uint8_t* bytes = region->bytes + (base - region->begin);
        if (written == BEAT_BYTES && there >= BEAT_BYTES) {
            std::memcpy(bytes, beat.data, BEAT_BYTES);
            return OKAY;
        }
        Response response = OKAY;
        for (unsigned i = 0; i < BEAT_BYTES; ++i)
            if (beat.strobes[i / 8] >> i % 8 & 1) {
                if (i < there) bytes[i] = beat.data[i];
                else response = DECERR;
            }
        return response;
    }

private:
    const Regions& regions_;
    std::size_t last_read_ = 0, last_write_ = 0;
};
