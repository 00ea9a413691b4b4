"""cocotb tests of `hw.rtl.node.cam`: content, placement, order and timing, with no errors in the SRAM."""

from typing import Any

import cocotb

from hw.params.toeplitz import diagonals, home_set, pack_tag
from hw.tb.cam.base import CamBench
from hw.tb.pace import Pace, always, bursts, randomly
from hw.tb.scoreboard import CheckError
from pymodel.spec.cam import Tag

PACES: dict[str, Pace] = {"always": always, "half": randomly(0.5), "bursts": bursts(20, 20)}


def act(bench: CamBench, tag: Tag) -> None:
    """Queue something to do with `tag`, and now and then look at it at once."""
    random = bench.random
    if bench.cam.find(tag) is None:
        random.choice([bench.lookup, bench.insert, bench.insert])(tag)
    else:
        random.choice([bench.lookup, bench.rewrite, bench.remove])(tag)
    if random.random() < 0.3:
        bench.lookup(tag)
    if random.random() < 0.3:
        bench.ask(bench.place() if bench.cam.find(tag) is None else bench.cam.where(tag))


def look_at_all(bench: CamBench, tags: list[Tag]) -> None:
    """Queue a LOOKUP of every tag, and a READ of its place: what is stored is found, and nothing else is."""
    for tag in tags:
        bench.lookup(tag)
        bench.ask(bench.place() if bench.cam.find(tag) is None else bench.cam.where(tag))


@cocotb.test()
@cocotb.parametrize(idle=list(PACES))
async def random_traffic(dut: Any, idle: str) -> None:
    """Lookups, inserts, rewrites and removals of tags that resemble each other, to about half of the slots."""
    async with CamBench(dut, idle=PACES[idle]) as bench:
        tags = bench.tags(min(bench.params.cam_slots, 400))
        for _ in range(700):
            act(bench, bench.random.choice(tags))
        look_at_all(bench, tags)
        await bench.sent()


@cocotb.test()
async def every_tag_bit(dut: Any) -> None:
    """A tag that differs from a stored one in a single bit, whichever it is, is another tag, and is read as such."""
    async with CamBench(dut) as bench:
        tag = bench.tag()
        bench.insert(tag)
        for bit in range(128):
            bench.lookup(tag._replace(key=tag.key ^ 1 << bit))
        tables = bench.params.tables
        for partition in range(tables.partitions):
            for model in range(tables.models):
                bench.lookup(tag._replace(partition=partition, model=model))
        place = bench.cam.where(tag)
        for bit in range(128):
            bench.remove(tag)
            tag = tag._replace(key=tag.key ^ 1 << bit)
            bench.cam.insert(tag, place, 0)
            bench.update(place, tag, 0, valid=True)
            bench.ask(place)
        await bench.sent()


@cocotb.test()
async def full(dut: Any) -> None:
    """Inserts until sets are full and refuse, then replacements in the full CAM."""
    async with CamBench(dut) as bench:
        slots = min(bench.params.cam_slots, 400)
        tags = bench.tags(3 * slots)
        for tag in tags[:slots] if bench.params.cam_slots > slots else tags:
            bench.insert(tag)
        for tag in [*tags, *tags]:
            if bench.cam.find(tag) is not None and bench.random.random() < 0.5:
                bench.remove(tag)
            elif bench.cam.find(tag) is None:
                bench.insert(tag)
        look_at_all(bench, tags)
        await bench.sent()
        if bench.params.cam_slots == slots and not bench.refused:
            raise CheckError("no insert was refused: the test does not reach a full set")


@cocotb.test()
async def one_tag(dut: Any) -> None:
    """Every pair of requests for one tag back to back, and one cycle apart, in an otherwise full bucket."""
    async with CamBench(dut, idle=randomly(0.8)) as bench:
        tag, *others = bench.tags(2 * min(bench.params.cam_slots, 64))
        for other in others:
            bench.insert(other)
        for _ in range(100):
            act(bench, tag)
        for _ in range(20):
            bench.insert(tag) if bench.cam.find(tag) is None else bench.rewrite(tag)
            bench.lookup(tag)
            place = bench.cam.where(tag) if bench.cam.find(tag) is not None else bench.place()
            bench.ask(place)
            if bench.cam.find(tag) is not None:
                bench.remove(tag)
            bench.ask(place)
            bench.lookup(tag)
        await bench.sent()


@cocotb.test()
async def one_bucket(dut: Any) -> None:
    """Tags that share one set in every bank, as far as chance finds them, so that all the traffic meets there."""
    async with CamBench(dut) as bench:
        params = bench.params
        matrices = diagonals(params)

        def sets(tag: Tag) -> list[int]:
            return [home_set(params, matrix, pack_tag(params, *tag)) for matrix in matrices]

        home = sets(bench.tag())
        candidates = sorted(
            (bench.tag() for _ in range(3000)),
            key=lambda tag: -sum(a == b for a, b in zip(home, sets(tag), strict=True)),
        )
        tags = candidates[: 2 * params.cam.banks * params.cam.ways]
        for tag in tags:
            bench.insert(tag)
        for _ in range(500):
            act(bench, bench.random.choice(tags))
        look_at_all(bench, tags)
        await bench.sent()


@cocotb.test()
async def full_rate(dut: Any) -> None:
    """One request a cycle without a bubble, whatever the mix; an insert takes two of them, a removal or READ one."""
    async with CamBench(dut) as bench:
        tags = bench.tags(min(bench.params.cam_slots, 100))
        requests = 0
        for tag in tags:
            if bench.cam.place(tag) is not None:
                bench.insert(tag)
                bench.ask(bench.cam.where(tag))
                bench.remove(tag)
                requests += 4
        await bench.sent()
        bench.source.monitor.check_full_rate()
        if bench.source.monitor.transfers != requests:
            raise CheckError(f"{bench.source.monitor.transfers} slots taken, expected {requests}")


@cocotb.test()
async def every_set_is_initialised(dut: Any) -> None:
    """After power-up with random content, and after `clear` of a full CAM, every set of every bank is empty."""
    async with CamBench(dut) as bench:
        params = bench.params
        matrices = diagonals(params)
        wanted = {(bank, index) for bank in range(params.cam.banks) for index in (0, 1, -2, -1)}
        wanted = {(bank, index % params.cam_sets) for bank, index in wanted}
        tags: list[Tag] = []
        while wanted:
            tag = bench.tag()
            word = pack_tag(params, *tag)
            found = {(bank, home_set(params, matrix, word)) for bank, matrix in enumerate(matrices)} & wanted
            if found:
                tags.append(tag)
                wanted -= found
        more = bench.tags(2 * min(params.cam_slots, 200))
        look_at_all(bench, tags + more)
        for _ in range(3):
            for tag in tags + more:
                if bench.cam.find(tag) is None:
                    bench.insert(tag)
            await bench.sent()
            await bench.clear()
            look_at_all(bench, tags + more)
            for tag in tags:
                bench.insert(tag)
            look_at_all(bench, tags)
            await bench.sent()
            await bench.clear()


@cocotb.test()
async def reset_in_traffic(dut: Any) -> None:
    """Reset at any time leaves an empty CAM, also in the middle of the initialising sweep."""
    async with CamBench(dut, idle=randomly(0.8)) as bench:
        tags = bench.tags(min(bench.params.cam_slots, 100))
        for _ in range(20):
            for tag in tags:
                act(bench, tag)
            await bench.cycles(bench.random.randint(1, 40))
            await bench.reset(bench.random.randint(1, 3))
        look_at_all(bench, tags)
        await bench.sent()
