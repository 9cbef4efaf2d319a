"""The controls of one key, so kept that asking and forgetting cost what is found, and not what is held (section 7)."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from typing import Any, Final

from xapp.control_orders import Column, Leases, remove
from xapp.controls import (
    Element,
    Granted,
    action_order,
    control_order,
    covers,
    lease_active,
    may_move,
    pending,
    repeated,
    unanswered,
)
from xapp.model import AppliedControl

_NEVER: Final = -1


class ControlRow:
    """The controls held of one key. `history_ms`: for how long one may still be answered, or counts in a budget."""

    def __init__(self, history_ms: int) -> None:
        self.held: dict[str, AppliedControl] = {}
        self._history_ms = history_ms
        self._named: dict[str, dict[str, None]] = {}  # a proposal → decision ids of its controls
        self._naming: dict[str, dict[str, None]] = {}  # a proposal → decision ids of those that say they repeat it
        # Of those that are not refused:
        self._columns: dict[Element, Column] = {}
        self._acknowledged: list[Granted] = []
        self._leases = Leases()
        self._movers = Column()  # those that may move the key
        self._changes = Column()  # those that repeat nothing
        self._founders: dict[str, list[Granted]] = {}  # a proposal → those of them that name it
        self._placed: dict[str, tuple[bool, bool]] = {}  # decision id → whether it may move, whether it repeats
        # Of all, where they are looked for when some are to be forgotten; each is in one of the three:
        self._bound: list[tuple[int, str]] = []  # (until when it is needed whatever comes after it, decision id)
        self._bound_until: dict[str, int] = {}
        self._awaiting: list[Granted] = []  # repetitions that count from an acknowledgement on
        self._loose: dict[str, None] = {}

    # Facts.

    def put(self, control: AppliedControl) -> None:
        """Enter a control that is not held."""
        self._enter(control)
        self._judge_again(control.proposal_id)

    def take(self, control: AppliedControl) -> None:
        """Take out one that is held."""
        self._leave(control)
        self._judge_again(control.proposal_id)

    def replace(self, before: AppliedControl, after: AppliedControl) -> None:
        """Enter what became of one that is held."""
        self._leave(before)
        self._enter(after)
        if unanswered(before) != unanswered(after) or (before.outcome == "refused") != (after.outcome == "refused"):
            self._judge_again(after.proposal_id)

    def _enter(self, control: AppliedControl) -> None:
        decision_id = control.decision_id
        self.held[decision_id] = control
        self._named.setdefault(control.proposal_id, {})[decision_id] = None
        if control.merged_with is not None:
            self._naming.setdefault(control.merged_with, {})[decision_id] = None
        until = self._bound_until[decision_id] = self._needed_until_ms(control)
        insort(self._bound, (until, decision_id))
        if control.outcome != "refused":
            for element in covers(control):
                self._columns.setdefault(element, Column()).put(control)
            if control.acknowledged:
                insort(self._acknowledged, control_order(control))
            if control.lease_until_ms is not None:
                self._leases.put(control)
            self._judge(control)

    def _leave(self, control: AppliedControl) -> None:
        decision_id = control.decision_id
        del self.held[decision_id]
        _discard(self._named, control.proposal_id, decision_id)
        if control.merged_with is not None:
            _discard(self._naming, control.merged_with, decision_id)
        until = self._bound_until.pop(decision_id, None)
        if until is not None:
            remove(self._bound, (until, decision_id))
        elif decision_id in self._loose:
            del self._loose[decision_id]
        else:
            remove(self._awaiting, control_order(control))
        if control.outcome != "refused":
            for element in covers(control):
                column = self._columns[element]
                column.take(control)
                if not column:
                    del self._columns[element]
            if control.acknowledged:
                remove(self._acknowledged, control_order(control))
            if control.lease_until_ms is not None:
                self._leases.take(control)
            self._unjudge(control)

    # What repeats what. It depends on what became of the controls that are named.

    def _judge_again(self, proposal_id: str) -> None:
        """After a change among the controls of a proposal: those that say they repeat it."""
        for decision_id in self._naming.get(proposal_id, ()):
            control = self.held[decision_id]
            if control.outcome != "refused":
                self._unjudge(control)
                self._judge(control)

    def _judge(self, control: AppliedControl) -> None:
        merged_with = control.merged_with
        before: tuple[AppliedControl, ...] = ()
        if merged_with is not None:
            before = repeated(control, [self.held[i] for i in self._named.get(merged_with, ())])
        moves = may_move(control, {control.decision_id: before} if before else {})
        self._placed[control.decision_id] = moves, bool(before)
        if moves:
            self._movers.put(control)
        if not before:
            self._changes.put(control)
            if merged_with:
                insort(self._founders.setdefault(merged_with, []), control_order(control))

    def _unjudge(self, control: AppliedControl) -> None:
        moves, repeats = self._placed.pop(control.decision_id)
        if moves:
            self._movers.take(control)
        if not repeats:
            self._changes.take(control)
            if control.merged_with:
                founders = self._founders[control.merged_with]
                remove(founders, control_order(control))
                if not founders:
                    del self._founders[control.merged_with]

    # Questions.

    def leased(self, t_ms: int) -> list[AppliedControl]:
        """The leases that are active at t."""
        return [self.held[decision_id] for decision_id in self._leases.active(t_ms)]

    def count_leased(self, t_ms: int) -> int:
        """How many leases are active at t."""
        return self._leases.count_active(t_ms)

    def needed(self, t_ms: int, horizon_ms: int) -> list[AppliedControl]:
        """What a decision at t can depend on, whose budget counts changes after the horizon.

        Of each value, what the network may have. The changes after the horizon, and those that acted since the last
        that counts as applied. The leases; one that a later one repeats to the letter adds nothing. And all that
        decides what those repeat, and that bounds it.
        """
        found = {*self._leases.distinct(t_ms, self.held)}
        for column in self._columns.values():
            found.update(column.in_place())
        found.update(self._movers.acted_since(self._changes.last_acted()))
        found.update(self._movers.granted_after(horizon_ms))
        todo = {self.held[i].merged_with for i in found}
        done: set[str | None] = {None}
        while todo := todo - done:
            more = [i for name in todo if name is not None for i in self._deciding(name)]
            found.update(more)
            done |= todo
            todo = {self.held[i].merged_with for i in more}
        return [self.held[i] for i in found]

    def _deciding(self, proposal_id: str) -> Iterator[str]:
        """The controls of a proposal, and which of those that name it stands in where they are refused or unknown."""
        yield from self._named.get(proposal_id, ())
        if proposal_id in self._founders:
            yield self._founders[proposal_id][0][-1]

    # Forgetting.

    def busy(self, t_ms: int) -> bool:
        """Whether any of them was granted within the history before t, or is bound then, whatever came after it."""
        horizon_ms = t_ms - self._history_ms
        return any(c.granted_at_ms > horizon_ms or self._bound_at(c, t_ms) for c in self.held.values())

    def forgettable(self, t_ms: int, newest: str = "") -> list[AppliedControl]:
        """What no decision from t on can depend on, the latest first; `newest` has just been granted.

        As `needed`, but what was granted within the history may still be refused, and counts as applied only once it
        is acknowledged; and what may still be answered, or is watched, is needed too. Looks only at those which no
        clock binds any more. One that is alone stays.
        """
        if len(self.held) < 2:
            return []
        horizon_ms = t_ms - self._history_ms
        gone = {
            decision_id: None
            for decision_id in self._suspects(t_ms, horizon_ms)
            if decision_id != newest and not self._needed_from(self.held[decision_id], t_ms, horizon_ms)
        }
        todo = [*gone]
        while todo:
            asked_for = [decision_id for decision_id in todo if self._decides(decision_id, gone)]
            for decision_id in asked_for:
                del gone[decision_id]
            todo = [*gone] if asked_for else []
        return sorted((self.held[decision_id] for decision_id in gone), key=control_order, reverse=True)

    def _needed_until_ms(self, control: AppliedControl) -> int:
        """Until when it is needed whatever comes after it, by what is known of it alone."""
        if control.outcome == "refused":
            return _NEVER
        ends = [control.lease_until_ms]
        if control.merged_with is None:
            ends.append(control.granted_at_ms + self._history_ms - 1)
        if unanswered(control):
            ends.append(max(control.granted_at_ms, control.ack_until_ms or 0) + self._history_ms - 1)
        if control.outcome == "granted":
            ends.append(control.ack_until_ms)
        if control.outcome == "applied":
            ends.append(control.effect_until_ms)
        return max((end for end in ends if end is not None), default=_NEVER)

    def _suspects(self, t_ms: int, horizon_ms: int) -> Iterable[str]:
        """Decision ids of those that may be forgotten at t."""
        unbound = self._bound[: bisect_left(self._bound, (t_ms,))]
        del self._bound[: len(unbound)]
        for _, decision_id in unbound:
            control = self.held[decision_id]
            del self._bound_until[decision_id]
            plain = not control.acknowledged and control.outcome == "granted" and not unanswered(control)
            if plain and control.merged_with is not None and covers(control):
                insort(self._awaiting, control_order(control))
            else:
                self._loose[decision_id] = None
        start: tuple[Any, ...] = (horizon_ms + 1,)
        if self._acknowledged:
            start = max(start, self._acknowledged[-1])
        return [*self._loose, *(place[-1] for place in self._awaiting[: bisect_left(self._awaiting, start)])]

    def _bound_at(self, control: AppliedControl, t_ms: int) -> bool:
        """Whether a control counts from t on, is watched, or may still be answered, whatever came after it."""
        if unanswered(control) and max(control.granted_at_ms, control.ack_until_ms or 0) > t_ms - self._history_ms:
            return True
        watched = control.outcome == "applied" and (control.effect_until_ms or 0) >= t_ms
        return watched or lease_active(control, t_ms) or pending(control, t_ms)

    def _needed_from(self, control: AppliedControl, t_ms: int, horizon_ms: int) -> bool:
        """Whether decisions from t on can depend on it, but for what others repeat."""
        if self._bound_at(control, t_ms):
            return True
        if control.outcome == "refused":
            return False
        acted, granted = action_order(control), control_order(control)
        if self._placed[control.decision_id][0]:
            moved = self._changes.last_acted(horizon_ms)
            if control.granted_at_ms > horizon_ms or moved is None or moved <= acted:
                return True
        counts = control.acknowledged or (not unanswered(control) and control.granted_at_ms <= horizon_ms)
        for element in covers(control):
            column = self._columns[element]
            last_acted, last_granted = column.last_acted(horizon_ms), column.last_granted(horizon_ms)
            if last_acted is None or last_granted is None or last_acted <= acted:
                return True
            if not counts and last_granted < granted:
                return True
        return False

    def _decides(self, decision_id: str, gone: dict[str, None]) -> bool:
        """Whether it decides what a control repeats that is not `gone`."""
        control = self.held[decision_id]
        names = [control.proposal_id]
        if control.merged_with in self._founders and self._founders[control.merged_with][0][-1] == decision_id:
            names.append(control.merged_with)
        return any(other not in gone for name in names for other in self._naming.get(name, ()))


def _discard(mapping: dict[str, dict[str, None]], name: str, decision_id: str) -> None:
    del mapping[name][decision_id]
    if not mapping[name]:
        del mapping[name]
