// The requester's end of a link: sends flits against credits, and returns a credit for each that it takes. When it has
// nothing to send, it says now and then that it is there.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "bits.h"
#include "random.h"
#include "ring.h"
#include "top_ports.h"
#include "violation.h"

constexpr unsigned FLIT_BYTES = bytes_of(FLIT_BITS);

// `idle`: probability that nothing is sent though something could be; `backpressure`: that a channel's next flit stays
// in its buffer; both for each cycle. `latency`: cycles that flits and credits are under way, each way.
struct LinkBehaviour {
    double idle, backpressure;
    std::uint32_t latency;
};

class LinkEndpoint {
public:
    std::vector<std::uint8_t> received;  // cycle and flit of each that was taken

    LinkEndpoint(LinkPorts ports, unsigned number, std::uint64_t seed) : ports_(ports), number_(number), random_(seed) {
        received.reserve(1 << 16);
        reset();
        hide();
        ports_.from_node_credits = 0;
    }

    void behave(const LinkBehaviour& behaviour) {
        latency_ = behaviour.latency;
        idle_ = Chance(behaviour.idle);
        backpressure_ = Chance(behaviour.backpressure);
    }

    // Drops everything queued and under way, and restores all credits.
    void reset() {
        for (auto& queue : queues_) queue.clear();
        for (auto& buffer : buffers_) buffer.clear();
        to_node_.clear();
        from_node_.clear();
        credits_to_node_.clear();
        credits_from_node_.clear();
        for (unsigned i = 0; i < VIRTUAL_CHANNELS; ++i) {
            credits_[i] = TO_NODE_BUFFERS[i];
            allowed_[i] = FROM_NODE_BUFFERS[i];
        }
        queued_ = buffered_ = beats_ = 0;
        returning_ = 0;
    }

    void send(unsigned channel, const std::uint8_t* flits, std::size_t count) {
        Flit flit;
        for (std::size_t i = 0; i < count; ++i) {
            std::memcpy(flit.data(), flits + i * FLIT_BYTES, FLIT_BYTES);
            trim(flit.data(), FLIT_BITS);
            set(flit.data(), FLIT_CHANNEL, channel);
            queues_[channel].push(flit);
        }
        queued_ += count;
    }

    // Flits that were to be sent, and have not reached the node.
    std::uint64_t pending() const { return queued_ + to_node_.size() - beats_; }

    // From now on nothing is sent, and nothing taken, until the end is renewed.
    void fall_silent() { silent_ = true; }

    // This end is reset, until the node's has been too.
    void renew() { renewing_ = true; }

    // Whether this end is being reset, given whether the port is down.
    bool renewing(bool down, std::uint64_t cycle) {
        if (renewing_ && down_ && !down) renewing_ = silent_ = false;
        if (down_ != down) turned_ = cycle;
        down_ = down;
        return renewing_;
    }

    // Whether the port is lost, and the cycle since which it is, or is not any more.
    bool down() const { return down_; }
    std::uint64_t turned() const { return turned_; }

    void drive(std::uint64_t cycle, bool held) {
        if (held) {
            reset();
            spoke_ = cycle;
        }
        if (!credits_to_node_.empty() && credits_to_node_.front().due <= cycle) {
            for (unsigned i = 0; i < VIRTUAL_CHANNELS; ++i) credits_[i] += credits_to_node_.front().item >> i & 1;
            credits_to_node_.pop();
        }
        if (!silent_ && !held) {
            if (queued_) choose(cycle);
            if (HEARTBEAT_CYCLES && cycle - spoke_ >= HEARTBEAT_CYCLES && credits_[MESSAGE_CHANNEL]) beat(cycle);
        }
        if (!to_node_.empty() && to_node_.front().due <= cycle) {
            const std::uint8_t* flit = to_node_.front().item.data();
            if (beats_ && get(flit, FLIT_CHANNEL) == MESSAGE_CHANNEL && get(flit, FLIT_NOTE) == NOTE_HEARTBEAT) --beats_;
            write_port<FLIT_BITS>(ports_.to_node_flit, flit);
            ports_.to_node_valid = 1;
            to_node_.pop();
        } else if (ports_.to_node_valid) {
            hide();
        }
        if (returning_) {
            credits_from_node_.push({cycle + latency_, returning_});
            returning_ = 0;
        }
        std::uint32_t returned = 0;
        if (!credits_from_node_.empty() && credits_from_node_.front().due <= cycle) {
            returned = credits_from_node_.front().item;
            credits_from_node_.pop();
        }
        ports_.from_node_credits = returned;
    }

