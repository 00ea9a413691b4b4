"""Sessions that move between two requesters of a compiled system, with blocks in the old one's write-back buffer."""

from collections import Counter
from dataclasses import dataclass, field, replace
from random import Random

from hw.params import Params, records
from hw.params.protocol import EngineOpcode, Opcode, Status
from hw.rdl import requester_map
from hw.tb.harness.system import SystemHarness
from hw.tb.scoreboard import CheckError
from hw.tb.system.load import STRIDE, Ring, serve

PATIENCE = 20_000
"""Cycles in which all of a round has to end."""

PLACES = 32
"""Blocks that there is room for in the memory of a requester; behind them is room for keys and results."""


def moving_params(params: Params) -> Params:
    """The same, with write-back buffers and managers of sessions, and frames for all blocks of a round."""
    return replace(
        params,
        requester=replace(params.requester, commands=16, slots=2, sessions=2),
        pools=(replace(params.pools[0], frames=32),),
        cam=replace(params.cam, ways=40),
    )


@dataclass(eq=False)
class Put:
    """A PUT of a session: its bytes, what it waits for, whether its block is sealed, and its completion. `accepted`: it
    was in the buffer, and its producer had come so far, before the session was to move."""

    key: int
    place: int
    number: int
    data: bytes
    fence: int = 0
    sealed: bool = True
    accepted: bool = False
    reached: bool = False
    end: dict[str, int] = field(default_factory=dict)


@dataclass(eq=False)
class Move:
    """A session that goes from port `old` to the other one."""

    old: int
    session: int
    puts: list[Put] = field(default_factory=list)
    tag: int | None = None


