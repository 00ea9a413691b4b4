// A design under Verilator with what every top has around it: memory, the order log, and software at the registers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "log_sink.h"
#include "pages.h"
#include "random.h"
#include "register_master.h"
#include "target.h"
#include "top_ports.h"
#include "violation.h"
#if WAVES
#include "verilated_vcd_c.h"
#endif

class Simulation {
    VerilatedContext context_;

protected:
    std::unique_ptr<Vtop> top_;
    Random seeds_;

public:
    std::vector<RegisterMaster> masters;
    std::vector<LogSink> logs;  // one a slice
    std::vector<Pages> pages;
    std::vector<Target<MemoryPorts, Pages>> memory;
    std::vector<AnyTarget*> targets;  // those of memory first
    std::uint64_t cycle = 0;
    std::string error;

    virtual ~Simulation() {
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

    std::uint32_t irq() const { return top_->irq; }
    bool restarting() const { return top_->restarting; }  // any slice

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

protected:
    explicit Simulation(std::uint64_t seed)
        : top_(make(context_, seed)), seeds_(seed) {
        for (unsigned i = 0; i < SLICES; ++i) logs.emplace_back(log_ports(*top_, i), ~seed + i);
        for (unsigned i = 0; i < UNITS; ++i) masters.emplace_back(axi_ports(*top_, i), i);
    }

    // What a top has beside that, before and after the design has settled in a cycle; `held`: a slice restarts.
    virtual void drive(bool held) = 0;
    virtual void sample(bool held) = 0;

    // Ends the construction: memory, then a reset.
    void begin() {
        static constexpr unsigned RESET_CYCLES = 2;
        tie_off(*top_);
        pages.resize(CHANNELS);
        memory.reserve(CHANNELS);
        for (unsigned i = 0; i < CHANNELS; ++i)
            memory.emplace_back(memory_ports(*top_, i), pages[i], "memory", i, seeds_());
        for (unsigned i = 0; i < CHANNELS; ++i) targets.insert(targets.begin() + i, &memory[i]);
        top_->clk = 0;  // inputs too begin at random
        top_->rst = 1;
        for (unsigned i = 0; i < RESET_CYCLES; ++i) turn();
        top_->rst = 0;
    }

private:
    std::uint64_t trace_from_ = 0, trace_to_ = ~0ull;
#if WAVES
    std::unique_ptr<VerilatedVcdC> waves_;
#endif

    static std::unique_ptr<Vtop> make(VerilatedContext& context, std::uint64_t seed) {
        context.randReset(2);
        context.randSeed(int(seed % 0x7FFFFFFF) + 1);
        context.traceEverOn(WAVES);
        return std::make_unique<Vtop>(&context);
    }

    // A cycle: the models drive, all settles, the models look, and the clock rises.
    void step() {
        const bool held = top_->restarting;
        drive(held);
        for (auto& channel : memory) channel.drive(cycle);
        for (RegisterMaster& master : masters) master.drive();
        for (LogSink& log : logs) log.drive();
        top_->eval();
        sample(held);
        for (auto& channel : memory) channel.sample(cycle);
        for (RegisterMaster& master : masters) master.sample();
        for (unsigned i = 0; i < SLICES; ++i) logs[i].sample(cycle, top_->restarting >> i & 1);
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

#define API extern "C" __attribute__((visibility("default")))
