// An AXI4 manager that always asks, on a target alone: what memory with all its rules gives at best.

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "dram_settings.h"
#include "pages.h"
#include "requests.h"
#include "target.h"
#include "top_ports.h"
#include "violation.h"

namespace {

// A signal is as wide as a Verilated one at least.
struct Wires {
    std::uint64_t awaddr, araddr;
    std::uint32_t awvalid, awready, awid, awlen, awsize, awburst, wvalid, wready, wlast, wuser, bvalid, bready, bid, bresp;
    std::uint32_t arvalid, arready, arid, arlen, arsize, arburst, rvalid, rready, rid, rresp, rlast, ruser;
    std::uint8_t wdata[BEAT_BYTES], wstrb[BEAT_BYTES / 8], rdata[BEAT_BYTES];
};

struct Ports : Wires {};
using WiredTarget = Target<Ports&, Pages>;

constexpr unsigned IDS = 256, SIZE = __builtin_ctz(BEAT_BYTES);

// What is written at an address: never what memory holds before.
void fill(std::uint64_t address, std::uint8_t* data) {
    for (unsigned i = 0; i < BEAT_BYTES; ++i) data[i] = std::uint8_t((address >> 4) * 31 + (address >> 12) + i) & 0x7F;
}

class Manager {
public:
    Manager(Ports& wires, const DramRequest* requests, std::uint64_t count, std::uint64_t outstanding, std::uint64_t* ends)
        : w_(wires), requests_(requests), count_(count), outstanding_(outstanding), ends_(ends), flights_(IDS) {
        std::memset(static_cast<void*>(&w_), 0, sizeof w_);
        w_.bready = w_.rready = w_.awburst = w_.arburst = 1;
        w_.awsize = w_.arsize = SIZE;
        std::memset(w_.wstrb, 0xFF, sizeof w_.wstrb);
        for (unsigned id = IDS; id--;) free_.push_back(id);
    }

    bool done() const { return begun_ == count_ && running_ == 0; }

    // What was offered in a cycle and taken; then what is offered in the next.
    void step(std::uint64_t cycle) {
        watch(cycle);
        if (w_.awready) w_.awvalid = 0;
        if (w_.arready) w_.arvalid = 0;
        if (w_.rvalid) receive(cycle);
        if (w_.bvalid) finish(w_.bid, cycle);
        if (w_.wvalid && w_.wready) {
            w_.wvalid = 0;
            if (w_.wlast) data_.pop();
        }
        for (bool offered = true; offered && begun_ < count_ && running_ < outstanding_;) offered = offer();
        if (!w_.wvalid && !data_.empty()) send(flights_[data_.front()]);
    }

    std::uint64_t together = 0, least_turn = ~0ull;  // cycles with beats both ways; from a beat to one the other way

private:
    struct Flight {
        std::uint64_t request, beat;
    };

    Ports& w_;
    const DramRequest* requests_;
    std::uint64_t count_, outstanding_;
    std::uint64_t* ends_;
    std::vector<Flight> flights_;  // by ID
    std::vector<unsigned> free_;
    Ring<unsigned> data_;  // writes whose data was not all sent
    std::uint64_t begun_ = 0, running_ = 0, last_beat_ = 0;
    bool last_write_ = false;

    // Offers the address of the next request, if its channel is free.
    bool offer() {
        const DramRequest& request = requests_[begun_];
        if (request.write ? w_.awvalid : w_.arvalid) return false;
        const unsigned id = free_.back();
        free_.pop_back();
        flights_[id] = {begun_++, 0};
        ++running_;
        const std::uint32_t length = std::uint32_t(request.bytes / BEAT_BYTES - 1);
        if (request.write) w_.awvalid = 1, w_.awid = id, w_.awaddr = request.address, w_.awlen = length, data_.push(id);
        else w_.arvalid = 1, w_.arid = id, w_.araddr = request.address, w_.arlen = length;
        return true;
    }

    void send(Flight& flight) {
        const DramRequest& request = requests_[flight.request];
        fill(request.address + flight.beat * BEAT_BYTES, w_.wdata);
        w_.wvalid = 1;
        w_.wlast = ++flight.beat == request.bytes / BEAT_BYTES;
    }

    void receive(std::uint64_t cycle) {
        Flight& flight = flights_[w_.rid];
        const DramRequest& request = requests_[flight.request];
        const std::uint64_t address = request.address + flight.beat++ * BEAT_BYTES;
        std::uint8_t data[BEAT_BYTES];
        fill(address, data);
        if (w_.rdata[0] == UNWRITTEN) std::memset(data, UNWRITTEN, sizeof data);
        if (std::memcmp(w_.rdata, data, sizeof data)) violation("wrong data at %#llx", (unsigned long long)address);
        if (bool(w_.rlast) != (flight.beat == request.bytes / BEAT_BYTES))
            violation("RLAST is %u in beat %llu", w_.rlast, (unsigned long long)flight.beat);
        if (w_.rlast) finish(w_.rid, cycle);
    }

    void finish(unsigned id, std::uint64_t cycle) {
        ends_[flights_[id].request] = cycle;
        free_.push_back(id);
        --running_;
    }

    void watch(std::uint64_t cycle) {
        const bool read = w_.rvalid, written = w_.wvalid && w_.wready;
        together += read && written;
        if (!read && !written) return;
        if (last_beat_ && written != last_write_) least_turn = std::min(least_turn, cycle - last_beat_);
        last_beat_ = cycle;
        last_write_ = written;
    }
};

std::string error;

}  // namespace

// What a run has told, beside the statistics of the target.
struct ManagerResult {
    std::uint64_t cycles, together, least_turn;
    TargetStatistics target;
    DramStatistics dram;
};

// Requests are made in their order, `outstanding` at a time; `ends` gets the cycles of their last answers. Returns what
// was broken, or an empty string.
extern "C" const char* manager_run(const TargetBehaviour* behaviour, const DramSettings* settings, std::uint64_t seed,
                                   const DramRequest* requests, std::uint64_t count, std::uint64_t outstanding,
                                   std::uint64_t limit, std::uint64_t* ends, ManagerResult* result) {
    Ports wires;
    Pages pages;
    Manager manager(wires, requests, count, outstanding, ends);
    WiredTarget target(wires, pages, "memory", 0, seed);
    target.behave(*behaviour);
    target.equip(settings);
    error.clear();
    std::uint64_t cycle = 0;
    try {
        for (; !manager.done(); ++cycle) {
            if (cycle == limit) violation("not done after %llu cycles", (unsigned long long)limit);
            target.drive(cycle);
            target.sample(cycle);
            manager.step(cycle);
        }
    } catch (const Violation& violation) {
        error = violation.what();
    }
    *result = {cycle, manager.together, manager.least_turn, target.statistics, target.dram_statistics()};
    return error.c_str();
}