class Moves:
    """Moves sessions, two at a time, against each other, and judges what the new ring has of each.

    A PUT that was accepted before the MIGRATE was sent ends OK. Whatever ends OK the new ring reads, all of it; of what
    ends STALE there is nothing. The source of a PUT is overwritten as soon as it has completed.

    - `ends`: how PUTs have ended: status, and whether they were accepted.
    """

    def __init__(self, harness: SystemHarness, params: Params, seed: int):
        self._harness, self._params, self._random = harness, params, Random(f"{seed}/moves")
        self._frame = params.pools[0].frame_bytes
        self._keys = self._submitted = 0
        serve(harness, params)
        self._rings = [Ring(harness, params, port, bytearray((PLACES + 2) * self._frame)) for port in (0, 1)]
        self._count = [0, 0]  # descriptors of each port
        self._done: list[dict[int, dict[str, int]]] = [{}, {}]
        self._fences, self._free = [0, 0], [list(range(PLACES)), list(range(PLACES))]
        self.ends: Counter[tuple[Status, bool]] = Counter()
        self.moved = 0

    def _put(self, port: int, opcode: Opcode | EngineOpcode, **fields: int) -> int:
        ring = self._rings[port]
        tag = ring.tail
        ring.put(opcode, **fields)
        self._count[port] += 1
        return tag

    def _look(self) -> None:
        for port, ring in enumerate(self._rings):
            for found in ring.taken():
                self._done[port][found["tag"]] = found

    def _wait(self, port: int, tag: int) -> dict[str, int]:
        for _ in range(PATIENCE // 20):
            self._look()
            if tag in self._done[port]:
                return self._done[port].pop(tag)
            self._harness.run(20)
        raise CheckError(f"no completion of {tag} at port {port} in {PATIENCE:,} cycles")

    def _ask(self, port: int, opcode: Opcode, **fields: int) -> dict[str, int]:
        tag = self._put(port, opcode, **fields)
        self._rings[port].ring()
        return self._wait(port, tag)

    def _expect(self, got: dict[str, int], *wanted: Status) -> None:
        if got["status"] not in wanted:
            raise CheckError(f"{Status(got['status']).name}, expected {' or '.join(each.name for each in wanted)}")

    def _store(self, move: Move) -> None:
        """The old ring puts one more block; it may wait for its producer."""
        rng, port, size = self._random, move.old, self._params.memory.segment_bytes
        sealed = rng.random() < 0.7
        length = rng.randint(1, self._frame // size) * size - (rng.choice([0, 4, 300]) if sealed else 0)
        self._keys += 1
        place = self._free[port].pop(0)
        put = Put(self._keys, place, 0, rng.randbytes(length), sealed=sealed)
        at, flags = place * self._frame, 0 if sealed else records.OPEN
        if rng.random() < 0.3:
            self._fences[port] += 1
            put.fence = self._fences[port]
            flags |= records.FENCED
        self._rings[port].data[at : at + length] = put.data
        put.number = self._put(
            port,
            EngineOpcode.PUT,
            flags=flags,
            subject=put.key,
            slot=move.session,
            length=length,
            count=self._frame // size,
            data=3 * STRIDE + at,
            results=put.fence,
        )
        self._rings[port].ring()
        move.puts.append(put)

    def _reach(self, moves: list[Move], port: int, *, most: int | None = None) -> None:
        """The producer of a port has come as far as it says."""
        fence = self._fences[port] if most is None else most
        self._rings[port].write("FENCE", fence)
        for move in moves:
            for put in move.puts:
                put.reached |= move.old == port and put.fence <= fence

    def _fetched(self, port: int) -> int:
        offset = requester_map(self._params)["COUNT_FETCHED"].offset
        return self._harness.read_register(offset, unit=self._params.node.slices + port)[0]

    def round(self) -> None:
        """Two sessions, one each way."""
        rng = self._random
        moves = [Move(port, self._ask(port, Opcode.OPEN_SESSION)["slot"]) for port in (0, 1)]
        steps = [(move, rng.randint(1, 4)) for move in moves]
        todo = [move for move, count in steps for _ in range(count)]
        rng.shuffle(todo)
        for move in todo:
            self._store(move)
            self._harness.run(rng.choice([1, 10, 60, 200]))
            if rng.random() < 0.3:
                self._reach(moves, move.old)
        for move in rng.sample(moves, 2):
            self._ask_for(moves, move)
            for _ in range(rng.randint(0, 3)):
                self._harness.run(rng.choice([1, 5, 30, 100]))
                if rng.random() < 0.4:
                    self._store(rng.choice(moves))
                if rng.random() < 0.3:
                    self._reach(moves, rng.choice([0, 1]))
        for move in moves:
            assert move.tag is not None
            self._expect(self._wait(1 - move.old, move.tag), Status.OK)
        for port in (0, 1):
            self._reach(moves, port)
        for move in moves:
            self._judge(move)
        self.moved += len(moves)

    def _ask_for(self, moves: list[Move], move: Move) -> None:
        """The other ring asks for the session; what the buffer has by then is accepted."""
        behind = self._count[move.old] - self._fetched(move.old)
        fetched = move.puts[: max(0, len(move.puts) - behind)]
        for put in fetched:
            put.accepted = not put.fence or put.reached
        new = 1 - move.old
        move.tag = self._put(new, Opcode.MIGRATE, slot=move.session)
        self._rings[new].ring()

    def _judge(self, move: Move) -> None:
        """What the new ring has of a session that has moved."""
        old, new, size = move.old, 1 - move.old, self._params.memory.segment_bytes
        target = self._rings[new].data
        at = PLACES * self._frame
        for put in move.puts:
            put.end = self._wait(old, put.number)
            place = put.place * self._frame
            self._rings[old].data[place : place + self._frame] = self._random.randbytes(self._frame)
            self._free[old].append(put.place)
            self._expect(put.end, Status.OK, *(() if put.accepted else (Status.STALE,)))
            self.ends[Status(put.end["status"]), put.accepted] += 1
        for put in move.puts:
            target[at : at + 16] = put.key.to_bytes(16, "little")
            results = at + records.ALIGNMENT
            looked = self._ask(new, Opcode.LOOKUP, count=1, data=3 * STRIDE + at, results=3 * STRIDE + results)
            self._expect(looked, Status.OK)
            found = records.COMPLETION.unpack(bytes(target[results : results + records.COMPLETION.size]))
            if put.end["status"] == Status.STALE:
                self._expect(found, Status.MISS)
                continue
            self._expect(found, Status.HIT if put.sealed else Status.PENDING)
            into, segments = at + self._frame, -(-len(put.data) // size)
            read = self._ask(
                new,
                Opcode.READ,
                subject=put.end["handle"],
                count=segments,
                length=self._frame,
                data=3 * STRIDE + into,
            )
            self._expect(read, Status.OK)
            if bytes(target[into : into + len(put.data)]) != put.data:
                raise CheckError(f"block {put.key} has other bytes than were put")
        self._expect(self._ask(new, Opcode.CLOSE_SESSION, slot=move.session), Status.OK)
        for put in move.puts:
            self._expect(self._ask(new, Opcode.DROP, subject=put.key), Status.OK, Status.MISS)

    def level(self, name: str, port: int) -> int:
        """A register of a requester."""
        offset = requester_map(self._params)[name].offset
        return self._harness.read_register(offset, unit=self._params.node.slices + port)[0]
