"""Who holds which control, until when, and what became of it (section 7).

`ControlBook` is a fold of two kinds of facts: grants (each the `lease` of an APPLY, in order) and outcomes (in any
order). The same facts give the same book, live, after a restart and in a replay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from xapp.contract import Resolution
from xapp.model import OUTCOMES, AppliedControl
from xapp.times import time_fault

__all__ = [
    "AppliedControl", "ControlBook", "ControlError", "Due", "action_order", "acts_at_ms", "bounds", "control_order",
    "covers", "lease_active", "may_move", "pending", "read_control", "roots", "unanswered",
]  # fmt: skip

_RANK: Final = {outcome: rank for rank, outcome in enumerate(OUTCOMES)}
_WORDS: Final = frozenset(OUTCOMES[1:])
_EXPIRE_AT: Final = 1024
_MISSING: Final = object()

Element = tuple[str, str | None]
"""(planned field, member of its mapping or None): what one value belongs to."""


class ControlError(ValueError):
    """A document that is no control: `path` is the JSON path of the fault."""

    def __init__(self, path: str, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(f"{path}: {reason}")


# What the state of one control means.


def lease_active(control: AppliedControl, t_ms: int) -> bool:
    """Whether it holds its key at t, the end included. One that the network refused holds nothing."""
    return control.lease_until_ms is not None and t_ms <= control.lease_until_ms and control.outcome != "refused"


def pending(control: AppliedControl, t_ms: int) -> bool:
    """Whether its acknowledgement is still awaited at t."""
    return unanswered(control) and control.outcome == "granted" and t_ms <= (control.ack_until_ms or 0)


def unanswered(control: AppliedControl) -> bool:
    """Whether the network's state is unknown: an acknowledgement is due, and none has come."""
    if control.acknowledged or control.outcome == "refused":
        return False
    return control.ack_until_ms is not None or control.outcome == "unacknowledged"


def acts_at_ms(control: AppliedControl) -> int:
    """When it moved the network: as acknowledged, and until then when it was granted."""
    return control.granted_at_ms if control.applied_at_ms is None else control.applied_at_ms


Roots = Mapping[str, tuple[AppliedControl, ...]]
"""Decision id of a control that repeats → those that it repeats. What is not in it changes its key itself."""


def roots(own: Iterable[AppliedControl]) -> Roots:
    """What each control of one key repeats, if that is known and stands.

    One that names nothing known, itself or a later repetition, or what the network refused, repeats nothing: it is a
    change. So the names lead back to a change, whatever they are.
    """
    held = (*own,)
    for control in held:
        if control.merged_with is not None:
            break
    else:
        return {}
    named: dict[str, list[AppliedControl]] = {}
    for control in held:
        named.setdefault(control.proposal_id, []).append(control)
    found = {}
    for control in held:
        if control.merged_with is None:
            continue
        before = [
            c
            for c in named.get(control.merged_with, ())
            if c is not control and (c.merged_with is None or control_order(c) < control_order(control))
        ]
        if before and all(c.outcome != "refused" for c in before):
            found[control.decision_id] = tuple(before)
    return found


def may_move(control: AppliedControl, known: Roots) -> bool:
    """Whether it changes its key, or would if an unanswered control that it repeats was not applied."""
    if control.outcome == "refused":
        return False
    repeated = known.get(control.decision_id) if known else None
    return repeated is None or any(unanswered(c) for c in repeated)


def bounds(control: AppliedControl, own: Iterable[AppliedControl], known: Roots) -> tuple[AppliedControl, ...]:
    """What a repetition of this control must agree with, so that a row of them does not drift; the change first.

    Where what was repeated first is refused or unknown, that is the earliest standing control which named it.
    """
    found: dict[str, AppliedControl] = {}
    todo = [control]
    while todo:
        one = todo.pop()
        if one.decision_id not in known and one.merged_with is not None:
            one = min((c for c in own if _founds(c, known) == one.merged_with), key=control_order)
        if one.decision_id not in found:
            found[one.decision_id] = one
            todo += known.get(one.decision_id, ())
    return tuple(sorted(found.values(), key=lambda c: (c.decision_id in known, control_order(c))))


