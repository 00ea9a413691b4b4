// What a requester asks for: bursts, in their order.
#pragma once

#include <cstdint>

struct DramRequest {
    std::uint64_t address, bytes, write;
};
