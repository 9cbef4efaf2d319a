"""What all pages show: a fold of the topics' messages into views. Pure: no Kafka, no clock.

Bounded, in number and in bytes: the newest decisions as encoded summaries, the newest decision of each open proposal,
the newest control of each key, and what each partition's owner said last. A message that is none of ours is passed over
and counted.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import accumulate, islice
from typing import Any, Final, Literal, NamedTuple, Protocol

import orjson

from streams.messages import SWITCHED_FORMAT, AnswerMessage, OutcomeMessage, StatusMessage, SwitchInForce
from streams.observing import Published
from streams.switching import is_switch
from streams.topics import region_of
from streams.web.summaries import DecisionId, shortened, summary
from streams.wire import parse_object
from xapp.control_document import read_control
from xapp.controls import lease_active
from xapp.model import OUTCOMES, AppliedControl
from xapp.signing import KnownKeys, check_document

Topic = Literal["control", "controls", "outcomes", "answers", "status"]
TOPICS: Final[tuple[Topic, ...]] = ("controls", "status", "control", "outcomes", "answers")
"""What a board is made of, by the fields of `Topics`."""

DECISIONS: Final = 10_000
_OPEN: Final = 10_000
_CONTROLS: Final = 10_000
_OUTCOMES: Final = 10_000
_ID_LENGTH: Final = 200
_APPENDED: Final = 10_000
_DENIED: Final = 10_000
_ANSWERED: Final = 500
_SHOWN: Final = 1_000
"""Open proposals and leases that one view has at most: those that a person is to see first."""
_ENDED_SHOWN_MS: Final = 10_000
"""How long a control is still shown after its lease, to see what became of it."""
_SUMMARY_BYTES: Final = 8_000
"""A longer one is cut, and says so."""
_CUT_TEXT: Final = 500
_CUT_ITEMS: Final = 5
_KEPT_BYTES: Final = 24_000_000
"""Of all decisions together: where summaries are long, fewer are kept."""
_OPEN_BYTES: Final = 12_000_000
_SHOWN_BYTES: Final = 2_000_000
"""Of the open proposals that one view has."""
_RANK: Final = {outcome: rank for rank, outcome in enumerate(OUTCOMES)}
_PARTITION: Final = {"partition", "guard", "at_ms", "warm", "why_not_ready", "open", "behind"}

Key = tuple[str, str]
"""A region, and a proposal's id or a control key in it."""


class Message(Protocol):
    """A Kafka message, as far as a board reads it."""

    @property
    def partition(self) -> int: ...

    @property
    def offset(self) -> int: ...

    @property
    def key(self) -> bytes | None: ...

    @property
    def value(self) -> bytes | None: ...


class Kept(NamedTuple):
    """One decision that is held: `encoded` is its summary as JSON."""

    cursor: int
    decided_at_ms: int
    where: DecisionId
    encoded: bytes

    @property
    def summary(self) -> dict[str, Any]:
        """The summary."""
        found: dict[str, Any] = orjson.loads(self.encoded)
        return found


class _Open(NamedTuple):
    kept: Kept
    action: str


