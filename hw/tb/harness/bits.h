// Packed payloads as little-endian bytes, which is also how Verilator keeps them.
#pragma once

#include <cstdint>
#include <cstring>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "ports of a Verilated model are copied as bytes");

// A field of a payload, in bits.
struct Field {
    unsigned offset, width;
};

constexpr unsigned bytes_of(unsigned bits) { return (bits + 7) / 8; }

inline std::uint64_t get(const std::uint8_t* bytes, Field field) {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < field.width; ++i) {
        const unsigned bit = field.offset + i;
        value |= std::uint64_t(bytes[bit / 8] >> bit % 8 & 1) << i;
    }
    return value;
}

inline void set(std::uint8_t* bytes, Field field, std::uint64_t value) {
    for (unsigned i = 0; i < field.width; ++i) {
        const unsigned bit = field.offset + i;
        bytes[bit / 8] = std::uint8_t((bytes[bit / 8] & ~(1u << bit % 8)) | (value >> i & 1) << bit % 8);
    }
}

// Clears what is above the last bit of a payload: a Verilated model relies on it.
inline void trim(std::uint8_t* bytes, unsigned bits) {
    if (bits % 8) bytes[bits / 8] &= std::uint8_t((1u << bits % 8) - 1);
}

template <unsigned BITS, typename Port>
void write_port(Port& port, const std::uint8_t* bytes) {
    static_assert(sizeof(Port) >= bytes_of(BITS));
    std::memcpy(static_cast<void*>(&port), bytes, bytes_of(BITS));
}

template <unsigned BITS, typename Port>
void read_port(std::uint8_t* bytes, const Port& port) {
    static_assert(sizeof(Port) >= bytes_of(BITS));
    std::memcpy(bytes, static_cast<const void*>(&port), bytes_of(BITS));
}
