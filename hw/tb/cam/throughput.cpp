// Runs the block CAM without Python in the loop: stores tags, looks some up in every cycle, removes them again; then
// fills all frames and replaces random ones.
// ports.h gives the place of every field, the constants of the geometry and the hash matrices.
// Verilator writes the __ of a port as ___05F.
// Usage: throughput LOOKUPS STORED SEED REPLACEMENTS; prints one JSON object. Every response is compared with what was stored.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <vector>

#include "Vcam.h"
#include "ports.h"

struct Field {
    unsigned offset, width;
};

template <std::size_t N>
bool get_bit(const VlWide<N>& port, unsigned bit) { return port[bit / 32] >> bit % 32 & 1; }
template <typename T>
bool get_bit(T port, unsigned bit) { return port >> bit & 1; }

template <std::size_t N>
void set_bit(VlWide<N>& port, unsigned bit, bool value) {
    port[bit / 32] = (port[bit / 32] & ~(1u << bit % 32)) | unsigned(value) << bit % 32;
}
template <typename T>
void set_bit(T& port, unsigned bit, bool value) { port = (port & ~(T(1) << bit)) | T(value) << bit; }

template <typename T>
std::uint64_t get(const T& port, Field field) {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < field.width; ++i) value |= std::uint64_t(get_bit(port, field.offset + i)) << i;
    return value;
}
template <typename T>
void set(T& port, Field field, std::uint64_t value) {
    for (unsigned i = 0; i < field.width; ++i) set_bit(port, field.offset + i, i < 64 && value >> i & 1);
}

struct Random {
    std::uint64_t state;
    std::uint64_t operator()() {  // splitmix64
        std::uint64_t z = state += 0x9E3779B97F4A7C15;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
        z = (z ^ z >> 27) * 0x94D049BB133111EB;
        return z ^ z >> 31;
    }
};

struct Tag {
    std::uint64_t words[(TAG_BITS + 63) / 64];
};

struct Lookup {
    std::uint64_t cycle;
    bool hit;
    std::uint64_t frame;
};

struct Latency {
    std::uint64_t least = ~0ull, most = 0;
    void add(std::uint64_t cycles) {
        least = cycles < least ? cycles : least;
        most = cycles > most ? cycles : most;
    }
};

class Bench {
public:
    std::uint64_t cycle = 0, responses = 0, wrong = 0, slots = 0;
    Latency hit, miss;
    std::uint64_t place = 0;
    bool full = false;

    Bench() : dut_(new Vcam) {
        dut_->clk = 0;
        dut_->clear = 0;
        dut_->requests___05Fvalid = 0;
        for (unsigned bit = 0; bit < sizeof(DIAGONALS) - 1; ++bit) set_bit(dut_->diagonals, bit, DIAGONALS[bit] == '1');
        dut_->rst = 1;
        step();
        step();
        dut_->rst = 0;
    }

    // One cycle: the request on the inputs is taken if the CAM is ready; returns whether it was.
    bool step() {
        dut_->eval();
        const bool taken = dut_->requests___05Fvalid && dut_->requests___05Fready;
        slots += taken;
        if (dut_->responses___05Fvalid && !dut_->rst) respond();
        dut_->clk = 1;
        dut_->eval();
        dut_->clk = 0;
        ++cycle;
        return taken;
    }

    bool ready() {
        dut_->eval();
        return dut_->requests___05Fready;
    }

    void lookup(const Tag& tag, bool stored, std::uint64_t frame) {
        request(OP_LOOKUP, tag);
        const std::uint64_t owed = cycle;
        lookups_.push_back({owed, stored, frame});
        while (!step()) lookups_.back().cycle = cycle;
    }

    void update(const Tag& tag, std::uint64_t frame, bool valid, std::uint64_t place) {
        request(OP_UPDATE, tag);
        set(dut_->requests___05Fpayload, REQUEST_FRAME, frame);
        set(dut_->requests___05Fpayload, REQUEST_VALID, valid);
        set(dut_->requests___05Fpayload, REQUEST_PLACE, place);
        while (!step()) {}
    }

    // Stores a tag that is not there, and returns whether it has found a place.
    bool insert(const Tag& tag, std::uint64_t frame) {
        lookup(tag, false, 0);
        drain();
        if (!full) update(tag, frame, true, place);
        return !full;
    }

    void drain() {
        dut_->requests___05Fvalid = 0;
        while (!lookups_.empty()) step();
    }

private:
    std::unique_ptr<Vcam> dut_;
    std::deque<Lookup> lookups_;

