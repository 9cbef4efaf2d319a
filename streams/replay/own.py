"""The project's own recordings, decided again: a recording of a live run gives the live decisions, byte for byte.

A decision on `control` says which proposal it answers, at which t, and up to which offsets of telemetry, outcomes and
answers its guard had read. With those, the proposals and the decisions before it that is all a decision depends on, so
each is made again from nothing else and compared with what was recorded. What the guard was started with (contracts,
history, the folder of support terms and maps) is not in a recording and must be given as it was. Which map a gated
decision rests on it says itself, by digest: maps may have been replaced while the guard ran. What was not gated is
decided again ungated; what the newest maps would have said of it is counted beside it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final

import orjson

from streams.asking import Asked
from streams.deciding import (
    History,
    Maps,
    NotAProposal,
    Outcome,
    ProposalDocument,
    Read,
    RegionState,
    Resume,
    Stamp,
    read_proposal_bytes,
    unrecordable,
)
from streams.messages import AnswerMessage, OutcomeMessage
from streams.recording import RecordedMessage, RecordingError, read_recording
from streams.replay.recorded import Unreadable, UnreadableRecording
from streams.replay.summary import SHOWN, Gating, Verdicts, gated
from streams.support_folder import NO_SUPPORT, SupportFolder
from streams.switching import Kept, Switches, is_switch, read_kept, read_switch
from streams.telemetry import Undecodable
from streams.topics import NoRegion, Topics, region_of, topics
from streams.wire import parse_object
from xapp.address import digest
from xapp.chain import unlinked
from xapp.contract import Contract
from xapp.control_document import ControlError, read_control
from xapp.evidence.store import Contradiction
from xapp.model import AppliedControl, Switch
from xapp.signing import EnvelopeError, open_envelope, unsigned

_CONTROL: Final = "control"


@dataclass(slots=True)
class Recorded:
    """The messages of a recording by what they are, each once. Lists are in order of offset."""

    topics: Topics
    inputs: dict[str, dict[int, list[RecordedMessage]]]  # telemetry, outcomes, answers: by partition
    proposals: dict[tuple[str, str, str], ProposalDocument]  # (region, proposal id, digest)
    control: dict[int, list[RecordedMessage]]
    records: frozenset[str] | None  # digest of each; None where the topic was not recorded


@dataclass(slots=True)
class Comparison:
    """How decisions made again compare with the recorded ones. `differing`: place and reason of each; `gating`: what
    the support gate said, or would have said.
    """

    matching: int = 0
    without_proposal: int = 0
    telemetry: int = 0
    telemetry_refused: int = 0
    differing: list[str] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    gating: Gating = field(default_factory=Gating)


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
    for place, message in _kept_switches(by_topic[names.controls].values(), names.answers):
        by_topic[names.answers].setdefault(place, message)
    return Recorded(
        topics=names,
        inputs={name: _by_partition(by_topic[name]) for name in (names.telemetry, names.outcomes, names.answers)},
        proposals=dict(_proposals(by_topic[names.proposals].values())),
        control=_by_partition(by_topic[names.control]),
        records=None if records is None else frozenset(filter(None, map(_record_digest, records.values()))),
    )


def replay_own(
    paths: Sequence[Path],
    sink: BinaryIO | None,
    contracts: Mapping[str, Contract],
    history: History,
    support: SupportFolder = NO_SUPPORT,
) -> dict[str, Any]:
    """Decide everything again; full records to `sink`. Gives the summary.

    Raises UnreadableRecording where the files hold no decision.
    """
    comparison, verdicts = Comparison(), Verdicts()
    recorded = read(paths, comparison.unreadable)
    for outcome in decide_again(recorded, comparison, contracts, history, support):
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
            "telemetry_before_the_recording": sum(
                messages[0].offset for messages in recorded.inputs[recorded.topics.telemetry].values()
            ),
            "decisions": sum(map(len, recorded.control.values())),
            "matching": comparison.matching,
            "differing": len(comparison.differing),
            "without_proposal": comparison.without_proposal,
        },
        "differing": comparison.differing[:SHOWN],
        "proposals": len(recorded.proposals),
        **verdicts.document(),
        **gated(comparison.gating if support.terms else None),
    }


def decide_again(
    recorded: Recorded,
    comparison: Comparison,
    contracts: Mapping[str, Contract],
    history: History,
    support: SupportFolder = NO_SUPPORT,
) -> Iterator[Outcome]:
    """Each recorded decision made again, partition by partition in the order of their offsets."""
    for partition, decisions in sorted(recorded.control.items()):
        past = _Partition(recorded, partition, comparison, contracts, history, support)
        for message in decisions:
            place = f"{message.topic}/{partition}/{message.offset}"
            try:
                live = _Live.of(message)
            except (orjson.JSONDecodeError, KeyError, TypeError, NoRegion, ControlError) as error:
                comparison.differing.append(f"{place}: no decision: {error!r}")
                continue
            past.read_to(live.stamp.read)
            state, switch = past.state(live.region), past.switches.in_force(live.region)
            proposal = recorded.proposals.get((live.region, live.proposal_id, live.digest))
            if proposal is None:
                comparison.without_proposal += 1
            else:
                outcome = _again(state, proposal, live, message, switch, live.maps(support))
                _compare(outcome, message, recorded, comparison, place, live.unsupported(support, past.missing))
                if support.terms:
                    newest = support.newest
                    comparison.gating.count(
                        outcome.decision if live.gated else state.decide(proposal, live.t_ms, switch, newest)
                    )
                yield outcome
            state.note(live.lease, live.stamp.asked)


def _again(
    state: RegionState,
    proposal: ProposalDocument,
    live: _Live,
    message: RecordedMessage,
    switch: Switch | None,
    maps: Maps | None,
) -> Outcome:
    decision = state.decide(proposal, live.t_ms, switch, maps)
    outcome = state.outcome(decision, proposal, live.t_ms, live.stamp)
    if unsigned(message.value or b"") != outcome.control_value:  # its record may have been too large to write
        short = unrecordable(state.region, proposal, live.t_ms, len(decision.record))
        refused = state.outcome(short, proposal, live.t_ms, live.stamp)
        if unsigned(message.value or b"") == refused.control_value:
            return refused
    return outcome


class _Partition:
    """The inputs of one partition, taken in up to given offsets."""

    def __init__(
        self,
        recorded: Recorded,
        partition: int,
        comparison: Comparison,
        contracts: Mapping[str, Contract],
        history: History,
        support: SupportFolder,
    ) -> None:
        names = recorded.topics
        self._comparison, self._contracts, self._history = comparison, contracts, history
        self._terms = support.terms
        telemetry = recorded.inputs[names.telemetry].get(partition, ())
        self.missing = telemetry[0].offset if telemetry else 0
        """Messages of telemetry before the recording."""
        self._states: dict[str, RegionState] = {}
        self._waiting = {
            name: deque(recorded.inputs[name].get(partition, ()))
            for name in (names.telemetry, names.outcomes, names.answers)
        }
        self._names = names
        self.switches = Switches()

    def state(self, region: str) -> RegionState:
        """The state of a region."""
        if region not in self._states:
            self._states[region] = RegionState(region, self._contracts, self._history, terms=self._terms)
        return self._states[region]

    def read_to(self, read: Read) -> None:
        """Take in what a decision's guard had read."""
        names = self._names
        self._take(names.telemetry, read.telemetry, self._ingest)
        self._take(names.outcomes, read.outcomes, self._note_outcome)
        self._take(names.answers, read.answers, self._note_answer)

    def _take(self, name: str, end: int, take: Callable[[RecordedMessage], None]) -> None:
        waiting = self._waiting[name]
        while waiting and waiting[0].offset < end:
            message = waiting.popleft()
            with suppress(NoRegion, ValueError):  # a dead letter of the live run
                take(message)

    def _ingest(self, message: RecordedMessage) -> None:
        self._comparison.telemetry += 1
        try:
            self.state(region_of(message.key)).ingest(message.value, message.timestamp_ms)
        except (NoRegion, Undecodable, Contradiction):
            self._comparison.telemetry_refused += 1

    def _note_outcome(self, message: RecordedMessage) -> None:
        outcome = OutcomeMessage.model_validate(parse_object(message.value))
        self.state(region_of(message.key)).take_outcome(outcome, message.timestamp_ms)

    def _note_answer(self, message: RecordedMessage) -> None:
        document = parse_object(message.value)
        if is_switch(document):
            region = None if message.key is None else region_of(message.key)
            self.switches.take(Kept(region, message.offset, read_switch(document, region)))
            return
        given = AnswerMessage.model_validate(document)
        with suppress(Contradiction):
            self.state(region_of(message.key)).take_answer(given, message.timestamp_ms)


