"""What the owner of a partition must know of its past before it decides, read back from the log.

See docs/control-path.md, "Where to read on".
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import orjson
from aiokafka import AIOKafkaConsumer, TopicPartition

from streams.asking import Asked
from streams.deciding import Read, Resume
from streams.guard_reading import Lost
from streams.left_open import LeftOpen, read_left_open
from streams.reading import read_to
from streams.switching import Kept, read_kept
from streams.topics import NoRegion, Topics, region_of
from xapp.chain import Chain, ChainError, Checkpoint
from xapp.control_document import ControlError, read_control
from xapp.model import SWITCH_MODES, AppliedControl
from xapp.signing import EnvelopeError, KnownKeys, check_document, open_envelope

ANSWERED_LIMIT: Final = 10_000
"""How many final decisions of a partition are remembered, to drop repeats of their proposals, after a restart too."""
QUESTION_MS: Final = 10_000
"""A question is answered after a change of owner only where it is no older than this."""
OPEN_LIMIT_MS: Final = 600_000
"""No proposal stays open for longer, whatever its deadline."""
_MARGIN_MS: Final = 10_000
"""How far the clocks of guards and brokers may be apart for an outcome to be found again."""
_TAIL: Final = 16
_BREATHE: Final = 64
"""Decisions read between two turns of the event loop."""


class ProposalKey(NamedTuple):
    """What names a proposal within a partition."""

    region: str
    proposal_id: str


@dataclass(frozen=True, slots=True)
class Said:
    """One decision on `control`, as far as its partition's next owner needs it."""

    key: ProposalKey
    digest: str
    sequence: int
    attempt: int
    final: bool
    action: str
    codes: frozenset[str]
    decided_at_ms: int
    read: Read
    resume: Resume
    proposal_offset: int
    lease: AppliedControl | None
    asked: Asked | None

    @classmethod
    def of(cls, value: bytes | None, key: bytes | None, trusted: KnownKeys | None, since_ms: int) -> Said | None:
        """Read a decision; None for what is none, or is of nobody who is trusted.

        What it granted before `since_ms` is left out: no lease, window or watch reaches back so far, and what was last
        applied to a key stands in `controls`.
        """
        try:
            said = orjson.loads(value or b"")
            if trusted is not None and check_document(said, trusted) is not None:
                return None
            evidence, resume, asked = said["evidence"], said["resume"], said["asked"]
            found = cls(
                key=ProposalKey(region_of(key), said["proposal_id"]),
                digest=said["proposal_digest"],
                sequence=said["sequence"],
                attempt=said["attempt"],
                final=said["final"],
                action=said["action"],
                codes=blocking_codes(said["violations"]),
                decided_at_ms=said["decided_at_ms"],
                read=Read(evidence["offset"], evidence["outcomes"], evidence["answers"]),
                resume=Resume(resume["proposals"], resume["sequence"]),
                proposal_offset=said["proposal_offset"],
                lease=read_control(said["lease"]) if said["lease"] and said["decided_at_ms"] >= since_ms else None,
                asked=None if asked is None else Asked(asked["source"], asked["count"], asked["until_ms"]),
            )
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError, NoRegion, ControlError):
            return None
        numbers = (
            found.sequence,
            found.attempt,
            found.decided_at_ms,
            found.proposal_offset,
            *vars_of(found.read),
            *vars_of(found.resume),
        )
        texts = (found.key.proposal_id, found.digest, found.action)
        sound = all(type(n) is int for n in numbers) and all(type(t) is str for t in texts)
        return found if sound and type(found.final) is bool else None


def vars_of(value: Read | Resume) -> tuple[Any, ...]:
    """The numbers in it."""
    return tuple(getattr(value, name) for name in value.__slots__)


def blocking_codes(violations: Any) -> frozenset[str]:
    """The codes of what blocks, of violations in their JSON form."""
    return frozenset(violation["code"] for violation in violations if violation["blocking"])


@dataclass(slots=True)
class Past:
    """What the log says of a partition. `said`: its decisions, in order, as far back as they can matter; `controls`:
    with their region, the newest of each key, however old; `switches`: the newest of each scope that was kept; `left`:
    what was open, where that is known of later decisions than the last one's `resume` tells.
    """

    said: list[Said] = field(default_factory=list)
    controls: list[tuple[str, AppliedControl]] = field(default_factory=list)
    switches: list[Kept] = field(default_factory=list)
    left: LeftOpen | None = None
    chain: Chain = field(default_factory=lambda: Chain(0))

    @property
    def last(self) -> Said | None:
        return self.said[-1] if self.said else None