def _founds(control: AppliedControl, known: Roots) -> str | None:
    """The name of what is refused or unknown, for which a standing control that named it stands in."""
    return None if control.outcome == "refused" or control.decision_id in known else control.merged_with


def covers(control: AppliedControl) -> frozenset[Element]:
    """The values that it sets."""
    found: set[Element] = set()
    for name, entry in control.values.items():
        value = entry["value"]
        found |= {(name, member) for member in value} if isinstance(value, dict) else {(name, None)}
    return frozenset(found)


def control_order(control: AppliedControl) -> tuple[int, str]:
    """The canonical order of controls: as they were granted."""
    return control.granted_at_ms, control.decision_id


def action_order(control: AppliedControl) -> tuple[int, int, str]:
    """The order in which controls moved the network."""
    return acts_at_ms(control), *control_order(control)


# The JSON form.

_KEYS: Final = frozenset(AppliedControl.__dataclass_fields__)
_TEXTS: Final = ("control_key", "decision_id", "proposal_id")


def read_control(item: Any, path: str = "$") -> AppliedControl:
    """A control from its JSON form. Raises ControlError with the place.

    `control_key`, `values`, `granted_at_ms`, and one of `decision_id` and `proposal_id` are required.
    """
    if not isinstance(item, dict):
        raise ControlError(path, "must be an object")
    for key in item:
        if key not in _KEYS:
            raise ControlError(f"{path}.{key}", "unknown key")
    given = {key: value for key, value in item.items() if value is not None or key not in ("decision_id", "bindings")}
    for key in _TEXTS:
        if not isinstance(given.get(key, "-"), str) or not given.get(key, "-"):
            raise ControlError(f"{path}.{key}", "must be a non-empty string")
    if "proposal_id" in given:
        given.setdefault("decision_id", given["proposal_id"])
    elif "decision_id" in given:
        given["proposal_id"] = given["decision_id"]
    for key in (*_TEXTS, "values", "granted_at_ms"):
        if key not in given:
            raise ControlError(f"{path}.{key}", "is required")
    for key in ("proposer", "contract_id"):
        if not isinstance(given.get(key, ""), str):
            raise ControlError(f"{path}.{key}", "must be a string")
    if not isinstance(given.get("merged_with"), (str, type(None))):
        raise ControlError(f"{path}.merged_with", "must be a string or null")
    given.setdefault("outcome", "granted" if given.get("applied_at_ms") is None else "applied")
    if given["outcome"] not in OUTCOMES:
        raise ControlError(f"{path}.outcome", "must be one of " + ", ".join(OUTCOMES))
    _time(given["granted_at_ms"], f"{path}.granted_at_ms")
    for key in ("lease_until_ms", "ack_until_ms", "applied_at_ms"):
        if given.get(key) is not None:
            _time(given[key], f"{path}.{key}")
    if given["outcome"] in ("granted", "unacknowledged", "refused") and given.get("applied_at_ms") is not None:
        raise ControlError(f"{path}.outcome", "is that of a control which was not applied, but it has an applied_at_ms")
    within = given.get("effect_within_ms")
    if within is not None and (isinstance(within, bool) or not isinstance(within, int) or not 0 <= within < 2**53):
        raise ControlError(f"{path}.effect_within_ms", "must be an integer, not negative, or null")
    coupled = given.get("coupled", [])
    if not isinstance(coupled, list) or not all(isinstance(key, str) for key in coupled):
        raise ControlError(f"{path}.coupled", "must be a list of control keys")
    return AppliedControl(
        **{
            **given,
            "values": _values(given["values"], f"{path}.values"),
            "bindings": _bindings(given.get("bindings", {}), f"{path}.bindings"),
            "coupled": tuple(coupled),
        }
    )


