"""Who holds which control, until when, and what became of it (section 7).

`ControlBook` is a fold of two kinds of facts: grants (each the `lease` of an APPLY, in order) and outcomes (in any
order). The same facts give the same book, live, after a restart and in a replay.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

from xapp.contract import Resolution
from xapp.control_rows import ControlRow
from xapp.controls import control_order
from xapp.model import OUTCOMES, AppliedControl
from xapp.times import time_fault

_RANK: Final = {outcome: rank for rank, outcome in enumerate(OUTCOMES)}
_WORDS: Final = frozenset(OUTCOMES[1:])
_EXPIRE_AT: Final = 1024


class Due(NamedTuple):
    """What time brings about: `unacknowledged`: controls whose acknowledgement is overdue, and not yet noted as such;
    `effects`: acknowledged ones whose effect awaits a judgement. Both by decision, oldest grant first.
    """

    unacknowledged: tuple[AppliedControl, ...]
    effects: tuple[AppliedControl, ...]


class ControlBook:
    """The controls of one region: what is leased, what was last applied, what is watched.

    `history_ms`: how long a change is remembered, at least the longest budget window of any contract; `answer_ms`: and
    at least as long as the network may take to say what became of it; `key_limit`: how many idle keys keep what was
    last applied to them (those granted longest ago go first, a tenth at a time).
    """

    def __init__(self, *, history_ms: int = 3_600_000, answer_ms: int = 60_000, key_limit: int = 10_000) -> None:
        if min(history_ms, answer_ms) < 0 or key_limit < 1:
            raise ValueError("history_ms and answer_ms must not be negative, key_limit must be at least 1")
        self.history_ms = max(history_ms, answer_ms)
        self.key_limit = key_limit
        self._rows: dict[str, ControlRow] = {}
        self._key_of: dict[str, str] = {}  # decision id → control key
        self._coupled: dict[str, dict[str, int]] = {}  # a key → those of controls that name it as coupled, how often
        self._watched: dict[str, None] = {}  # decision ids that await an acknowledgement or an effect
        self._expire_at = _EXPIRE_AT  # controls above which all are looked at, and keys
        self._expire_at_keys = key_limit + key_limit // 10
        self._journal: list[tuple[AppliedControl | None, AppliedControl | None]] = []  # (before, after)
        self._mark = 0
        self._expire_at_mark = self._expire_at, self._expire_at_keys

    def __len__(self) -> int:
        """Controls held."""
        return len(self._key_of)

    @property
    def watching(self) -> bool:
        """Whether any control awaits an acknowledgement or an effect: `due` may then find some."""
        return bool(self._watched)

    # Facts.

    def grant(self, control: AppliedControl) -> bool:
        """Enter a control that was released. False where it is known already."""
        if control.decision_id in self._key_of:
            return False
        self._change(None, control)
        self._forget(control.control_key, control.granted_at_ms, control.decision_id)
        if len(self._key_of) > self._expire_at or len(self._rows) > self._expire_at_keys:
            self.expire(control.granted_at_ms)
        return True

    def outcome(self, decision_id: str, kind: str, at_ms: int) -> AppliedControl | None:
        """Note what became of a control: `applied`, `refused`, `effect`, `no_effect` or `unacknowledged`, at `at_ms`.

        Gives the control as it stands then; None where it is not held. Repeats change nothing, and the order in which
        outcomes are heard does not matter: effect over no_effect over applied over refused over unacknowledged; of
        several acknowledgements the latest time counts. Raises ValueError for another kind, or what is no time in ms.
        """
        if kind not in _WORDS:
            raise ValueError(f"{kind!r} is no outcome")
        if fault := time_fault(at_ms):
            raise ValueError(fault)
        key = self._key_of.get(decision_id)
        if key is None:
            return None
        before = self._rows[key].held[decision_id]
        applied_at = before.applied_at_ms
        if kind == "applied":
            applied_at = at_ms if applied_at is None else max(applied_at, at_ms)
        after = replace(before, applied_at_ms=applied_at, outcome=max(before.outcome, kind, key=_RANK.__getitem__))
        if after != before:
            self._change(before, after)
        return after

    # Questions.

    def controls_for(self, control_key: str, resolution: Resolution | None, t_ms: int) -> tuple[AppliedControl, ...]:
        """All that a decision at t on this key can depend on, in canonical order: an episode's `controls`.

        Of the key itself: what was last applied, whatever its age, with what may stand in its place; active leases;
        the changes within the budget window. Of coupled keys, whichever side names the other: active leases.
        """
        coupled = () if resolution is None else resolution.coupled
        budget_ms = 0 if resolution is None else resolution.budget_ms
        row = self._rows.get(control_key)
        found = [] if row is None else row.needed(t_ms, t_ms - budget_ms)
        for other in {*coupled, *self._coupled.get(control_key, ())} - {control_key}:
            row = self._rows.get(other)
            for control in () if row is None else row.leased(t_ms):
                if other in coupled or control_key in control.coupled:
                    found.append(control)
        return tuple(sorted(found, key=control_order))

    def due(self, t_ms: int) -> Due:
        """What is due at t. Nothing changes by asking: publish it, and note it as an `outcome`."""
        waiting = [self._rows[self._key_of[i]].held[i] for i in self._watched]
        late = (c for c in waiting if c.outcome == "granted" and c.ack_until_ms is not None and c.ack_until_ms < t_ms)
        applied = (c for c in waiting if c.outcome == "applied")
        return Due(tuple(sorted(late, key=control_order)), tuple(sorted(applied, key=control_order)))

    def controls(self) -> tuple[AppliedControl, ...]:
        """All controls held, in canonical order."""
        return tuple(sorted((c for row in self._rows.values() for c in row.held.values()), key=control_order))

    def leased(self, t_ms: int) -> int:
        """How many leases are held at t. Costs the number of keys."""
        return sum(row.count_leased(t_ms) for row in self._rows.values())

    # Forgetting, and taking back.

    def expire(self, t_ms: int) -> None:
        """Forget what no decision from t on can depend on, and the keys above the limit. Costs what is held."""
        for key in [*self._rows]:
            self._forget(key, t_ms)
        if len(self._rows) > self.key_limit:
            idle = sorted(
                (max(c.granted_at_ms for c in row.held.values()), key)
                for key, row in self._rows.items()
                if not row.busy(t_ms)
            )
            for _, key in idle[: len(self._rows) - self.key_limit + self.key_limit // 10]:
                for control in [*self._rows[key].held.values()]:
                    self._change(control, None)
        self._expire_at = 2 * len(self._key_of) + _EXPIRE_AT
        left = max(self.key_limit, len(self._rows))  # more than the limit, where so many are busy
        self._expire_at_keys = left + left // 10

    def snapshot(self) -> int:
        """A mark to `restore` to, and the end of the mark before it. From the first one on writes are remembered until
        the next.
        """
        self._journal.clear()
        self._mark += 1
        self._expire_at_mark = self._expire_at, self._expire_at_keys
        return self._mark

    def restore(self, mark: int) -> None:
        """Undo all since the latest snapshot. Raises ValueError for an older mark."""
        if mark != self._mark:
            raise ValueError("only the latest snapshot can be restored")
        while self._journal:
            before, after = self._journal.pop()
            self._enter(after, before)
        self._expire_at, self._expire_at_keys = self._expire_at_mark

    def _change(self, before: AppliedControl | None, after: AppliedControl | None) -> None:
        """Every change goes through here, so that it can be undone: one control as it was held, and as it is now."""
        self._enter(before, after)
        if self._mark:
            self._journal.append((before, after))

    def _enter(self, before: AppliedControl | None, after: AppliedControl | None) -> None:
        if before is not None and after is not None:
            self._rows[before.control_key].replace(before, after)
        elif after is not None:
            self._key_of[after.decision_id] = after.control_key
            if after.control_key not in self._rows:
                self._rows[after.control_key] = ControlRow(self.history_ms)
            self._rows[after.control_key].put(after)
            self._couple(after, 1)
        elif before is not None:
            del self._key_of[before.decision_id]
            self._watched.pop(before.decision_id, None)
            self._couple(before, -1)
            row = self._rows[before.control_key]
            row.take(before)
            if not row.held:
                del self._rows[before.control_key]
        if after is not None:
            self._watch(after)

    def _couple(self, control: AppliedControl, more: int) -> None:
        for other in control.coupled:
            keys = self._coupled.setdefault(other, {})
            keys[control.control_key] = keys.get(control.control_key, 0) + more
            if not keys[control.control_key]:
                del keys[control.control_key]
            if not keys:
                del self._coupled[other]

    def _watch(self, control: AppliedControl) -> None:
        awaited = (control.outcome == "granted" and control.ack_until_ms is not None) or (
            control.outcome == "applied" and control.effect_within_ms is not None
        )
        if awaited:
            self._watched[control.decision_id] = None
        else:
            self._watched.pop(control.decision_id, None)

    def _forget(self, key: str, t_ms: int, newest: str = "") -> None:
        """Let go of controls of one key that no decision from t on can depend on; `newest` has just been granted."""
        for control in self._rows[key].forgettable(t_ms, newest):
            self._change(control, None)