@dataclass(frozen=True, slots=True)
class Start:
    """Where to read each input from, and up to where (`warm_at`) before anything is decided.

    `reread_to`: where `proposals` ended; decisions on those below may have been made by former owners. `gone`:
    proposals that nobody decided and the broker no longer holds; `telemetry_since_ms`: where it may have dropped
    telemetry that was asked for, when the oldest that it holds arrived.
    """

    positions: Mapping[TopicPartition, int]
    warm_at: Mapping[TopicPartition, int]
    reread_to: int
    answered_queries: frozenset[str]
    gone: Lost | None
    telemetry_since_ms: int | None = None


async def read_past(
    consumer: AIOKafkaConsumer, topics: Topics, partition: int, since_ms: int, trusted: KnownKeys | None
) -> Past:
    """Read back what a partition's former owners decided, at least until `since_ms`.

    `consumer` belongs to no group, reads what is committed, and is assigned anew. Messages that are no decision are
    passed over, and so is what nobody of `trusted` signed; of None: whatever stands there is taken, and it rests on the
    broker's access control that only guards write there.
    """
    past = Past(chain=await _chain(consumer, topics, partition, trusted))
    past.controls, past.switches, left = await _kept(consumer, TopicPartition(topics.controls, partition), trusted)
    tp = TopicPartition(topics.control, partition)
    begin, end = await _bounds(consumer, tp)
    trusted_ones: list[Said] = []
    distance = 2 * ANSWERED_LIMIT
    while True:  # each decision is read, and its signature checked, once
        start = max(begin, end - distance)
        before: list[Said] = []
        number = 0
        async for message in read_to(consumer, {tp: end}, {tp: start}):
            number += 1
            if number % _BREATHE == 0:
                await asyncio.sleep(0)  # other partitions are being decided
            said = Said.of(message.value, message.key, trusted, since_ms)
            if said is not None:
                before.append(said)
        trusted_ones = before + trusted_ones
        past.said = _rising(trusted_ones)
        past.left = _of_this_log(left, past.said)
        if start == begin or _reaches(past, since_ms):
            return past
        end, distance = start, ANSWERED_LIMIT


def _rising(read: Iterable[Said]) -> list[Said]:
    """Those whose sequence goes on from the ones before."""
    found: list[Said] = []
    for said in read:
        if not found or said.sequence > found[-1].sequence:
            found.append(said)
    return found


def _of_this_log(left: LeftOpen | None, said: Sequence[Said]) -> LeftOpen | None:
    """What was kept of the open ones, where it is newer than `resume` and the decision before it was read."""
    if left is None or not said or left.sequence <= said[-1].resume.sequence:
        return None
    at = bisect_left(said, left.sequence - 1, key=lambda one: one.sequence)
    known = at < len(said) and said[at].sequence == left.sequence - 1
    return left if known and said[at].decided_at_ms == left.decided_at_ms else None


def _reaches(past: Past, since_ms: int) -> bool:
    if not past.said:
        return False
    first, last = past.said[0], past.said[-1]
    finals = sum(one.final for one in past.said)
    open_known = past.left is not None or first.sequence <= last.resume.sequence
    return open_known and first.decided_at_ms < since_ms and finals >= ANSWERED_LIMIT


async def _chain(consumer: AIOKafkaConsumer, topics: Topics, partition: int, trusted: KnownKeys | None) -> Chain:
    """The chain as far as it goes: after the last record, or, where none is kept, after the last checkpoint."""

    def of_checkpoint(payload: bytes) -> Chain:
        checkpoint = Checkpoint.read(payload)
        return Chain(checkpoint.partition, checkpoint.index + 1, checkpoint.head)

    for topic, chain_of in ((topics.records, Chain.of), (topics.checkpoints, of_checkpoint)):
        found = await _newest(consumer, TopicPartition(topic, partition), chain_of, trusted)
        if found is not None and found.partition == partition:
            return found
    return Chain(partition)


async def _kept(
    consumer: AIOKafkaConsumer, tp: TopicPartition, trusted: KnownKeys | None
) -> tuple[list[tuple[str, AppliedControl]], list[Kept], LeftOpen | None]:
    """The newest control of each key, the newest switch of each scope, and what was open when that was kept last."""
    begin, end = await _bounds(consumer, tp)
    newest: dict[tuple[str, str], AppliedControl] = {}
    switches: dict[str | None, Kept] = {}
    left: LeftOpen | None = None
    async for message in read_to(consumer, {tp: end}, {tp: begin}):
        try:
            said = orjson.loads(message.value or b"")
            believed = trusted is None or check_document(said, trusted) is None
            switch = read_kept(said, tp.partition)
            if switch is not None:
                if believed or _tightens(switch, switches.get(switch.region)):
                    switches[switch.region] = switch
                continue
            if not believed:
                continue
            kept_open = read_left_open(said, tp.partition)
            if kept_open is not None:
                left = kept_open
                continue
            control = read_control(said["control"])
            newest[region_of(said["region"].encode()), control.control_key] = control
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError, NoRegion, ControlError):
            continue
    return [(region, control) for (region, _), control in newest.items()], list(switches.values()), left


