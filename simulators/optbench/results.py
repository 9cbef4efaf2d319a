"""Decision bundles on disk: a JSON Lines file for each method and backbone, bound to the suite that they answer."""

from __future__ import annotations

import fcntl
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from simulators.optbench.agents import Bundle
from simulators.optbench.bundles import decode, encode

FORMAT: Final = "wirelessops.optbench.bundles/1"
_WORDS: Final = {
    "suite": "were made on the suite {found}, not on {wanted}",
    "method": "are those of the method {found}, not of {wanted}",
    "backbone": "are those of the backbone {found}, not of {wanted}",
    "settings": "were made with {found}, not with {wanted}",
    "code": "were made by other code: {found}, now {wanted}",
}
"""How results differ from those that are asked for, by the member of their origin."""
_NAME_LENGTH: Final = 60
_SHOWN: Final = 100


class ResultsError(ValueError):
    """A results file of another run, or one that cannot be read; the message names the file."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Whose bundles a file holds. `suite`: the suite's digest. `backbone`: its name; `settings`: what tells it from
    others of that name (a seed, a model and its server, the digest of a file). `code`: the digest of the sources that
    make the bundles."""

    suite: str
    method: str
    backbone: str
    settings: str = ""
    code: str = ""


class Results:
    """The bundles of one method and backbone in `directory`, as a context: what is there is read, what is new appended.

    `bundles`: episode id → bundle, as an earlier run left them. A line that a killed run left half is cut off. Raises
    ResultsError where the file is of another origin, damaged, or written by another run just now, and OSError; the file
    is then left as it is.
    """

    def __init__(self, directory: Path, origin: Origin) -> None:
        self.path = directory / f"{file_name(origin.method)}--{file_name(origin.backbone)}.jsonl"
        directory.mkdir(parents=True, exist_ok=True)
        first = json.dumps(header(origin)).encode()
        self._stream = self.path.open("a+b")
        try:
            self._lock()
            self._stream.seek(0)
            found = self._stream.read()
            whole, newline, torn = found.rpartition(b"\n")
            if not newline and not first.startswith(torn):
                raise ResultsError(f"{self.path} holds no results of format {FORMAT}")
            self.bundles = self._read(whole, origin) if newline else {}
            if torn:
                self._stream.truncate(len(found) - len(torn))
            if not newline:
                self._append(first)
        except BaseException:
            self._stream.close()
            raise

    def keep(self, bundle: Bundle) -> None:
        """Append a bundle, at once."""
        self._append(encode(bundle).encode())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stream.close()

    def _append(self, line: bytes) -> None:
        self._stream.write(line + b"\n")
        self._stream.flush()

    def _lock(self) -> None:
        try:
            fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ResultsError(f"another run writes {self.path}") from None

    def _read(self, whole: bytes, origin: Origin) -> dict[str, Bundle]:
        first, *lines = whole.split(b"\n")
        found = _head(self.path, first)
        for name, wanted in asdict(origin).items():
            if found.get(name) != wanted:
                told = _WORDS[name].format(found=_shown(found.get(name)), wanted=_shown(wanted))
                raise ResultsError(
                    f"{self.path}: these results {told}; use another --results folder, or delete this file"
                )
        return _bundles(self.path, lines)


def read(path: Path) -> tuple[Origin, dict[str, Bundle]]:
    """(whose, episode id → bundle) of a file of results, of which a run may be writing the last line just now.

    Raises ResultsError and OSError.
    """
    first, *lines = path.read_bytes().rpartition(b"\n")[0].split(b"\n")
    found = _head(path, first)
    return Origin(**{one.name: str(found.get(one.name, "")) for one in fields(Origin)}), _bundles(path, lines)


def _head(path: Path, first: bytes) -> dict[str, Any]:
    try:
        found = json.loads(first)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ResultsError(f"{path} holds no results of format {FORMAT}")
    return found


def _bundles(path: Path, lines: Sequence[bytes]) -> dict[str, Bundle]:
    bundles: dict[str, Bundle] = {}
    for number, line in enumerate(lines, 2):
        try:
            bundle = decode(line)
        except (ValueError, RecursionError) as error:
            raise ResultsError(f"{path}: line {number}: {error}") from error
        bundles.setdefault(bundle.episode_id, bundle)
    return bundles


def header(origin: Origin) -> dict[str, str]:
    """The first line of a results file."""
    return {"format": FORMAT} | asdict(origin)


def file_name(name: str) -> str:
    """A method's or a backbone's name as a part of a file's name: as it is where that is plain, else told apart by a

    digest.
    """
    plain = re.sub(r"[^A-Za-z0-9._]+", "-", name).strip("-.")[:_NAME_LENGTH]
    if plain == name:
        return plain
    return f"{plain}-{hashlib.sha256(name.encode(errors='replace')).hexdigest()[:8]}".lstrip("-")


def _shown(value: Any) -> str:
    return "nothing that is known" if value is None or value == "" else " ".join(str(value).split())[:_SHOWN]