class Board:
    """`known`: keys of the guards, None where any decision counts; a decision of nobody known is shown and marked, and
    changes nothing else. `first_cursor`: of the first decision, such that no other board has the same, of this guard or
    of another: so a page can tell one from the other. `limit`: how many decisions are kept.
    """

    def __init__(self, known: KnownKeys | None = None, first_cursor: int = 1, limit: int = DECISIONS) -> None:
        self._known = known
        self._limit = limit
        self._kept: deque[Kept] = deque()
        self._kept_bytes = self._open_bytes = 0
        self._listed_from: dict[int, int] = {}
        self._by_id: dict[DecisionId, Kept] = {}
        self._open: OrderedDict[Key, _Open] = OrderedDict()
        self._controls: OrderedDict[Key, AppliedControl] = OrderedDict()
        self._key_of: dict[str, Key] = {}  # decision id of a control → its key
        self._outcomes: OrderedDict[str, str] = OrderedDict()
        self._status: dict[int, StatusMessage] = {}
        self._denied: OrderedDict[Key, str] = OrderedDict()
        self.answered: OrderedDict[str, str] = OrderedDict()
        """The newest answers: id → the proposal that it answers."""
        self._appended: OrderedDict[tuple[str, int], int] = OrderedDict()
        self.cursor = first_cursor - 1
        """That of the newest decision."""
        self.passed_over: Counter[str] = Counter()
        """Messages that could not be used, by topic."""

    def take(self, topic: Topic, message: Message) -> bool:
        """Take one message in. False where it is none of ours: it is counted, and changes nothing."""
        try:
            _TAKES[topic](self, message)
        except (ValueError, KeyError, TypeError, AttributeError):
            self.passed_over[topic] += 1
            return False
        return True

    def appended(self, decision_id: str, attempt: int, appended_at_ms: int) -> None:
        """When the broker took the proposal of a decision, to be told before the decision is taken in."""
        self._appended[decision_id, attempt] = appended_at_ms
        _bound(self._appended, _APPENDED)

    def list_from(self, first: DecisionId) -> None:
        """Decisions of a partition that stand before this one are not listed: they only tell what is open."""
        self._listed_from[first.partition] = first.offset

    # Decisions.

    def find(self, where: DecisionId) -> Kept | None:
        """A decision that is held, be it only as the newest on a proposal that is open."""
        held = self._by_id.get(where)
        if held is not None:
            return held
        return next((waiting.kept for waiting in self._open.values() if waiting.kept.where == where), None)

    def newest(self, region: str, proposal_id: str) -> Kept | None:
        """The newest decision on a proposal that has no final one; None where there is none."""
        held = self._open.get((region, proposal_id))
        return None if held is None else held.kept

    def denied_by(self, region: str, proposal_id: str) -> str | None:
        """The operator who denied a proposal, while its final decision is not there yet."""
        return self._denied.get((region, proposal_id))

    def covers(self, cursor: int) -> bool:
        """Whether all decisions after this cursor are held, and there was such a cursor."""
        return (self._kept[0].cursor if self._kept else self.cursor + 1) - 1 <= cursor <= self.cursor

    def after(self, cursor: int) -> list[Kept]:
        """The decisions that are held after a cursor, in the order in which they were read."""
        return list(islice(self._kept, max(0, len(self._kept) - (self.cursor - cursor)), None))

    def decisions(self) -> list[bytes]:
        """The summaries of all decisions that are held, as JSON, by the time of their deciding."""
        return [kept.encoded for kept in sorted(self._kept, key=lambda kept: kept.decided_at_ms)]

    # Views; what they say of the present, they say of `now_ms`.

    def open(self) -> list[bytes]:
        """The newest summary of each proposal without a final decision, as JSON: ESCALATEs first, then the newest."""
        newest_first = sorted(self._open.values(), key=lambda held: held.kept.cursor, reverse=True)
        newest_first.sort(key=lambda held: held.action != "ESCALATE")
        sizes = accumulate(len(held.kept.encoded) for held in newest_first[:_SHOWN])
        return [held.kept.encoded for held, size in zip(newest_first, sizes, strict=False) if size <= _SHOWN_BYTES]

    def leases(self, now_ms: int) -> list[dict[str, Any]]:
        """Controls that hold their key, or did a moment ago; granted last first."""
        shown = [(key, c) for key, c in self._controls.items() if _shown(c, now_ms)]
        shown.sort(key=lambda each: each[1].granted_at_ms, reverse=True)
        return [
            {
                "region": region,
                "control_key": control.control_key,
                "proposal_id": control.proposal_id,
                "proposer": control.proposer or None,
                "values": control.values,
                "granted_at_ms": control.granted_at_ms,
                "lease_until_ms": control.lease_until_ms,
                "state": control.outcome,
            }
            for (region, _), control in shown[:_SHOWN]
        ]

    def partitions(self) -> list[dict[str, Any]]:
        """What each partition's owner said of it last."""
        return [self._status[partition].model_dump(include=_PARTITION) for partition in sorted(self._status)]

    def sources(self) -> list[dict[str, Any]]:
        """The sources of every region, as the owners of their partitions said last."""
        return [
            {**source.model_dump(), "partition": partition}
            for partition in sorted(self._status)
            for source in self._status[partition].sources
        ]

    def switches(self) -> list[dict[str, Any]]:
        """The switches in force, each once with the partitions in which it is; the strictest first."""
        found: dict[SwitchInForce, list[int]] = {}
        for partition in sorted(self._status):
            for switch in self._status[partition].switches:
                found.setdefault(switch, []).append(partition)
        in_order = sorted(found.items(), key=lambda each: (each[0].mode, each[0].region or "", -each[0].at_ms))
        return [{**switch.model_dump(), "partitions": where} for switch, where in in_order]

    # Taking in.

    def _take_decision(self, message: Message) -> None:
        document = parse_object(message.value)
        where = DecisionId(message.partition, message.offset)
        if where in self._by_id:
            return
        appended_at_ms = self._appended.get((document["decision_id"], document["attempt"]))
        said = summary(document, where, self._known, appended_at_ms)
        if said["region"] != region_of(message.key):
            raise ValueError("the key of a decision is its region")
        listed = where.offset >= self._listed_from.get(where.partition, 0)
        self.cursor += listed
        kept = Kept(self.cursor, said["decided_at_ms"], where, _encoded(said))
        if listed:
            self._list(kept)
        if said["believed"] is not False:
            self._note_open(kept, said)

    def _list(self, kept: Kept) -> None:
        self._kept.append(kept)
        self._by_id[kept.where] = kept
        self._kept_bytes += len(kept.encoded)
        while len(self._kept) > self._limit or self._kept_bytes > _KEPT_BYTES:
            oldest = self._kept.popleft()
            del self._by_id[oldest.where]
            self._kept_bytes -= len(oldest.encoded)

    def _note_open(self, kept: Kept, said: Mapping[str, Any]) -> None:
        key = (said["region"], said["proposal_id"])
        self._open_bytes -= _size(self._open.pop(key, None))
        if said["final"]:
            self._denied.pop(key, None)
            return
        self._open[key] = _Open(kept, said["action"])
        self._open_bytes += len(kept.encoded)
        while len(self._open) > _OPEN or self._open_bytes > _OPEN_BYTES:
            self._open_bytes -= _size(self._open.popitem(last=False)[1])

    def _take_control(self, message: Message) -> None:
        document = parse_object(message.value)
        if document["format"] == SWITCHED_FORMAT:
            return  # what is in force, the owners of the partitions say
        if document["format"] != "wirelessops.control/1":
            raise ValueError("another format")
        if self._known is not None and check_document(document, self._known) is not None:
            raise ValueError("a control that no known guard signed")
        control = read_control(document["control"])
        region = region_of(document["region"].encode())
        key = (region, control.control_key)
        before = self._controls.pop(key, None)
        if before is not None:
            self._key_of.pop(before.decision_id, None)
        self._controls[key] = replace(
            control, values=shortened(control.values), bindings={}, coupled=(),
            outcome=self._outcome(control.decision_id, control.outcome),
        )  # fmt: skip
        self._key_of[control.decision_id] = key
        if len(self._controls) > _CONTROLS:
            _, oldest = self._controls.popitem(last=False)
            self._key_of.pop(oldest.decision_id, None)

    def _take_outcome(self, message: Message) -> None:
        outcome = OutcomeMessage.model_validate(parse_object(message.value))
        if len(outcome.decision_id) > _ID_LENGTH:
            raise ValueError("no id of a decision")
        self._outcomes[outcome.decision_id] = self._outcome(outcome.decision_id, outcome.outcome)
        _bound(self._outcomes, _OUTCOMES)
        key = self._key_of.get(outcome.decision_id)
        if key is not None:
            held = self._controls[key]
            self._controls[key] = replace(held, outcome=self._outcome(held.decision_id, held.outcome))

    def _outcome(self, decision_id: str, outcome: str) -> str:
        """What is known to have become of a control: its outcomes may be read before it."""
        return max(self._outcomes.get(decision_id, outcome), outcome, key=_RANK.__getitem__)

    def _take_answer(self, message: Message) -> None:
        document = parse_object(message.value)
        if is_switch(document):
            return
        answer = AnswerMessage.model_validate(document)
        key = (region_of(message.key), answer.proposal_id)
        self.answered[answer.answer_id] = answer.proposal_id
        _bound(self.answered, _ANSWERED)
        if answer.verdict == "deny":  # it may be read before the decision that it answers
            self._denied[key] = answer.operator
            _bound(self._denied, _DENIED)

    def _take_status(self, message: Message) -> None:
        status = StatusMessage.model_validate(parse_object(message.value))
        if status.partition != message.partition:
            raise ValueError("the status of another partition")
        self._status[message.partition] = status


