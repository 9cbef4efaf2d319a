"""The chain of records: each names the one before it, so that none can be changed, left out or put elsewhere unseen.

The records of one partition are one chain. The payload of each has the member `chain`: its partition, its index from 0
on, and the address (SHA-256) of the payload before it. A checkpoint says, apart from the records, where a chain stood.
`audit` finds what happened to a chain from what is left of it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Literal, Self, TypeGuard

import orjson

from xapp.address import digest

RECORD_TYPE: Final = "application/vnd.wirelessops.decision+json"
_LINK_AT_THE_END: Final = re.compile(
    rb',"chain":\{"partition":\d+,"index":\d+,"previous":(?:null|"[^"]*")\}\}\Z'
)
CHECKPOINT_TYPE: Final = "application/vnd.wirelessops.checkpoint+json"
CHECKPOINT_FORMAT: Final = "wirelessops.checkpoint/1"
CHAIN: Final = "chain"
"""The member of a record's payload that holds its link."""

_ADDRESS: Final = re.compile(r"sha256:[0-9a-f]{64}")


class ChainError(ValueError):
    """A payload without a link, or a checkpoint that is none; the message says why."""


@dataclass(frozen=True, slots=True)
class Link:
    """The place of one record: `previous` is the address of the payload before it, None at index 0."""

    partition: int
    index: int
    previous: str | None

    @classmethod
    def read(cls, document: Any) -> Self:
        """The link in a record's payload, as JSON. Raises ChainError."""
        link = document.get(CHAIN) if isinstance(document, Mapping) else None
        if not isinstance(link, Mapping):
            raise ChainError("chain: is missing, so the record has no place")
        partition, index, previous = link.get("partition"), link.get("index"), link.get("previous")
        if not _is_count(partition) or not _is_count(index):
            raise ChainError("chain: partition and index must be integers from 0 on")
        if (index == 0) != (previous is None) or not (previous is None or _is_address(previous)):
            raise ChainError("chain.previous: must be the address of a payload, or null at index 0 and only there")
        return cls(partition, index, previous)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where a chain stood at `at_ms`: the address of the payload at `index`, said by `guard`."""

    topic: str
    partition: int
    index: int
    head: str
    at_ms: int
    guard: str

    def payload(self) -> bytes:
        """Its bytes, to be sealed as CHECKPOINT_TYPE."""
        return orjson.dumps(
            {
                "format": CHECKPOINT_FORMAT,
                "topic": self.topic,
                "partition": self.partition,
                "index": self.index,
                "head": self.head,
                "at_ms": self.at_ms,
                "guard": self.guard,
            }
        )

    @classmethod
    def read(cls, payload: bytes) -> Self:
        """The checkpoint in a payload. Raises ChainError."""
        try:
            document = orjson.loads(payload)
        except orjson.JSONDecodeError as error:
            raise ChainError(f"no checkpoint: {error}") from error
        if not isinstance(document, dict) or document.get("format") != CHECKPOINT_FORMAT:
            raise ChainError(f"no checkpoint: its format is not {CHECKPOINT_FORMAT}")
        numbers = [document.get(name) for name in ("partition", "index", "at_ms")]
        texts = [document.get(name) for name in ("topic", "guard")]
        if not all(map(_is_count, numbers)) or not all(isinstance(text, str) for text in texts):
            raise ChainError("no checkpoint: topic, partition, index, at_ms and guard are needed")
        if not _is_address(document.get("head")):
            raise ChainError("no checkpoint: head must be the address of a payload")
        return cls(**{name: document[name] for name in ("topic", "partition", "index", "head", "at_ms", "guard")})


@dataclass(frozen=True, slots=True)
class Chain:
    """A chain as far as it goes: the next record gets `index`, and `head` is the address of the last payload."""

    partition: int
    index: int = 0
    head: str | None = None

    @classmethod
    def of(cls, payload: bytes) -> Self:
        """The chain that ends with this payload of a record. Raises ChainError."""
        try:
            link = Link.read(orjson.loads(payload))
        except orjson.JSONDecodeError as error:
            raise ChainError(f"no record: {error}") from error
        return cls(link.partition, link.index + 1, digest(payload))

    def append(self, record: bytes) -> tuple[bytes, Chain]:
        """The payload of a record (a JSON object that is not empty) at the end of the chain, and the chain with it.

        The bytes of the record stay as they are; its link is put behind them.
        """
        if not (record.startswith(b"{") and record.endswith(b"}") and len(record) > 2):
            raise ChainError("only a JSON object without blanks around it can be chained")
        previous = b"null" if self.head is None else b'"%b"' % self.head.encode()
        link = b',"chain":{"partition":%d,"index":%d,"previous":%b}}' % (self.partition, self.index, previous)
        payload = record[:-1] + link
        return payload, Chain(self.partition, self.index + 1, digest(payload))

    def checkpoint(self, *, topic: str, at_ms: int, guard: str) -> Checkpoint:
        """What a checkpoint taken now says. Raises ChainError while the chain has no record."""
        if self.head is None:
            raise ChainError("a chain without a record has no checkpoint")
        return Checkpoint(topic, self.partition, self.index - 1, self.head, at_ms, guard)


def unlinked(payload: bytes) -> bytes:
    """The record that `Chain.append` was given; what has no link at its end as it is."""
    return _LINK_AT_THE_END.sub(b"}", payload)


@dataclass(frozen=True, slots=True)
class Shown:
    """One record as it was found, in the order it was found: `line` says where, `name` which.

    One that is not `authentic` (its signature is bad) holds no place; that it claims one explains a gap.
    """

    link: Link
    address: str
    line: int
    name: str
    authentic: bool = True


Kind = Literal["edited", "inserted", "duplicated", "reordered", "dropped", "truncated", "contradictory", "begins"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What happened to the record at `index` of a partition, or to all up to `last`. `shown`: the one it is about.

    `begins` is no fault: retention may have taken what was before.
    """

    kind: Kind
    partition: int
    index: int
    last: int
    detail: str
    shown: Shown | None = None


