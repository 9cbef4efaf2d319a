"""Decision bundles on disk: a JSON Lines file for each method and backbone, bound to the suite that they answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote

from simulators.optbench.agents import Bundle
from simulators.optbench.bundles import decode, encode

FORMAT: Final = "wirelessops.optbench.bundles/1"


class ResultsError(ValueError):
    """A results file of another run, or one that cannot be read; the message names the file."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Whose bundles a file holds. `suite`: the suite's digest. `backbone`: its name; `settings`: what tells it from
    others of that name (a seed, a model and its server, the digest of a file)."""

    suite: str
    method: str
    backbone: str
    settings: str = ""


class Results:
    """The bundles of one method and backbone in `directory`, as a context: what is there is read, what is new appended.

    `bundles`: episode id → bundle, as an earlier run left them. A line that a killed run left half is cut off. Raises
    ResultsError where the file is of another origin or damaged, and OSError.
    """

    def __init__(self, directory: Path, origin: Origin) -> None:
        self.path = directory / f"{quote(origin.method, safe='')}--{quote(origin.backbone, safe='')}.jsonl"
        directory.mkdir(parents=True, exist_ok=True)
        head = header(origin)
        self.bundles: dict[str, Bundle] = {}
        self._stream = self.path.open("a+b")
        try:
            self._stream.seek(0)
            whole = self._stream.read().rpartition(b"\n")[0]
            self._stream.truncate(len(whole) + 1 if whole else 0)
            first, *lines = whole.split(b"\n") if whole else [b""]
            if whole:
                self._check(first, head)
                self.bundles = self._read(lines)
            else:
                self._append(json.dumps(head))
        except BaseException:
            self._stream.close()
            raise

    def keep(self, bundle: Bundle) -> None:
        """Append a bundle, at once."""
        self._append(encode(bundle))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stream.close()

    def _append(self, line: str) -> None:
        self._stream.write(line.encode() + b"\n")
        self._stream.flush()

    def _check(self, first: bytes, head: Mapping[str, Any]) -> None:
        try:
            found = json.loads(first)
        except ValueError:
            found = None
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise ResultsError(f"{self.path} holds no results of format {FORMAT}")
        for name, value in head.items():
            if found.get(name) != value:
                raise ResultsError(f"{self.path} holds results of another {name}: {found.get(name)}, not {value}")

    def _read(self, lines: list[bytes]) -> dict[str, Bundle]:
        bundles: dict[str, Bundle] = {}
        for number, line in enumerate(lines, 2):
            try:
                bundle = decode(line)
            except (ValueError, RecursionError) as error:
                raise ResultsError(f"{self.path}: line {number}: {error}") from error
            bundles.setdefault(bundle.episode_id, bundle)
        return bundles


def header(origin: Origin) -> dict[str, str]:
    """The first line of a results file."""
    return {"format": FORMAT} | asdict(origin)