_TAKES: Final[Mapping[Topic, Callable[[Board, Message], None]]] = {
    "control": Board._take_decision,
    "controls": Board._take_control,
    "outcomes": Board._take_outcome,
    "answers": Board._take_answer,
    "status": Board._take_status,
}


class Appended:
    """An observer of the guard: tells the board in use when the broker took the proposals that are decided here."""

    def __init__(self, board: Callable[[], Board]) -> None:
        self._board = board

    def published(self, published: Published) -> None:
        """See `streams.observing.Observer`."""
        self._board().appended(published.decision.decision_id, published.attempt, published.appended_at_ms)


def shares(available: Mapping[int, int], total: int) -> dict[int, int]:
    """How much of `total` each partition gets, at most what it has: what one does not need, the others may have."""
    left, given = total, {}
    by_size: Iterator[tuple[int, int]] = iter(sorted(available.items(), key=lambda each: each[1]))
    for number, (partition, has) in enumerate(by_size):
        given[partition] = min(has, left // (len(available) - number))
        left -= given[partition]
    return given


def joined(encoded: Iterable[bytes]) -> bytes:
    """A JSON list of documents that are encoded already."""
    return b"[" + b",".join(encoded) + b"]"


def _encoded(said: dict[str, Any]) -> bytes:
    encoded = orjson.dumps(said)
    if len(encoded) > _SUMMARY_BYTES:
        text = said["explanation"][:_CUT_TEXT] + "… (too long for this list: see the record)"
        items = {name: said[name][:_CUT_ITEMS] for name in ("cells", "codes", "reasons", "repairs")}
        encoded = orjson.dumps({**said, **items, "explanation": text})
    return encoded


def _size(held: _Open | None) -> int:
    return 0 if held is None else len(held.kept.encoded)


def _shown(control: AppliedControl, now_ms: int) -> bool:
    if lease_active(control, now_ms):
        return True
    ended_ms = max(control.granted_at_ms, min(control.lease_until_ms or 0, now_ms))
    return now_ms - ended_ms <= _ENDED_SHOWN_MS


def _bound(held: OrderedDict[Any, Any], limit: int) -> None:
    if len(held) > limit:
        held.popitem(last=False)
