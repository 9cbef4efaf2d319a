"""3GPP performance measurements as VES `perf3gpp` events (TS 28.532, TS 32.432), one JSON document a file or a line.

Clocks: the event time is the end of the granularity period. `startEpochMicrosec` and `lastEpochMicrosec` hold what
their names say only at times, so the scale is read off the end's own size (µs, ms or s of [1973, 5138)), and the two
must lie one `granularityPeriod` apart: where they do not, nobody can say which of them is wrong, and every value is
`suspect`. An end that is no time at any scale is taken as its name says, µs: evidence of 1970, stale at any t. A file
arrives at the end of its period; one without a usable end arrives at the end that its name states, where that follows
TS 32.432 (`A20000626.2315+0200-2330+0200_…`), else with its predecessor.

Values are strings, joined to names by position. `suspectFlag` makes a value `suspect`, a blank is `no_value`. A vector
(`"0,0,0,0"`) is no scalar: the file does not say what its places mean, so it is kept as the text it is, `incomplete`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import orjson

from streams.replay.lines import MAX_LINE_BYTES, open_recording, text_lines
from streams.replay.recorded import Arrival, ArrivalClock, Tally, Unreadable, number
from streams.replay.units import RANPM, metric
from xapp.model import Measurement, Report
from xapp.times import EARLIEST_MS, LATEST_MS

# TS 32.432, clause 4.1: type, date, begin and end of the period with their offsets from UTC.
_FILE_NAME: Final = re.compile(r"[A-D](\d{8})\.(\d{4})([+-]\d{4})-(?:(\d{8})\.)?(\d{4})([+-]\d{4})[_.]")


def read(path: Path, file_number: int, tally: Tally) -> Iterator[Arrival]:
    """The events of a file as reports, in file order. `file_number` makes report ids distinct over several files."""
    clock = ArrivalClock()
    named_end_ms = end_by_name(path.name)
    for line, text in _documents(path, tally):
        tally.rows += 1
        try:
            report, end_ms = _report(text, f"{file_number}:{line}", tally)
            arrival_ms = clock.arrival(end_ms or named_end_ms or 0)
            if arrival_ms < EARLIEST_MS:
                raise ValueError("lastEpochMicrosec: no time at any scale, nor does the file's name state one")
        except ValueError as error:
            tally.unreadable.append(Unreadable(path.name, line, str(error)))
            continue
        tally.count(report)
        yield Arrival(report, arrival_ms)


def end_by_name(file_name: str) -> int | None:
    """The end of the period, Unix ms, that a file name states by TS 32.432; None where it states none."""
    stated = _FILE_NAME.match(file_name)
    if stated is None:
        return None
    begin_day, begin, begin_offset, end_day, end, end_offset = stated.groups()
    try:
        start = datetime.strptime(begin_day + begin + begin_offset, "%Y%m%d%H%M%z")
        stop = datetime.strptime((end_day or begin_day) + end + end_offset, "%Y%m%d%H%M%z")
    except ValueError:
        return None
    stop_ms = round(stop.timestamp() * 1000)
    over_midnight = end_day is None and stop < start
    return stop_ms + 86_400_000 if over_midnight else stop_ms


def scaled_ms(value: int) -> tuple[int | None, str]:
    """(Unix ms, scale) of a time whose unit only its size tells; None where no scale puts it into [1973, 5138)."""
    if value >= EARLIEST_MS * 1000:
        ms, scale = value // 1000, "µs"
    elif value >= EARLIEST_MS:
        ms, scale = value, "ms"
    else:
        ms, scale = value * 1000, "s"
    return (ms, scale) if EARLIEST_MS <= ms < LATEST_MS else (None, "none")


def _documents(path: Path, tally: Tally) -> Iterator[tuple[int, str]]:
    """(line, text) of each JSON document: one a line, or the whole file as one."""
    lines = text_lines(path, tally)
    first = next(lines, None)
    if first is None:
        return
    try:
        orjson.loads(first[1])
    except orjson.JSONDecodeError:
        yield from _whole(path, tally)
        return
    yield first
    yield from (entry for entry in lines if entry[1].strip())


def _whole(path: Path, tally: Tally) -> Iterator[tuple[int, str]]:
    with open_recording(path) as stream:
        content = stream.read(MAX_LINE_BYTES + 1)
    if len(content) > MAX_LINE_BYTES:
        tally.unreadable.append(Unreadable(path.name, 1, f"more than {MAX_LINE_BYTES} bytes"))
        return
    yield 1, content.decode("utf-8-sig", errors="replace")


def _report(text: str, report_id: str, tally: Tally) -> tuple[Report, int | None]:
    """(report, end of its period or None). Raises ValueError naming the place of what cannot be read."""
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"no JSON: {error}") from error
    event = _member(document, "event", "$", dict)
    header = _member(event, "commonEventHeader", "$.event", dict)
    place = "$.event.perf3gppFields"
    fields = _member(event, "perf3gppFields", "$.event", dict)
    collection = _member(fields, "measDataCollection", place, dict)
    place += ".measDataCollection"
    blocks = _member(collection, "measInfoList", place, list)
    node = _text(header.get("sourceName")) or _text(collection.get("measuredEntityDn"))
    if not node:
        raise ValueError("$.event.commonEventHeader.sourceName: neither it nor measuredEntityDn names the node")
    end_ms, event_ms, coherent = _period(header, collection, tally)
    measurements = [
        measurement
        for index, block in enumerate(blocks)
        for measurement in _block(block, f"{place}.measInfoList[{index}]", tally)
    ]
    report = Report(
        report_id=report_id,
        source=f"pm:{node}",
        event_time_ms=event_ms,
        measurements=tuple(measurements),
        quality="good" if coherent else "suspect",
    )
    return report, end_ms


def _period(header: Mapping[str, Any], collection: Mapping[str, Any], tally: Tally) -> tuple[int | None, int, bool]:
    """(end as a time or None, event time, whether start, end and granularity agree)."""
    place = "$.event.commonEventHeader"
    start = _member(header, "startEpochMicrosec", place, int)
    end = _member(header, "lastEpochMicrosec", place, int)
    granularity = number(str(collection.get("granularityPeriod", "")))
    if end < 0:
        raise ValueError(f"{place}.lastEpochMicrosec: {end} is before 1970")
    start_ms, _ = scaled_ms(start)
    end_ms, scale = scaled_ms(end)
    tally.findings["starts_after_end"] += start > end
    if end_ms is None:
        tally.findings["ends_that_are_no_time"] += 1
        return None, end // 1000, False
    tally.findings[f"ends_in_{scale.replace('µ', 'u')}"] += 1
    coherent = start_ms is not None and granularity is not None and end_ms - start_ms == granularity * 1000
    tally.findings["periods_unlike_the_granularity"] += not coherent
    return end_ms, end_ms, coherent


def _block(block: Any, place: str, tally: Tally) -> Iterator[Measurement]:
    names = _member(_member(block, "measTypes", place, dict), "sMeasTypesList", f"{place}.measTypes", list)
    for index, entry in enumerate(_member(block, "measValuesList", place, list)):
        here = f"{place}.measValuesList[{index}]"
        subject = _text(_member(entry, "measObjInstId", here, str))
        flag = entry.get("suspectFlag", "false")
        suspect = flag not in ("false", False)
        tally.findings["suspect_objects"] += suspect
        for number_in_list, result in enumerate(_member(entry, "measResults", here, list)):
            position = _member(result, "p", f"{here}.measResults[{number_in_list}]", int)
            name = _text(names[position - 1]) if 1 <= position <= len(names) else ""
            if not name:
                tally.findings["values_without_a_name"] += 1
                continue
            yield _measurement(name, result, subject or None, suspect, tally)


def _measurement(
    name: str, result: Mapping[str, Any], subject: str | None, suspect: bool, tally: Tally
) -> Measurement:
    raw = next((result[key] for key in ("sValue", "iValue", "rValue") if key in result), None)
    name, unit = metric(RANPM, name)
    text = "" if raw is None or result.get("isNull") in (True, "true") else str(raw).strip()
    value: int | float | str | None = number(text)
    quality = "suspect" if suspect else None
    if value is None and "," in text:
        tally.findings["vectors"] += 1
        value, quality = text, "incomplete"
    elif value is None:
        tally.findings["blank_values"] += 1
        quality = "no_value"
    return Measurement(name, value, unit, subject=subject, quality=quality)


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _member(document: Any, key: str, place: str, kind: type) -> Any:
    """`document[key]`. Raises ValueError with its JSON path where it is missing or no `kind`."""
    value = document.get(key) if isinstance(document, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"{place}.{key}: required, {'an' if kind is int else 'a'} {kind.__name__}")
    return value
