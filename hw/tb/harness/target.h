// Memory behind AXI4: late, out of order, interleaved, failing and lying, on request. Checks its manager.
#pragma once

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <cstring>
#include <vector>

#include "any_target.h"
#include "beat.h"
#include "bits.h"
#include "random.h"
#include "ring.h"
#include "top_ports.h"
#include "violation.h"

// Ports are those of one AXI4 interface. A Storage says
// - UNIQUE_IDS: no two bursts in flight may share an ID; if they may, they are answered in order.
// - CRCS: WUSER of a burst's last beat is kept with `keep_crc`, and comes back as RUSER, from `crc`.
// - wrong: why no burst may be there, or nullptr.
// - read, write: move a beat, and return the response.
template <typename Ports, typename Storage>
class Target : public AnyTarget {
public:
    // `name` and `number` say in messages which one it is.
    Target(Ports ports, Storage& storage, const char* name, unsigned number, std::uint64_t seed)
        : ports_(ports), storage_(storage), name_(name), number_(number), random_(seed) {
        reads_.reserve(256);
        writes_.reserve(256);
        hide_read();
        ports_.bvalid = 0;
    }

    // Sets the inputs of the design for this cycle.
    void drive(std::uint64_t cycle) {
        if (dram_) dram_->advance(cycle * dram_->settings().clocks);
        ports_.awready = addresses_.size() + writes_.size() < behaviour_.outstanding && address_willing_(random_);
        ports_.arready = reads_.size() < behaviour_.outstanding && address_willing_(random_);
        const bool standing = reading_ != NONE;
        if (!standing && !reads_.empty() && answer_willing_(random_))
            reading_ = choose(reads_, behaviour_.interleave, cycle);
        if (behaviour_.shared) {
            statistics.turns += bus_.decide(reading_ != NONE, ports_.wvalid, standing, cycle);
            if (!standing && !bus_.reads()) reading_ = NONE;
        }
        ports_.wready = data_willing_(random_) && (!behaviour_.shared || bus_.writes());
        if (!standing) {
            if (reading_ != NONE) show_read(reads_[reading_]);
            else if (ports_.rvalid) hide_read();
        }
        if (answering_ == NONE) {
            if (!writes_.empty() && answer_willing_(random_)) answering_ = choose(writes_, false, cycle);
            ports_.bvalid = answering_ != NONE;
            if (answering_ != NONE) {
                ports_.bid = writes_[answering_].id;
                ports_.bresp = writes_[answering_].response;
            }
        }
    }

    // Looks at the settled outputs of the design in this cycle.
    void sample(std::uint64_t cycle) {
        if (ports_.arvalid || read_address_.standing) {
            const Address offer{ports_.arid, ports_.araddr, ports_.arlen, ports_.arsize, ports_.arburst};
            if (follow(read_address_, offer, ports_.arvalid, ports_.arready, "ar")) take_read(offer, cycle);
        }
        if (ports_.awvalid || write_address_.standing) {
            const Address offer{ports_.awid, ports_.awaddr, ports_.awlen, ports_.awsize, ports_.awburst};
            if (follow(write_address_, offer, ports_.awvalid, ports_.awready, "aw")) take_write(offer);
        }
        if (ports_.wvalid || write_data_.standing) {
            Beat offer{};
            read_port<8 * BEAT_BYTES>(offer.data, ports_.wdata);
            read_port<BEAT_BYTES>(offer.strobes, ports_.wstrb);
            if constexpr (Storage::CRCS) offer.crc = ports_.wuser;
            offer.last = ports_.wlast;
            ++statistics.write_busy;
            if (follow(write_data_, offer, ports_.wvalid, ports_.wready, "w")) {
                data_.push(offer);
                bus_.moved();
            }
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
            end(writes_, answering_);
            answering_ = NONE;
        }
    }

private:
    static constexpr unsigned INCR = 1;
    static constexpr std::uint64_t SIZE = __builtin_ctz(BEAT_BYTES), BOUNDARY = 4096;
    static constexpr std::size_t IDS = 256;
    static constexpr int NONE = -1;
    static constexpr unsigned ABSENT = ~0u;

    struct Burst {
        std::uint64_t id, address, beats, due, done;
        bool fails;
        std::uint64_t failing_beat;  // of a read that fails
        std::uint64_t spoilt_beat;   // `beats` if none is
        Response response;           // of a write
        bool write;
        unsigned dram;  // its number there; then `due` is how many cycles its answers are later than its data
    };

    struct Address {
        std::uint64_t id, address, length, size, burst;
    };

