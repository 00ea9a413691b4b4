// Memory behind an AXI4 channel: late, out of order, interleaved, failing and lying, on request. Checks its manager.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "bits.h"
#include "pages.h"
#include "random.h"
#include "ring.h"
#include "slice_ports.h"
#include "violation.h"

// Latency is from the address of a read, or the last beat of a write, to the first answer; `outstanding` holds for reads
// and for writes.
struct MemoryBehaviour {
    std::uint32_t latency, jitter, reorder, interleave, outstanding;
    double address_willing, data_willing, answer_willing;
};

struct MemoryStatistics {
    std::uint64_t read_bursts, read_beats, read_busy, most_reads, write_bursts, write_beats, write_busy, most_writes;
};

// Errors that are still to be made, or that were delivered.
struct Faults {
    std::uint64_t writes, reads, spoilt;
};

class MemoryChannel {
public:
    Pages pages;
    MemoryStatistics statistics{};
    Faults wanted{}, delivered{};

    MemoryChannel(MemoryPorts ports, unsigned number, std::uint64_t seed)
        : ports_(ports), number_(number), random_(seed) {
        reads_.reserve(256);
        writes_.reserve(256);
        hide_read();
        ports_.bvalid = 0;
    }

    void behave(const MemoryBehaviour& behaviour) {
        behaviour_ = behaviour;
        address_willing_ = Chance(behaviour.address_willing);
        data_willing_ = Chance(behaviour.data_willing);
        answer_willing_ = Chance(behaviour.answer_willing);
    }

    // Sets the inputs of the slice for this cycle.
    void drive(std::uint64_t cycle) {
        ports_.awready = addresses_.size() + writes_.size() < behaviour_.outstanding && address_willing_(random_);
        ports_.arready = reads_.size() < behaviour_.outstanding && address_willing_(random_);
        ports_.wready = data_willing_(random_);
        if (reading_ == NONE) {
            if (!reads_.empty() && answer_willing_(random_)) reading_ = choose(reads_, behaviour_.interleave, cycle);
            if (reading_ != NONE) show_read(reads_[reading_]);
            else if (ports_.rvalid) hide_read();
        }
        if (answering_ == NONE) {
            if (!writes_.empty() && answer_willing_(random_)) answering_ = choose(writes_, false, cycle);
            ports_.bvalid = answering_ != NONE;
            if (answering_ != NONE) {
                ports_.bid = writes_[answering_].id;
                ports_.bresp = writes_[answering_].fails ? SLVERR : OKAY;
            }
        }
    }

    // Looks at the settled outputs of the slice in this cycle.
    void sample(std::uint64_t cycle) {
        if (ports_.arvalid || read_address_.standing) {
            const Address offer{ports_.arid, ports_.araddr, ports_.arlen, ports_.arsize, ports_.arburst};
            if (read_address_.follow(offer, ports_.arvalid, ports_.arready, number_, "ar")) take_read(offer, cycle);
        }
        if (ports_.awvalid || write_address_.standing) {
            const Address offer{ports_.awid, ports_.awaddr, ports_.awlen, ports_.awsize, ports_.awburst};
            if (write_address_.follow(offer, ports_.awvalid, ports_.awready, number_, "aw")) take_write(offer);
        }
        if (ports_.wvalid || write_data_.standing) {
            Beat offer;
            read_port<8 * BEAT_BYTES>(offer.data, ports_.wdata);
            read_port<BEAT_BYTES>(offer.strobes, ports_.wstrb);
            offer.crc = ports_.wuser;
            offer.last = ports_.wlast;
            ++statistics.write_busy;
            if (write_data_.follow(offer, ports_.wvalid, ports_.wready, number_, "w")) data_.push(offer);
        }
        while (!addresses_.empty() && !data_.empty()) {
            store(addresses_.front(), data_.front(), cycle);
            data_.pop();
        }
        if (reading_ != NONE) {
            ++statistics.read_busy;
            if (ports_.rready) end_beat();
        }
        if (answering_ != NONE && ports_.bready) {
            delivered.writes += writes_[answering_].fails;
            writes_.erase(writes_.begin() + answering_);
            answering_ = NONE;
        }
    }

private:
    static constexpr unsigned OKAY = 0, SLVERR = 2, INCR = 1;
    static constexpr std::uint64_t SIZE = __builtin_ctz(BEAT_BYTES);
    static constexpr int NONE = -1;

