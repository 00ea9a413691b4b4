// Random numbers, and events of a given probability.
#pragma once

#include <cstdint>

class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}

    std::uint64_t operator()() {  // splitmix64 (Steele, Lea, Flood, OOPSLA 2014)
        std::uint64_t z = state_ += 0x9E3779B97F4A7C15;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
        z = (z ^ z >> 27) * 0x94D049BB133111EB;
        return z ^ z >> 31;
    }

    // A number from 0 to `count` - 1.
    std::uint64_t below(std::uint64_t count) { return std::uint64_t((unsigned __int128)((*this)()) * count >> 64); }

private:
    std::uint64_t state_;
};

// What happens with a probability; certain things cost no random number.
class Chance {
public:
    explicit Chance(double probability = 1.0)
        : always_(probability >= 1.0), never_(probability <= 0.0),
          threshold_(always_ || never_ ? 0 : std::uint64_t(probability * 18446744073709551616.0)) {}

    bool operator()(Random& random) const { return always_ || (!never_ && random() < threshold_); }

private:
    bool always_, never_;
    std::uint64_t threshold_;
};
