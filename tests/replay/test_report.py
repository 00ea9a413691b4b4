"""Reports stand alone: nothing is fetched, everything is escaped, nothing half-written is left."""

import os
import re
from pathlib import Path

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hw.params import InputError
from scripts.replay.plots import eviction_ages, hits_over_time, occupancy
from scripts.replay.tally import History
from scripts.report import OutputFolder, Page, Plot, Row, Table, draw
from tests.replay.helpers import made_trace, params_of, replay_of


def line(axes: Axes) -> None:
    axes.plot([1, 2], [3, 4], label="a < b")
    axes.legend()


def page() -> Page:
    return Page(
        kind="kvnode test",
        title="<title>",
        alerts=["bad & worse"],
        headline=[("rate", "0.5")],
        facts=[("seed", "0")],
        command="kvnode test '<x>'",
        plots=[Plot(title="one", svg=draw(line, "one"), reading="up is more")],
        tables=[
            Table(title="plain", rows=[Row(name="a", values=["1"], unit="bytes", definition="what it is")]),
            Table(title="wide", columns=["0", "1"], rows=[Row(name="b", values=["1", "2"], unit="", definition="")]),
        ],
    )


def test_a_page_fetches_nothing_and_escapes_everything() -> None:
    html = page().html()
    assert not re.search(r"<script|<link|<img|@import|url\((?!#)", html)
    assert not re.search(r"(?:src|href)=\"(?!#)", html)
    assert "&lt;title&gt;" in html and "bad &amp; worse" in html and "&lt;x&gt;" in html


def test_a_drawing_takes_its_ink_from_the_page() -> None:
    svg = draw(line, "one")
    assert svg.startswith('<svg role="img" aria-label="one"')
    assert "currentColor" in svg and "<metadata>" not in svg
    assert svg == draw(line, "one")
    identifiers = re.findall(r' id="([^"]+)"', svg + draw(line, "two"))
    assert len(identifiers) == len(set(identifiers))


def test_a_folder_appears_when_it_is_complete(tmp_path: Path) -> None:
    with OutputFolder(tmp_path / "out", ["a"], lambda folder: (folder / "a").exists()) as folder:
        (folder / "a").write_text("1")
        assert not (tmp_path / "out").exists()
    assert (tmp_path / "out" / "a").read_text() == "1"
    with (
        pytest.raises(KeyboardInterrupt),
        OutputFolder(tmp_path / "out", ["a"], lambda folder: (folder / "a").exists()) as folder,
    ):
        (folder / "a").write_text("2")
        raise KeyboardInterrupt
    assert (tmp_path / "out" / "a").read_text() == "1"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_a_folder_with_other_files_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"has other files \(notes.txt\)"):
        OutputFolder(tmp_path, ["a"], lambda folder: (folder / "a").exists())


def test_a_folder_that_is_no_result_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("mine")
    with pytest.raises(InputError, match=r"has other files \(b\)"):
        OutputFolder(tmp_path, ["a", "b"], lambda folder: (folder / "a").exists())


def test_a_link_to_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    for path in ("loop", "loop/out"):
        with pytest.raises(InputError, match="expected a folder that can be written"):
            OutputFolder(tmp_path / path, ["a"], lambda _: True)
    assert [entry.name for entry in tmp_path.iterdir()] == ["loop"]


def test_a_volume_is_written_file_by_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    volume = tmp_path / "volume"
    (volume / "lost+found").mkdir(parents=True)
    monkeypatch.setattr(os.path, "ismount", lambda path: Path(path) == volume)
    before = volume.stat().st_ino
    for names in (("a", "b"), ("a",)):
        with OutputFolder(volume, ["a", "b"], lambda folder: (folder / "a").exists()) as folder:
            assert folder.parent == volume
            for name in names:
                (folder / name).write_text(name)
        assert {entry.name for entry in volume.iterdir()} == {"lost+found", *names}
    assert volume.stat().st_ino == before


def test_what_a_killed_run_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    left = {"killed": ".out.01234567", "other": ".out.89abcdef", "foreign": ".else.01234567"}
    for folder, file in (("killed", "a"), ("other", "theirs"), ("foreign", "a")):
        (tmp_path / left[folder]).mkdir()
        (tmp_path / left[folder] / file).touch()
    with OutputFolder(tmp_path / "out", ["a"], lambda _: True), OutputFolder(tmp_path / "out", ["a"], lambda _: True):
        pass
    assert {entry.name for entry in tmp_path.iterdir()} == {"out", left["other"], left["foreign"]}


def test_names_of_events_stay_beside_their_lines_and_inside_the_axes() -> None:
    figure = Figure(figsize=(5.8, 3.1))
    axes = figure.add_subplot()
    history = History()
    for number in range(100):
        history.add(number, 1, 1, 1)
    history.events += [(10, "model 1 retired"), (99, "port 1 lost")]
    hits_over_time(axes, history)
    figure.canvas.draw()
    for text, (at, _) in zip(axes.texts, history.events, strict=True):
        box, line_at = text.get_window_extent(), axes.transData.transform((at, 0))[0]
        assert not box.x0 - 1 < line_at < box.x1 + 1
        assert axes.bbox.x0 <= box.x0 and box.x1 <= axes.bbox.x1


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with OutputFolder(tmp_path / "link", ["a"], lambda folder: (folder / "a").exists()) as folder:
        (folder / "a").write_text("1")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real" / "a").exists()


def test_plots_of_the_shortest_runs_can_be_drawn() -> None:
    replay = replay_of(made_trace(1), params_of("pools.0.frames=4"))
    assert draw(lambda axes: eviction_ages(axes, replay.ledger), "x")
    assert draw(lambda axes: occupancy(axes, replay.history), "x")
    assert draw(lambda axes: hits_over_time(axes, replay.history), "x")
    assert draw(lambda axes: hits_over_time(axes, History()), "x")
