"""Parameters from files and ``--set``: what is taken, and one line for what is not."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hw.params import DEFAULT, LARGE, PRESETS, TINY, ParameterError, load_params
from hw.params.load import names
from hw.params.sections import PoolParams

TAKES_BANKS = "expected an integer from 1 to 16"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Where a parameter file would be."""
    return tmp_path / "slice.toml"


def refusal(config: Path | None = None, *overrides: str) -> str:
    """The one line that refuses these parameters."""
    with pytest.raises(ParameterError) as caught:
        load_params(config, overrides)
    message = str(caught.value)
    assert message.isprintable(), "one line"
    return message


# Files that are none.


def test_a_missing_file_a_directory_and_a_file_that_may_not_be_read_are_told_apart(config: Path) -> None:
    expected = "expected a TOML parameter file"
    assert refusal(config) == f"{config}: cannot be read (No such file or directory), {expected}"
    config.mkdir()
    assert refusal(config) == f"{config}: cannot be read (Is a directory), {expected}"


@pytest.mark.parametrize("content", [b"\xff\xfe", b"[cam", b"banks", b"[cam]\nbanks = \n", b"a = 1\na = 2", b"# \0"])
def test_a_file_that_is_no_toml_is_named(config: Path, content: bytes) -> None:
    config.write_bytes(content)
    assert refusal(config).startswith(f"{config}: not a TOML parameter file (")


@pytest.mark.parametrize("value", ["1" + 5000 * "0", "0x" + 5000 * "f", 3000 * "[" + 3000 * "]"])
def test_what_python_does_not_read_or_show_is_no_toml_either(config: Path, value: str) -> None:
    config.write_text(f"[cam]\nbanks = {value}", encoding="utf-8")
    assert refusal(config).startswith(f"{config}: not a TOML parameter file (")


def test_a_name_with_a_line_end_takes_one_line_all_the_same(tmp_path: Path) -> None:
    assert "cannot be read" in refusal(tmp_path / "a\nb.toml")


# Files with something wrong in them.