    void request(unsigned op, const Tag& tag) {
        dut_->requests___05Fvalid = 1;
        set(dut_->requests___05Fpayload, REQUEST_OP, op);
        for (unsigned i = 0; i < TAG_BITS; i += 64)
            set(dut_->requests___05Fpayload, {REQUEST_TAG.offset + i, TAG_BITS - i < 64 ? TAG_BITS - i : 64}, tag.words[i / 64]);
    }

    void respond() {
        ++responses;
        if (lookups_.empty()) {
            ++wrong;
            return;
        }
        const Lookup lookup = lookups_.front();
        lookups_.pop_front();
        place = get(dut_->responses___05Fpayload, RESPONSE_PLACE);
        wrong += get(dut_->responses___05Fpayload, RESPONSE_HIT) != lookup.hit;
        wrong += lookup.hit && get(dut_->responses___05Fpayload, RESPONSE_FRAME) != lookup.frame;
        full = get(dut_->responses___05Fpayload, RESPONSE_FULL);
        (lookup.hit ? hit : miss).add(cycle - lookup.cycle);
    }
};

int main(int, char** argv) {
    const std::uint64_t lookups = std::strtoull(argv[1], nullptr, 10), stored = std::strtoull(argv[2], nullptr, 10);
    const std::uint64_t replacements = std::strtoull(argv[4], nullptr, 10);
    Random random{std::strtoull(argv[3], nullptr, 10)};
    const auto tag = [&random] {
        Tag tag;
        for (auto& word : tag.words) word = random();
        if (TAG_BITS % 64) tag.words[TAG_BITS / 64] &= (1ull << TAG_BITS % 64) - 1;
        return tag;
    };

    Bench bench;
    while (!bench.ready()) bench.step();
    const std::uint64_t initialised = bench.cycle;

    std::vector<Tag> tags(stored);
    std::vector<std::uint64_t> places(stored);
    for (std::uint64_t i = 0; i < stored; ++i) {
        tags[i] = tag();
        bench.wrong += !bench.insert(tags[i], i % FRAMES);
        places[i] = bench.place;
    }
    const std::uint64_t insert_slots = bench.slots;

    const std::uint64_t begin = bench.cycle;
    for (std::uint64_t i = 0; i < lookups; ++i) {
        if (random() & 1) {
            const std::uint64_t which = random() % stored;
            bench.lookup(tags[which], true, which % FRAMES);
        } else {
            bench.lookup(tag(), false, 0);
        }
    }
    const std::uint64_t cycles = bench.cycle - begin;
    bench.drain();

    const std::uint64_t before = bench.slots;
    for (std::uint64_t i = 0; i < stored; ++i) bench.update(tags[i], 0, false, places[i]);
    const std::uint64_t remove_slots = bench.slots - before;
    for (std::uint64_t i = 0; i < stored; ++i) bench.lookup(tags[i], false, 0);
    bench.drain();

    // A frame whose insert was refused stays out until it is drawn again.
    std::uint64_t refused = 0, owed = lookups + 2 * stored;
    if (replacements) {
        tags.resize(FRAMES);
        places.resize(FRAMES);
        std::vector<bool> there(FRAMES);
        for (std::uint64_t i = 0; i < FRAMES + replacements; ++i) {
            const std::uint64_t frame = i < FRAMES ? i : random() % FRAMES;
            if (there[frame]) bench.update(tags[frame], frame, false, places[frame]);
            tags[frame] = tag();
            there[frame] = bench.insert(tags[frame], frame);
            places[frame] = bench.place;
            refused += !there[frame];
            ++owed;
        }
        for (std::uint64_t frame = 0; frame < FRAMES; ++frame, ++owed) bench.lookup(tags[frame], there[frame], frame);
        bench.drain();
    }

    std::printf(
        "{\"initialised\": %llu, \"cycles\": %llu, \"lookups\": %llu, \"wrong\": %llu, \"missing\": %lld, "
        "\"hit\": [%llu, %llu], \"miss\": [%llu, %llu], \"insert_slots\": %.3f, \"remove_slots\": %.3f, "
        "\"refused\": %llu}\n",
        (unsigned long long)initialised, (unsigned long long)cycles, (unsigned long long)lookups,
        (unsigned long long)bench.wrong, (long long)(owed - bench.responses),
        (unsigned long long)bench.hit.least, (unsigned long long)bench.hit.most, (unsigned long long)bench.miss.least,
        (unsigned long long)bench.miss.most, double(insert_slots) / double(stored), double(remove_slots) / double(stored),
        (unsigned long long)refused);
    return 0;
}
