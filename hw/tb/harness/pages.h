// What a memory channel of a slice holds: pages that exist once they are written, with a CRC for each segment.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <unordered_map>

#include "beat.h"
#include "random.h"
#include "top_ports.h"

constexpr std::uint64_t PAGE = 4096;
constexpr std::uint8_t UNWRITTEN = 0xA5;

struct Page {
    std::uint8_t bytes[PAGE];
    std::uint32_t crcs[PAGE / SEGMENT_BYTES];
};

// The storage of a `Target` whose bursts are segments.
class Pages {
public:
    static constexpr bool UNIQUE_IDS = true, CRCS = true;

    const char* wrong(std::uint64_t address, std::uint64_t bytes) const {
        if (address % SEGMENT_BYTES) return "is not aligned to a segment";
        if (bytes > SEGMENT_BYTES) return "is longer than a segment";
        if (address + bytes > CHANNEL_BYTES) return "is beyond the end of memory";
        return nullptr;
    }

    Response read(std::uint64_t address, std::uint8_t* data, Random&) {
        copy(address, BEAT_BYTES, data);
        return OKAY;
    }

    Response write(std::uint64_t address, const Beat& beat) {
        const unsigned written = beat.written();
        if (!written) return OKAY;
        std::uint8_t* bytes = make(address).bytes + address % PAGE;
        if (written == BEAT_BYTES) std::memcpy(bytes, beat.data, BEAT_BYTES);
        else
            for (unsigned i = 0; i < BEAT_BYTES; ++i)
                if (beat.strobes[i / 8] >> i % 8 & 1) bytes[i] = beat.data[i];
        return OKAY;
    }

    std::uint32_t crc(std::uint64_t address) {
        const Page* page = find(address);
        return page ? page->crcs[address % PAGE / SEGMENT_BYTES] : 0;
    }

    void keep_crc(std::uint64_t address, std::uint32_t crc) {
        make(address).crcs[address % PAGE / SEGMENT_BYTES] = crc;
    }

    // Copies bytes out, over pages.
    void copy(std::uint64_t address, std::uint64_t length, std::uint8_t* to) {
        while (length) {
            const std::uint64_t at = address % PAGE, part = std::min(length, PAGE - at);
            if (const Page* page = find(address)) std::memcpy(to, page->bytes + at, part);
            else std::memset(to, UNWRITTEN, part);
            address += part, to += part, length -= part;
        }
    }

private:
    std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
    std::uint64_t last_ = ~0ull;
    Page* page_ = nullptr;

    // The page of an address, or none if nothing was written to it.
    Page* find(std::uint64_t address) {
        const std::uint64_t number = address / PAGE;
        if (number == last_) return page_;
        const auto found = pages_.find(number);
        if (found == pages_.end()) return nullptr;
        last_ = number;
        return page_ = found->second.get();
    }

    Page& make(std::uint64_t address) {
        if (Page* page = find(address)) return *page;
        auto page = std::make_unique<Page>();
        std::memset(page->bytes, UNWRITTEN, PAGE);
        Page& made = *page;
        pages_.emplace(address / PAGE, std::move(page));
        return made;
    }
};
