// A requester that always has its bursts in flight, on a channel alone: what a channel gives at best.

#include <cstdint>
#include <vector>

#include "dram.h"
#include "requests.h"

// Bursts are begun in their order, `outstanding` at a time, each as soon as an earlier one has all its data, or a place
// for it, and not before its clock. `ends` gets the clocks at which that is. Returns the number of commands, of which the first `room` are told.
extern "C" std::uint64_t dram_request(const DramSettings* settings, const DramRequest* requests, std::uint64_t count,
                                      std::uint64_t outstanding, std::uint64_t* ends, DramStatistics* statistics,
                                      DramCommand* told, std::uint64_t room) {
    struct Flight {
        std::uint64_t request;
        unsigned burst;
    };
    DramChannel channel(*settings);
    std::vector<DramCommand> commands;
    if (room) channel.commands = &commands;
    std::vector<Flight> flights;
    std::uint64_t begun = 0, clock = 0;
    while (begun < count || !flights.empty() || channel.waiting()) {
        std::uint64_t soonest = channel.next();
        for (std::size_t i = 0; i < flights.size();) {
            const std::uint64_t when = channel.when(flights[i].burst);
            if (when > clock) {
                soonest = std::min(soonest, when);
                ++i;
                continue;
            }
            ends[flights[i].request] = when;
            channel.end(flights[i].burst);
            flights.erase(flights.begin() + i);
        }
        for (; begun < count && flights.size() < outstanding; ++begun) {
            const DramRequest& request = requests[begun];
            if (request.at > clock) {
                soonest = std::min(soonest, request.at);
                break;
            }
            flights.push_back({begun, channel.begin(request.write, request.address, request.bytes, clock)});
            soonest = clock;
        }
        clock = std::max(clock, soonest);
        channel.advance(clock);
    }
    *statistics = channel.statistics;
    for (std::uint64_t i = 0; i < commands.size() && i < room; ++i) told[i] = commands[i];
    return commands.size();
}
