"""Traffic that puts questions where it hurts: many rings name one thing while something happens to it."""

from collections.abc import Collection

import google_crc32c

from hw.params import commands as c
from hw.params.commands import Binding, Command
from hw.params.params import Params
from hw.params.protocol import Handle, LookupMode, PinId, RingId, SessionId
from pymodel.stimulus.requesters import Block, Open, Submit
from pymodel.stimulus.traffic import Happen, Traffic

PROBES = 4
"""Questions about one thing at most, one right behind the other."""

UNHEARD_OF = 1 << 20
"""Added to a generation: a name that is well formed, and was never given."""


class ProbingTraffic(Traffic):
    """Traffic with one more move: something happens to a block or a session, and rings of all kinds ask for it.

    What happens goes over a link as what is asked does, so that rings of the same port ask behind it.
    """

    def __init__(self, params: Params, seed: int, *, without: Collection[str] = ()) -> None:
        super().__init__(params, seed, without=without)
        self._moves["probe"] = (1.5, self._probe)

    def _probe(self) -> Submit | Happen | None:
        if self._chance(0.5):
            block = self._any(self._sealing()) if self._chance(0.3) else self._block(writing=self._chance(0.7))
            if block is None:
                return None
            burst = [self._happens_to_block(block)]
            burst += [self._about_block(block) for _ in range(self._random.randint(1, PROBES))]
        else:
            session = self._moving() if self._chance(0.5) else self._live_session()
            if session is None:
                return None
            burst = [self._happens_to_session(session)]
            burst += [self._about_session(session) for _ in range(self._random.randint(1, PROBES))]
        self._script.extend(each for each in burst if each is not None)
        return self._submit(*self._script.popleft()) if self._script else None

    def _moving(self) -> Open | None:
        """A session that somebody has asked for."""
        asked = [each.command for each in self.outstanding.values()]
        return self._any([s for s in self._sessions if any(c.Migrate(s.name) == command for command in asked)])

    def _anybody(self, owner: RingId) -> RingId:
        """A ring of any kind; as often as not of the owner's port."""
        kinds = [
            [ring for ring, to in self._bindings.items() if to is Binding.NONE],
            [ring for ring, to in self._bindings.items() if to is Binding.ADMINISTRATIVE],
            [ring for ring in self._rings if ring in self._lost],
            [ring for ring in self._rings if ring.port == owner.port],
            [ring for ring in self._rings if ring.port == owner.port],
            self._rings,
        ]
        return self._random.choice(self._random.choice([kind for kind in kinds if kind]))

    def _happens_to_block(self, block: Block) -> tuple[RingId, Command] | None:
        """The owner's SEAL, ABORT or DROP, the end of its session; or nothing."""
        crc = google_crc32c.value(block.data)
        ends: list[Command | None] = [
            None,
            c.Seal(block.handle, len(block.data), crc),
            c.Abort(block.handle),
            c.Drop(block.model, block.key),
            c.CloseSession(block.session),
        ]
        chosen = self._random.choices(ends, (3, 6, 1, 1, 1))[0]
        return None if chosen is None else (block.ring, chosen)

    def _about_block(self, block: Block) -> tuple[RingId, Command]:
        handle: Handle = block.handle
        session = self._live_session()
        made_up = self._chance(0.05)
        if made_up:
            handle = handle._replace(generation=handle.generation + UNHEARD_OF)
        mine = block.session if session is None or self._chance(0.5) else session.name
        if made_up:
            mine = mine._replace(generation=mine.generation + UNHEARD_OF)
        commands: tuple[Command, ...] = (
            c.Read(handle, 0, 1, park=self._chance(0.5)),
            c.Write(handle, block.sent, b"probe"),
            c.Seal(handle, len(block.data), 0),
            c.Abort(handle),
            c.Lookup(block.model, [block.key], self._random.choice(list(LookupMode)), self._chance(0.3)),
            c.Alloc(block.model, block.key, block.bound, mine),
            c.Drop(block.model, block.key),
        )
        # What only the owner may do is cheap to ask for as anybody else.
        ring = self._anybody(block.ring)
        costly = 1 if ring == block.ring else 4
        return ring, self._random.choices(commands, (4, 4, costly, costly, 4, 4, 1))[0]

    def _happens_to_session(self, session: Open) -> tuple[RingId, Command] | None:
        """Somebody asks for it, its FENCE is answered, it is closed, now and then its ring is lost; or nothing."""
        chosen = self._random.randrange(8)
        if chosen == 0:
            return session.ring, c.CloseSession(session.name)
        if chosen <= 2:
            writes = session.accepted + sum(self._under_way(session.ring, session.name))
            return session.ring, c.AnswerFence(session.name, writes + self._random.randrange(2))
        if chosen == 3 and self._chance(0.3):
            return self._admin(), c.Bind(session.ring, session.partition)
        same = [ring for ring, to in self._bindings.items() if to == session.partition and ring != session.ring]
        ring = self._any(same)
        return None if ring is None or chosen == 3 else (ring, c.Migrate(session.name))

    def _about_session(self, session: Open) -> tuple[RingId, Command]:
        name: SessionId = session.name
        if self._chance(0.05):
            name = name._replace(generation=name.generation + UNHEARD_OF)
        pin = PinId(self._random.randrange(self.params.tables.pins_per_ring), UNHEARD_OF)
        commands: tuple[Command, ...] = (
            c.CloseSession(name),
            c.Migrate(name),
            c.AnswerFence(name, session.accepted),
            c.Unpin(pin),
        )
        ring = self._anybody(session.ring)
        return ring, self._random.choices(commands, (1 if ring == session.ring else 5, 4, 3, 1))[0]
