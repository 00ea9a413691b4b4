// The C interface that every top has, which Python calls: few calls, many cycles each.
// top_ports.h, which is generated, says everything that depends on parameters.

#include "simulation.h"

#include <cstdint>

API void harness_delete(Simulation* harness) { delete harness; }
API const char* harness_error(const Simulation* harness) { return harness->error.c_str(); }
API std::uint64_t harness_cycle(const Simulation* harness) { return harness->cycle; }
API std::uint32_t harness_irq(const Simulation* harness) { return harness->irq(); }
API int harness_restarting(const Simulation* harness) { return harness->restarting(); }
API void harness_idle(Simulation* harness, std::uint64_t cycles) { harness->idle(cycles); }

API std::uint64_t harness_run(Simulation* harness, std::uint64_t cycles) {
    return harness->run(cycles, [] { return false; });
}

API std::uint64_t harness_run_until_interrupt(Simulation* harness, std::uint64_t limit) {
    return harness->run(limit, [harness] { return harness->irq() != 0; });
}

// What has come; it stays where it is until it is cleared.
API const std::uint8_t* harness_log(const Simulation* harness, unsigned slice, std::uint64_t* size) {
    *size = harness->logs[slice].entries.size();
    return harness->logs[slice].entries.data();
}
API void harness_clear_log(Simulation* harness, unsigned slice) { harness->logs[slice].entries.clear(); }
API void harness_set_log(Simulation* harness, double willing) {
    for (LogSink& log : harness->logs) log.behave(willing);
}

// The response, or -1 if there was none after so many cycles.
API int harness_write_register(Simulation* harness, unsigned unit, std::uint32_t offset, std::uint32_t value,
                               unsigned strobes, std::uint64_t limit) {
    RegisterMaster& master = harness->masters[unit];
    master.write(offset, value, strobes);
    harness->run(limit, [&master] { return !master.busy(); });
    return master.busy() ? -1 : int(master.response());
}

API int harness_read_register(Simulation* harness, unsigned unit, std::uint32_t offset, std::uint32_t* value,
                              std::uint64_t limit) {
    RegisterMaster& master = harness->masters[unit];
    master.read(offset);
    harness->run(limit, [&master] { return !master.busy(); });
    *value = master.value();
    return master.busy() ? -1 : int(master.response());
}

API void harness_set_target(Simulation* harness, unsigned target, const TargetBehaviour* behaviour) {
    harness->targets[target]->behave(*behaviour);
}

// Whether it could be done.
API int harness_equip(Simulation* harness, unsigned target, const DramSettings* settings) {
    return harness->targets[target]->equip(settings);
}

API void harness_dram_statistics(const Simulation* harness, unsigned target, DramStatistics* statistics) {
    *statistics = harness->targets[target]->dram_statistics();
}

API void harness_wrong(Simulation* harness, unsigned target, const Faults* more) {
    Faults& wanted = harness->targets[target]->wanted;
    wanted = {wanted.writes + more->writes, wanted.reads + more->reads, wanted.spoilt + more->spoilt};
}

API void harness_fail_beat(Simulation* harness, unsigned target, std::uint64_t beat) {
    harness->targets[target]->failing_beat = beat;
}

API void harness_injected(const Simulation* harness, unsigned target, Faults* delivered) {
    *delivered = harness->targets[target]->delivered;
}

API void harness_statistics(const Simulation* harness, unsigned target, TargetStatistics* statistics) {
    *statistics = harness->targets[target]->statistics;
}

API void harness_memory(Simulation* harness, unsigned channel, std::uint64_t address, std::uint64_t length,
                        std::uint8_t* to) {
    harness->pages[channel].copy(address, length, to);
}

API void harness_open_waves(Simulation* harness, const char* path) { harness->open_waves(path); }
API void harness_trace(Simulation* harness, std::uint64_t from, std::uint64_t to) { harness->trace(from, to); }