    struct Burst {
        std::uint64_t id, address, beats, due, done;
        bool fails;
        std::uint64_t spoilt_beat;  // `beats` if none is
    };

    struct Address {
        std::uint64_t id, address, length, size, burst;
    };

    struct [[gnu::packed]] Beat {  // no padding: compared as bytes
        std::uint8_t data[BEAT_BYTES], strobes[BEAT_BYTES / 8];
        std::uint32_t crc, last;
    };

    // An offer stands unchanged until it is taken.
    template <typename Offer>
    struct Watch {
        bool standing = false;
        Offer offered;

        bool follow(const Offer& offer, bool valid, bool ready, unsigned number, const char* channel) {
            if (standing && !valid) violation("memory %u: %svalid fell before %sready", number, channel, channel);
            if (standing && std::memcmp(&offer, &offered, sizeof offer))
                violation("memory %u: what %s offers changed before it was taken", number, channel);
            standing = valid && !ready;
            if (standing) offered = offer;
            return valid && ready;
        }
    };

    MemoryPorts ports_;
    unsigned number_;
    Random random_;
    MemoryBehaviour behaviour_{};
    Chance address_willing_, data_willing_, answer_willing_;
    Watch<Address> read_address_, write_address_;
    Watch<Beat> write_data_;
    Ring<Burst> addresses_;  // writes whose data is not all here
    Ring<Beat> data_;        // data whose address is not here
    std::vector<Burst> writes_, reads_;
    int reading_ = NONE, answering_ = NONE;

    // The burst to answer next: one that has been begun, unless interleaving; else one that is due.
    int choose(const std::vector<Burst>& bursts, bool interleave, std::uint64_t cycle) {
        if (!interleave)
            for (std::size_t i = 0; i < bursts.size(); ++i)
                if (bursts[i].done) return int(i);
        if (!behaviour_.reorder) return bursts[0].due <= cycle ? 0 : NONE;
        int chosen = NONE;
        std::uint64_t seen = 0;
        for (std::size_t i = 0; i < bursts.size(); ++i)
            if (bursts[i].due <= cycle && random_.below(++seen) == 0) chosen = int(i);
        return chosen;
    }

    Burst burst(const Address& offer, const char* channel) {
        const std::uint64_t beats = offer.length + 1, bytes = beats * BEAT_BYTES;
        const char* wrong = nullptr;
        if (offer.address % SEGMENT_BYTES) wrong = "is not aligned to a segment";
        else if (offer.address / PAGE != (offer.address + bytes - 1) / PAGE) wrong = "crosses a page";
        else if (bytes > SEGMENT_BYTES) wrong = "is longer than a segment";
        else if (offer.address + bytes > CHANNEL_BYTES) wrong = "is beyond the end of memory";
        else if (offer.size != SIZE) wrong = "has beats of another size";
        else if (offer.burst != INCR) wrong = "does not increment";
        if (wrong)
            violation("memory %u: %s burst of %llu beats at %#llx, ID %llu, %s", number_, channel,
                      (unsigned long long)beats, (unsigned long long)offer.address, (unsigned long long)offer.id, wrong);
        return {offer.id, offer.address, beats, 0, 0, false, beats};
    }

    void unused(const Burst& other, const Address& offer, const char* channel) {
        if (other.id == offer.id)
            violation("memory %u: %s burst at %#llx has ID %llu, which is in flight", number_, channel,
                      (unsigned long long)offer.address, (unsigned long long)offer.id);
    }

    std::uint64_t due(std::uint64_t cycle) {
        return cycle + behaviour_.latency + (behaviour_.jitter ? random_.below(behaviour_.jitter + 1) : 0);
    }

    static bool use(std::uint64_t& count) { return count && count--; }