WRONG = {
    "a name": ("[cam]\nbonks = 3", "unknown parameter 'cam.bonks', did you mean 'cam.banks'?"),
    "a section": ("[cem]\nbanks = 3", "unknown parameter 'cem.banks', did you mean 'cam.banks'?"),
    "an empty section": ("[tabels]", "unknown parameter 'tabels', did you mean 'tables.models'?"),
    "a name outside sections": ("banks = 3", "unknown parameter 'banks', did you mean 'cam.banks'?"),
    "a number for a section": ("cam = 3", "cam = 3, expected its parameters, for example cam.banks"),
    "a number for pools": ("pools = 3", "pools = 3, expected its parameters, for example pools.0.frame_bytes"),
    "numbers for pools": ("pools = [3]", "pools = [3], expected its parameters, for example pools.0.frame_bytes"),
    "no pools": ("pools = []", "pools = [], expected its parameters, for example pools.0.frame_bytes"),
    "one table for pools": ("[pools]\nframes = 3", "unknown parameter 'pools.frames', did you mean 'pools.0.frames'?"),
    "many tables for one": ("[[cam]]\nbanks = 3", "unknown parameter 'cam.0.banks', did you mean 'cam.banks'?"),
    "a table for a number": ("[cam.banks]\nx = 3", "unknown parameter 'cam.banks.x', did you mean 'cam.banks'?"),
    "an empty table for a number": ("[cam.banks]", f"parameter cam.banks = {{}}: {TAKES_BANKS}"),
    "a pool's value": (
        "[[pools]]\n[[pools]]\nframes = 0",
        "parameter pools.1.frames = 0: expected an integer from 1 to 1,048,576",
    ),
    "a text for a number": ('[cam]\nbanks = "3"', f"parameter cam.banks = '3': {TAKES_BANKS}"),
    "two lines for a number": ('[cam]\nbanks = "3\\n4"', f"parameter cam.banks = '3\\n4': {TAKES_BANKS}"),
    "a bool for a number": ("[cam]\nbanks = true", f"parameter cam.banks = True: {TAKES_BANKS}"),
    "a fraction for an integer": ("[cam]\nbanks = 3.0", f"parameter cam.banks = 3.0: {TAKES_BANKS}"),
    "a number for a bool": ("[tables]\necc = 1", "parameter tables.ecc = 1: expected true or false"),
    "no number": ("[replay]\nquota = nan", "parameter replay.quota = nan: expected a number from 0.001 to 1.0"),
    "no power of two": (
        "[memory]\nbeat_bytes = 48",
        "parameter memory.beat_bytes = 48: expected a power of two from 16 to 128 (bytes)",
    ),
    "a preset": ('preset = "HUGE"', "preset = 'HUGE', expected one of TINY, DEFAULT, LARGE"),
    "presets": ('preset = ["TINY"]', "preset = ['TINY'], expected one of TINY, DEFAULT, LARGE"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_in_a_file_is_told_with_its_place_and_what_was_expected(config: Path, name: str) -> None:
    content, message = WRONG[name]
    config.write_text(content, encoding="utf-8")
    assert refusal(config) == f"{config}: {message}"


def test_too_many_pools_are_told(config: Path) -> None:
    config.write_text(17 * "[[pools]]\nframes = 1\n", encoding="utf-8")
    assert refusal(config) == "parameters contradict each other: 17 pools, expected 1 to 16"


# Files that are right.


@pytest.mark.parametrize("content", ["", "# nothing", "[cam]", "[[pools]]", 'preset = "DEFAULT"'])
def test_a_file_that_changes_nothing_gives_the_default(config: Path, content: str) -> None:
    config.write_text(content, encoding="utf-8")
    assert load_params(config) == load_params() == DEFAULT


def test_every_pool_of_a_file_is_one_pool(config: Path) -> None:
    config.write_text("[[pools]]\nframes = 10\n[[pools]]\n[[pools]]\nframe_bytes = 8192\n", encoding="utf-8")
    sizes = [(pool.frames, pool.frame_bytes) for pool in load_params(config).pools]
    assert sizes == [(10, 4 << 20), (16384, 4 << 20), (16384, 8192)]


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_is_where_the_others_start_wherever_it_stands(config: Path, preset: str) -> None:
    config.write_text("[cam]\nseed = 9\n[memory]\n[replay]\nseed = 3\n", encoding="utf-8")
    given = load_params(config, ["replay.seed=4", f"preset={preset}"])
    start = PRESETS[preset]
    assert given == replace(start, cam=replace(start.cam, seed=9), replay=replace(start.replay, seed=4))


def test_set_wins_over_the_file_and_the_last_of_two_wins(config: Path) -> None:
    config.write_text('preset = "TINY"\n[replay]\nseed = 1\n', encoding="utf-8")
    assert load_params(config, ["replay.seed=2", "replay.seed=3"]).replay.seed == 3
    assert load_params(config, ["preset=LARGE"]).pools == LARGE.pools


def test_presets_are_not_changed_by_those_who_start_from_them() -> None:
    before = TINY.hash, TINY.pools
    load_params(overrides=["preset=TINY", "pools.0.frames=3", "pools.1.frames=1", "cam.ways=4"])
    assert (TINY.hash, TINY.pools) == before == (PRESETS["TINY"].hash, PRESETS["TINY"].pools)


# --set

FORMS = {
    "cam.banks=4": 4,
    " cam.banks = 4 ": 4,
    "cam.banks=0x4": 4,
    "cam.banks=1_0": 10,
    "cam.banks=4 # a comment": 4,
}


@pytest.mark.parametrize("text", FORMS)
def test_set_takes_toml_values(text: str) -> None:
    assert load_params(overrides=[text]).cam.banks == FORMS[text]


def test_set_takes_every_type() -> None:
    params = load_params(overrides=["preset=TINY", "tables.ecc=false", "replay.quota=1", "replay.guarantee=0.5"])
    assert params.tables.ecc is False
    assert (params.replay.quota, params.replay.guarantee) == (1.0, 0.5)
    assert load_params(overrides=['preset="TINY"']) == TINY


def test_the_first_number_beyond_the_pools_adds_one_and_no_other() -> None:
    params = load_params(overrides=["preset=TINY", "pools.1.frames=2", "pools.2.frame_bytes=8192", "cam.sets=8192"])
    assert params.pools[1:] == (PoolParams(frames=2), PoolParams(frame_bytes=8192))
    assert refusal(None, "pools.2.frames=2").endswith(
        "unknown parameter 'pools.2.frames', did you mean 'pools.0.frames'?"
    )


SET = {
    "": "expected NAME=VALUE, for example replay.seed=7",
    "=": "expected NAME=VALUE, for example replay.seed=7",
    "=3": "expected NAME=VALUE, for example replay.seed=7",
    "cam.banks": "expected NAME=VALUE, for example replay.seed=7",
    "cam.banks=": f"parameter cam.banks = '': {TAKES_BANKS}",
    "cam.banks=four": f"parameter cam.banks = 'four': {TAKES_BANKS}",
    "cam.banks=17": f"parameter cam.banks = 17: {TAKES_BANKS}",
    "cam.banks=true": f"parameter cam.banks = True: {TAKES_BANKS}",
    "cam.banks=[1]": f"parameter cam.banks = [1]: {TAKES_BANKS}",
    "cam=3": "cam = 3, expected its parameters, for example cam.banks",
    "pools=3": "pools = 3, expected its parameters, for example pools.0.frame_bytes",
    "pools.0=3": "pools.0 = 3, expected its parameters, for example pools.0.frame_bytes",
    "cam.bonks=3": "unknown parameter 'cam.bonks', did you mean 'cam.banks'?",
    "CAM.banks=3": "unknown parameter 'CAM.banks', did you mean 'cam.banks'?",
    "cam..banks=3": "unknown parameter 'cam..banks', did you mean 'cam.banks'?",
    "cam.banks.x=3": "unknown parameter 'cam.banks.x', did you mean 'cam.banks'?",
    "pools.-1.frames=3": "unknown parameter 'pools.-1.frames', did you mean 'pools.0.frames'?",
    "pools.².frames=3": "unknown parameter 'pools.².frames', did you mean 'pools.0.frames'?",
    "preset=tiny": "preset = 'tiny', expected one of TINY, DEFAULT, LARGE",
    "prest=TINY": "unknown parameter 'prest', did you mean 'preset'?",
}


@pytest.mark.parametrize("text", SET)
def test_a_wrong_set_is_told_with_what_was_expected(text: str) -> None:
    assert refusal(None, text) == f"--set {text}: {SET[text]}"


def test_a_set_of_two_lines_sets_nothing_silently_and_is_told_in_one() -> None:
    text = "cam.banks=4\nways=3"
    assert refusal(None, text) == f"--set {text!r}: parameter cam.banks = '4\\nways=3': {TAKES_BANKS}"
    assert refusal(None, "a\nb=1").startswith("--set 'a\\nb=1': unknown parameter 'a\\nb'")


def test_a_number_of_thousands_of_digits_is_refused_as_any_other() -> None:
    assert refusal(None, "cam.banks=1" + 5000 * "0").endswith(TAKES_BANKS)


@settings(deadline=None)
@given(st.text(), st.text())
def test_any_set_is_taken_or_refused_in_one_line(name: str, value: str) -> None:
    try:
        load_params(overrides=[f"{name}={value}"])
    except ParameterError as error:
        assert str(error).isprintable()


@settings(deadline=None)
@given(st.sampled_from([name for name, _ in names()]), st.text() | st.integers().map(str) | st.floats().map(str))
def test_any_value_of_any_parameter_is_taken_or_refused_with_its_name(name: str, value: str) -> None:
    try:
        load_params(overrides=["preset=TINY", f"{name}={value}"])
    except ParameterError as error:
        assert str(error).isprintable()
        assert name.rsplit(".", 1)[1] in str(error)