    // An offer stands unchanged until it is taken.
    template <typename Offer>
    struct Watch {
        bool standing = false;
        Offer offered;
    };

    Ports ports_;
    Storage& storage_;
    const char* name_;
    unsigned number_;
    Random random_;
    Watch<Address> read_address_, write_address_;
    Watch<Beat> write_data_;
    Ring<Burst> addresses_;  // writes whose data is not all here
    Ring<Beat> data_;        // data whose address is not here
    std::vector<Burst> writes_, reads_;
    int reading_ = NONE, answering_ = NONE;

    template <typename Offer>
    bool follow(Watch<Offer>& watch, const Offer& offer, bool valid, bool ready, const char* channel) {
        if (watch.standing && !valid)
            violation("%s %u: %svalid fell before %sready", name_, number_, channel, channel);
        if (watch.standing && std::memcmp(&offer, &watch.offered, sizeof offer))
            violation("%s %u: what %s offers changed before it was taken", name_, number_, channel);
        watch.standing = valid && !ready;
        if (watch.standing) watch.offered = offer;
        return valid && ready;
    }

    // The burst to answer next: one that has been begun, unless interleaving; else one that is due, and of its ID the
    // oldest.
    int choose(const std::vector<Burst>& bursts, bool interleave, std::uint64_t cycle) {
        if (!interleave)
            for (std::size_t i = 0; i < bursts.size(); ++i)
                if (bursts[i].done) return due(bursts[i], cycle) ? int(i) : NONE;
        if (!behaviour_.reorder) return due(bursts[0], cycle) ? 0 : NONE;
        int chosen = NONE;
        std::uint64_t seen = 0;
        std::bitset<IDS> older;  // wider IDs share places, which only keeps more in order
        for (std::size_t i = 0; i < bursts.size(); ++i) {
            const std::size_t id = bursts[i].id % IDS;
            if (!older[id] && due(bursts[i], cycle) && random_.below(++seen) == 0) chosen = int(i);
            older.set(id);
        }
        return chosen;
    }

    Burst burst(const Address& offer, const char* channel) {
        const std::uint64_t beats = offer.length + 1, bytes = beats * BEAT_BYTES;
        const std::uint64_t end = offer.address / BEAT_BYTES * BEAT_BYTES + (bytes - 1);
        const char* wrong = storage_.wrong(offer.address, bytes);
        if (offer.address / BOUNDARY != end / BOUNDARY) wrong = "crosses a page";
        else if (wrong) {}
        else if (offer.size != SIZE) wrong = "has beats of another size";
        else if (offer.burst != INCR) wrong = "does not increment";
        if (wrong)
            violation("%s %u: %s burst of %llu beats at %#llx, ID %llu, %s", name_, number_, channel,
                      (unsigned long long)beats, (unsigned long long)offer.address, (unsigned long long)offer.id, wrong);
        return {offer.id, offer.address, beats, 0, 0, false, EVERY, beats, OKAY, false, ABSENT};
    }

    void unused(const Burst& other, const Address& offer, const char* channel) {
        if (Storage::UNIQUE_IDS && other.id == offer.id)
            violation("%s %u: %s burst at %#llx has ID %llu, which is in flight", name_, number_, channel,
                      (unsigned long long)offer.address, (unsigned long long)offer.id);
    }

    // All that a burst has to move is here.
    void arrive(Burst& burst, std::uint64_t cycle) {
        burst.due = behaviour_.latency + (behaviour_.jitter ? random_.below(behaviour_.jitter + 1) : 0);
        if (!dram_) burst.due += cycle;
        else {
            const std::uint64_t bytes = burst.beats * BEAT_BYTES - burst.address % BEAT_BYTES;
            burst.dram = dram_->begin(burst.write, burst.address, bytes, cycle * dram_->settings().clocks);
        }
    }

    // Whether its next beat, or its answer, may be given.
    bool due(const Burst& burst, std::uint64_t cycle) const {
        if (burst.dram == ABSENT || burst.due > cycle) return burst.due <= cycle;
        const std::uint64_t address = address_of(burst), bytes = BEAT_BYTES - address % BEAT_BYTES;
        const std::uint64_t when = burst.write ? dram_->when(burst.dram) : dram_->when(burst.dram, address, bytes);
        return when <= (cycle - burst.due) * dram_->settings().clocks;
    }

    void end(std::vector<Burst>& bursts, int number) {
        if (bursts[number].dram != ABSENT) dram_->end(bursts[number].dram);
        bursts.erase(bursts.begin() + number);
    }

