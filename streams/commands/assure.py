"""`wirelessops assure`, `view`, `record export`: the engine over files (section 8)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from xapp.authorization import decision_json
from xapp.contract import BindingError
from xapp.contracts import shipped
from xapp.engine import assure
from xapp.episode import MAX_BYTES, EpisodeError, episode_from, parse_episode, read_document
from xapp.evidence.view import normalised_view

OK, FAILED, INVALID = 0, 1, 2
STDIN = "-"


def assure_file(source: str, jsonl: bool) -> int:
    """One episode in, one decision out; or, with `jsonl`, many, line by line."""
    if jsonl:
        return _each_line(source, _decide)
    return _whole(source, _decide)


def view_file(source: str) -> int:
    """The normalised view of an episode; its proposal may be missing, or hold no more than its bindings."""
    return _whole(source, _view)


def export_prov(source: str) -> int:
    """The records of a file as W3C PROV-JSON, one document a decision."""
    from xapp.provenance import prov_json

    try:
        with _opened(source) as stream:
            documents = list(_documents(stream.read()))
        if not documents:
            return _complain(f"{source}: holds no decision")
        for place, document in documents:
            try:
                sys.stdout.buffer.write(orjson.dumps(prov_json(document)) + b"\n")
            except (KeyError, TypeError, AttributeError):
                return _complain(f"{source}: {place}is no decision with its full record")
    except OSError as error:
        return _complain(f"{source}: {error.strerror or error}")
    return OK


def _decide(data: bytes) -> bytes:
    return decision_json(assure(parse_episode(data, shipped())))


def _view(data: bytes) -> bytes:
    document, flaw = read_document(data)
    try:
        return orjson.dumps(normalised_view(episode_from(document, shipped(), flaw, needs_proposal=False)))
    except BindingError as error:
        raise EpisodeError(f"$.proposal.bindings.{error.name}", str(error)) from error


def _whole(source: str, answer: Callable[[bytes], bytes]) -> int:
    try:
        with _opened(source) as stream:
            data = stream.read(MAX_BYTES + 1)
        sys.stdout.buffer.write(answer(data) + b"\n")
    except OSError as error:
        return _complain(f"{source}: {error.strerror or error}")
    except EpisodeError as error:
        return _complain(_one_line(error))
    return OK


def _each_line(source: str, answer: Callable[[bytes], bytes]) -> int:
    status = OK
    try:
        with _opened(source) as stream:
            for number, line in enumerate(_lines(stream), 1):
                if not line.strip():
                    continue
                try:
                    said = answer(line)
                except EpisodeError as error:
                    said = orjson.dumps({"error": _one_line(error), "line": number})
                    status = FAILED
                sys.stdout.buffer.write(said + b"\n")
    except OSError as error:
        return _complain(f"{source}: {error.strerror or error}")
    return status


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    """Lines without their ends. Of one that is too long only so much is kept as shows that it is."""
    while line := stream.readline(MAX_BYTES + 2):
        rest = line
        while len(rest) == MAX_BYTES + 2 and not rest.endswith(b"\n"):
            rest = stream.readline(MAX_BYTES + 2)
        yield line.rstrip(b"\r\n")


def _documents(data: bytes) -> Iterator[tuple[str, Any]]:
    """(where, document) of each decision: the whole file is one, or each line is."""
    try:
        yield "", orjson.loads(data)
        return
    except orjson.JSONDecodeError:
        lines = data.splitlines()
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield f"line {number}: ", orjson.loads(line)
            except orjson.JSONDecodeError as error:
                yield f"line {number}: ", error


def _opened(source: str) -> BinaryIO:
    return sys.stdin.buffer if source == STDIN else Path(source).open("rb")


def _one_line(error: EpisodeError) -> str:
    return " ".join(str(error).split())


def _complain(reason: str) -> int:
    sys.stderr.write(f"{reason}\n")
    return INVALID
