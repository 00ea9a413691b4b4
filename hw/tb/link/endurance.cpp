// Two ends of a link with replay, the wires between them and who uses them, without Python in the loop.
// ports.h gives widths and buffers; Verilator writes the __ of a port as ___05F.
// Arguments: see `settings` in main. Prints one JSON object; exits with 1 when a rule is broken, and says which.

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "Vlink_end.h"
#include "bits.h"
#include "ports.h"
#include "random.h"

namespace {

std::uint64_t cycle = 0;

[[noreturn]] void violation(const char* rule) {
    std::printf("cycle %llu: %s\n", (unsigned long long)cycle, rule);
    std::exit(1);
}

using Flit = std::array<std::uint8_t, bytes_of(FLIT_BITS)>;

// A piece on a wire, with its mark above its bits.
struct Piece {
    bool valid = false;
    std::array<std::uint8_t, bytes_of(PIECE_BITS + 1)> bits{};
};

struct Trouble {
    double flip, lose, spell;
    unsigned length;
};

class Wire {
public:
    bool cut = false;
    std::uint64_t hit = 0;

    Wire(unsigned latency, Trouble trouble, std::uint64_t seed)
        : under_way_(latency), length_(trouble.length), flip_(trouble.flip), lose_(trouble.lose), spell_(trouble.spell),
          random_(seed) {}

    void calm() { flip_ = lose_ = spell_ = Chance(0.0); }

    Piece step(const Piece& piece) {
        under_way_.push_back(spoil(piece));
        const Piece out = under_way_.front();
        under_way_.pop_front();
        return out;
    }

private:
    std::deque<Piece> under_way_;
    unsigned length_, bad_ = 0;
    Chance flip_, lose_, spell_;
    Random random_;

    Piece spoil(Piece piece) {
        if (spell_(random_)) bad_ = 1 + unsigned(random_.below(length_));
        const bool in_spell = bad_ > 0;
        bad_ -= in_spell;
        if (!piece.valid) return piece;
        if (cut || lose_(random_) || (in_spell && random_.below(4) == 0)) {
            ++hit;
            return Piece{};
        }
        if (flip_(random_) || (in_spell && random_.below(3) == 0)) {
            ++hit;
            const Piece before = piece;
            for (std::uint64_t count = 1 + random_.below(5); count; --count) {
                const std::uint64_t bit = random_.below(PIECE_BITS + 1);
                piece.bits[bit / 8] ^= std::uint8_t(1u << bit % 8);
            }
            hit -= piece.bits == before.bits;
        }
        return piece;
    }
};

// A flit, as what it is made from again.
struct Sent {
    std::uint64_t content;
    unsigned channel;
    std::uint64_t sent;
};

Flit flit_of(const Sent& sent) {
    Flit flit;
    Random random(sent.content);
    for (std::uint8_t& byte : flit) byte = std::uint8_t(random());
    trim(flit.data(), FLIT_BITS);
    set(flit.data(), FLIT_CHANNEL, sent.channel);
    return flit;
}

// A user between two resets.
struct Life {
    std::vector<Sent> sent;
    Life *heard_by = nullptr, *hears = nullptr;
};

class User {
public:
    User* peer = nullptr;
    double sends = 1.0, takes = 1.0;
    std::uint64_t received = 0, total = 0, least = ~0ull, most = 0;

    User(Vlink_end& end, bool follows, std::uint64_t seed) : end_(end), follows_(follows), random_(seed) { reset(); }

    std::size_t lives() const { return lives_.size(); }

    bool at_rest() const {
        for (unsigned i = 0; i < CHANNELS; ++i)
            if (credits_[i] != BUFFERS[i]) return false;
        return peer->received == lives_.back()->sent.size();
    }

    // After a reset of the end.
    void start_again() {
        hold_ = follows_ ? 2 : 0;
        was_up_ = was_out_ = false;
        sending_ = false;
        returning_ = 0;
        reset();
    }

    void hold(unsigned cycles) { hold_ = cycles; }

