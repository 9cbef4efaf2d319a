"""Tools that workflows use: a read-out of the ledger, formula lookup and calculator, and the nominal answer of a task.

A tool does not check evidence. It reads what a ledger holds under a field's names, whatever its age or source, and
computes with it; whether that may be relied on is not its question.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import orjson

from simulators.optbench.base.lookup import Lookup, compute, look_up
from simulators.optbench.base.rules import SLICES
from xapp.contract import Contract, Field, normalise
from xapp.contract_loading import load_contract
from xapp.expression import NoValue
from xapp.plan import convert, of_type, unit_fault

Observed = Mapping[str, Any]
"""An observation as an episode document holds it."""

_LOOKUP: Final = "tool:formula-lookup"
_CALCULATOR: Final = "tool:calculator"
_CHANNEL: Final = "tool:channel"


def contract_of(episode: Mapping[str, Any]) -> Contract:
    """The contract that an episode document carries. Raises ContractError for one that must not be loaded."""
    return _loaded(orjson.dumps(episode["contract"]))


@lru_cache(maxsize=1024)
def _loaded(document: bytes) -> Contract:
    return load_contract(orjson.loads(document))


def observed_by(contract: Contract, name: str) -> tuple[str, ...]:
    """The observed fields that an observation of this name is bound to, in contract order."""
    return tuple(f for f in contract.by_name.get(normalise(name), ()) if contract.fields[f].kind == "observed")


def read_out(contract: Contract, observations: Iterable[Observed]) -> dict[str, Observed]:
    """Observed field → the newest observation that gives it a value, by any of its names.

    Live before memory; one that may mean another field as well only where no other is there, and for one field only; on
    ties the first source in contract order, then the latest arrival. Fields that nothing gives a value are left out.
    """
    bound: dict[str, list[tuple[tuple[Any, ...], Observed]]] = {}
    for o in observations:
        if o["value"] is None or o.get("quality", "good") != "good":
            continue
        fields = observed_by(contract, o["name"])
        for name in fields:
            sources = contract.fields[name].sources
            place = sources.index(o["source"]) if o["source"] in sources else len(sources)
            live, alone = o.get("origin", "live") != "memory", len(fields) == 1
            rank = (live, alone, o["event_time_ms"], -place, o["ingest_time_ms"], o["id"])
            bound.setdefault(name, []).append((rank, o))
    found: dict[str, Observed] = {}
    taken: set[str] = set()
    for name in contract.fields:
        left = [entry for entry in bound.get(name, ()) if entry[1]["id"] not in taken]
        if left:
            found[name] = max(left, key=lambda entry: entry[0])[1]
            taken.add(found[name]["id"])
    return found


def value_of(observation: Observed, field: Field) -> Any:
    """Its value in the field's unit; as exposed, where its unit does not convert."""
    value, unit = observation["value"], observation.get("unit") or None
    if field.type != "number" or not of_type(value, "number") or unit_fault(unit, field.unit)[0] is not None:
        return value
    try:
        return convert(value, unit, field.unit)
    except (ArithmeticError, ValueError):
        return value


def calculate(contract: Contract, values: Mapping[str, Any]) -> dict[str, Any]:
    """`values`, and every other planned and derived field that the contract's expressions give from them."""
    found = dict(values)
    for name in contract.order:
        expr = contract.fields[name].expr
        if expr is not None and name not in found and all(n in found for n in expr.names):
            with suppress(NoValue):
                found[name] = expr.evaluate(found)
    return found


@dataclass(frozen=True, slots=True)
class Working:
    """What the calculator made of a ledger, whatever that is worth.

    `read`: field → the observation read out; `values`: field → value in its unit, planned and derived fields and a
    formula's result computed from the read-out; `inputs`: computed field → the fields read for it; `formula`: its name,
    where the lookup knows the question.
    """

    contract: Contract
    read: Mapping[str, Observed]
    values: Mapping[str, Any]
    inputs: Mapping[str, tuple[str, ...]]
    formula: str | None


def work_out(view: Mapping[str, Any]) -> Working:
    """Compute from the read-out all that the contract's expressions and the question's formula give."""
    episode = view["episode"]
    contract = contract_of(episode)
    read = read_out(contract, episode["observations"])
    values = {name: value_of(o, contract.fields[name]) for name, o in read.items()}
    inputs: dict[str, tuple[str, ...]] = {}
    found = _found(view["task"])
    if found is not None:
        given = {name: values[name] for name in found.parameters if of_type(values.get(name), "number")}
        result = compute(found.formula, {**found.parameters, **given})
        values.pop("result", None)
        if result is not None:
            values["result"], inputs["result"] = result, tuple(given)
    computed = calculate(contract, values)
    for name, f in contract.fields.items():
        if f.kind != "observed" and name in computed:
            inputs[name] = tuple(dict.fromkeys(n for i in contract.inputs[name] for n in inputs.get(i, (i,))))
    return Working(contract, read, computed, inputs, None if found is None else found.formula.name)


