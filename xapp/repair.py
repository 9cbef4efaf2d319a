"""Dependency-scoped bounded recovery (eq. 7, 8; section 4): the plan is checked, and rebuilt where it may be.

Fields are taken in dependency order. A failed plan field that is `repairable` is recomputed from authorised inputs; the
repair is accepted for its own root when every changed field is valid, `max_repair` holds, and the task verifier V does
not fall. Derived fields are always recomputed: what the proposal says of them is a claim.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from xapp.contract import Contract, Field, Resolution
from xapp.expression import NoValue
from xapp.integrity.conflict import differ, slack
from xapp.integrity.domain import check_domain
from xapp.model import Repair, Violation
from xapp.plan import PlanValue, plan_values

Satisfied = Callable[[Mapping[str, Any]], int]  # values of all fields → how many constraints they satisfy


@dataclass(slots=True)
class Rebuilt:
    """The decision view after repair. `values`: field → value in its unit, where there is one.

    `authorised`: fields that others may be computed from; `unrepaired`: planned fields that could not be recomputed.
    """

    values: dict[str, Any]
    authorised: set[str]
    written: Mapping[str, PlanValue]
    violations: list[Violation] = field(default_factory=list)
    repairs: list[Repair] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)

    def file(self, code: str, name: str, detail: str, *, resolved: bool, blocking: bool = True) -> None:
        self.violations.append(Violation(code, name, None, (), resolved, blocking and not resolved, detail))
        self.failed.add(name)


def rebuild(
    contract: Contract,
    resolution: Resolution,
    plan: Mapping[str, Any],
    observed: Mapping[str, Any],
    used: Mapping[str, tuple[str, ...]],
    satisfied: Satisfied,
) -> Rebuilt:
    """Check a plan against supported evidence, repair what may be repaired, recompute what is derived.

    `observed`: critical field → its supported value; `used`: field → the observations that support it.
    """
    written = plan_values(contract, resolution, plan)
    state = Rebuilt(dict(observed), set(observed), written)
    for name, f in contract.fields.items():
        if f.kind == "planned" and name in written and written[name].value is not None:
            state.values[name] = written[name].value
        if f.kind != "observed" and name in written:
            _note_form(state, f, written[name])
    plain = [name for name, f in contract.fields.items() if f.kind == "planned" and f.expr is None]
    for name in (*plain, *contract.order):
        f = contract.fields[name]
        try:
            if f.kind == "planned":
                _check_planned(state, contract, resolution, f, used, satisfied)
            else:
                _derive(state, contract, resolution, f, used)
        except Exception as error:  # an error inside a check blocks like a failure of that check
            state.file("plan_mismatch", name, f"error inside the check: {error!r}", resolved=False)
    for name, f in contract.fields.items():
        if f.kind == "observed" and name in written:
            try:
                _check_restated(state, f, written[name])
            except Exception as error:  # likewise
                state.file("plan_mismatch", name, f"error inside the check: {error!r}", resolved=False)
    return state


def _note_form(state: Rebuilt, f: Field, written: PlanValue) -> None:
    """A rename and a unit conversion are repairs of their own."""
    if written.value is None:
        return
    if written.name != f.name:
        state.repairs.append(Repair("rename", f.name, written.name, f.name, ()))
        state.failed.add(f.name)
    if written.converted:
        after = {"value": written.value, "unit": f.unit}
        state.repairs.append(Repair("convert_unit", f.name, dict(written.written), after, ()))
        state.failed.add(f.name)


def compute(f: Field, resolution: Resolution, values: Mapping[str, Any]) -> Any:
    """The value of a field's expression, spread over its members where it is a mapping. Raises NoValue."""
    assert f.expr is not None
    value = f.expr.evaluate(values)
    members = resolution.keys.get(f.name)
    if members is None:
        if type(value) is dict and f.kind == "planned":
            raise NoValue(f"{f.expr.text}: gives a value per member for a field that has only one")
        return value
    if type(value) is not dict:
        return dict.fromkeys(members, value)
    if value.keys() != set(members):
        raise NoValue(f"{f.expr.text}: ranges over other members than the field")
    return value


def _check_planned(
    state: Rebuilt, contract: Contract, resolution: Resolution, f: Field, used: Mapping[str, tuple[str, ...]],
    satisfied: Satisfied,
) -> None:  # fmt: skip
    written = state.written.get(f.name)
    code, detail = "incomplete_plan", "is not in the plan"
    if written is not None:
        code, detail = written.fault or "", written.detail
    inputs_ready = f.expr is None or all(name in state.authorised for name in f.expr.names)
    expected: Any = None
    failure = ""
    if f.expr is not None and inputs_ready:
        try:
            expected = compute(f, resolution, state.values)
        except NoValue as error:
            failure = str(error)
    if not inputs_ready and f.repairable:
        return  # its faults follow from its inputs
    if failure:
        state.file("plan_mismatch", f.name, failure, resolved=False)
    if not code and expected is not None and differ(written.value, expected, f, of_expr=True):  # type: ignore[union-attr]
        code, detail = "plan_mismatch", f"{written.value} is not {expected}, which the contract computes"  # type: ignore[union-attr]
    if code:
        refusal = "cannot be recomputed"
        if f.repairable and expected is not None:
            refusal = _recompute(state, contract, resolution, f, expected, used, satisfied)
        if refusal:
            state.file(code, f.name, f"{detail}; {refusal}" if f.repairable else detail, resolved=False)
            return
        state.file(code, f.name, detail, resolved=True)
    if failure:
        return
    outside = check_domain(state.values[f.name], f)
    if outside is not None:
        state.file("constraint", f.name, outside.detail, resolved=False)
    elif inputs_ready:
        state.authorised.add(f.name)