    void step() {
        const bool up = end_.up;
        failed += end_.failed;
        if (!hold_ && (follows_ ? was_up_ && !up : bool(end_.lost))) hold_ = 1 + unsigned(random_.below(12));
        was_up_ = up;
        end_.hold = hold_ > 0;
        const bool out = hold_ > 0 || (follows_ && !up);
        hold_ -= hold_ > 0;
        end_.send___05Fvalid = sending_;
        write_port<FLIT_BITS>(end_.send___05Fflit, flit_of(next_).data());
        end_.receive___05Fcredits = returning_;
        if (out && !was_out_) reset();
        was_out_ = out;
        sending_ = false;
        returning_ = 0;
        if (out) return;
        for (unsigned i = 0; i < CHANNELS; ++i) {
            if (!(end_.send___05Fcredits >> CHANNEL[i] & 1)) continue;
            if (credits_[i] == BUFFERS[i]) violation("a credit for no flit");
            ++credits_[i];
        }
        if (end_.receive___05Fvalid) receive();
        send();
        take();
    }

    std::uint64_t failed = 0;

private:
    Vlink_end& end_;
    const bool follows_;
    Random random_;
    std::vector<std::unique_ptr<Life>> lives_;
    std::array<unsigned, CHANNELS> credits_{}, waiting_{};
    Sent next_{};
    bool sending_ = false;
    std::uint32_t returning_ = 0;
    unsigned hold_ = 0, turn_ = 0;
    bool was_up_ = false, was_out_ = false;

    void reset() {
        lives_.push_back(std::make_unique<Life>());
        for (unsigned i = 0; i < CHANNELS; ++i) credits_[i] = BUFFERS[i];
        waiting_.fill(0);
        received = 0;
    }

    void send() {
        if (!Chance(sends)(random_)) return;
        for (unsigned i = 1; i <= CHANNELS; ++i) {
            const unsigned channel = (turn_ + i) % CHANNELS;
            if (!credits_[channel]) continue;
            --credits_[channel];
            turn_ = channel;
            next_ = {random_(), CHANNEL[channel], cycle + 1};
            lives_.back()->sent.push_back(next_);
            sending_ = true;
            return;
        }
    }

    void take() {
        for (unsigned i = 0; i < CHANNELS; ++i) {
            if (!waiting_[i] || !Chance(takes)(random_)) continue;
            --waiting_[i];
            returning_ |= 1u << CHANNEL[i];
        }
    }

    void receive() {
        Flit flit;
        read_port<FLIT_BITS>(flit.data(), end_.receive___05Fflit);
        Life& life = *lives_.back();
        if (!life.hears) {
            for (auto& each : peer->lives_)
                if (!each->heard_by && !each->sent.empty() && flit_of(each->sent[0]) == flit) life.hears = each.get();
            if (!life.hears) violation("the first flit is that of no life that nobody has heard");
            life.hears->heard_by = &life;
            if (life.hears->hears && life.hears->hears != &life) violation("two hear each other, but one hears a third");
        }
        if (received >= life.hears->sent.size()) violation("a flit that was not sent");
        const Sent& sent = life.hears->sent[received];
        if (flit_of(sent) != flit) violation("another flit than the next");
        ++received;
        ++total;
        const std::uint64_t late = cycle - sent.sent;
        least = late < least ? late : least;
        most = late > most ? late : most;
        for (unsigned i = 0; i < CHANNELS; ++i)
            if (CHANNEL[i] == sent.channel && ++waiting_[i] > BUFFERS[i]) violation("a flit without a credit");
    }
};

}  // namespace