def consult(view: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """What the tools say of an episode, as live observations of `tool:…` sources, named t1, t2, …

    The channel as the ledger exposes it (under the field's name, value and unit raw); the formula of the question,
    where the lookup knows it; and what the calculator makes of the read-out. Their event time is t, when the tool ran;
    their parents are the observations that were read for them.
    """
    now, work = view["episode"]["decided_at_ms"], work_out(view)
    told: list[dict[str, Any]] = []

    def tell(name: str, value: Any, unit: str | None, source: str, inputs: Iterable[str] = ()) -> None:
        told.append(
            {
                "id": f"t{len(told) + 1}", "name": name, "value": value, "unit": unit, "source": source,
                "event_time_ms": now, "ingest_time_ms": now, "origin": "live",
                "parents": [work.read[i]["id"] for i in inputs if i in work.read],
            }
        )  # fmt: skip

    if "cqi" in work.read:
        channel = work.read["cqi"]
        tell("cqi", channel["value"], channel.get("unit"), _CHANNEL, ["cqi"])
    if work.formula is not None:
        tell("formula", work.formula, None, _LOOKUP)
    for name, inputs in work.inputs.items():
        tell(name, work.values[name], work.contract.fields[name].unit, _CALCULATOR, inputs)
    return tuple(told)


def _found(task: Mapping[str, Any]) -> Lookup | None:
    """The formula that answers the question of a WCHW task, where the lookup knows it."""
    return _look_up(task["question"]) if task["task"] == "WCHW" else None


_look_up: Final = lru_cache(maxsize=4096)(look_up)


def nominal(view: Mapping[str, Any]) -> dict[str, Any]:
    """Field → its value for the task as it is asked, in the contract's units, planned and derived fields included.

    What the question and its input state, whatever became of the evidence; of the rest (CQI, service class) the newest
    read-out. It is the answer of a fixed question, and no ground for executing anything. Fields that neither states
    are left out.
    """
    task, episode = view["task"], view["episode"]
    contract = contract_of(episode)
    read = read_out(contract, episode["observations"])
    values = {name: value_of(o, contract.fields[name]) for name, o in read.items()}
    return calculate(contract, {**values, **_stated(task)})


def _stated(task: Mapping[str, Any]) -> dict[str, Any]:
    """What a task says itself, by field."""
    if task["task"] == "WCHW":
        found = _found(task)
        return {} if found is None else {**found.parameters, "result": found.result}
    told = task["input"]
    stated = {
        "embb_users": told["embb_users"],
        "urllc_users": told["urllc_users"],
        "embb_capacity": SLICES["eMBB"].capacity_mhz,
        "urllc_capacity": SLICES["URLLC"].capacity_mhz,
    }
    if task["task"] == "WCNS":
        return {**stated, "x": told["user_x"], "y": told["user_y"]}
    previous, current = told["trajectory"][-2:]
    positions = {"x": current["x"], "y": current["y"], "x_previous": previous["x"], "y_previous": previous["y"]}
    return {**stated, **positions, "min_rate": told["min_rate"]}


def vouched(
    contract: Contract,
    supported: Mapping[str, Any],
    plan: Mapping[str, Any],
    unresolved: Collection[str | None] = (),
) -> dict[str, Any]:
    """Field → the value that evidence vouches for: `supported`, and the entries of `plan` all of whose inputs are such.

    `unresolved`: fields of the plan that are still at fault.
    """
    found = dict(supported)
    plain = [name for name, f in contract.fields.items() if f.kind == "planned" and f.expr is None]
    for name in (*plain, *contract.order):
        expr, entry = contract.fields[name].expr, plan.get(name)
        inputs = () if expr is None else expr.names
        if isinstance(entry, Mapping) and name not in unresolved and all(n in found for n in inputs):
            found[name] = entry.get("value")
    return found


def answer_of(task: str, values: Mapping[str, Any], unit: str) -> dict[str, Any]:
    """The answer of a task from the values of its fields, in WirelessBench's keys; keys without a value are left out.

    `unit`: of WCHW's answer.
    """
    if task == "WCHW":
        return {"value": values["answer"], "unit": unit} if "answer" in values else {}
    slicing = {"slice_type", "bandwidth", "throughput"}
    answer = {name: value for name, value in values.items() if name in slicing}
    if task == "WCNS":
        return {**answer, **({"cqi": values["cqi"]} if "cqi" in values else {})}
    if "cqi" in values:
        answer["predicted_cqi"] = values["cqi"]
    if "position_x" in values and "position_y" in values:
        answer["predicted_position"] = {"x": values["position_x"], "y": values["position_y"]}
    if "min_rate" in values:
        answer["min_rate_required"] = values["min_rate"]
        if "throughput" in values:
            answer["qos_satisfied"] = values["throughput"] >= values["min_rate"]
    return answer
