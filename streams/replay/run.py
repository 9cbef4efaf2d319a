"""One replay from files to decisions and summary: where the parts of this package are composed."""

from __future__ import annotations

import heapq
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from streams.deciding import History
from streams.replay.formats import FORMATS, NAMES, RECORDING, Format, guess
from streams.replay.player import Player
from streams.replay.recorded import Arrival, Tally, Unreadable, UnreadableRecording
from streams.replay.summary import Gating, Verdicts, lines, summary
from streams.settings_errors import SettingsError
from streams.support_folder import SupportFolder, load_support
from xapp.contract import Contract


@dataclass(frozen=True, slots=True)
class LiveGuard:
    """What the guard of a recorded run was started with: its contracts, its history, its folder of support; of a
    foreign recording, the folder that gates it.
    """

    contracts_dir: Path | None
    shipped_contracts: bool
    history_ms: int
    history_count: int
    support_dir: Path | None = None

    def support(self, contracts: Mapping[str, Contract]) -> SupportFolder:
        """The folder's terms and maps. Raises UnreadableRecording."""
        try:
            return load_support(self.support_dir, contracts)
        except SettingsError as error:
            raise UnreadableRecording(f"support: {error}") from error


def run(paths: Sequence[Path], name: str | None, out: Path | None, as_json: bool, live: LiveGuard) -> int:
    """See `streams.replay.replay`. Raises UnreadableRecording where nothing can be read."""
    if not paths:
        raise UnreadableRecording("no file named")
    name = guess(paths[0]) if name is None else name
    if name not in NAMES:
        raise UnreadableRecording(f"no format {name!r}: it is one of {', '.join(NAMES)}")
    with _sink(out, paths) as sink:
        document = _own(paths, sink, live) if name == RECORDING else _foreign(FORMATS[name], paths, sink, live)
    text = orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() if as_json else "\n".join(lines(document))
    sys.stdout.write(text + "\n")
    return 1 if document.get("differing") else 0


def _sink(out: Path | None, paths: Sequence[Path]) -> Any:
    if out is None:
        return nullcontext()
    if out.resolve() in {path.resolve() for path in paths}:
        raise UnreadableRecording(f"--out {out}: it is one of the recordings")
    try:
        return out.open("wb")
    except OSError as error:
        raise UnreadableRecording(f"--out {out}: {error.strerror or error}") from error


def _own(paths: Sequence[Path], sink: BinaryIO | None, live: LiveGuard) -> dict[str, Any]:
    from streams.replay.own import replay_own
    from streams.settings import load_contracts

    try:
        contracts = load_contracts(live.contracts_dir, live.shipped_contracts)
    except SettingsError as error:
        raise UnreadableRecording(f"contracts: {error}") from error
    history = History(live.history_ms, live.history_count)
    return replay_own(paths, sink, contracts, history, live.support(contracts))


def _foreign(form: Format, paths: Sequence[Path], sink: BinaryIO | None, live: LiveGuard) -> dict[str, Any]:
    support = live.support(form.load_contracts())
    tally, verdicts, player = Tally(), Verdicts(), Player(form, support)
    gating = Gating() if support.terms else None
    for outcome in player.play(arrivals(form, paths, tally)):
        verdicts.count(outcome.decision)
        if gating is not None:
            gating.count(outcome.decision)
        if sink is not None:
            sink.write(outcome.record_value + b"\n")
    if not tally.reports:
        first = tally.unreadable[0] if tally.unreadable else None
        where = f"{paths[0].name}: it is empty" if first is None else f"{first.file}: line {first.line}: {first.reason}"
        raise UnreadableRecording(f"nothing can be read as {form.name}: {where}")
    return summary(form.name, [path.name for path in paths], tally, player.proposals, verdicts, gating)


def arrivals(form: Format, paths: Sequence[Path], tally: Tally) -> Iterator[Arrival]:
    """The reports of all files in order of arrival; at one time in the order that the files were named."""
    readers = [_file(form, path, number, tally) for number, path in enumerate(paths, start=1)]
    return heapq.merge(*readers, key=attrgetter("ingest_time_ms"))


def _file(form: Format, path: Path, number: int, tally: Tally) -> Iterator[Arrival]:
    """One file's reports; a file that cannot be read is one unreadable place, and the others go on."""
    try:
        yield from form.read(path, number, tally)
    except UnreadableRecording as error:
        reason = str(error).removeprefix(f"{path.name}: ")
        tally.unreadable.append(Unreadable(path.name, 1, reason))