int main(int, char** argv) {
    const auto number = [argv](int i) { return std::strtoull(argv[i], nullptr, 10); };
    const auto fraction = [argv](int i) { return std::strtod(argv[i], nullptr); };
    const std::uint64_t seed = number(1), cycles = number(2);
    const unsigned latency = unsigned(number(3));
    const Trouble trouble{fraction(4), fraction(5), fraction(6), unsigned(number(7))};
    const std::uint64_t cut_every = number(8), cut_for = number(9), reset_every = number(10);
    const bool moody = number(11);

    Random random(seed);
    std::array<std::unique_ptr<Vlink_end>, 2> ends;
    std::vector<std::unique_ptr<User>> users;
    std::vector<std::unique_ptr<Wire>> wires;
    for (unsigned i = 0; i < 2; ++i) {
        ends[i] = std::make_unique<Vlink_end>();
        ends[i]->clk = 0;
        ends[i]->rst = 1;
        ends[i]->incoming___05Fvalid = 0;
        users.push_back(std::make_unique<User>(*ends[i], i == 0, random()));
        wires.push_back(std::make_unique<Wire>(latency, trouble, random()));
    }
    users[0]->peer = users[1].get();
    users[1]->peer = users[0].get();
    std::uint64_t cut_until = 0, ups = 0, up_since = 0;
    bool was_up = false;

    const auto step = [&] {
        for (auto& end : ends) end->eval();
        std::array<Piece, 2> pieces;
        for (unsigned i = 0; i < 2; ++i) {
            if (ends[i]->rst) users[i]->start_again();
            else users[i]->step();
            Piece piece;
            piece.valid = ends[i]->outgoing___05Fvalid;
            read_port<PIECE_BITS>(piece.bits.data(), ends[i]->outgoing___05Fbits);
            set(piece.bits.data(), {PIECE_BITS, 1}, ends[i]->outgoing___05Ffirst);
            pieces[i] = wires[i]->step(piece);
        }
        const bool up = ends[0]->up && ends[1]->up;
        ups += up && !was_up;
        if (up && !was_up) up_since = cycle;
        was_up = up;
        for (unsigned i = 0; i < 2; ++i) {
            Piece piece = pieces[1 - i];
            ends[i]->incoming___05Fvalid = piece.valid;
            ends[i]->incoming___05Ffirst = get(piece.bits.data(), {PIECE_BITS, 1}) != 0;
            trim(piece.bits.data(), PIECE_BITS);
            write_port<PIECE_BITS>(ends[i]->incoming___05Fbits, piece.bits.data());
            ends[i]->eval();
            ends[i]->clk = 1;
            ends[i]->eval();
            ends[i]->clk = 0;
            ends[i]->rst = 0;
        }
        ++cycle;
    };

    step();
    while (cycle < cycles) {
        if (reset_every && random.below(reset_every) == 0) {
            const unsigned i = unsigned(random.below(2));
            if (random.below(2)) ends[i]->rst = 1;
            else if (i == 1) users[1]->hold(random.below(2) ? 1 : 1 + unsigned(random.below(40)));
        }
        if (cut_every && random.below(cut_every) == 0) {
            const std::uint64_t which = 1 + random.below(3);
            for (unsigned i = 0; i < 2; ++i) wires[i]->cut = which >> i & 1;
            cut_until = cycle + random.below(cut_for);
        }
        if (cycle >= cut_until)
            for (auto& wire : wires) wire->cut = false;
        if (moody && cycle % 512 == 0)
            for (auto& user : users) {
                user->sends = double(random.below(5)) / 4;
                user->takes = double(1 + random.below(4)) / 4;
            }
        step();
    }
    const std::uint64_t moved = users[0]->total + users[1]->total, ran = cycle - up_since;

    // In the end nothing goes wrong any more, and all has to come.
    for (auto& wire : wires) {
        wire->calm();
        wire->cut = false;
    }
    for (auto& user : users) {
        user->sends = 0;
        user->takes = 1;
    }
    const std::uint64_t begun = cycle;
    while (!(ends[0]->up && ends[1]->up && users[0]->at_rest() && users[1]->at_rest())) {
        if (cycle - begun > PATIENCE) violation("not all has come");
        step();
    }
    std::printf(
        "{\"flits\": %llu, \"cycles\": %llu, \"hit\": %llu, \"ups\": %llu, \"failed\": %llu, \"lives\": %llu, "
        "\"least\": %llu, \"most\": %llu, \"settled\": %llu}\n",
        (unsigned long long)moved, (unsigned long long)ran, (unsigned long long)(wires[0]->hit + wires[1]->hit),
        (unsigned long long)ups, (unsigned long long)(users[0]->failed + users[1]->failed),
        (unsigned long long)(users[0]->lives() + users[1]->lives()), (unsigned long long)users[0]->least,
        (unsigned long long)users[0]->most, (unsigned long long)(cycle - begun));
    return 0;
}