def _tightens(switch: Kept, before: Kept | None) -> bool:
    """Whether a switch that nobody who is trusted kept counts all the same: of a guard whose key was taken from the
    list, say. To hold back needs no trust, to release does.
    """
    strictness = (*SWITCH_MODES, "live").index
    if before is None:
        return switch.message.mode != "live"
    return switch.offset >= before.offset and strictness(switch.message.mode) < strictness(before.message.mode)


async def _newest(
    consumer: AIOKafkaConsumer, tp: TopicPartition, chain_of: Callable[[bytes], Chain], trusted: KnownKeys | None
) -> Chain | None:
    """What the last envelope of a partition says; behind it there may be many ends of transactions."""
    distance = _TAIL
    while True:
        begin, end = await _bounds(consumer, tp)
        start = max(begin, end - distance)
        last: Chain | None = None
        async for message in read_to(consumer, {tp: end}, {tp: start}):
            try:
                envelope = open_envelope(message.value or b"")
                if trusted is None or envelope.verify(trusted) is None:
                    last = chain_of(envelope.payload)
            except (EnvelopeError, ChainError):
                continue
        if last is not None or start == begin:
            return last
        distance *= 8


async def _bounds(consumer: AIOKafkaConsumer, tp: TopicPartition) -> tuple[int, int]:
    consumer.assign([tp])
    begins, ends = await consumer.beginning_offsets([tp]), await consumer.end_offsets([tp])
    return begins[tp], ends[tp]


async def find_start(
    consumer: AIOKafkaConsumer, topics: Topics, partition: int, past: Past, committed: int | None, now_ms: int,
    evidence_ms: int, controls_ms: int, finds_times: bool,
) -> Start:  # fmt: skip
    """Where a new owner reads on. `committed`: the group's offset of `proposals`; times in ms.

    Outcomes are read back as far as decisions are taken up with what they granted, answers as long as a proposal may be
    open, and in any case from where the last decision had read: a switch that stands below was kept with it.

    `finds_times`: whether the broker says where a time stands; inputs are read from their beginning where it does not.
    """
    names = ("telemetry", "proposals", "queries", "outcomes", "answers", "views")
    tps = {name: TopicPartition(getattr(topics, name), partition) for name in names}
    consumer.assign(list(tps.values()))
    begins, ends = await consumer.beginning_offsets(list(tps.values())), await consumer.end_offsets(list(tps.values()))
    back = {"telemetry": evidence_ms, "outcomes": controls_ms + _MARGIN_MS}
    back["answers"] = max(evidence_ms, OPEN_LIMIT_MS) + _MARGIN_MS
    back |= {"queries": QUESTION_MS, "views": QUESTION_MS}
    found = await consumer.offsets_for_times({tps[name]: max(0, now_ms - ms) for name, ms in back.items()})
    positions: dict[TopicPartition, int] = {}
    for name in back:
        at, nothing_so_young = found.get(tps[name]), (ends if finds_times else begins)[tps[name]]
        positions[tps[name]] = nothing_so_young if at is None else at.offset
    oldest = found.get(tps["telemetry"])
    cut = oldest is not None and 0 < begins[tps["telemetry"]] == oldest.offset
    last, proposals = past.last, tps["proposals"]
    answers = tps["answers"]
    known = last is not None and last.read.answers <= ends[answers]  # else nothing is, or another topic had its name
    told = max(begins[answers], last.read.answers) if last is not None and known else begins[answers]
    positions[answers] = min(positions[answers], told)
    resume = max(committed or 0, 0 if last is None else last.resume.proposals)
    gone = None
    if begins[proposals] > resume and (last is not None or committed is not None):
        reason = "the broker no longer holds it: dropped before it was decided"
        gone = Lost(proposals.topic, partition, resume, begins[proposals] - 1, reason)
    positions[proposals] = min(max(begins[proposals], resume), ends[proposals])
    answered: set[str] = set()
    views = tps["views"]
    async for message in read_to(consumer, {views: ends[views]}, {views: positions.pop(views)}):
        answered.update(value.decode(errors="replace") for name, value in message.headers if name == "ce_id" and value)
    warm_at = {tps[name]: ends[tps[name]] for name in ("telemetry", "outcomes", "answers")}
    return Start(
        positions, warm_at, ends[proposals], frozenset(answered), gone, oldest.timestamp if cut else None
    )  # fmt: skip
