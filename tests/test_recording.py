"""Laws of the recording file: what goes in comes out, partial files are readable, same messages give same bytes."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.recording import RecordedMessage, RecordingError, RecordingWriter, read_recording

messages = st.builds(
    RecordedMessage,
    topic=st.text(min_size=1, max_size=8, alphabet="abc.-"),
    partition=st.integers(0, 9),
    offset=st.integers(0, 2**62),
    timestamp_ms=st.integers(0, 2**50),
    key=st.none() | st.binary(max_size=8),
    value=st.none() | st.binary(max_size=40) | st.text(max_size=20).map(str.encode),
    headers=st.lists(st.tuples(st.sampled_from(["ce_id", "x"]), st.binary(max_size=5)), max_size=2).map(tuple),
)


def _write(path: Path, items: list[RecordedMessage]) -> bytes:
    with RecordingWriter(path) as writer:
        for item in items:
            writer.write(item)
    return path.read_bytes()


@settings(max_examples=50, deadline=None)
@given(st.lists(messages, max_size=6))
def test_what_is_written_is_read_back_and_the_same_messages_give_the_same_file(
    tmp_path_factory: pytest.TempPathFactory, items: list[RecordedMessage]
) -> None:
    folder = tmp_path_factory.mktemp("recording")
    first = _write(folder / "a.jsonl.gz", items)
    second = _write(folder / "another-name.jsonl.gz", items)
    assert list(read_recording(folder / "a.jsonl.gz")) == items
    assert first == second


def test_a_recording_cut_anywhere_gives_a_prefix_of_its_messages(tmp_path: Path) -> None:
    items = [RecordedMessage("t", 0, n, 1_790_000_000_000 + n, b"r", b'{"n": %d}' % n) for n in range(200)]
    whole = _write(tmp_path / "whole.jsonl.gz", items)
    for cut in (0, 1, 11, len(whole) // 2, len(whole) - 1):
        (tmp_path / "cut.jsonl.gz").write_bytes(whole[:cut])
        read = list(read_recording(tmp_path / "cut.jsonl.gz"))
        assert read == items[: len(read)]
    assert len(read) > 0


def test_after_a_flush_all_messages_so_far_are_readable_though_the_file_is_not_closed(tmp_path: Path) -> None:
    item = RecordedMessage("t", 0, 0, 1_790_000_000_000, b"r", b"{}")
    writer = RecordingWriter(tmp_path / "open.jsonl.gz")
    for _ in range(3):
        writer.write(item)
    writer.flush()
    assert list(read_recording(tmp_path / "open.jsonl.gz")) == [item] * 3
    writer.close()


def test_recordings_joined_end_to_end_read_as_one(tmp_path: Path) -> None:
    item = RecordedMessage("t", 0, 0, 1_790_000_000_000, b"r", b"{}")
    part = _write(tmp_path / "part.jsonl.gz", [item])
    (tmp_path / "both.jsonl.gz").write_bytes(part + part)
    assert list(read_recording(tmp_path / "both.jsonl.gz")) == [item, item]


@pytest.mark.parametrize(
    "line",
    [
        b"not json", b"[]", b"{}", b'{"topic":"t","partition":"0","offset":0,"timestamp_ms":1}',
        *(
            b'{"topic":"t","partition":0,"offset":0,"timestamp_ms":1,%b}' % content
            for content in (
                b'"key":"a"', b'"key":"a","value":"b","value_base64":"Yg=="',
                b'"key":"a","value":null,"value_base64":null',
                b'"key":"a","key_base64":"YQ==","value":"b"', b'"key":7,"value":"b"', b'"key":"a","value_base64":"?"',
                b'"key":"a","value":{}', b'"key":"a","value_base64":null',
            )
        ),
    ],
)  # fmt: skip
def test_a_line_that_is_no_message_is_named(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "bad.jsonl.gz"
    path.write_bytes(gzip.compress(line + b"\n"))
    with pytest.raises(RecordingError, match="line 1"):
        list(read_recording(path))


def test_bytes_that_are_no_gzip_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl.gz"
    path.write_bytes(b"plain text, much longer than a header of gzip would be")
    with pytest.raises(RecordingError, match="gzip"):
        list(read_recording(path))
