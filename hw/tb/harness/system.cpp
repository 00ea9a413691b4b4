// The system: a node with requesters, and at each requester host memory and HBM.

#include <cstdint>
#include <memory>
#include <vector>

#include "issued_sink.h"
#include "regions.h"
#include "simulation.h"
#include "target.h"
#include "top_ports.h"

namespace {

// Host memory and HBM of a requester: the same regions, each behind a port of its own.
struct Surroundings {
    Regions regions;
    Window host_window, hbm_window;
    Target<HostPorts, Window> host;
    Target<HbmPorts, Window> hbm;
    IssuedSink issued;

    Surroundings(Vtop& top, unsigned port, Random& seeds)
        : host_window(regions), hbm_window(regions),
          host(host_ports(top, port), host_window, "host", port, seeds()),
          hbm(hbm_ports(top, port), hbm_window, "hbm", port, seeds()), issued(issued_ports(top, port)) {}
};

class SystemSimulation : public Simulation {
public:
    std::vector<std::unique_ptr<Surroundings>> requesters;

    explicit SystemSimulation(std::uint64_t seed) : Simulation(seed) {
        for (unsigned i = 0; i < PORTS; ++i) requesters.push_back(std::make_unique<Surroundings>(*top_, i, seeds_));
        for (auto& requester : requesters) targets.push_back(&requester->host);
        for (auto& requester : requesters) targets.push_back(&requester->hbm);
        begin();
    }

protected:
    void drive(bool) override {
        for (auto& requester : requesters) {
            requester->host.drive(cycle);
            requester->hbm.drive(cycle);
        }
    }

    void sample(bool) override {
        for (auto& requester : requesters) {
            requester->host.sample(cycle);
            requester->hbm.sample(cycle);
            requester->issued.sample(cycle);
        }
    }
};

Surroundings& requester(Simulation* harness, unsigned port) {
    return *static_cast<SystemSimulation*>(harness)->requesters[port];
}

}  // namespace

API Simulation* harness_new(std::uint64_t seed) { return new SystemSimulation(seed); }

// Whether the region was free.
API int harness_map(Simulation* harness, unsigned port, std::uint64_t address, std::uint64_t length,
                    std::uint8_t* bytes, int writable) {
    return requester(harness, port).regions.map({address, address + length, bytes, writable != 0});
}

// Whether there was a region.
API int harness_unmap(Simulation* harness, unsigned port, std::uint64_t address) {
    return requester(harness, port).regions.unmap(address);
}

// What was issued; it stays where it is until it is cleared.
API const std::uint8_t* harness_issued(Simulation* harness, unsigned port, std::uint64_t* size) {
    *size = requester(harness, port).issued.records.size();
    return requester(harness, port).issued.records.data();
}
API void harness_clear_issued(Simulation* harness, unsigned port) { requester(harness, port).issued.records.clear(); }
