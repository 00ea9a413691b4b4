// The slice with all its models, and the C interface that Python calls: few calls, many cycles each.
// slice_ports.h, which is generated, says everything that depends on parameters.

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "link_endpoint.h"
#include "log_sink.h"
#include "memory_channel.h"
#include "register_master.h"
#include "slice_ports.h"
#include "violation.h"
#if WAVES
#include "verilated_vcd_c.h"
#endif

namespace {

constexpr unsigned RESET_CYCLES = 2;

class Harness {
    VerilatedContext context_;
    std::unique_ptr<Vslice> top_;
    std::uint64_t trace_from_ = 0, trace_to_ = ~0ull;
#if WAVES
    std::unique_ptr<VerilatedVcdC> waves_;
#endif

public:
    RegisterMaster master;
    LogSink log;
    std::vector<LinkEndpoint> links;
    std::vector<MemoryChannel> memory;
    std::uint64_t cycle = 0;
    std::string error;

    explicit Harness(std::uint64_t seed)
        : top_(make(context_, seed)), master(axi_ports(*top_)), log(log_ports(*top_), ~seed) {
        Random seeds(seed);
        for (unsigned i = 0; i < PORTS; ++i) links.emplace_back(link_ports(*top_, i), i, seeds());
        for (unsigned i = 0; i < CHANNELS; ++i) memory.emplace_back(memory_ports(*top_, i), i, seeds());
        top_->clk = 0;  // inputs too begin at random
        top_->rst = 1;
        for (unsigned i = 0; i < RESET_CYCLES; ++i) turn();
        top_->rst = 0;
    }

    ~Harness() {
#if WAVES
        if (waves_) waves_->close();
#endif
        top_->final();
    }

    // Runs until `done` says so, for so many cycles at most, or until a rule is broken.
    template <typename Done>
    std::uint64_t run(std::uint64_t cycles, Done done) {
        if (!error.empty()) return 0;
        const std::uint64_t begin = cycle;
        try {
            while (cycle - begin < cycles && !done()) step();
        } catch (const Violation& violation) {
            error = violation.what();
        }
        return cycle - begin;
    }

    // The clock alone: what the models are compared with. What they have not seen they cannot go on from.
    void idle(std::uint64_t cycles) {
        error = "the clock has run without the models";
        for (; cycles; --cycles) turn();
    }

    bool irq() const { return top_->irq; }
    bool restarting() const { return top_->restarting; }

    void open_waves(const char* path) {
#if WAVES
        waves_ = std::make_unique<VerilatedVcdC>();
        top_->trace(waves_.get(), 99);
        waves_->open(path);
#else
        (void)path;
#endif
    }

    void trace(std::uint64_t from, std::uint64_t to) { trace_from_ = from, trace_to_ = to; }

private:
    static std::unique_ptr<Vslice> make(VerilatedContext& context, std::uint64_t seed) {
        context.randReset(2);
        context.randSeed(int(seed % 0x7FFFFFFF) + 1);
        context.traceEverOn(WAVES);
        return std::make_unique<Vslice>(&context);
    }

    // A cycle: the models drive, all settles, the models look, and the clock rises.
    void step() {
        const bool held = top_->restarting;
        for (LinkEndpoint& link : links) link.drive(cycle, held);
        for (MemoryChannel& channel : memory) channel.drive(cycle);
        master.drive();
        log.drive();
        top_->eval();
        for (LinkEndpoint& link : links) link.sample(cycle, held);
        for (MemoryChannel& channel : memory) channel.sample(cycle);
        master.sample();
        log.sample(cycle, held);
        dump(2 * cycle);
        rise();
        ++cycle;
    }

    void turn() {
        top_->eval();
        rise();
    }

    void rise() {
        top_->clk = 1;
        top_->eval();
        dump(2 * cycle + 1);
        top_->clk = 0;
    }

