// What a requester asks for: bursts, in their order; of a channel alone, each at a clock or later.
#pragma once

#include <cstdint>

struct DramRequest {
    std::uint64_t address, bytes, write, at;
};
