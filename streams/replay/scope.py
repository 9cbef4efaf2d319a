"""SCOPE / ColO-RAN per-UE metrics CSV: one row per UE and reporting period of nominally 250 ms.

Clocks: a row has one time, in Unix ms; it is the event time. The arrival is the latest time that the file has shown
so far, in file order, and the state version is the line number, for the log is appended to: a row whose time runs
backwards arrives late, and with a higher version.

Identity: (IMSI, RNTI, epoch). An RNTI belongs to one attach; whenever it changes under an IMSI a new epoch begins,
also when an old RNTI comes back, and evidence of the former epoch is about another subject. Nothing says that an
attach goes on in another file: an epoch is named `FILE.NUMBER`. The IMSI's own subject carries only that name.

Samples: a row with `dl_n_samples` of 0 measured nothing on the downlink. Its values are kept as they were written, of
quality `no_value`; likewise `ul_n_samples` for the uplink.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from streams.replay.lines import table
from streams.replay.recorded import Arrival, ArrivalClock, Tally, Unreadable, number, unix_ms
from streams.replay.units import SCOPE, metric
from xapp.model import Measurement, Report

SOURCE: Final = "scope:gnb"
EPOCH: Final = "attach_epoch"
GAP_MS: Final = 500
"""Two of the nominal periods of 250 ms without a row."""

NEEDED: Final = frozenset({"Timestamp", "IMSI", "RNTI", "dl_n_samples", "ul_n_samples"})
_IDENTITY: Final = frozenset({"Timestamp", "IMSI", "RNTI"})
_SAMPLE_COUNTS: Final = {"downlink": "dl_n_samples", "uplink": "ul_n_samples"}
_UPLINK: Final = ("ul_", "rx_", "phr")
_DOWNLINK: Final = ("dl_", "tx_", "sum_")


def direction(name: str) -> str | None:
    """The link a metric is measured on, whose samples it rests on; None for settings and counts of samples."""
    if name in _SAMPLE_COUNTS.values():
        return None
    return "downlink" if name.startswith(_DOWNLINK) else "uplink" if name.startswith(_UPLINK) else None


def read(path: Path, file_number: int, tally: Tally) -> Iterator[Arrival]:
    """The rows of a file as reports, in file order. `file_number` makes report ids distinct over several files."""
    clock = ArrivalClock()
    epochs: dict[str, tuple[str, int]] = {}
    newest: dict[str, int] = {}
    for line, row in table(path, NEEDED, tally):
        try:
            event_ms = unix_ms(row["Timestamp"], "Timestamp")
            imsi, rnti = _identifier(row, "IMSI"), _identifier(row, "RNTI")
        except ValueError as error:
            tally.unreadable.append(Unreadable(path.name, line, str(error)))
            continue
        known_rnti, epoch = epochs.get(imsi, ("", 0))
        if rnti != known_rnti:
            epoch += 1
            epochs[imsi] = (rnti, epoch)
            tally.findings["epochs"] += 1
        last = newest.get(imsi)
        if last is not None:
            tally.findings["gaps"] += event_ms - last > GAP_MS
            tally.findings["reversed_times"] += event_ms < last
            tally.findings["repeated_times"] += event_ms == last
        newest[imsi] = event_ms
        attach = f"{file_number}.{epoch}"
        subject = f"ue:imsi-{imsi}/rnti-{rnti}/epoch-{attach}"
        report = Report(
            report_id=f"{file_number}:{line}",
            source=SOURCE,
            event_time_ms=event_ms,
            measurements=(
                Measurement(EPOCH, attach, "1", subject=f"imsi:{imsi}"),
                *_measurements(row, tally),
            ),
            version=line,
            subject=subject,
        )
        tally.count(report)
        yield Arrival(report, clock.arrival(event_ms))


def _identifier(row: Mapping[str, str], column: str) -> str:
    text = row[column].strip()
    if not text.isascii() or not text.isdigit():
        raise ValueError(f"{column}: {text[:40]!r} is no identifier")
    return text


def _measurements(row: Mapping[str, str], tally: Tally) -> Iterator[Measurement]:
    values = {column: number(cell) for column, cell in row.items() if column not in _IDENTITY}
    sampled = {}
    for side, count in _SAMPLE_COUNTS.items():
        samples = values[count]
        sampled[side] = samples is not None and samples > 0
        tally.findings[f"rows_without_{side}_samples"] += not sampled[side]
    requested, granted = values.get("sum_requested_prbs"), values.get("sum_granted_prbs")
    if requested is not None and granted is not None:
        tally.findings["granted_above_requested"] += granted > requested
    for column, value in values.items():
        name, unit = metric(SCOPE, column)
        link = direction(name)
        empty = value is None or (link is not None and not sampled[link])
        tally.findings["blank_values"] += value is None
        yield Measurement(name, value, unit, quality="no_value" if empty else None)
