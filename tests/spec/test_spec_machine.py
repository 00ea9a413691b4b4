"""Whatever is asked, in whatever order, and whenever the slice goes on by itself: nothing breaks an invariant."""

from typing import NamedTuple

import google_crc32c
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, MultipleResults, RuleBasedStateMachine, initialize, multiple, rule
from specbench import A_FAR, A_TOO, EPOCH, SEGMENT, A, B, Bench, block_bytes, tiny

from hw.params import commands as c
from hw.params import orderlog as log
from hw.params.commands import Binding, Command, Completion
from hw.params.orderlog import Hand, Operation, Step, Timer
from hw.params.protocol import REGISTERS, Handle, LookupMode, ModelState, PinId, RingId, SessionId, Status

RINGS = [A, A_TOO, A_FAR, B]
ANY = st.sampled_from(RINGS)
OWNER = st.sampled_from([None, None, None, None, *RINGS])
"""Who asks: mostly whoever has the right to."""
KEYS = st.integers(0, 2)
MODELS = st.sampled_from([0, 0, 1])
PARTITIONS = st.integers(0, 1)
CHOICE = st.integers(0, 1000)
PARAMS = tiny(sessions=5, slot_generation_bits=8, stamp_bits=1)


class Owned(NamedTuple):
    """A session or a pin, and the ring that got it."""

    ring: RingId
    name: SessionId | PinId


class Written(NamedTuple):
    """A block, and the session that writes it."""

    owner: Owned
    handle: Handle


