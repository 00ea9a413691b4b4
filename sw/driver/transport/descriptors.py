"""Commands as the descriptors of a submission ring, but for where their data is; and back."""

from collections.abc import Mapping, Sequence

from hw.params import commands as c
from hw.params.commands import Binding, Command
from hw.params.errors import InputError
from hw.params.protocol import (
    KEY_BITS,
    KEY_BYTES,
    EngineOpcode,
    Handle,
    LookupMode,
    ModelState,
    Opcode,
    PinId,
    RingId,
    SessionId,
)
from hw.params.records import LIVE, OF_SESSION, PARK, PIN, RUN, SETTINGS
from hw.params.registers import Bound
from hw.params.tasks import Flush, Put, Task
from sw.driver.transport.administration import bound_of


def fields_of(command: Command) -> dict[str, int]:
    """The fields of a descriptor; InputError for a value that has no place in one."""
    return {"opcode": command.opcode, **_operands(command)}


def _operands(command: Command) -> dict[str, int]:  # noqa: PLR0911, PLR0912 (one case a command)
    match command:
        case c.Lookup(model, keys, mode, pin):
            return {"model": model, "count": len(keys), "flags": PIN * pin | RUN * (mode is LookupMode.RUN)}
        case c.Alloc(model, key, length, session):
            return {"model": model, "subject": key, "length": length, "slot": session.pack()}
        case c.Write(handle, segment, data):
            return {"subject": handle.pack(), "segment": segment, "length": len(data)}
        case c.Seal(handle, length, crc):
            return {"subject": handle.pack(), "length": length, "crc": crc}
        case c.Abort(handle):
            return {"subject": handle.pack()}
        case c.Read(handle, segment, count, park):
            return {"subject": handle.pack(), "segment": segment, "count": count, "flags": PARK * park}
        case c.Unpin(name) | c.CloseSession(name) | c.Migrate(name):
            return {"slot": name.pack()}
        case c.AnswerFence(session, writes):
            return {"slot": session.pack(), "length": writes}
        case c.Drop(model, key):
            return {"model": model, "subject": key}
        case c.Bind(ring, to):
            partition = 0 if isinstance(to, Binding) else to
            return _settings(port=ring.port, ring=ring.ring, binding=bound_of(to), partition=partition)
        case c.SetPartition(partition, pool, quota, guarantee, public, read_mask):
            limits = {"pool": pool, "quota": quota, "guarantee": guarantee, "public": int(public)}
            return _settings(partition=partition, **limits) | {"slot": read_mask}
        case c.DropPartition(partition):
            return _settings(partition=partition)
        case c.SetModel(model, state):
            if state is ModelState.RETIRED:
                raise InputError("SET_MODEL: state = RETIRED, expected LIVE or READ_ONLY; RETIRE retires")
            return {"model": model, "flags": LIVE * (state is ModelState.LIVE)}
        case c.Retire(model):
            return {"model": model}
        case c.SetEpoch(epoch):
            return {"slot": epoch}
        case Put(model, key, data, session):
            return {"model": model, "subject": key, "length": len(data), "slot": session.pack()}
        case Flush(session) if session is not None:
            return {"flags": OF_SESSION, "slot": session.pack()}
        case _:
            return {}


def _settings(**values: int) -> dict[str, int]:
    return {"subject": int.from_bytes(SETTINGS.pack(**values), "little")}


def packed_keys(keys: Sequence[int]) -> bytes:
    """The keys of a LOOKUP as they lie in memory; InputError for one that is none."""
    try:
        return b"".join([key.to_bytes(KEY_BYTES, "little") for key in keys])
    except (AttributeError, OverflowError, TypeError):
        raise InputError(f"LOOKUP: a key is no number of {KEY_BITS} bits") from None


def command_of(fields: Mapping[str, int], data: bytes) -> Command | None:  # noqa: PLR0911, PLR0912 (one case a command)
    """The command of a descriptor, with what was at ``data``: keys or bytes. None for one that no slice can take."""
    model, subject, slot, flags = (fields[name] for name in ("model", "subject", "slot", "flags"))
    segment, count, length, crc = (fields[name] for name in ("segment", "count", "length", "crc"))
    session = SessionId.unpack(slot)
    match fields["opcode"]:
        case Opcode.LOOKUP:
            keys = [int.from_bytes(data[at : at + KEY_BYTES], "little") for at in range(0, len(data), KEY_BYTES)]
            return c.Lookup(model, keys, LookupMode.RUN if flags & RUN else LookupMode.BITMAP, bool(flags & PIN))
        case Opcode.ALLOC:
            return c.Alloc(model, subject, length, session)
        case Opcode.WRITE:
            return c.Write(Handle.unpack(subject), segment, data)
        case Opcode.SEAL:
            return c.Seal(Handle.unpack(subject), length, crc)
        case Opcode.ABORT:
            return c.Abort(Handle.unpack(subject))
        case Opcode.READ:
            return c.Read(Handle.unpack(subject), segment, count, bool(flags & PARK))
        case Opcode.UNPIN:
            return c.Unpin(PinId.unpack(slot))
        case Opcode.DROP:
            return c.Drop(model, subject)
        case Opcode.OPEN_SESSION:
            return c.OpenSession()
        case Opcode.CLOSE_SESSION:
            return c.CloseSession(session)
        case Opcode.MIGRATE:
            return c.Migrate(session)
        case Opcode.ANSWER_FENCE:
            return c.AnswerFence(session, length)
        case _:
            return _administrative(fields, SETTINGS.unpack(subject.to_bytes(16, "little")))


def _administrative(fields: Mapping[str, int], settings: Mapping[str, int]) -> Command | None:  # noqa: PLR0911
    model, slot, partition = fields["model"], fields["slot"], settings["partition"]
    match fields["opcode"]:
        case Opcode.BIND:
            targets: dict[int, int | Binding] = {
                Bound.NONE: Binding.NONE,
                Bound.PARTITION: partition,
                Bound.ADMINISTRATIVE: Binding.ADMINISTRATIVE,
            }
            if settings["binding"] not in targets:
                return None
            return c.Bind(RingId(settings["port"], settings["ring"]), targets[settings["binding"]])
        case Opcode.SET_PARTITION:
            limits = settings["quota"], settings["guarantee"]
            return c.SetPartition(partition, settings["pool"], *limits, bool(settings["public"] & 1), slot)
        case Opcode.DROP_PARTITION:
            return c.DropPartition(partition)
        case Opcode.SET_MODEL:
            return c.SetModel(model, ModelState.LIVE if fields["flags"] & LIVE else ModelState.READ_ONLY)
        case Opcode.RETIRE:
            return c.Retire(model)
        case Opcode.SET_EPOCH:
            return c.SetEpoch(slot)
        case _:
            return None


def task_of(fields: Mapping[str, int], data: bytes) -> Task | None:
    """The task of a descriptor, with the bytes of a PUT; None for one that is for no engine."""
    session = SessionId.unpack(fields["slot"])
    match fields["opcode"]:
        case EngineOpcode.PUT:
            return Put(fields["model"], fields["subject"], data, session)
        case EngineOpcode.FLUSH:
            return Flush(session if fields["flags"] & OF_SESSION else None)
        case _:
            return None
