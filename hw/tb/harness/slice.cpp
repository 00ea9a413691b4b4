// A slice, or a node of several, with requesters' ends at its links.

#include <cstdint>
#include <vector>

#include "link_endpoint.h"
#include "simulation.h"
#include "top_ports.h"

namespace {

class SliceSimulation : public Simulation {
public:
    std::vector<LinkEndpoint> links;

    explicit SliceSimulation(std::uint64_t seed) : Simulation(seed) {
        for (unsigned i = 0; i < PORTS; ++i) links.emplace_back(link_ports(*top_, i), i, seeds_());
        begin();
    }

    bool down(unsigned port) const { return top_->down >> port & 1; }

protected:
    void drive(bool held) override {
        top_->renewed = 0;
        for (unsigned i = 0; i < PORTS; ++i) {
            const bool renewing = links[i].renewing(down(i), cycle);
            top_->renewed |= unsigned(renewing) << i;
            links[i].drive(cycle, held || renewing || down(i));
        }
    }

    void sample(bool held) override {
        for (unsigned i = 0; i < PORTS; ++i) links[i].sample(cycle, held || down(i));
    }
};

LinkEndpoint& link(Simulation* harness, unsigned port) { return static_cast<SliceSimulation*>(harness)->links[port]; }

}  // namespace

API Simulation* harness_new(std::uint64_t seed) { return new SliceSimulation(seed); }

API void harness_set_link(Simulation* harness, unsigned port, const LinkBehaviour* behaviour) {
    link(harness, port).behave(*behaviour);
}

API void harness_send(Simulation* harness, unsigned port, unsigned channel, const std::uint8_t* flits,
                      std::uint64_t count) {
    link(harness, port).send(channel, flits, count);
}

API std::uint64_t harness_pending(Simulation* harness, unsigned port) { return link(harness, port).pending(); }

API void harness_fall_silent(Simulation* harness, unsigned port) { link(harness, port).fall_silent(); }
API void harness_renew(Simulation* harness, unsigned port) { link(harness, port).renew(); }
API int harness_down(Simulation* harness, unsigned port) { return link(harness, port).down(); }
API std::uint64_t harness_turned(Simulation* harness, unsigned port) { return link(harness, port).turned(); }

// What has come; it stays where it is until it is cleared.
API const std::uint8_t* harness_received(Simulation* harness, unsigned port, std::uint64_t* size) {
    *size = link(harness, port).received.size();
    return link(harness, port).received.data();
}
API void harness_clear_received(Simulation* harness, unsigned port) { link(harness, port).received.clear(); }
