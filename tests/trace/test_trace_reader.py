"""What the reader accepts, and the one line it says otherwise."""

import gzip
import json
from pathlib import Path

import pytest

from hw.params.errors import InputError
from pymodel.trace import Request, blocks_of, load_trace, read_requests, write_requests

REQUESTS = [
    Request(0, 1000, 5, [0, 1]),
    Request(0, 512, 0, [2]),
    Request(3000, 0, 7, []),
    Request(3001, 2048, 1, [0, 1, 3]),
]
GOOD = {"timestamp": 10, "input_length": 600, "output_length": 3, "hash_ids": [1, 2]}


def line(**changes: object) -> bytes:
    return json.dumps(GOOD | changes).encode() + b"\n"


@pytest.mark.parametrize("name", ["trace.jsonl", "trace.jsonl.gz"])
def test_what_is_written_is_read_back(tmp_path: Path, name: str) -> None:
    assert write_requests(tmp_path / name, REQUESTS) == 4
    assert list(read_requests(tmp_path / name)) == REQUESTS
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_gzip_is_told_by_content(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_bytes(gzip.compress(line(), mtime=0))
    assert len(load_trace(path)) == 1


def test_arrays_hold_the_requests(tmp_path: Path) -> None:
    write_requests(tmp_path / "t", REQUESTS)
    trace = load_trace(tmp_path / "t")
    assert trace.ids.tolist() == [0, 1, 2, 0, 1, 3]
    assert trace.offsets.tolist() == [0, 2, 3, 3, 6]
    assert trace.timestamps.tolist() == [0, 0, 3000, 3001]
    assert trace.input_lengths.tolist() == [1000, 512, 0, 2048]
    assert trace.output_lengths.tolist() == [5, 0, 7, 1]


def test_lines_after_the_limit_are_not_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(line() + b"garbage\n")
    assert len(load_trace(path, limit=1)) == 1


def test_blank_lines_unknown_fields_and_missing_tail_ids_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(b"\n" + line(user="\u00e9") + b"  \r\n" + line(hash_ids=[1]).strip())
    assert [request.hash_ids for request in read_requests(path)] == [[1, 2], [1]]


@pytest.mark.parametrize(
    ("tokens", "block", "blocks"), [(0, 512, 0), (1, 512, 1), (512, 512, 1), (513, 512, 2), (33, 16, 3)]
)
def test_a_prompt_fills_whole_blocks_and_a_tail(tokens: int, block: int, blocks: int) -> None:
    assert blocks_of(tokens, block) == blocks


@pytest.mark.parametrize(
    ("content", "where", "message"),
    [
        (line() + b"hello\n", 2, "not JSON"),
        (line()[:-12], 1, "not JSON"),
        (line() + b"[1]\n", 2, "the line is array, expected `object`"),
        (b'{"x":' + b"[" * 100_000, 1, "not JSON"),
        (b'{"timestamp": 1, "input_length": 1, "output_length": 1}', 1, "missing required field `hash_ids`, expected"),
        (line(timestamp=True), 1, "timestamp is bool, expected `int`"),
        (line(timestamp=1.5), 1, "timestamp is float, expected `int`"),
        (line(timestamp="1"), 1, "timestamp is str, expected `int`"),
        (line(output_length=None), 1, "output_length is null, expected `int`"),
        (line(input_length=-1), 1, "input_length is out of range, expected `int` >= 0"),
        (line(input_length=2**31), 1, "input_length is out of range, expected `int` <= 2147483647"),
        (line(output_length=2**31), 1, "output_length is out of range, expected `int` <= 2147483647"),
        (b"\xef\xbb\xbf" + line(), 1, "starts with a byte order mark"),
        (line(hash_ids=[1, -2]), 1, "hash_ids[1] is out of range, expected `int` >= 0"),
        (line(hash_ids=[2**63]), 1, "hash_ids[0] is out of range, expected `int` <= 9223372036854775807"),
        (line(hash_ids=[False]), 1, "hash_ids[0] is bool, expected `int`"),
        (line(hash_ids=3), 1, "hash_ids is int, expected `array`"),
        (line(hash_ids=[1, 2, 3]), 1, "3 hash_ids, expected at most 2"),
        (line() + line(timestamp=9), 2, "timestamp 9 goes back, expected at least 10"),
        (line() + b'{"user": "\xff"}', 2, "not UTF-8"),
        (line().decode().encode("utf-16"), 1, "not UTF-8"),
        (b"", 1, "no request, expected at least one"),
        (b"\n\n", 3, "no request, expected at least one"),
        (gzip.compress(line(), mtime=0)[:-4], 2, "broken gzip"),
        (gzip.compress(line() * 9, mtime=0)[:20], 1, "broken gzip"),
        (b"\x1f\x8b and no more", 1, "broken gzip"),
        (gzip.compress(line(), mtime=0)[:-8] + b"\0" * 8, 2, "broken gzip"),
    ],
)
def test_a_bad_line_is_named_in_one_line(tmp_path: Path, content: bytes, where: int, message: str) -> None:
    path = tmp_path / "t"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load_trace(path)
    said = str(caught.value)
    assert said.startswith(f"{path}:{where}: ")
    assert message in said and "expected" in said and "\n" not in said


@pytest.mark.parametrize("name", ["", "absent", "."])
def test_an_unreadable_path_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="expected a readable trace file"):
        load_trace(name)


def test_the_block_size_sets_how_many_ids_a_prompt_may_have(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(line(hash_ids=list(range(38))))
    assert len(load_trace(path, block_tokens=16)) == 1
    with pytest.raises(InputError, match="blocks of 32 tokens"):
        load_trace(path, block_tokens=32)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(tmp_path: Path, limit: int) -> None:
    with pytest.raises(InputError, match=f"limit is {limit}, expected 1 to"):
        load_trace(tmp_path / "t", limit=limit)


class TestWriting:
    @pytest.mark.parametrize("interruption", [KeyboardInterrupt, ValueError])
    def test_an_interrupted_trace_leaves_nothing(self, tmp_path: Path, interruption: type[BaseException]) -> None:
        def requests() -> object:
            yield REQUESTS[0]
            raise interruption

        with pytest.raises(interruption):
            write_requests(tmp_path / "t.gz", requests())  # type: ignore[arg-type]
        assert list(tmp_path.iterdir()) == []

    def test_an_interrupted_trace_keeps_the_one_before(self, tmp_path: Path) -> None:
        path = tmp_path / "t"
        write_requests(path, REQUESTS)
        with pytest.raises(ZeroDivisionError):
            write_requests(path, (REQUESTS[1 // 0] for _ in range(1)))
        assert list(read_requests(path)) == REQUESTS

    def test_gzip_bytes_depend_on_the_requests_alone(self, tmp_path: Path) -> None:
        for name in ("a.gz", "b.gz"):
            write_requests(tmp_path / name, REQUESTS)
        assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()

    @pytest.mark.parametrize("name", ["", ".", "absent/t"])
    def test_a_place_that_cannot_be_written_is_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        monkeypatch.chdir(tmp_path)
        with pytest.raises(InputError, match="expected"):
            write_requests(name, REQUESTS)