def _time(value: Any, path: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ControlError(path, "must be an integer")
    fault = time_fault(value)
    if fault is not None:
        raise ControlError(path, fault)


def _values(items: Any, path: str) -> dict[str, Any]:
    if not isinstance(items, dict):
        raise ControlError(path, "must be an object")
    for name, entry in items.items():
        if not isinstance(entry, dict) or "value" not in entry:
            raise ControlError(f"{path}.{name}", "must be an object with value and unit")
        for key in entry:
            if key not in ("value", "unit"):
                raise ControlError(f"{path}.{name}.{key}", "unknown key")
        if not isinstance(entry.get("unit"), (str, type(None))):
            raise ControlError(f"{path}.{name}.unit", "must be a string")
        value = entry["value"]
        for part in value.values() if isinstance(value, dict) and value else (value,):
            if not isinstance(part, (float, int, str, bool)):
                raise ControlError(
                    f"{path}.{name}.value", "must be a number, a string, a boolean, or a mapping of them"
                )
    return {name: {"value": entry["value"], "unit": entry.get("unit")} for name, entry in items.items()}


def _bindings(items: Any, path: str) -> dict[str, str | tuple[str, ...]]:
    if not isinstance(items, dict):
        raise ControlError(path, "must be an object")
    found: dict[str, str | tuple[str, ...]] = {}
    for name, value in items.items():
        if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
            found[name] = tuple(value)
        elif isinstance(value, str):
            found[name] = value
        else:
            raise ControlError(f"{path}.{name}", "must be a string or a list of strings")
    return found


# The book.


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
        self._keys: dict[str, tuple[AppliedControl, ...]] = {}  # as granted
        self._key_of: dict[str, str] = {}  # decision id → control key
        self._coupled: dict[str, tuple[str, ...]] = {}  # a key → the keys of controls that name it as coupled
        self._watched: dict[str, None] = {}  # decision ids that await an acknowledgement or an effect
        self._expire_at = _EXPIRE_AT
        self._journal: list[tuple[dict[str, Any], str, Any]] = []
        self._mark = 0
        self._expire_at_mark = _EXPIRE_AT

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
        key = control.control_key
        held = (*self._keys.get(key, ()), control)
        self._set(self._key_of, control.decision_id, key)
        self._set(self._keys, key, tuple(sorted(held, key=control_order)))
        for other in control.coupled:
            if key not in self._coupled.get(other, ()):
                self._set(self._coupled, other, (*self._coupled.get(other, ()), key))
        self._watch(control)
        self._forget(key, control.granted_at_ms, control.decision_id)
        if len(self._key_of) > self._expire_at or len(self._keys) > self.key_limit + self.key_limit // 10:
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
        held = self._keys[key]
        index = next(i for i, control in enumerate(held) if control.decision_id == decision_id)
        before = held[index]
        applied_at = before.applied_at_ms
        if kind == "applied":
            applied_at = at_ms if applied_at is None else max(applied_at, at_ms)
        after = replace(before, applied_at_ms=applied_at, outcome=max(before.outcome, kind, key=_RANK.__getitem__))
        if after != before:
            self._set(self._keys, key, (*held[:index], after, *held[index + 1 :]))
            self._watch(after)
        return after

    # Questions.

    def controls_for(self, control_key: str, resolution: Resolution | None, t_ms: int) -> tuple[AppliedControl, ...]:
        """All that a decision at t on this key can depend on, in canonical order: an episode's `controls`.

        Of the key itself: what was last applied, whatever its age, with what may stand in its place; active leases;
        the changes within the budget window. Of coupled keys, whichever side names the other: active leases.
        """
        coupled = () if resolution is None else resolution.coupled
        budget_ms = 0 if resolution is None else resolution.budget_ms
        held = self._keys.get(control_key, ())
        found = _needed(held, t_ms, t_ms - budget_ms) if held else set()
        for other in (*coupled, *self._coupled.get(control_key, ())):
            if other != control_key:
                for control in self._keys.get(other, ()):
                    if lease_active(control, t_ms) and (other in coupled or control_key in control.coupled):
                        found.add(control.decision_id)
        chosen = [c for key in {self._key_of[i] for i in found} for c in self._keys[key] if c.decision_id in found]
        return tuple(sorted(chosen, key=control_order))

    def due(self, t_ms: int) -> Due:
        """What is due at t. Nothing changes by asking: publish it, and note it as an `outcome`."""
        waiting = [self._control(i) for i in self._watched] if self._watched else []
        waiting.sort(key=control_order)
        late = tuple(
            c for c in waiting if c.outcome == "granted" and c.ack_until_ms is not None and c.ack_until_ms < t_ms
        )
        return Due(late, tuple(c for c in waiting if c.outcome == "applied"))

    def controls(self) -> tuple[AppliedControl, ...]:
        """All controls held, in canonical order."""
        return tuple(sorted((c for held in self._keys.values() for c in held), key=control_order))

    def leased(self, t_ms: int) -> int:
        """How many leases are held at t. Costs what is held."""
        return sum(lease_active(control, t_ms) for held in self._keys.values() for control in held)

    # Forgetting, and taking back.

    def expire(self, t_ms: int) -> None:
        """Forget what no decision from t on can depend on, and the keys above the limit. Costs what is held."""
        for key in [*self._keys]:
            self._forget(key, t_ms)
        if len(self._keys) > self.key_limit:
            horizon = t_ms - self.history_ms
            idle = sorted(
                (held[-1].granted_at_ms, key)
                for key, held in self._keys.items()
                if not any(c.granted_at_ms > horizon or _binding(c, t_ms, horizon) for c in held)
            )
            for _, key in idle[: len(self._keys) - self.key_limit + self.key_limit // 10]:
                self._keep(key, ())
        self._expire_at = 2 * len(self._key_of) + _EXPIRE_AT

    def snapshot(self) -> int:
        """A mark to `restore` to, and the end of the mark before it. From the first one on writes are remembered until
        the next.
        """
        self._journal.clear()
        self._mark += 1
        self._expire_at_mark = self._expire_at
        return self._mark

    def restore(self, mark: int) -> None:
        """Undo all since the latest snapshot. Raises ValueError for an older mark."""
        if mark != self._mark:
            raise ValueError("only the latest snapshot can be restored")
        while self._journal:
            mapping, key, before = self._journal.pop()
            if before is _MISSING:
                del mapping[key]
            else:
                mapping[key] = before
        self._expire_at = self._expire_at_mark

    def _set(self, mapping: dict[str, Any], key: str, value: Any) -> None:
        """Every write goes through here, so that it can be undone; a value of `_MISSING` removes."""
        before = mapping.get(key, _MISSING)
        if value is _MISSING:
            if before is _MISSING:
                return
            del mapping[key]
        else:
            mapping[key] = value
        if self._mark:
            self._journal.append((mapping, key, before))

    def _control(self, decision_id: str) -> AppliedControl:
        return next(c for c in self._keys[self._key_of[decision_id]] if c.decision_id == decision_id)

    def _watch(self, control: AppliedControl) -> None:
        awaited = (control.outcome == "granted" and control.ack_until_ms is not None) or (
            control.outcome == "applied" and control.effect_within_ms is not None
        )
        if awaited != (control.decision_id in self._watched):
            self._set(self._watched, control.decision_id, None if awaited else _MISSING)

    def _forget(self, key: str, t_ms: int, newest: str = "") -> None:
        """Let go of controls of one key that no decision from t on can depend on; `newest` has just been granted."""
        held = self._keys[key]
        if len(held) < 2:
            return
        horizon = t_ms - self.history_ms
        needed = _needed(held, t_ms, horizon, newest)
        kept = tuple(c for c in held if c.decision_id in needed)
        if len(kept) < len(held):
            self._keep(key, kept)

    def _keep(self, key: str, kept: tuple[AppliedControl, ...]) -> None:
        held = self._keys[key]
        ids = {c.decision_id for c in kept}
        for control in held:
            if control.decision_id not in ids:
                self._set(self._key_of, control.decision_id, _MISSING)
                self._set(self._watched, control.decision_id, _MISSING)
        still = {other for control in kept for other in control.coupled}
        for other in {other for control in held for other in control.coupled} - still:
            left = tuple(k for k in self._coupled.get(other, ()) if k != key)
            self._set(self._coupled, other, left or _MISSING)
        self._set(self._keys, key, kept or _MISSING)


def _binding(control: AppliedControl, t_ms: int, horizon_ms: int) -> bool:
    """Whether a control counts from t on, is watched, or may still be answered, whatever came after it."""
    if unanswered(control) and max(control.granted_at_ms, control.ack_until_ms or 0) > horizon_ms:
        return True
    watched = control.outcome == "applied" and (control.effect_until_ms or 0) >= t_ms
    return watched or lease_active(control, t_ms) or pending(control, t_ms)


def _needed(held: tuple[AppliedControl, ...], t_ms: int, horizon_ms: int, newest: str | None = None) -> set[str]:
    """Decision ids of the controls of one key that a decision at t can depend on, by what came after them.

    Newest action first: each until all that it sets has been set anew by one that counts as applied; one that nobody
    answered until one granted after it was applied. A lease that a newer one repeats to the letter adds nothing. With
    `newest`, which has just been granted, those that a decision after t can depend on: what was granted lately may
    still be refused, and counts as applied only once it is acknowledged.
    """
    forgetting = newest is not None
    if len(held) == 1:
        return set() if held[0].outcome == "refused" and not forgetting else {held[0].decision_id}
    known = roots(held)
    found: set[str] = set()
    standing = [
        (
            control,
            covers(control),
            not unanswered(control) and (not forgetting or control.acknowledged or control.granted_at_ms <= horizon_ms),
        )
        for control in held
        if control.outcome != "refused"
    ]
    shown: dict[Element, tuple[int, str]] = {}
    if not all(counts for _, _, counts in standing):
        shown = {element: control_order(c) for c, elements, counts in standing if counts for element in elements}
    settled: set[Element] = set()
    leases: list[AppliedControl] = []
    moved = False
    for control, elements, counts in sorted(standing, key=lambda item: action_order(item[0]), reverse=True):
        leased = lease_active(control, t_ms) and not any(_repeats(other, control) for other in leases)
        if leased:
            leases.append(control)
        if (
            leased
            or not elements <= settled
            or ((not moved or control.granted_at_ms > horizon_ms) and may_move(control, known))
            or (not counts and any(e not in shown or shown[e] < control_order(control) for e in elements))
        ):
            found.add(control.decision_id)
        if counts:
            settled |= elements
            moved = moved or control.decision_id not in known
    if newest is not None:
        found.add(newest)
        found |= {c.decision_id for c in held if c.decision_id not in found and _binding(c, t_ms, horizon_ms)}
    return _with_roots(held, found, known)


def _with_roots(held: tuple[AppliedControl, ...], found: set[str], known: Roots) -> set[str]:
    """`found` with all that decides what those repeat, and that bounds it."""
    if all(c.merged_with is None for c in held):
        return found
    todo: set[str | None] = {c.merged_with for c in held if c.decision_id in found}
    standins = {c.merged_with: c for c in reversed(held) if c.merged_with is not None and _founds(c, known)}
    done: set[str | None] = {None}
    while todo := todo - done:
        more = [c for c in held if c.proposal_id in todo] + [standins[name] for name in todo if name in standins]
        found |= {c.decision_id for c in more}
        done |= todo
        todo = {c.merged_with for c in more}
    return found


def _repeats(later: AppliedControl, control: AppliedControl) -> bool:
    """Whether a later lease holds all that this one holds, and repeats it or the same."""
    return (
        later.merged_with in (control.merged_with, control.proposal_id)
        and later.merged_with is not None
        and (later.values, later.bindings, later.coupled) == (control.values, control.bindings, control.coupled)
        and (later.lease_until_ms or 0) >= (control.lease_until_ms or 0)
    )  # fmt: skip