@dataclass(frozen=True, slots=True)
class _Live:
    """What a recorded decision says of how it was made, and what it granted.

    `gated`: whether a support gate was asked; `map_digest`: of the reference map that it rests on, None without one.
    """

    region: str
    proposal_id: str
    digest: str
    t_ms: int
    stamp: Stamp
    lease: AppliedControl | None
    contract_ref: str | None
    gated: bool
    map_digest: str | None

    def maps(self, support: SupportFolder) -> Maps | None:
        """The map that the guard of this decision had in force; None where no gate was asked."""
        if not self.gated or self.contract_ref is None:
            return None
        digest = self.map_digest
        return {self.contract_ref: None if digest is None else support.of_digest(self.contract_ref, digest)}

    def unsupported(self, support: SupportFolder, missing: int) -> str:
        """What the folder, or the recording, may lack for this decision to be made again; empty where nothing.
        `missing`: messages of telemetry before the recording.
        """
        if not self.gated or self.contract_ref is None:
            return f": it may rest on {missing} messages of telemetry before the recording" if missing else ""
        if self.contract_ref not in support.terms:
            return f": it was gated by support terms of {self.contract_ref}, name their folder with --support-dir"
        if self.map_digest is not None and support.of_digest(self.contract_ref, self.map_digest) is None:
            return f": the folder of --support-dir does not hold its reference map, {self.map_digest}"
        if missing:
            return f": it was gated, and of its window there may be some in {missing} messages before the recording"
        return ": it was gated, are the terms in --support-dir the same?"

    @classmethod
    def of(cls, message: RecordedMessage) -> _Live:
        said = orjson.loads(message.value or b"")
        evidence, asked, lease = said["evidence"], said["asked"], said["lease"]
        support, contract_ref = said.get("support"), said.get("contract_ref")
        stamp = Stamp(
            guard=said["guard"],
            sequence=said["sequence"],
            topic=evidence["topic"],
            partition=evidence["partition"],
            read=Read(evidence["offset"], evidence["outcomes"], evidence["answers"]),
            attempt=said["attempt"],
            final=said["final"],
            proposal_offset=said["proposal_offset"],
            resume=Resume(said["resume"]["proposals"], said["resume"]["sequence"]),
            asked=None if asked is None else Asked(asked["source"], asked["count"], asked["until_ms"]),
            until_ms=said["until_ms"],
        )
        return cls(
            region_of(message.key), said["proposal_id"], said["proposal_digest"], said["decided_at_ms"], stamp,
            None if lease is None else read_control(lease),
            contract_ref=contract_ref,
            gated=support is not None,
            map_digest=None if support is None or support["map"] is None else support["map"]["digest"],
        )  # fmt: skip


