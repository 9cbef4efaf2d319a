"""Controls of one key in the orders in which a decision looks for them: what it needs lies at an end of each."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Mapping
from typing import Any

from xapp.controls import Acted, Granted, action_order, control_order, unanswered
from xapp.model import AppliedControl


class Column:
    """Controls, none of them refused, by what is known of them: each a row in its order, oldest first.

    One that nobody acknowledged acted when it was granted, so that only those acknowledged have two orders.
    """

    __slots__ = ("_acted", "_granted", "_plain", "_unanswered")

    def __init__(self) -> None:
        self._plain: list[Acted] = []  # no acknowledgement is due, and none came
        self._unanswered: list[Acted] = []
        self._acted: list[Acted] = []  # acknowledged
        self._granted: list[Granted] = []  # the same, as they were granted

    def __bool__(self) -> bool:
        return bool(self._plain or self._unanswered or self._acted)

    def put(self, control: AppliedControl) -> None:
        if control.acknowledged:
            insort(self._granted, control_order(control))
        insort(self._row(control), action_order(control))

    def take(self, control: AppliedControl) -> None:
        if control.acknowledged:
            remove(self._granted, control_order(control))
        remove(self._row(control), action_order(control))

    def _row(self, control: AppliedControl) -> list[Acted]:
        if control.acknowledged:
            return self._acted
        return self._unanswered if unanswered(control) else self._plain

    def last_acted(self, horizon_ms: int | None = None) -> Acted | None:
        """The last, as they acted, of those that count as applied: the acknowledged ones, and of which no
        acknowledgement is due; of these, with a horizon, only those granted until then.
        """
        plain = self._last_plain(horizon_ms)
        acted = self._acted[-1] if self._acted else None
        return acted if plain is None or (acted is not None and acted > plain) else plain

    def last_granted(self, horizon_ms: int | None = None) -> Granted | None:
        """The same, as they were granted."""
        plain = self._last_plain(horizon_ms)
        granted = self._granted[-1] if self._granted else None
        return granted if plain is None or (granted is not None and granted > plain[1:]) else plain[1:]

    def _last_plain(self, horizon_ms: int | None) -> Acted | None:
        end = len(self._plain) if horizon_ms is None else bisect_left(self._plain, (horizon_ms + 1,))
        return self._plain[end - 1] if end else None

    def in_place(self) -> Iterator[str]:
        """Decision ids of what the network may have: the last that counts, and what nobody answered that acted or was
        granted after those that count.
        """
        acted, granted = self.last_acted(), self.last_granted()
        start = 0
        if acted is not None and granted is not None:
            yield acted[-1]
            start = bisect_right(self._unanswered, min(acted, (granted[0], *granted)))
        for place in self._unanswered[start:]:
            yield place[-1]

    def acted_since(self, place: Acted | None) -> Iterator[str]:
        """Decision ids from a place on, as they acted."""
        for row in (self._plain, self._unanswered, self._acted):
            for other in row[0 if place is None else bisect_left(row, place) :]:
                yield other[-1]

    def granted_after(self, t_ms: int) -> Iterator[str]:
        """Decision ids of those granted after t."""
        for row in (self._plain, self._unanswered, self._granted):
            for place in row[bisect_left(row, (t_ms + 1,)) :]:
                yield place[-1]


class Leases:
    """The leases of one key, none of them refused: by their ends, and by what they hold."""

    __slots__ = ("_alike", "_count", "_ends", "_last_ends")

    def __init__(self) -> None:
        self._ends: list[tuple[int, str]] = []
        self._alike: dict[Any, _Alike] = {}
        self._last_ends: list[tuple[int, int, _Alike]] = []  # of each of `_alike`; its number keeps them apart
        self._count = 0

    def put(self, control: AppliedControl) -> None:
        insort(self._ends, (_end(control), control.decision_id))
        likeness = _likeness(control)
        alike = self._alike.get(likeness)
        if alike is None:
            self._count += 1
            alike = self._alike[likeness] = _Alike(self._count)
        else:
            remove(self._last_ends, alike.last_end())
        alike.put(control)
        insort(self._last_ends, alike.last_end())

    def take(self, control: AppliedControl) -> None:
        remove(self._ends, (_end(control), control.decision_id))
        likeness = _likeness(control)
        alike = self._alike[likeness]
        remove(self._last_ends, alike.last_end())
        alike.take(control)
        if alike.acted:
            insort(self._last_ends, alike.last_end())
        else:
            del self._alike[likeness]

    def active(self, t_ms: int) -> list[str]:
        """Decision ids of those active at t."""
        return [decision_id for _, decision_id in self._ends[bisect_left(self._ends, (t_ms,)) :]]

    def count_active(self, t_ms: int) -> int:
        """How many are active at t."""
        return len(self._ends) - bisect_left(self._ends, (t_ms,))

    def distinct(self, t_ms: int, held: Mapping[str, AppliedControl]) -> list[str]:
        """Decision ids of those active at t, without what a later one that is given repeats to the letter.

        The last to act first. `held`: the controls by their ids. Of leases alike it looks no further than to one that
        lasts as long as any of them.
        """
        found = []
        repeats: dict[tuple[Any, str], int] = {}  # (what is held, what is repeated) → how long, by those found
        todo = sorted(
            (alike.acted[-1], len(alike.acted) - 1, number, alike)
            for _, number, alike in self._last_ends[bisect_left(self._last_ends, (t_ms,)) :]
        )
        while todo:
            place, index, number, alike = todo.pop()
            control = held[place[-1]]
            end, letter, merged_with = _end(control), _letter(control), control.merged_with
            if end >= t_ms and all(
                repeats.get((letter, name), -1) < end for name in (merged_with, control.proposal_id) if name is not None
            ):
                found.append(control.decision_id)
                if merged_with is not None:
                    repeats[letter, merged_with] = end
            if index and (merged_with is None or repeats.get((letter, merged_with), -1) < alike.ends[-1]):
                insort(todo, (alike.acted[index - 1], index - 1, number, alike))
        return found


class _Alike:
    """Leases that hold the same and repeat the same; one that repeats nothing is like no other."""

    __slots__ = ("acted", "ends", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.acted: list[Acted] = []
        self.ends: list[int] = []

    def put(self, control: AppliedControl) -> None:
        insort(self.acted, action_order(control))
        insort(self.ends, _end(control))

    def take(self, control: AppliedControl) -> None:
        remove(self.acted, action_order(control))
        remove(self.ends, _end(control))

    def last_end(self) -> tuple[int, int, _Alike]:
        return self.ends[-1], self.number, self


def _end(control: AppliedControl) -> int:
    return control.lease_until_ms or 0


def _likeness(control: AppliedControl) -> Any:
    return (_letter(control), control.merged_with) if control.merged_with is not None else control.decision_id


def _letter(control: AppliedControl) -> Any:
    """What a lease holds, so that it can be looked up."""
    return _frozen(control.values), _frozen(control.bindings), control.coupled


def _frozen(value: Any) -> Any:
    return frozenset((name, _frozen(part)) for name, part in value.items()) if isinstance(value, Mapping) else value


def remove(row: list[Any], place: Any) -> None:
    """Take a place out of a row that is in order. Raises ValueError where it is not in it."""
    at = bisect_left(row, place)
    if at == len(row) or row[at] != place:
        raise ValueError(f"{place!r} is not in its row")
    del row[at]
