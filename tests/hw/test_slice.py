"""The slice: its bench, and the mutants that the same traffic must find."""

from collections.abc import Callable

import pytest

from hw.params.params import Params
from hw.rtl.node.slice import Slice
from hw.tb.core.settings import settings_of
from tests.hw.test_core import small

BENCH = "hw.tb.slice.bench"


@pytest.mark.parametrize("params", [small()], ids=["small"])
def test_slice(run_bench: Callable[..., None], params: Params) -> None:
    run_bench(Slice(params), "slice", BENCH, **settings_of(params), moves=150)
