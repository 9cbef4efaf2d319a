"""The project's own recordings, decided again: a recording of a live run gives the live decisions, byte for byte.

A decision on `control` says which proposal it answers, at which t, and up to which telemetry offset its guard had
read. With the telemetry and the proposals of the recording that is all a decision depends on, so each is made again
from nothing else and compared with what was recorded. What the guard was started with (contracts, history) is not in
a recording and must be given as it was.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final

import orjson

from streams.deciding import (
    History,
    NotAProposal,
    Outcome,
    ProposalDocument,
    RegionState,
    Stamp,
    read_proposal_bytes,
)
from streams.recording import RecordedMessage, RecordingError, read_recording
from streams.replay.recorded import Unreadable, UnreadableRecording
from streams.replay.summary import SHOWN, Verdicts
from streams.telemetry import Undecodable
from streams.topics import NoRegion, Topics, region_of, topics
from xapp.contract import Contract
from xapp.evidence.store import Contradiction

_CONTROL: Final = "control"


@dataclass(slots=True)
class Recorded:
    """The messages of a recording by what they are, each once. Lists are in order of offset."""

    topics: Topics
    telemetry: dict[int, list[RecordedMessage]]
    proposals: dict[tuple[str, str, str], ProposalDocument]  # (region, proposal id, digest)
    control: dict[int, list[RecordedMessage]]
    records: frozenset[bytes] | None  # SHA-256 of each; None where the topic was not recorded


@dataclass(slots=True)
class Comparison:
    """How decisions made again compare with the recorded ones. `differing`: place and reason of each."""

    matching: int = 0
    without_proposal: int = 0
    telemetry: int = 0
    telemetry_refused: int = 0
    differing: list[str] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)


def read(paths: Sequence[Path], unreadable: list[Unreadable]) -> Recorded:
    """Read recordings of one run. Raises UnreadableRecording where they hold no decision."""
    by_topic: defaultdict[str, dict[tuple[int, int], RecordedMessage]] = defaultdict(dict)
    for path in paths:
        line = 0
        try:
            for message in read_recording(path):
                line += 1
                by_topic[message.topic].setdefault((message.partition, message.offset), message)
        except (RecordingError, OSError) as error:
            unreadable.append(Unreadable(path.name, line + 1, str(error).removeprefix(f"{path}: ")))
    control = [name for name in by_topic if name.endswith(_CONTROL)]
    if len(control) != 1:
        reason = unreadable[0].reason if unreadable else f"{len(control)} topics named …{_CONTROL} in it, not one"
        raise UnreadableRecording(f"{paths[0].name}: no recording of a run: {reason}")
    names = topics(control[0].removesuffix(_CONTROL))
    records = by_topic.get(names.records)
    return Recorded(
        topics=names,
        telemetry=_by_partition(by_topic[names.telemetry]),
        proposals=dict(_proposals(by_topic[names.proposals].values())),
        control=_by_partition(by_topic[names.control]),
        records=None if records is None else frozenset(_sha256(m.value or b"") for m in records.values()),
    )


def replay_own(
    paths: Sequence[Path], sink: BinaryIO | None, contracts: Mapping[str, Contract], history: History
) -> dict[str, Any]:
    """Decide everything again; full records to `sink`. Gives the summary.

    Raises UnreadableRecording where the files hold no decision.
    """
    comparison, verdicts = Comparison(), Verdicts()
    recorded = read(paths, comparison.unreadable)
    for outcome in decide_again(recorded, comparison, contracts, history):
        verdicts.count(outcome.decision)
        if sink is not None:
            sink.write(outcome.record_value + b"\n")
    return {
        "format": "recording",
        "files": [path.name for path in paths],
        "unreadable": {
            "count": len(comparison.unreadable),
            "first": [{"file": u.file, "line": u.line, "reason": u.reason} for u in comparison.unreadable[:SHOWN]],
        },
        "live": {
            "telemetry": comparison.telemetry,
            "telemetry_refused": comparison.telemetry_refused,
            "telemetry_before_the_recording": sum(m[0].offset for m in recorded.telemetry.values()),
            "decisions": sum(map(len, recorded.control.values())),
            "matching": comparison.matching,
            "differing": len(comparison.differing),
            "without_proposal": comparison.without_proposal,
        },
        "differing": comparison.differing[:SHOWN],
        "proposals": len(recorded.proposals),
        **verdicts.document(),
    }


def decide_again(
    recorded: Recorded, comparison: Comparison, contracts: Mapping[str, Contract], history: History
) -> Iterator[Outcome]:
    """Each recorded decision made again, partition by partition in the order of their offsets."""
    for partition, decisions in sorted(recorded.control.items()):
        states: dict[str, RegionState] = {}
        waiting = iter(recorded.telemetry.get(partition, ()))
        ahead = next(waiting, None)
        for message in decisions:
            place = f"{message.topic}/{partition}/{message.offset}"
            try:
                live = _Live.of(message)
            except (orjson.JSONDecodeError, KeyError, TypeError, NoRegion) as error:
                comparison.differing.append(f"{place}: no decision: {error!r}")
                continue
            while ahead is not None and ahead.offset < live.stamp.offset:
                _ingest(ahead, states, comparison, contracts, history)
                ahead = next(waiting, None)
            proposal = recorded.proposals.get((live.region, live.proposal_id, live.digest))
            if proposal is None:
                comparison.without_proposal += 1
                continue
            outcome = _state(states, live.region, contracts, history).decide(proposal, live.t_ms, live.stamp)
            _compare(outcome, message, recorded, comparison, place)
            yield outcome


@dataclass(frozen=True, slots=True)
class _Live:
    """What a recorded decision says of how it was made."""

    region: str
    proposal_id: str
    digest: str
    t_ms: int
    stamp: Stamp

    @classmethod
    def of(cls, message: RecordedMessage) -> _Live:
        said = orjson.loads(message.value or b"")
        evidence = said["evidence"]
        stamp = Stamp(
            guard=said["guard"],
            sequence=said["sequence"],
            topic=evidence["topic"],
            partition=evidence["partition"],
            offset=evidence["offset"],
            attempt=said["attempt"],
            final=said["final"],
        )
        region = region_of(message.key)
        return cls(region, said["proposal_id"], said["proposal_digest"], said["decided_at_ms"], stamp)


def _compare(
    outcome: Outcome, message: RecordedMessage, recorded: Recorded, comparison: Comparison, place: str
) -> None:
    if outcome.control_value != message.value:
        was = orjson.loads(message.value or b"null")
        unknown = any("no contract" in v.detail for v in outcome.decision.violations if v.code == "malformed")
        hint = ": its contract is not loaded here, name its folder with --contracts" if unknown else ""
        comparison.differing.append(f"{place}: was {was.get('action')}, is {outcome.decision.action}{hint}")
    elif recorded.records is not None and _sha256(outcome.record_value) not in recorded.records:
        comparison.differing.append(f"{place}: the decision is the same, its record is not")
    else:
        comparison.matching += 1


def _ingest(
    message: RecordedMessage,
    states: dict[str, RegionState],
    comparison: Comparison,
    contracts: Mapping[str, Contract],
    history: History,
) -> None:
    comparison.telemetry += 1
    try:
        state = _state(states, region_of(message.key), contracts, history)
        state.ingest(message.value, message.timestamp_ms)
    except (NoRegion, Undecodable, Contradiction):
        comparison.telemetry_refused += 1


def _state(
    states: dict[str, RegionState], region: str, contracts: Mapping[str, Contract], history: History
) -> RegionState:
    if region not in states:
        states[region] = RegionState(region, contracts, history)
    return states[region]


def _proposals(messages: Iterable[RecordedMessage]) -> Iterator[tuple[tuple[str, str, str], ProposalDocument]]:
    for message in messages:
        with suppress(NotAProposal, NoRegion):  # a dead letter of the live run: no decision answers it
            proposal = read_proposal_bytes(message.value)
            yield (region_of(message.key), proposal.proposal_id, proposal.digest), proposal


def _by_partition(messages: Mapping[tuple[int, int], RecordedMessage]) -> dict[int, list[RecordedMessage]]:
    found: defaultdict[int, list[RecordedMessage]] = defaultdict(list)
    for (partition, _), message in sorted(messages.items(), key=lambda item: item[0]):
        found[partition].append(message)
    return dict(found)


def _sha256(value: bytes) -> bytes:
    return hashlib.sha256(value).digest()