def audit(
    shown: Sequence[Shown],
    checkpoints: Sequence[Checkpoint] = (),
    begins: Mapping[int, int] | None = None,
) -> list[Finding]:
    """What is wrong with the chains that these records are of, partition by partition; an empty list: nothing.

    `shown`: in the order they stood in their topic. `begins`: the index that a partition is known to begin at.
    """
    begins = begins or {}
    chains: dict[int, list[Shown]] = {partition: [] for partition in begins}
    heads: dict[int, dict[int, Checkpoint]] = {}
    findings = []
    for one in shown:
        chains.setdefault(one.link.partition, []).append(one)
    for checkpoint in checkpoints:
        chains.setdefault(checkpoint.partition, [])
        first = heads.setdefault(checkpoint.partition, {}).setdefault(checkpoint.index, checkpoint)
        if first.head != checkpoint.head:
            detail = f"two checkpoints contradict each other: {first.head} and {checkpoint.head}"
            findings.append(Finding("contradictory", checkpoint.partition, checkpoint.index, checkpoint.index, detail))
    for partition, records in sorted(chains.items()):
        findings += _Audit(partition, records, heads.get(partition, {}), begins.get(partition)).findings()
    return findings


class _Audit:
    """One partition. `_chosen`: the record that is taken for the one at an index."""

    def __init__(
        self, partition: int, shown: Sequence[Shown], heads: Mapping[int, Checkpoint], begins: int | None
    ) -> None:
        self._partition = partition
        self._shown = [one for one in shown if one.authentic]
        self._claimed = sorted({one.link.index for one in shown if not one.authentic})
        self._heads = heads
        self._begins = begins
        self._chosen: dict[int, Shown] = {}

    def findings(self) -> list[Finding]:
        found = [*self._contents()]
        found += self._order()
        found += self._gaps()
        found.sort(key=lambda finding: finding.index)
        return found

    def _contents(self) -> Iterator[Finding]:
        """From the last index down: which record stands where, held against what is after it."""
        by_index: dict[int, list[Shown]] = {}
        for one in self._shown:
            by_index.setdefault(one.link.index, []).append(one)
        successor: Shown | None = None
        for index in sorted(by_index, reverse=True):
            candidates = by_index[index]
            follows = successor if successor is not None and successor.link.index == index + 1 else None
            head = self._heads.get(index)
            wanted = head.head if head is not None else None if follows is None else follows.link.previous
            match = next((one for one in candidates if one.address == wanted), None)
            before = {one.address for one in by_index.get(index - 1, ())}
            linked = next((one for one in candidates if one.link.previous in before), candidates[0])
            chosen = self._chosen[index] = match or linked
            for one in candidates:
                if one.address != chosen.address:
                    yield self._finding("inserted", one, f"line {chosen.line} shows another record of this index")
            if wanted is not None and match is None:
                by = "a checkpoint" if head is not None or follows is None else f"the record of index {index + 1}"
                yield self._finding("edited", chosen, f"it is {chosen.address}, {by} names {wanted}")
                successor = None
            elif self._contradicts(chosen):
                said = self._heads[index - 1].head
                yield self._finding("edited", chosen, f"it names {chosen.link.previous} before it, a checkpoint {said}")
                successor = None
            else:
                successor = chosen

    def _contradicts(self, one: Shown) -> bool:
        before = self._heads.get(one.link.index - 1)
        return before is not None and before.head != one.link.previous

    def _order(self) -> Iterator[Finding]:
        """The longest part in order stands; every other record was put elsewhere, or is there twice."""
        genuine = [one for one in self._shown if one.address == self._chosen[one.link.index].address]
        standing = _longest_rising([one.link.index for one in genuine])
        first_at = {genuine[at].link.index: genuine[at].line for at in reversed(standing)}
        keeps = set(standing)
        after: Shown | None = None
        for at, one in enumerate(genuine):
            if at in keeps:
                after = one
            elif one.link.index in first_at:
                yield self._finding("duplicated", one, f"it stands at line {first_at[one.link.index]} as well")
            else:
                first_at[one.link.index] = one.line
                where = "before all others" if after is None else f"after index {after.link.index}"
                yield self._finding("reordered", one, f"it stands {where}")

    def _gaps(self) -> Iterator[Finding]:
        present = sorted(self._chosen)
        if present:
            yield from self._beginning(present[0])
        for low, high in pairwise(present):
            detail = f"between line {self._line(low)} and line {self._line(high)}"
            yield from self._missing("dropped", low + 1, high - 1, detail)
        furthest = max(self._heads, default=-1)
        ends = present[-1] + 1 if present else self._begins or 0
        if furthest >= ends:
            detail = f"a checkpoint names index {furthest}"
            yield from self._missing("truncated", ends, furthest, detail)

    def _beginning(self, first: int) -> Iterator[Finding]:
        """Whether the records before the first one may be gone."""
        if self._begins is not None:
            detail = f"what is shown begins at line {self._line(first)}"
            yield from self._missing("dropped", self._begins, first - 1, detail)
        elif first - 1 not in self._heads and next(self._unclaimed(0, first - 1), None) is not None:
            detail = "what was before is not shown here"
            yield Finding("begins", self._partition, first, first, detail, self._chosen[first])

    def _missing(self, kind: Kind, low: int, high: int, detail: str) -> Iterator[Finding]:
        for start, end in self._unclaimed(low, high):
            yield Finding(kind, self._partition, start, end, detail)

    def _unclaimed(self, low: int, high: int) -> Iterator[tuple[int, int]]:
        """The parts of low…high that no record with a bad signature claims."""
        for index in self._claimed[bisect_left(self._claimed, low) :]:
            if index > high:
                break
            if index > low:
                yield low, index - 1
            low = index + 1
        if low <= high:
            yield low, high

    def _line(self, index: int) -> int:
        return self._chosen[index].line

    def _finding(self, kind: Kind, shown: Shown, detail: str) -> Finding:
        return Finding(kind, self._partition, shown.link.index, shown.link.index, detail, shown)


def _longest_rising(numbers: Sequence[int]) -> list[int]:
    """Positions of a longest strictly rising subsequence."""
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for at, number in enumerate(numbers):
        place = bisect_left(tails, number)
        before.append(ends[place - 1] if place else -1)
        tails[place : place + 1], ends[place : place + 1] = [number], [at]
    kept = []
    at = ends[-1] if ends else -1
    while at >= 0:
        kept.append(at)
        at = before[at]
    return kept[::-1]


def _is_count(value: Any) -> TypeGuard[int]:
    return type(value) is int and value >= 0


def _is_address(value: Any) -> bool:
    return isinstance(value, str) and _ADDRESS.fullmatch(value) is not None
