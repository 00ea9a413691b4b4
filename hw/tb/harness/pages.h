// What a memory channel holds: pages that exist once they are written, with a CRC for each segment.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <unordered_map>

#include "slice_ports.h"

constexpr std::uint64_t PAGE = 4096;
constexpr std::uint8_t UNWRITTEN = 0xA5;

struct Page {
    std::uint8_t bytes[PAGE];
    std::uint32_t crcs[PAGE / SEGMENT_BYTES];
};

class Pages {
public:
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

    // Copies bytes out, over pages.
    void read(std::uint64_t address, std::uint64_t length, std::uint8_t* to) {
        while (length) {
            const std::uint64_t at = address % PAGE, part = std::min(length, PAGE - at);
            if (const Page* page = find(address)) std::memcpy(to, page->bytes + at, part);
            else std::memset(to, UNWRITTEN, part);
            address += part, to += part, length -= part;
        }
    }

    std::uint32_t crc(std::uint64_t address) {
        const Page* page = find(address);
        return page ? page->crcs[address % PAGE / SEGMENT_BYTES] : 0;
    }

private:
    std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
    std::uint64_t last_ = ~0ull;
    Page* page_ = nullptr;
};