class AnySlice(RuleBasedStateMachine):
    """Rings of two partitions, one of them public, on four frames. Every step is audited."""

    sessions = Bundle("sessions")
    blocks = Bundle("blocks")
    pins = Bundle("pins")

    @initialize(target=sessions)
    def start(self) -> MultipleResults:
        self.bench = Bench(PARAMS)
        self.lives = 0
        self.bytes: dict[Handle, bytes] = {}
        return multiple(*(Owned(ring, self.bench.open(ring)) for ring in RINGS))

    def ask(self, ring: RingId, command: Command) -> Completion | None:
        """Take a command; the answer, if there is one yet."""
        return self.bench.answer(ring, self.bench.ask(ring, command))

    # Tenants.

    @rule(target=sessions, ring=ANY)
    def open_session(self, ring: RingId) -> Owned | MultipleResults:
        answer = self.ask(ring, c.OpenSession())
        return multiple() if answer is None or answer.session is None else Owned(ring, answer.session)

    @rule(target=sessions, to=ANY, session=sessions, writes=st.integers(0, 3), answered=st.booleans())
    def migrate(self, to: RingId, session: Owned, writes: int, answered: bool) -> Owned:
        self.ask(to, c.Migrate(session.name))
        if answered:
            self.ask(session.ring, c.AnswerFence(session.name, writes))
        return Owned(to, session.name)

    @rule(ring=OWNER, session=sessions, writes=st.integers(0, 3))
    def answer_fence(self, ring: RingId | None, session: Owned, writes: int) -> None:
        self.ask(ring or session.ring, c.AnswerFence(session.name, writes))

    @rule(ring=OWNER, session=sessions, really=st.booleans())
    def close_session(self, ring: RingId | None, session: Owned, really: bool) -> None:
        if really:
            self.ask(ring or session.ring, c.CloseSession(session.name))

    @rule(target=blocks, ring=OWNER, session=sessions, model=MODELS, key=KEYS, segments=st.integers(1, 2))
    def alloc(
        self, ring: RingId | None, session: Owned, model: int, key: int, segments: int
    ) -> Written | MultipleResults:
        answer = self.ask(ring or session.ring, c.Alloc(model, key, segments * SEGMENT, session.name))
        assert answer is not None
        if answer.status is Status.GRANTED and answer.handle is not None:
            self.bytes[answer.handle] = b""
        return multiple() if answer.handle is None else Written(session, answer.handle)

    @rule(ring=OWNER, block=blocks, late=st.sampled_from([0, 0, 0, 1, -1]), nonce=CHOICE)
    def write(self, ring: RingId | None, block: Written, late: int, nonce: int) -> None:
        segment = max(0, len(self.bytes[block.handle]) // SEGMENT + late)
        data = block_bytes(1, nonce)
        answer = self.ask(ring or block.owner.ring, c.Write(block.handle, segment, data))
        if answer is not None and answer.status is Status.OK:
            self.bytes[block.handle] += data

    @rule(ring=OWNER, block=blocks, wrong=st.sampled_from([0, 0, 0, 0, 1]))
    def seal(self, ring: RingId | None, block: Written, wrong: int) -> None:
        data = self.bytes[block.handle]
        command = c.Seal(block.handle, len(data) or 1, google_crc32c.value(data) ^ wrong)
        self.ask(ring or block.owner.ring, command)

    @rule(target=blocks, session=sessions, model=MODELS, key=KEYS, nonce=CHOICE)
    def store(self, session: Owned, model: int, key: int, nonce: int) -> Written | MultipleResults:
        block = self.alloc(None, session, model, key, 1)
        if isinstance(block, Written):
            self.write(None, block, 0, nonce)
            self.seal(None, block, 0)
            self.bench.settle()
        return block

    @rule(ring=OWNER, block=blocks)
    def abort(self, ring: RingId | None, block: Written) -> None:
        self.ask(ring or block.owner.ring, c.Abort(block.handle))

    @rule(ring=ANY, block=blocks, segment=st.sampled_from([0, 0, 1]), count=st.integers(1, 2), park=st.booleans())
    def read(self, ring: RingId, block: Written, segment: int, count: int, park: bool) -> None:
        self.ask(ring, c.Read(block.handle, segment, count, park))

    @rule(
        target=pins,
        ring=ANY,
        model=MODELS,
        keys=st.lists(KEYS, min_size=1, max_size=3),
        mode=st.sampled_from(LookupMode),
        pin=st.booleans(),
    )
    def lookup(self, ring: RingId, model: int, keys: list[int], mode: LookupMode, pin: bool) -> MultipleResults:
        answer = self.ask(ring, c.Lookup(model, keys, mode, pin))
        given = answer.pins if answer is not None else []
        return multiple(*(Owned(ring, name) for name in given if name is not None))

    @rule(ring=OWNER, pin=pins)
    def unpin(self, ring: RingId | None, pin: Owned) -> None:
        assert isinstance(pin.name, PinId)
        self.ask(ring or pin.ring, c.Unpin(pin.name))

    @rule(ring=ANY, model=MODELS, key=KEYS)
    def drop(self, ring: RingId, model: int, key: int) -> None:
        self.ask(ring, c.Drop(model, key))

    # The administrator.

    @rule(which=PARTITIONS, model=MODELS, what=st.integers(0, 5))
    def kill(self, which: int, model: int, what: int) -> None:
        """A partition or a model dies, once or several times in a row."""
        for _ in range(1 + what % 3):
            self.ask(REGISTERS, c.DropPartition(which) if what < 3 else c.Retire(model))
        self.ask(REGISTERS, c.SetModel(model, ModelState.LIVE))

    @rule(which=PARTITIONS, quota=st.integers(1, 4), guarantee=st.integers(0, 2), read_mask=st.integers(0, 3))
    def configure(self, which: int, quota: int, guarantee: int, read_mask: int) -> None:
        command = c.SetPartition(which, quota=quota, guarantee=guarantee, public=True, read_mask=read_mask)
        self.ask(REGISTERS, command)

    @rule(target=sessions, which=ANY, to=PARTITIONS | st.sampled_from(Binding), settled=st.booleans())
    def bind(self, which: RingId, to: int | Binding, settled: bool) -> Owned | MultipleResults:
        """A ring changes hands, if nothing is left of it."""
        for _ in range(2):
            self.ask(REGISTERS, c.Bind(which, to))
            if settled:
                self.bench.settle()
        return self.open_session(which)

    # The slice and the world.

    @rule(choice=CHOICE)
    def go_on(self, choice: int) -> None:
        """Something that the slice may do by itself."""
        frames = range(len(self.bench.core.frames))
        sweep = [Step(Hand.FRAMES, index) for index in frames if self.bench.slice.dead(index)]
        self.one_of([*self.bench.slice.possible(), *sweep], choice)

    @rule()
    def settle(self) -> None:
        """Everything that the slice may do by itself."""
        self.bench.settle()

    @rule(choice=CHOICE)
    def fault(self, choice: int) -> None:
        """A timer, a memory error, poison; now and then a loss or a restart."""
        core = self.bench.core
        failing = [frame.index for frame in core.waiting.values() if frame.answered < frame.accepted]
        ops: list[Operation] = [
            *(log.Expired(Timer.PARKED_READ, slot) for slot, _ in core.parked.items()),
            *(log.Expired(Timer.FENCE, slot) for slot in core.fenced),
            *(log.Landed(index, 1, ok=False) for index in failing),
            *(log.ReadDone(*name, ok=False) for name in core.reads),
        ]
        if choice % 4 == 0:
            ops = [log.Lost(name) for name in RINGS if core.rings[name].partition.id >= 0]
        self.one_of(ops, choice // 4)
        if choice == 0:
            self.lives += 1
            self.bench.execute(log.Restarted())
            self.bench.configure(EPOCH + self.lives)

    def one_of(self, ops: list[Operation], choice: int) -> None:
        if ops:
            self.bench.execute(ops[choice % len(ops)])

    def teardown(self) -> None:
        """Once nothing is asked any more, all that is left waits for somebody else."""
        if hasattr(self, "bench") and self.bench.sound:
            self.bench.settle()
            core = self.bench.core
            parked = {(reading.ring.id, reading.tag) for _, reading in core.parked.items()}
            moving = {(s.fence.target.id, s.fence.tag) for s in core.fenced.values() if s.fence is not None}
            assert core.outstanding.keys() == parked | moving


AnySlice.TestCase.settings = settings(
    max_examples=250, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck)
)
test_any_slice = AnySlice.TestCase