    void sample(std::uint64_t cycle, bool held) {
        if (held) return;
        if (const std::uint32_t given = ports_.to_node_credits) count(given, cycle);
        if (ports_.from_node_valid) {
            Flit flit;
            read_port<FLIT_BITS>(flit.data(), ports_.from_node_flit);
            const unsigned channel = unsigned(get(flit.data(), FLIT_CHANNEL));
            if (!allowed_[channel]--)
                violation("link %u: a flit of channel %u was sent without a credit", number_, channel);
            from_node_.push({cycle + latency_, flit});
        }
        for (unsigned i = 0; ports_.from_node_credits >> i; ++i)  // the node can use them from the next cycle on
            allowed_[i] += ports_.from_node_credits >> i & 1;
        if (!from_node_.empty() && from_node_.front().due <= cycle) {
            const Flit& flit = from_node_.front().item;
            buffers_[get(flit.data(), FLIT_CHANNEL)].push(flit);
            ++buffered_;
            from_node_.pop();
        }
        if (buffered_ && !silent_) take(cycle);
    }

private:
    using Flit = std::array<std::uint8_t, FLIT_BYTES>;

    template <typename Item>
    struct Due {
        std::uint64_t due;
        Item item;
    };

    LinkPorts ports_;
    unsigned number_;
    Random random_;
    std::uint32_t latency_ = 0;
    Chance idle_, backpressure_;

    std::array<Ring<Flit>, VIRTUAL_CHANNELS> queues_, buffers_;
    Ring<Due<Flit>> to_node_, from_node_;
    Ring<Due<std::uint32_t>> credits_to_node_, credits_from_node_;
    std::array<std::uint32_t, VIRTUAL_CHANNELS> credits_{}, allowed_{};
    std::uint64_t queued_ = 0, buffered_ = 0, beats_ = 0;  // the last: heartbeats under way
    std::uint32_t returning_ = 0;
    unsigned turn_ = 0;
    std::uint64_t spoke_ = 0, turned_ = 0;  // the cycles of the last flit, and of the last change of `down_`
    bool silent_ = false, renewing_ = false, down_ = false;

    // The next flit, of the channels that have one and a credit in turn.
    void choose(std::uint64_t cycle) {
        for (unsigned i = 1; i <= VIRTUAL_CHANNELS; ++i) {
            const unsigned channel = (turn_ + i) % VIRTUAL_CHANNELS;
            if (queues_[channel].empty() || !credits_[channel]) continue;
            if (idle_(random_)) return;
            to_node_.push({cycle + latency_, queues_[channel].front()});
            queues_[channel].pop();
            --credits_[channel];
            --queued_;
            turn_ = channel;
            spoke_ = cycle;
            return;
        }
    }

    // The flit that says that somebody is there.
    void beat(std::uint64_t cycle) {
        Flit flit{};
        set(flit.data(), FLIT_CHANNEL, MESSAGE_CHANNEL);
        set(flit.data(), FLIT_NOTE, NOTE_HEARTBEAT);
        set(flit.data(), FLIT_LAST, 1);
        to_node_.push({cycle + latency_, flit});
        --credits_[MESSAGE_CHANNEL];
        ++beats_;
        spoke_ = cycle;
    }

    // Credits that the node gives; it cannot give more than it has taken.
    void count(std::uint32_t given, std::uint64_t cycle) {
        for (unsigned i = 0; i < VIRTUAL_CHANNELS; ++i)
            if (given >> i & 1 && credits_[i] >= TO_NODE_BUFFERS[i])
                violation("link %u: a credit of channel %u was returned for no flit", number_, i);
        credits_to_node_.push({cycle + latency_, given});
    }

    // What the requester takes out of its buffers.
    void take(std::uint64_t cycle) {
        for (unsigned i = 0; i < VIRTUAL_CHANNELS; ++i) {
            if (buffers_[i].empty() || backpressure_(random_)) continue;
            const std::uint8_t* flit = buffers_[i].front().data();
            const auto* stamp = reinterpret_cast<const std::uint8_t*>(&cycle);
            received.insert(received.end(), stamp, stamp + sizeof cycle);
            received.insert(received.end(), flit, flit + FLIT_BYTES);
            buffers_[i].pop();
            --buffered_;
            returning_ |= 1u << i;
        }
    }

    // What is not valid is noise.
    void hide() {
        Flit noise;
        for (std::uint8_t& byte : noise) byte = std::uint8_t(random_());
        trim(noise.data(), FLIT_BITS);
        write_port<FLIT_BITS>(ports_.to_node_flit, noise.data());
        ports_.to_node_valid = 0;
    }
};
