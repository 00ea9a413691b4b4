// Writes down which command of software became which command on the link.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "bits.h"
#include "top_ports.h"

constexpr unsigned ISSUED_BYTES = bytes_of(ISSUED_BITS);

class IssuedSink {
public:
    explicit IssuedSink(IssuedPorts ports) : ports_(ports) {}

    // Appends cycle and payload, if there is one.
    void sample(std::uint64_t cycle) {
        if (!ports_.valid) return;
        std::array<std::uint8_t, ISSUED_BYTES> payload;
        read_port<ISSUED_BITS>(payload.data(), ports_.payload);
        const auto* stamp = reinterpret_cast<const std::uint8_t*>(&cycle);
        records.insert(records.end(), stamp, stamp + sizeof cycle);
        records.insert(records.end(), payload.begin(), payload.end());
    }

    std::vector<std::uint8_t> records;

private:
    IssuedPorts ports_;
};