    void dump(std::uint64_t time) {
#if WAVES
        if (waves_ && cycle >= trace_from_ && cycle < trace_to_) waves_->dump(time);
#else
        (void)time;
#endif
    }
};

const std::uint8_t* bytes(const std::vector<std::uint8_t>& vector, std::uint64_t* size) {
    *size = vector.size();
    return vector.data();
}

}  // namespace

#define API extern "C" __attribute__((visibility("default")))

API Harness* harness_new(std::uint64_t seed) { return new Harness(seed); }
API void harness_delete(Harness* harness) { delete harness; }
API const char* harness_error(const Harness* harness) { return harness->error.c_str(); }
API std::uint64_t harness_cycle(const Harness* harness) { return harness->cycle; }
API int harness_irq(const Harness* harness) { return harness->irq(); }
API int harness_restarting(const Harness* harness) { return harness->restarting(); }
API void harness_idle(Harness* harness, std::uint64_t cycles) { harness->idle(cycles); }

API std::uint64_t harness_run(Harness* harness, std::uint64_t cycles) {
    return harness->run(cycles, [] { return false; });
}

API void harness_set_memory(Harness* harness, const MemoryBehaviour* behaviour) {
    for (MemoryChannel& channel : harness->memory) channel.behave(*behaviour);
}

API void harness_set_links(Harness* harness, const LinkBehaviour* behaviour) {
    for (LinkEndpoint& link : harness->links) link.behave(*behaviour);
}

API void harness_set_log(Harness* harness, double willing) { harness->log.behave(willing); }

API void harness_send(Harness* harness, unsigned port, unsigned channel, const std::uint8_t* flits, std::uint64_t count) {
    harness->links[port].send(channel, flits, count);
}

API std::uint64_t harness_pending(const Harness* harness, unsigned port) { return harness->links[port].pending(); }

// What has come; it stays where it is until it is cleared.
API const std::uint8_t* harness_received(const Harness* harness, unsigned port, std::uint64_t* size) {
    return bytes(harness->links[port].received, size);
}
API void harness_clear_received(Harness* harness, unsigned port) { harness->links[port].received.clear(); }
API const std::uint8_t* harness_log(const Harness* harness, std::uint64_t* size) {
    return bytes(harness->log.entries, size);
}
API void harness_clear_log(Harness* harness) { harness->log.entries.clear(); }

// The response, or -1 if there was none after so many cycles.
API int harness_write_register(Harness* harness, std::uint32_t offset, std::uint32_t value, unsigned strobes,
                               std::uint64_t limit) {
    RegisterMaster& master = harness->master;
    master.write(offset, value, strobes);
    harness->run(limit, [&master] { return !master.busy(); });
    return master.busy() ? -1 : int(master.response());
}

API int harness_read_register(Harness* harness, std::uint32_t offset, std::uint32_t* value, std::uint64_t limit) {
    RegisterMaster& master = harness->master;
    master.read(offset);
    harness->run(limit, [&master] { return !master.busy(); });
    *value = master.value();
    return master.busy() ? -1 : int(master.response());
}

API void harness_wrong(Harness* harness, unsigned channel, const Faults* more) {
    Faults& wanted = harness->memory[channel].wanted;
    wanted = {wanted.writes + more->writes, wanted.reads + more->reads, wanted.spoilt + more->spoilt};
}

API void harness_injected(const Harness* harness, unsigned channel, Faults* delivered) {
    *delivered = harness->memory[channel].delivered;
}

API void harness_memory(Harness* harness, unsigned channel, std::uint64_t address, std::uint64_t length,
                        std::uint8_t* to) {
    harness->memory[channel].pages.read(address, length, to);
}

API void harness_statistics(const Harness* harness, unsigned channel, MemoryStatistics* statistics) {
    *statistics = harness->memory[channel].statistics;
}

API void harness_open_waves(Harness* harness, const char* path) { harness->open_waves(path); }
API void harness_trace(Harness* harness, std::uint64_t from, std::uint64_t to) { harness->trace(from, to); }