def _recompute(
    state: Rebuilt, contract: Contract, resolution: Resolution, f: Field, expected: Any,
    used: Mapping[str, tuple[str, ...]], satisfied: Satisfied,
) -> str:  # fmt: skip
    """Try the recomputation of one root. Gives why it was rejected, or an empty text where it was accepted."""
    before = state.values.get(f.name)
    if f.max_repair is not None:
        if before is None:
            return "max_repair allows no recomputation of a value that is missing or not comparable"
        if (step := _step(before, expected)) > f.max_repair + slack(f.max_repair, f.max_repair):
            return f"recomputing would move it by {step:g} {f.unit}, more than max_repair {f.max_repair:g}"
    outside = check_domain(expected, f)
    if outside is not None:
        return f"the recomputed value is not valid: {outside.detail}"
    after = {**state.values, f.name: expected}
    was, now = _with_derived(contract, resolution, state.values), _with_derived(contract, resolution, after)
    for name in _descendants(contract, f.name):
        g = contract.fields[name]
        if g.kind != "derived" or g.expr is None or not all(n in now for n in g.expr.names):
            continue
        if name in was and name in now and was[name] == now[name]:
            continue  # not changed by this repair: what is wrong with it, another root may still mend
        if name not in now or check_domain(now[name], g):
            return f"recomputing would leave {name} without a valid value"
    complete = sum(1 for g in contract.fields.values() if g.kind == "planned" and g.name in was)
    completed = sum(1 for g in contract.fields.values() if g.kind == "planned" and g.name in now)
    if satisfied(now) + completed < satisfied(was) + complete:
        return "recomputing would satisfy fewer constraints"
    state.values[f.name] = expected
    claim = state.written.get(f.name)
    claimed = None if claim is None else dict(claim.written)
    support = _support_of(contract, f, used)
    state.repairs.append(Repair("recompute", f.name, claimed, {"value": expected, "unit": f.unit}, support))
    return ""


def _step(before: Any, after: Any) -> float:
    if type(before) is dict:
        return max((_step(before[key], after[key]) for key in before), default=0.0)
    if isinstance(before, (str, bool)):
        return 0.0 if before == after else float("inf")
    return float(abs(after - before))


def _support_of(contract: Contract, f: Field, used: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(i for name in contract.inputs[f.name] for i in used.get(name, ())))


def _with_derived(contract: Contract, resolution: Resolution, values: Mapping[str, Any]) -> dict[str, Any]:
    """All values with the derived ones recomputed from them, where they have one."""
    found = {n: v for n, v in values.items() if contract.fields[n].kind != "derived"}
    for name in contract.order:
        f = contract.fields[name]
        if f.kind == "derived" and f.expr is not None and all(n in found for n in f.expr.names):
            try:
                found[name] = compute(f, resolution, found)
            except NoValue:
                continue
    return found


def _descendants(contract: Contract, root: str) -> tuple[str, ...]:
    return tuple(name for name in closure(contract, {root}) if name != root)


def closure(contract: Contract, roots: set[str]) -> tuple[str, ...]:
    """D = ∪ ({b} ∪ Desc(b)) over the roots (eq. 7), in contract order."""
    reached = set(roots)
    for name in contract.order:
        expr = contract.fields[name].expr
        if expr is not None and any(n in reached for n in expr.names):
            reached.add(name)
    return tuple(name for name in contract.fields if name in reached)


def _derive(
    state: Rebuilt, contract: Contract, resolution: Resolution, f: Field, used: Mapping[str, tuple[str, ...]]
) -> None:
    assert f.expr is not None
    if not all(name in state.values for name in f.expr.names):
        return  # what blocks the input blocks
    try:
        value = compute(f, resolution, state.values)
    except NoValue as error:
        state.file("constraint", f.name, str(error), resolved=False)
        return
    claim = state.written.get(f.name)
    supported = all(name in state.authorised for name in f.expr.names)
    if claim is not None and supported and (claim.value is None or differ(claim.value, value, f, of_expr=True)):
        said = claim.detail if claim.value is None else f"the proposal says {claim.value}, evidence gives {value}"
        if f.max_repair is not None and (claim.value is None or _step(claim.value, value) > f.max_repair):
            state.file(claim.fault or "plan_mismatch", f.name, f"{said}; beyond max_repair", resolved=False)
        else:
            support = _support_of(contract, f, used)
            after = {"value": value, "unit": f.unit}
            state.repairs.append(Repair("recompute", f.name, dict(claim.written), after, support))
            state.file(claim.fault or "plan_mismatch", f.name, said, resolved=True)
    state.values[f.name] = value
    outside = check_domain(value, f)
    if outside is not None:
        state.file("constraint", f.name, outside.detail, resolved=False)
    elif supported:
        state.authorised.add(f.name)


def _check_restated(state: Rebuilt, f: Field, written: PlanValue) -> None:
    """An observed field restated in the plan must agree with its support."""
    if written.fault == "ambiguous_schema":
        state.file("ambiguous_schema", f.name, written.detail, resolved=False, blocking=f.critical)
    elif f.name in state.authorised:
        if written.value is None:
            state.file("plan_mismatch", f.name, f"restated, but {written.detail}", resolved=False)
        elif differ(written.value, state.values[f.name], f):
            detail = f"the plan rests on {written.value}, evidence says {state.values[f.name]}"
            state.file("plan_mismatch", f.name, detail, resolved=False)
