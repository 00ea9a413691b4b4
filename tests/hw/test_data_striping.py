"""Striping: every segment has a place of its own, and every regular walk keeps all channels busy."""

from collections import Counter
from collections.abc import Iterable

import numpy as np
import pytest
from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator
from hypothesis import given
from hypothesis import strategies as st

from hw.params import DEFAULT, LARGE, PRESETS, TINY, KvnodeError, Params
from hw.params.sections import STRIPING, CamParams, MemoryParams, PoolParams
from hw.params.striping import Striping
from hw.rtl.layouts import frame_bits
from hw.rtl.node.data.striping import address_of, channel_of, first_number
from hw.rtl.node.layouts import segments_bits


def striped(channels: int, *pools: tuple[int, int], striping: str = "permuted") -> Params:
    """Parameters with pools of so many frames of so many segments."""
    return Params(
        memory=MemoryParams(segment_bytes=4096, channels=channels, striping=striping),
        cam=CamParams(),
        pools=tuple(PoolParams(frames=frames, frame_bytes=4096 * segments) for frames, segments in pools),
    )


CHANNELS = [1, 2, 4, 8, 16, 32]
POOLS = st.lists(st.tuples(st.integers(1, 20), st.integers(1, 70)), min_size=1, max_size=4)


def use(stripes: Striping, segments: Iterable[tuple[int, int]]) -> list[int]:
    """How often each channel is used."""
    used = Counter(stripes.locate(*segment)[0] for segment in segments)
    return [used[channel] for channel in range(stripes.channels)]


@given(st.sampled_from(CHANNELS), POOLS, st.sampled_from(STRIPING))
def test_every_segment_has_its_own_place(channels: int, pools: list[tuple[int, int]], striping: str) -> None:
    stripes = Striping(striped(channels, *pools, striping=striping))
    frame, places = 0, set()
    for frames, segments in pools:
        for _ in range(frames):
            for segment in range(segments):
                place = stripes.locate(frame, segment)
                assert stripes.segment_at(*place) == (frame, segment)
                assert place not in places
                assert 0 <= place[0] < channels
                assert place[1] % 4096 == 0
                assert 0 <= place[1] < stripes.channel_bytes
                places.add(place)
            frame += 1


@given(st.sampled_from(CHANNELS), st.data())
def test_nothing_is_wasted(channels: int, draw: st.DataObject) -> None:
    frames, segments = draw.draw(st.integers(1, 9)), draw.draw(st.integers(1, 70))
    used = Striping(striped(channels, (frames, segments))).channel_bytes // 4096 * channels
    assert frames * segments <= used < frames * segments + channels


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("stride", [1 << i for i in range(10)])
def test_segments_at_any_power_of_two_use_all_channels_alike(channels: int, stride: int) -> None:
    stripes = Striping(striped(channels, (4, 512 * channels)))
    for frame in range(4):
        walk = use(stripes, ((frame, segment) for segment in range(0, 512 * channels, stride)))
        assert len(set(walk)) == 1
        for start in range(0, 512, stride * channels):
            window = use(stripes, ((frame, start + i * stride) for i in range(channels)))
            assert window == [1] * channels


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("stride", [1 << i for i in range(8)])
@pytest.mark.parametrize("segments", [1, 8, 1024])
def test_frames_at_any_power_of_two_use_all_channels_alike(channels: int, stride: int, segments: int) -> None:
    stripes = Striping(striped(channels, (256 * channels, segments)))
    for segment in {0, segments - 1}:
        walk = use(stripes, ((frame, segment) for frame in range(0, 256 * channels, stride)))
        assert len(set(walk)) == 1


@pytest.mark.parametrize("channels", [4, 8, 16, 32])
def test_no_other_stride_leans_on_a_channel(channels: int) -> None:
    stripes, walk = Striping(striped(channels, (100, 16384))), np.arange(1600)
    for stride in range(1, 1000):
        used = np.zeros(len(walk), int)
        for bit, mask in enumerate(stripes.masks):
            used |= np.bitwise_count(walk * stride & mask).astype(int) % 2 << bit
        assert np.bincount(used).max() <= 2 * len(walk) / channels


@pytest.mark.parametrize("channels", CHANNELS)
def test_a_row_of_segments_is_in_an_order_of_its_own(channels: int) -> None:
    stripes = Striping(striped(channels, (1, 64 * channels)))
    orders = {
        tuple(stripes.locate(0, row * channels + i)[0] for i in range(channels)) for row in range(min(channels, 64))
    }
    assert len(orders) == channels


def test_interleaved_segments_come_in_turn_and_a_stride_of_all_channels_leans_on_one() -> None:
    stripes = Striping(striped(8, (1, 512), striping="interleaved"))
    assert [stripes.locate(0, i) for i in range(512)] == [(i % 8, i // 8 * 4096) for i in range(512)]
    assert use(stripes, ((0, segment) for segment in range(0, 512, 8))) == [64, 0, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("segment", [(-1, 0), (4, 0), (0, -1), (0, 8), (3, 8)])
def test_what_is_not_there_is_refused(segment: tuple[int, int]) -> None:
    with pytest.raises(KvnodeError, match="there is no segment"):
        Striping(TINY).locate(*segment)
    with pytest.raises(KvnodeError, match="has no segment"):
        Striping(TINY).segment_at(0, Striping(TINY).channel_bytes)


class Place(wiring.Component):
    """The functions of `hw.rtl.node.data.striping`, one after the other."""

    def __init__(self, params: Params):
        self.stripes = Striping(params)
        super().__init__(
            {
                "frame": In(frame_bits(params)),
                "segment": In(segments_bits(params)),
                "channel": Out(max(1, self.stripes.channel_bits)),
                "address": Out(40),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        number = (first_number(m, self.stripes, self.frame) + self.segment)[: self.stripes.number_bits]
        m.d.comb += [
            self.channel.eq(channel_of(self.stripes, number)),
            self.address.eq(address_of(self.stripes, number)),
        ]
        return m


ODD = striped(4, (3, 5), (2, 640), (7, 1), (1, 64))


PLAIN = striped(8, (5, 24), striping="interleaved")
SLICES = {**PRESETS, "odd": ODD, "one": striped(1, (3, 8)), "interleaved": PLAIN}


@pytest.mark.parametrize("params", SLICES.values(), ids=SLICES)
def test_logic_agrees(params: Params) -> None:
    dut = Place(params)
    stripes = dut.stripes

    async def check(ctx) -> None:
        for pool, size in enumerate(stripes.sizes):
            first = stripes.firsts[pool]
            for frame in {first, first + params.pools[pool].frames // 2, first + params.pools[pool].frames - 1}:
                for segment in {0, size // 3, size - 1}:
                    ctx.set(dut.frame, frame)
                    ctx.set(dut.segment, segment)
                    assert (ctx.get(dut.channel), ctx.get(dut.address)) == stripes.locate(frame, segment)

    simulator = Simulator(dut)
    simulator.add_testbench(check)
    simulator.run()


def test_presets_have_room() -> None:
    assert Striping(DEFAULT).channel_bytes == 8 << 30
    assert Striping(LARGE).channel_bytes == 128 << 30
