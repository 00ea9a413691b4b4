// A beat of write data, and the responses of AXI4.
#pragma once

#include <cstdint>

#include "top_ports.h"

enum Response : unsigned { OKAY = 0, SLVERR = 2, DECERR = 3 };  // of two, the greater one is told

struct [[gnu::packed]] Beat {  // no padding: compared as bytes
    std::uint8_t data[BEAT_BYTES], strobes[BEAT_BYTES / 8];
    std::uint32_t crc, last;

    // How many bytes it writes.
    unsigned written() const {
        unsigned count = 0;
        for (const std::uint8_t strobe : strobes) count += __builtin_popcount(strobe);
        return count;
    }
};
