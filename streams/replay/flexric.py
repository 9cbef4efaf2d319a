"""NIST's KPI recordings of FlexRIC: one row per UE and E2SM-KPM indication of nominally 1 s.

Clocks: `Time (UNIX ms)` is the event time, and a row arrives after its `Indication Latency (ms)`. Rows arrive in file
order: one that would arrive before its predecessor arrives with it, so that a negative latency is a measurement from
the `future` of its own arrival. `Reporting Time Offset (ms)`, how far the indication was off its second (it may be
negative), is a metric like another and moves no time.

Identity: (E2 node, UE id, epoch). A UE that was absent from a whole batch of its node and comes back is, as far as the
recording tells, another attach: a new epoch, named `FILE.NUMBER`.

Zeros: an RLC delay of exactly 0 is what the collector writes where no SDU was measured; it is kept, of quality
`no_value`, and so are blank cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from streams.replay.lines import table
from streams.replay.recorded import (
    Arrival,
    ArrivalClock,
    Tally,
    Unreadable,
    number,
    unix_ms,
)
from streams.replay.units import NIST_FLEXRIC, metric
from xapp.model import Measurement, Report
from xapp.times import EARLIEST_MS, LATEST_MS

TIME: Final = "Time (UNIX ms)"
BATCH: Final = "Batch ID (Mapping Cell with UE)"
LATENCY: Final = "Indication Latency (ms)"
NODE: Final = "E2 Node ID"
UE: Final = "UE ID"
EPOCH: Final = "attach_epoch"
GAP_MS: Final = 2_000
"""Two of the nominal periods of 1 s without a row."""

NEEDED: Final = frozenset({TIME, BATCH, LATENCY, NODE, UE})
_IDENTITY: Final = frozenset({TIME, NODE, UE, BATCH})
_DELAY: Final = "DRB.RlcSduDelayDl"


class _Attachments:
    """Which epoch of a UE a row belongs to, by the batches of its node."""

    def __init__(self) -> None:
        self._batches: dict[str, tuple[str | None, str | None]] = {}  # node → (batch before, this batch)
        self._seen: dict[tuple[str, str], tuple[str, int]] = {}  # (node, UE) → (batch it was last in, epoch)

    def epoch(self, node: str, ue: str, batch: str) -> tuple[int, bool]:
        """(epoch, whether it is new)."""
        before, current = self._batches.get(node, (None, None))
        if batch != current:
            before, current = current, batch
            self._batches[node] = (before, current)
        last, epoch = self._seen.get((node, ue), (None, 0))
        new = last is None or last not in (before, current)
        self._seen[node, ue] = (batch, epoch + new)
        return epoch + new, new


def read(path: Path, file_number: int, tally: Tally) -> Iterator[Arrival]:
    """The rows of a file as reports, in file order. `file_number` makes report ids distinct over several files."""
    clock, attachments = ArrivalClock(), _Attachments()
    newest: dict[tuple[str, str], int] = {}
    for line, row in table(path, NEEDED, tally):
        try:
            event_ms = unix_ms(row[TIME], TIME)
            latency_ms = _latency(row[LATENCY], event_ms)
            node, ue = _identifier(row, NODE), _identifier(row, UE)
        except ValueError as error:
            tally.unreadable.append(Unreadable(path.name, line, str(error)))
            continue
        epoch, new = attachments.epoch(node, ue, row[BATCH].strip())
        last = newest.get((node, ue))
        if last is not None:
            tally.findings["gaps"] += event_ms - last > GAP_MS
            tally.findings["reversed_times"] += event_ms < last
            tally.findings["repeated_times"] += event_ms == last
        newest[node, ue] = event_ms
        attach = f"{file_number}.{epoch}"
        tally.findings["epochs"] += new
        tally.findings["negative_latencies"] += latency_ms < 0
        report = Report(
            report_id=f"{file_number}:{line}",
            source=f"e2:{node}",
            event_time_ms=event_ms,
            measurements=(
                Measurement(EPOCH, attach, "1", subject=f"node:{node}/ue:{ue}"),
                *_measurements(row, tally),
            ),
            version=line,
            subject=f"ue:{node}/{ue}/epoch-{attach}",
        )
        tally.count(report)
        yield Arrival(report, clock.arrival(event_ms + latency_ms))


def _identifier(row: Mapping[str, str], column: str) -> str:
    text = row[column].strip()
    if not text or any(c in "/{}" or not c.isprintable() for c in text):
        raise ValueError(f"{column}: {text[:40]!r} is no identifier")
    return text


def _latency(text: str, event_ms: int) -> int:
    """Whole ms. Raises ValueError for one that puts the arrival outside any clock."""
    value = number(text)
    if value is None:
        raise ValueError(f"{LATENCY}: {text.strip()[:40]!r} is no number")
    if not EARLIEST_MS <= event_ms + value < LATEST_MS:
        raise ValueError(f"{LATENCY}: {value} leads out of any clock")
    return round(value)


def _measurements(row: Mapping[str, str], tally: Tally) -> Iterator[Measurement]:
    for column, cell in row.items():
        if column in _IDENTITY:
            continue
        name, unit = metric(NIST_FLEXRIC, column)
        value = number(cell)
        unmeasured = name == _DELAY and value == 0
        tally.findings["blank_values"] += value is None
        tally.findings["delays_without_samples"] += unmeasured
        yield Measurement(name, value, unit, quality="no_value" if value is None or unmeasured else None)
