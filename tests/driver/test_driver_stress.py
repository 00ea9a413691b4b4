"""Threads that do anything at all on one device, while rings are lost: on every bus with requesters behind it."""

import pytest
from driverbench import BUSES, PARAMS, SEGMENT
from stress import Stress

EVERYDAY, NIGHTLY = 2_000, 100_000
"""Operations."""

OPTIONS = {"whole": {}, "scattered": {"entries": 8, "page_bytes": SEGMENT, "interrupts": False}}


@pytest.mark.parametrize(("bus", "options"), [("loopback", "whole"), ("loopback", "scattered"), ("verilator", "whole")])
def test_threads_do_anything_while_rings_are_lost(bus: str, options: str, seed: int) -> None:
    stress = Stress(BUSES[bus](PARAMS, seed), seed, **OPTIONS[options])
    print(stress.run(EVERYDAY), stress.lost)
