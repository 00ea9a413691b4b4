// Takes the order log.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "bits.h"
#include "random.h"
#include "top_ports.h"
#include "violation.h"

constexpr unsigned LOG_BYTES = bytes_of(LOG_BITS);

class LogSink {
public:
    std::vector<std::uint8_t> entries;  // cycle and payload of each that was taken

    LogSink(LogPorts ports, std::uint64_t seed) : ports_(ports), random_(seed) { entries.reserve(1 << 16); }

    void behave(double willing) { willing_ = Chance(willing); }

    void drive() { ports_.ready = willing_(random_); }

    void sample(std::uint64_t cycle, bool held) {
        const bool stood = standing_;
        standing_ = false;
        if (held) return;  // a slice that restarts withdraws what it offers
        if (!ports_.valid) {
            if (stood) violation("log: valid fell before ready");
            return;
        }
        std::array<std::uint8_t, LOG_BYTES> offer;
        read_port<LOG_BITS>(offer.data(), ports_.payload);
        if (stood && offer != offered_) violation("log: what is offered changed before it was taken");
        if (ports_.ready) {
            const auto* stamp = reinterpret_cast<const std::uint8_t*>(&cycle);
            entries.insert(entries.end(), stamp, stamp + sizeof cycle);
            entries.insert(entries.end(), offer.begin(), offer.end());
        } else {
            standing_ = true;
            offered_ = offer;
        }
    }

private:
    LogPorts ports_;
    Random random_;
    Chance willing_;
    bool standing_ = false;
    std::array<std::uint8_t, LOG_BYTES> offered_{};
};