    static bool use(std::uint64_t& count) { return count && count--; }

    void take_read(const Address& offer, std::uint64_t cycle) {
        Burst taken = burst(offer, "ar");
        for (const Burst& other : reads_) unused(other, offer, "ar");
        arrive(taken, cycle);
        taken.failing_beat = failing_beat;
        taken.fails = (failing_beat == EVERY || failing_beat < taken.beats) && use(wanted.reads);
        if (!taken.fails && use(wanted.spoilt)) taken.spoilt_beat = random_.below(taken.beats);
        reads_.push_back(taken);
        ++statistics.read_bursts;
        statistics.most_reads = std::max<std::uint64_t>(statistics.most_reads, reads_.size());
    }

    void take_write(const Address& offer) {
        Burst taken = burst(offer, "aw");
        for (const Burst& other : writes_) unused(other, offer, "aw");
        for (std::size_t i = 0; i < addresses_.size(); ++i) unused(addresses_[i], offer, "aw");
        taken.write = true;
        taken.fails = use(wanted.writes);
        taken.response = taken.fails ? SLVERR : OKAY;
        addresses_.push(taken);
        ++statistics.write_bursts;
        statistics.most_writes = std::max<std::uint64_t>(statistics.most_writes, addresses_.size() + writes_.size());
    }

    void store(Burst& burst, const Beat& beat, std::uint64_t cycle) {
        const bool last = burst.done == burst.beats - 1;
        if (bool(beat.last) != last)
            violation("%s %u: WLAST is %u in beat %llu of %llu at %#llx", name_, number_, beat.last,
                      (unsigned long long)burst.done, (unsigned long long)burst.beats, (unsigned long long)burst.address);
        const std::uint64_t address = address_of(burst);
        for (unsigned i = 0; i < address % BEAT_BYTES; ++i)
            if (beat.strobes[i / 8] >> i % 8 & 1)
                violation("%s %u: a strobe of byte %u in the first beat of the burst at %#llx", name_, number_, i,
                          (unsigned long long)burst.address);
        burst.response = std::max(burst.response, storage_.write(address / BEAT_BYTES * BEAT_BYTES, beat));
        if constexpr (Storage::CRCS)
            if (last && beat.written()) storage_.keep_crc(burst.address, beat.crc);
        ++burst.done;
        ++statistics.write_beats;
        if (last) {
            burst.done = 0;
            arrive(burst, cycle);
            writes_.push_back(burst);
            addresses_.pop();
        }
    }

    // Where the next beat of a burst begins: only the first may be unaligned.
    static std::uint64_t address_of(const Burst& burst) {
        return burst.done ? (burst.address / BEAT_BYTES + burst.done) * BEAT_BYTES : burst.address;
    }

    // Offers the next beat of a read.
    void show_read(const Burst& burst) {
        const bool last = burst.done == burst.beats - 1;
        std::uint8_t data[BEAT_BYTES];
        const Response response = storage_.read(address_of(burst), data, random_);
        if (burst.done == burst.spoilt_beat) {  // in the last beat only the first byte is sure to matter
            const std::uint64_t bit = random_.below(last ? 8 : 8 * BEAT_BYTES);
            data[bit / 8] ^= std::uint8_t(1u << bit % 8);
        }
        write_port<8 * BEAT_BYTES>(ports_.rdata, data);
        ports_.rid = burst.id;
        const bool fails = burst.fails && (burst.failing_beat == EVERY || burst.failing_beat == burst.done);
        ports_.rresp = fails ? SLVERR : response;
        ports_.rlast = last;
        if constexpr (Storage::CRCS) ports_.ruser = last ? storage_.crc(burst.address) : std::uint32_t(random_());
        ports_.rvalid = 1;
    }

    // What is not valid is noise.
    void hide_read() {
        std::uint8_t data[BEAT_BYTES];
        for (std::uint8_t& byte : data) byte = std::uint8_t(random_());
        write_port<8 * BEAT_BYTES>(ports_.rdata, data);
        ports_.rlast = random_() & 1;
        if constexpr (Storage::CRCS) ports_.ruser = std::uint32_t(random_());
        ports_.rvalid = 0;
    }

    void end_beat() {
        Burst& burst = reads_[reading_];
        bus_.moved();
        ++statistics.read_beats;
        if (++burst.done == burst.beats) {
            delivered.reads += burst.fails;
            delivered.spoilt += burst.spoilt_beat != burst.beats;
            end(reads_, reading_);
        }
        reading_ = NONE;
    }
};
