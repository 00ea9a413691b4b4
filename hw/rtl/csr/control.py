"""Control and status of a slice: its registers, and what stands behind them."""

from amaranth import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.params import Params
from hw.params.protocol import EPOCH_BITS, STATUS_BITS
from hw.params.toeplitz import diagonal_bits
from hw.rdl import Kind, Register, register_map
from hw.rtl.axi import axi4_lite
from hw.rtl.csr.admin_window import AdminWindow
from hw.rtl.csr.error_log import ErrorLog
from hw.rtl.csr.hash_matrices import HashMatrices
from hw.rtl.csr.layouts import ADMIN_COMMAND, ERROR_ENTRY
from hw.rtl.csr.registers import ADDRESS_BITS, Registers

LOGGED_ERRORS = 16


def counts_layout() -> data.StructLayout:
    """Return the layout of what can be counted in one cycle, by the names of statistics."""
    counters = _statistics(Kind.COUNTER)
    return data.StructLayout({name: register.fields[0].increment_width for name, register in counters.items()})


def levels_layout() -> data.StructLayout:
    """Return the layout of what is in use now, by the names of statistics."""
    return data.StructLayout({name: register.fields[0].width for name, register in _statistics(Kind.STATUS).items()})


def _statistics(kind: Kind) -> dict[str, Register]:
    """Return the registers of statistics with a field of that kind, by the name of the statistic."""
    registers = (r for r in register_map().values() if r.fields[0].kind is kind)
    return {r.statistic: r for r in registers if r.statistic is not None}


class SliceControl(wiring.Component):
    """Everything of a slice that software reaches through AXI4-Lite.

    Parameters
    ----------
    params
        Capabilities, and the number and width of the hash matrices.

    Interface
    ---------
    axi : In, AXI4-Lite
        The software's side: the registers of `kvnode.rdl`.
    irq : Out, 1 bit
        Level.
    start, restart : Out, 1 bit
        For one cycle: take `epoch` into use, or forget all state.
    epoch : Out, 64 bits
        As the registers have it now.
    ready, started : In, 1 bit
        The tables are initialised; an epoch is in use.
    diagonals : Out, an array of one number a bank
        The hash matrices of the block CAM; constant while `started`.
    commands : Out, stream of `ADMIN_COMMAND`
        Administrative commands; each is answered on `statuses`, one at a time.
    statuses : In, stream of 5 bits
        Their statuses; always taken at once.
    errors : In, stream of `ERROR_ENTRY`
        What is to be logged; always taken at once.
    counts : In, `counts_layout()`
        What happened in this cycle.
    levels : In, `levels_layout()`
        What is in use now.

    Latency and throughput
    ----------------------
    As `Registers` and its other parts say.

    Ordering and stalls
    -------------------
    As `Registers`. Nothing on the side of the slice ever waits for software.

    Reset and errors
    ----------------
    Reset clears everything; `restart` clears the counters, and neither the error log nor the hash matrices.

    Invariants
    ----------
    As `AdminWindow`.

    Counters
    --------
    One for each member of `counts`, from the last restart on.
    """

    def __init__(self, params: Params):
        self._params = params
        super().__init__(
            {
                "axi": In(axi4_lite(address_bits=ADDRESS_BITS)),
                "irq": Out(1),
                "start": Out(1),
                "restart": Out(1),
                "epoch": Out(EPOCH_BITS),
                "ready": In(1),
                "started": In(1),
                "diagonals": Out(data.ArrayLayout(diagonal_bits(params), params.cam.banks)),
                "commands": Out(stream.Signature(ADMIN_COMMAND)),
                "statuses": In(stream.Signature(STATUS_BITS)),
                "errors": In(stream.Signature(ERROR_ENTRY)),
                "counts": In(counts_layout()),
                "levels": In(levels_layout()),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.registers = registers = Registers(self._params)
        m.submodules.matrices = matrices = HashMatrices(self._params)
        m.submodules.admin = admin = AdminWindow()
        m.submodules.log = log = ErrorLog(entries=LOGGED_ERRORS)
        software, hardware = registers.software, registers.hardware
        wiring.connect(m, wiring.flipped(self.axi), registers.axi)
        wiring.connect(m, wiring.flipped(self.statuses), admin.statuses)
        wiring.connect(m, wiring.flipped(self.errors), log.errors)

        was_ready = Signal()
        m.d.sync += was_ready.eq(self.ready)
        m.d.comb += [
            self.irq.eq(registers.irq),
            self.start.eq(software.control.start),
            self.restart.eq(software.control.restart),
            self.epoch.eq(Cat(software.epoch_low.low, software.epoch_high.high)),
            hardware.status.eq(Cat(self.ready, self.started)),
            hardware.interrupt_status.eq(Cat(log.logged, log.lost, admin.ended, self.ready & ~was_ready)),
        ]
        m.d.comb += [
            matrices.bank.eq(software.cam_hash_select.bank),
            matrices.word.eq(software.cam_hash_select.word),
            matrices.write.eq(software.cam_hash_data.value.write),
            matrices.data.eq(software.cam_hash_data.value.data),
            hardware.cam_hash_data.value.eq(matrices.value),
            self.diagonals.eq(matrices.diagonals),
        ]
        command = self.commands.payload
        m.d.comb += [
            command.opcode.eq(software.admin_command.opcode),
            command.port.eq(software.admin_ring.port),
            command.ring.eq(software.admin_ring.ring),
            command.binding.eq(software.admin_ring.binding),
            command.partition.eq(software.admin_partition.partition),
            command.pool.eq(software.admin_partition.pool),
            command.public.eq(software.admin_partition.public),
            command.quota.eq(software.admin_quota.quota),
            command.guarantee.eq(software.admin_guarantee.guarantee),
            command.read_mask.eq(Cat(software.admin_read_mask_low.low, software.admin_read_mask_high.high)),
            command.model.eq(software.admin_model.model),
            command.state.eq(software.admin_model.state),
            self.commands.valid.eq(admin.valid),
            admin.ready.eq(self.commands.ready),
            admin.go.eq(software.admin_command.go),
            hardware.admin_status.eq(Cat(admin.status, admin.busy)),
        ]
        m.d.comb += [
            log.pop.eq(software.error_pop.pop),
            hardware.error_entry.kind.eq(log.oldest.kind),
            hardware.error_entry.code.eq(log.oldest.code),
            hardware.error_entry.port.eq(log.oldest.port),
            hardware.error_entry.ring.eq(log.oldest.ring),
            hardware.error_entry.valid.eq(log.valid),
            hardware.error_frame.eq(log.oldest.frame),
        ]
        for name, register in _statistics(Kind.COUNTER).items():
            counter = getattr(hardware, register.name.lower())[register.fields[0].name]
            m.d.comb += [counter.increment.eq(self.counts[name]), counter.clear.eq(self.restart)]
        for name, register in _statistics(Kind.STATUS).items():
            m.d.comb += getattr(hardware, register.name.lower()).eq(self.levels[name])
        return m
