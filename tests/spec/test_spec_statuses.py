"""The table of the contract, read as tests: one scenario for every status of every command, and their precedence."""

from dataclasses import replace

import pytest
from scenarios_of_blocks import BLOCKS
from scenarios_of_control import CONTROL
from specbench import REACHABLE, A, Bench

from hw.params import TINY
from hw.params import commands as c
from hw.params.protocol import REGISTERS, Opcode, Status
from hw.params.sections import PoolParams

SCENARIOS = {**BLOCKS, **CONTROL}


@pytest.mark.parametrize(("opcode", "status"), SCENARIOS, ids=lambda value: value.name)
def test_a_command_ends_as_the_table_says(opcode: Opcode, status: Status) -> None:
    bench = Bench()
    assert SCENARIOS[opcode, status](bench).status is status


def test_every_status_of_the_table_has_a_scenario() -> None:
    everywhere = {Status.INVALID, Status.UNAVAILABLE, Status.DENIED}
    table = {(opcode, status) for opcode, statuses in REACHABLE.items() for status in statuses - everywhere}
    # A pool that changes hands has a test of its own, for it needs two pools.
    assert table - SCENARIOS.keys() == {(Opcode.SET_PARTITION, Status.PENDING)}


def test_the_last_tenant_of_a_pool_must_be_gone_before_a_partition_changes_pools() -> None:
    bench = Bench(replace(TINY, pools=(*TINY.pools, PoolParams(frame_bytes=8192, frames=2))))
    session = bench.open()
    bench.store(A, session, 1)
    assert bench.do(REGISTERS, c.SetPartition(0, pool=1, quota=3)).status is Status.RANGE
    assert bench.do(REGISTERS, c.SetPartition(0, pool=1, quota=2)).status is Status.PENDING
    bench.must(A, c.Drop(0, 1))
    assert bench.do(REGISTERS, c.SetPartition(0, pool=1, quota=2)).status is Status.PENDING, "DRAINING counts"
    bench.settle()
    bench.must(REGISTERS, c.SetPartition(0, pool=1, quota=2))
    assert bench.alloc(A, session, 1, 8192).frame == 4, "the first of the other pool"
