"""Was the evidence of a release stale when it was released? Judged from the telemetry topic alone, not by the engine.

Only what the chaos contracts use is known here: observed fields that name their sources and subject and go by one name,
no parents, no memory, no conversion of units.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from streams.chaos.history import Decided, Message, read_object, region_name


@dataclass(frozen=True, slots=True)
class Sample:
    """One measurement, where it stands in telemetry and what it says."""

    offset: int
    event_time_ms: int
    version: int
    observation_id: str
    value: Any

    @property
    def rank(self) -> tuple[int, int]:
        """What is newer ranks higher."""
        return self.event_time_ms, self.version


@dataclass(slots=True)
class Series:
    """The samples of one name of one subject of one source, in offset order."""

    offsets: list[int] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    newest: list[Sample] = field(default_factory=list)
    """Of the samples up to each: the one with the newest event time, the higher version, the later arrival."""
    by_id: dict[str, Sample] = field(default_factory=dict)

    def add(self, sample: Sample) -> None:
        """One more, after the others."""
        self.offsets.append(sample.offset)
        self.samples.append(sample)
        self.by_id.setdefault(sample.observation_id, sample)
        before = self.newest[-1] if self.newest else sample
        self.newest.append(sample if sample.rank >= before.rank else before)

    def newest_before(self, offset: int, until_ms: int) -> Sample | None:
        """The newest below an offset, leaving out event times after `until_ms`."""
        end = bisect_left(self.offsets, offset)
        if end == 0 or self.newest[end - 1].event_time_ms <= until_ms:
            return self.newest[end - 1] if end else None
        return max((s for s in self.samples[:end] if s.event_time_ms <= until_ms), key=lambda s: s.rank, default=None)


@dataclass(slots=True)
class Evidence:
    """The telemetry of one partition, by (region, source, subject, name); reports that repeat are left out."""

    series: dict[tuple[str, str, str | None, str], Series] = field(default_factory=dict)

    @classmethod
    def of(cls, messages: Iterable[Message]) -> Self:
        """From the messages of the topic, in offset order. What is no report is passed over."""
        evidence = cls()
        seen: set[tuple[bytes | None, str, str]] = set()
        for message in messages:
            document = read_object(message.value)
            if document is None or not isinstance(document.get("measurements"), list):
                continue
            try:
                report = (message.key, document["source"], document["report_id"])
                if report not in seen:
                    evidence._add(message, document)
                    seen.add(report)
            except (KeyError, TypeError, AttributeError):
                continue
        return evidence

    def _add(self, message: Message, report: Mapping[str, Any]) -> None:
        region = region_name(message.key)
        for index, measured in enumerate(report["measurements"]):
            subject = measured.get("subject", report.get("subject"))
            sample = Sample(
                message.offset,
                measured.get("event_time_ms") or report["event_time_ms"],
                report.get("version") or 0,
                measured.get("id") or f"{report['report_id']}#{index}",
                measured["value"],
            )
            self.series.setdefault((region, report["source"], subject, measured["name"]), Series()).add(sample)


Told = Mapping[str, tuple[str, int, Any]]
"""What a record tells of its observations: id → source, event time, value."""


def why_stale(
    decision: Decided, told: Told, contract: Mapping[str, Any], evidence: Evidence, append_times: bool = True
) -> str | None:
    """Why the evidence of an APPLY was stale when it was released; None where it was not.

    Each used observation must stand in telemetry below the offset that the decision names, as the record tells it; be
    the newest of its source there; and be no older than the contract bears when the broker appended the decision.
    """
    for name, field_ in contract["fields"].items():
        if field_["kind"] != "observed":
            continue
        used = decision.used.get(name)
        if not used:
            return f"{name}: nothing is named that supports it"
        for observation_id in used:
            if observation_id not in told:
                return f"{name}: the record does not hold {observation_id}"
            source, *claim = told[observation_id]
            subject = field_["subject"].format_map({key: str(to) for key, to in decision.bindings.items()})
            series = evidence.series.get((decision.region, source, subject, name), Series())
            sample = series.by_id.get(observation_id)
            until_ms = decision.decided_at_ms + contract.get("max_clock_skew_ms", 0)
            if sample is None or sample.offset >= decision.evidence_offset or source not in field_["sources"]:
                return f"{name}: {observation_id} does not stand below offset {decision.evidence_offset} of telemetry"
            if claim != [sample.event_time_ms, sample.value]:
                return f"{name}: the record tells {observation_id} otherwise than telemetry does"
            if sample.event_time_ms > until_ms:
                return f"{name}: {observation_id} lay in the future"
            newest = series.newest_before(decision.evidence_offset, until_ms) or sample
            if newest.rank > sample.rank:
                return f"{name}: {observation_id} was superseded by {newest.observation_id} at offset {newest.offset}"
            age_ms = decision.timestamp_ms - min(sample.event_time_ms, decision.decided_at_ms)
            if append_times and age_ms > field_["freshness_ms"]:
                return f"{name}: {observation_id} was {age_ms} ms old when it was released"
    return None


def told_by(decision: Mapping[str, Any]) -> Told | None:
    """What the full record of a decision tells of its observations, by id; None where there is no full record."""
    try:
        return {
            observation["id"]: (observation["source"], observation["event_time_ms"], observation["value"])
            for observation in decision["record"]["episode"]["observations"]
        }
    except (KeyError, TypeError):
        return None
