"""Whether registers are those of the device that the driver was configured for."""

from collections.abc import Callable, Mapping

from hw.params.params import Params
from hw.rdl import Register
from sw.driver.errors import DeviceError


def discover(registers: Mapping[str, Register], params: Params, read: Callable[[str], int], of: str = "") -> None:
    """Compare identity, version and capabilities; DeviceError names the first register that reads something else."""
    for register in registers.values():
        if not register.constant:
            continue
        found, expected = read(register.name), register.reset(params)
        if found != expected:
            raise DeviceError(
                f"register {register.name}{of} reads {found:#x}, expected {expected:#x}:"
                " the device was built for other parameters, or is none of ours"
            )