def _compare(
    outcome: Outcome,
    message: RecordedMessage,
    recorded: Recorded,
    comparison: Comparison,
    place: str,
    unsupported: str,
) -> None:
    """Hold one against what was recorded. `unsupported`: why its support may be another, where it was gated."""
    if outcome.control_value != unsigned(message.value or b""):
        was = orjson.loads(message.value or b"null")
        unknown = any("no contract" in v.detail for v in outcome.decision.violations if v.code == "malformed")
        hint = ": its contract is not loaded here, name its folder with --contracts" if unknown else unsupported
        comparison.differing.append(f"{place}: was {was.get('action')}, is {outcome.decision.action}{hint}")
    elif recorded.records is not None and digest(outcome.record_value) not in recorded.records:
        comparison.differing.append(f"{place}: the decision is the same; its record is not in the recording")
    else:
        comparison.matching += 1


def _record_digest(message: RecordedMessage) -> str | None:
    """Of a record as it was before it was chained and sealed; None for what is no record."""
    try:
        payload = open_envelope(message.value or b"").payload
    except EnvelopeError:
        return None
    return digest(unlinked(payload))


def _proposals(messages: Iterable[RecordedMessage]) -> Iterator[tuple[tuple[str, str, str], ProposalDocument]]:
    for message in messages:
        with suppress(NotAProposal, NoRegion):  # a dead letter of the live run: no decision answers it
            proposal = read_proposal_bytes(message.value)
            yield (region_of(message.key), proposal.proposal_id, proposal.digest), proposal


def _kept_switches(
    messages: Iterable[RecordedMessage], answers: str
) -> Iterator[tuple[tuple[int, int], RecordedMessage]]:
    """The switches that owners kept, where they stood on `answers`: a recording may have begun after they were set."""
    for message in messages:
        with suppress(ValueError):
            kept = read_kept(parse_object(message.value), message.partition)
            if kept is not None:
                key = None if kept.region is None else kept.region.encode()
                value = orjson.dumps(kept.message.model_dump())
                said = RecordedMessage(answers, message.partition, kept.offset, message.timestamp_ms, key, value)
                yield (message.partition, kept.offset), said


def _by_partition(messages: Mapping[tuple[int, int], RecordedMessage]) -> dict[int, list[RecordedMessage]]:
    found: defaultdict[int, list[RecordedMessage]] = defaultdict(list)
    for (partition, _), message in sorted(messages.items(), key=lambda item: item[0]):
        found[partition].append(message)
    return dict(found)