    void take_read(const Address& offer, std::uint64_t cycle) {
        Burst taken = burst(offer, "ar");
        for (const Burst& other : reads_) unused(other, offer, "ar");
        taken.due = due(cycle);
        taken.fails = use(wanted.reads);
        if (!taken.fails && use(wanted.spoilt)) taken.spoilt_beat = random_.below(taken.beats);
        reads_.push_back(taken);
        ++statistics.read_bursts;
        statistics.most_reads = std::max<std::uint64_t>(statistics.most_reads, reads_.size());
    }

    void take_write(const Address& offer) {
        Burst taken = burst(offer, "aw");
        for (const Burst& other : writes_) unused(other, offer, "aw");
        for (std::size_t i = 0; i < addresses_.size(); ++i) unused(addresses_[i], offer, "aw");
        taken.fails = use(wanted.writes);
        addresses_.push(taken);
        ++statistics.write_bursts;
        statistics.most_writes = std::max<std::uint64_t>(statistics.most_writes, addresses_.size() + writes_.size());
    }

    void store(Burst& burst, const Beat& beat, std::uint64_t cycle) {
        const bool last = burst.done == burst.beats - 1;
        if (bool(beat.last) != last)
            violation("memory %u: WLAST is %u in beat %llu of %llu at %#llx", number_, beat.last,
                      (unsigned long long)burst.done, (unsigned long long)burst.beats, (unsigned long long)burst.address);
        const std::uint64_t address = burst.address + burst.done++ * BEAT_BYTES;
        unsigned written = 0;
        for (const std::uint8_t strobes : beat.strobes) written += __builtin_popcount(strobes);
        if (written) {
            Page& page = pages.make(address);
            std::uint8_t* bytes = page.bytes + address % PAGE;
            if (written == BEAT_BYTES) std::memcpy(bytes, beat.data, BEAT_BYTES);
            else
                for (unsigned i = 0; i < BEAT_BYTES; ++i)
                    if (beat.strobes[i / 8] >> i % 8 & 1) bytes[i] = beat.data[i];
            if (last) page.crcs[burst.address % PAGE / SEGMENT_BYTES] = beat.crc;
        }
        ++statistics.write_beats;
        if (last) {
            burst.due = due(cycle);
            burst.done = 0;
            writes_.push_back(burst);
            addresses_.pop();
        }
    }

    // Offers the next beat of a read.
    void show_read(const Burst& burst) {
        const bool last = burst.done == burst.beats - 1;
        const std::uint64_t address = burst.address + burst.done * BEAT_BYTES;
        std::uint8_t data[BEAT_BYTES];
        pages.read(address, BEAT_BYTES, data);
        if (burst.done == burst.spoilt_beat) {  // in the last beat only the first byte is sure to matter
            const std::uint64_t bit = random_.below(last ? 8 : 8 * BEAT_BYTES);
            data[bit / 8] ^= std::uint8_t(1u << bit % 8);
        }
        write_port<8 * BEAT_BYTES>(ports_.rdata, data);
        ports_.rid = burst.id;
        ports_.rresp = burst.fails ? SLVERR : OKAY;
        ports_.rlast = last;
        ports_.ruser = last ? pages.crc(burst.address) : std::uint32_t(random_());
        ports_.rvalid = 1;
    }

    // What is not valid is noise.
    void hide_read() {
        std::uint8_t data[BEAT_BYTES];
        for (std::uint8_t& byte : data) byte = std::uint8_t(random_());
        write_port<8 * BEAT_BYTES>(ports_.rdata, data);
        ports_.rlast = random_() & 1;
        ports_.ruser = std::uint32_t(random_());
        ports_.rvalid = 0;
    }

    void end_beat() {
        Burst& burst = reads_[reading_];
        ++statistics.read_beats;
        if (++burst.done == burst.beats) {
            delivered.reads += burst.fails;
            delivered.spoilt += burst.spoilt_beat != burst.beats;
            reads_.erase(reads_.begin() + reading_);
        }
        reading_ = NONE;
    }
};
