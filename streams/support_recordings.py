"""What arrived, as recordings hold it: what a reference map is built from (docs/support-gate.md)."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from streams.recording import RecordedMessage, RecordingError, read_recording
from streams.replay.formats import FORMATS, NAMES, RECORDING, guess
from streams.replay.lines import open_recording
from streams.replay.recorded import Tally, UnreadableRecording
from streams.replay.run import arrivals
from streams.telemetry import SourceStatus, Undecodable, decode
from streams.topics import NoRegion, region_of
from xapp.contract import Contract
from xapp.evidence.series import ReportColumns
from xapp.model import Report
from xapp.support.component import place_of

_TELEMETRY: Final = "telemetry"
_CHUNK: Final = 1 << 20

Reported = tuple[Report | ReportColumns, int]
"""A report, and when it arrived, Unix ms."""


@dataclass(slots=True)
class Recordings:
    """Recordings of one form, read as often as asked. `region`: of own recordings only this one; None: all.

    `unreadable`: places that could not be read. Raises UnreadableRecording where there is nothing to read.
    """

    paths: Sequence[Path]
    form: str | None = None
    region: str | None = None
    unreadable: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if not self.paths:
            raise UnreadableRecording("no recording named")
        self.form = guess(self.paths[0]) if self.form is None else self.form
        if self.form not in NAMES:
            raise UnreadableRecording(f"no format {self.form!r}: it is one of {', '.join(NAMES)}")
        if self.region is not None and self.form != RECORDING:
            raise UnreadableRecording(f"--region {self.region}: a recording of form {self.form} has no regions")

    def contracts(self) -> Mapping[str, Contract]:
        """The contracts that a foreign form has of its own; none of own recordings."""
        return {} if self.form == RECORDING else FORMATS[str(self.form)].load_contracts()

    def digests(self) -> tuple[str, ...]:
        """Of what each file holds, unpacked: the same recording packed anew is the same one."""
        return tuple(sorted(map(_digest, self.paths)))

    def arrivals(self, contract: Contract) -> Iterator[Reported]:
        """All reports, in order of arrival.

        Raises UnreadableRecording for an own recording in which two regions have a place of the contract in common: a
        map does not tell regions apart.
        """
        self.unreadable = 0
        if self.form != RECORDING:
            tally = Tally()
            for arrival in arrivals(FORMATS[str(self.form)], self.paths, tally):
                yield arrival.report, arrival.ingest_time_ms
            self.unreadable = len(tally.unreadable)
            return
        regions = _Regions(contract)
        for path in sorted(self.paths, key=_began_ms):
            for message in _telemetry(path):
                try:
                    region, report = region_of(message.key), decode(message.value).message
                except (NoRegion, Undecodable):  # a dead letter of the live run
                    self.unreadable += 1
                    continue
                if isinstance(report, SourceStatus) or (self.region is not None and region != self.region):
                    continue
                regions.note(region, report)
                yield report, message.timestamp_ms


class _Regions:
    """Which region each place was seen in."""

    def __init__(self, contract: Contract) -> None:
        self._names = {name for f in contract.fields.values() if f.kind == "observed" for name in f.names}
        self._of: dict[str, str] = {}

    def note(self, region: str, report: ReportColumns) -> None:
        """Raises UnreadableRecording where another region has a place of the report."""
        for key, name in zip(report.shape.keys, report.shape.names, strict=True):
            if name in self._names:
                place = place_of(key.subject)
                other = self._of.setdefault(place, region)
                if other != region:
                    raise UnreadableRecording(
                        f"regions {other!r} and {region!r} both have the place {place!r}, and a map does not tell "
                        "regions apart: name one by --region"
                    )


def _telemetry(path: Path) -> Iterator[RecordedMessage]:
    """The telemetry of a recording, in the order it was recorded. Raises UnreadableRecording."""
    found = False
    try:
        for message in read_recording(path):
            if message.topic.endswith(_TELEMETRY):
                found = True
                yield message
    except (RecordingError, OSError) as error:
        raise UnreadableRecording(f"{path.name}: {str(error).removeprefix(f'{path}: ')}") from error
    if not found:
        raise UnreadableRecording(f"{path.name}: no topic named …{_TELEMETRY} in it")


def _began_ms(path: Path) -> int:
    return next(_telemetry(path)).timestamp_ms


def _digest(path: Path) -> str:
    found = hashlib.sha256()
    with open_recording(path) as stream, suppress(OSError, EOFError, zlib.error):  # a damaged end, as `arrivals` has it
        while chunk := stream.read(_CHUNK):
            found.update(chunk)
    return f"sha256:{found.hexdigest()}"
