"""The ablations of table VI: what is switched off around the one engine, and therefore passes unchecked.

Each is a change of the episode document before the engine reads it, what of the proposer's plan the engine is given,
and what is made of its decision. The engine itself knows no switches, and the ledger of the view is never changed: a
variant reads another document, it overwrites no evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from simulators.optbench.tools import contract_of, observed_by, read_out, value_of
from xapp.contract import Contract, normalise

Document = Mapping[str, Any]
Released = Literal["rebuilt", "normalised", "as_proposed"]

ENDLESS_MS: Final = 2**53 - 1
"""A limit that no age reaches, and the longest that a contract may hold."""
ANY_DIFFERENCE: Final = 1e300


@dataclass(frozen=True, slots=True)
class Ablation:
    """A configuration around the engine.

    `evidence`: the episode document as the engine reads it; `plan`: what of the proposer's plan the engine is given, by
    the contract of that document. `released`: whose plan and answer leave: those that the engine rebuilt, the
    proposer's with names and units normalised, or the proposer's as written. `governed` False executes the proposer's
    own intent.
    """

    name: str
    off: str
    evidence: Callable[[Document], Document]
    plan: Callable[[Mapping[str, Any], Contract], Mapping[str, Any]]
    released: Released = "rebuilt"
    governed: bool = True


def _as_it_is(episode: Document) -> Document:
    return episode


def _as_written(plan: Mapping[str, Any], contract: Contract) -> Mapping[str, Any]:
    return plan


def _nothing(plan: Mapping[str, Any], contract: Contract) -> Mapping[str, Any]:
    return {}


def evidence_only(episode: Document) -> Document:
    """The contract asks for evidence alone: no planned or derived fields, no constraints."""
    contract = episode["contract"]
    fields = {name: spec for name, spec in contract["fields"].items() if spec["kind"] == "observed"}
    return {**episode, "contract": {**contract, "fields": fields, "constraints": []}}


def evidence_taken_as_good(episode: Document) -> Document:
    """Per observed field its read-out, as if its primary had measured it just now in the contract's terms.

    No source is out, no field has limits or schemas, and constraints are judged at t. That a field has no evidence at
    all is nothing that anybody sees: what would be computed from it is released as the proposer has it. Only where no
    critical field has any is that still missing.
    """
    contract, now = contract_of(episode), episode["decided_at_ms"]
    observations = []
    read = read_out(contract, episode["observations"])
    for name, o in read.items():
        f = contract.fields[name]
        observations.append(
            {
                "id": o["id"], "name": name, "value": value_of(o, f), "unit": f.unit, "source": f.sources[0],
                "event_time_ms": now, "ingest_time_ms": now,
            }
        )  # fmt: skip
    document = _with_observed(episode["contract"], lambda spec: _without(spec, "min", "max", "schemas"))
    if any(contract.fields[name].critical for name in read):  # a contract must ask for something
        observed = {name for name, f in contract.fields.items() if f.kind == "observed"}
        document = _without_fields(document, contract, observed - read.keys())
    constraints = [_without(c, "window_ms", "max_gap_ms") for c in document["constraints"]]
    return {
        **episode,
        "contract": {**document, "constraints": constraints},
        "observations": observations,
        "sources": {},
    }


def _without_fields(document: Document, contract: Contract, gone: set[str]) -> dict[str, Any]:
    """A contract without some observed fields: no planned field is computed from them, what rests on them is gone."""
    fields = {name: spec for name, spec in document["fields"].items() if name not in gone}
    for name in contract.order:
        f = contract.fields[name]
        if f.expr is None or gone.isdisjoint(f.expr.names):
            continue
        if f.kind == "planned":
            fields[name] = _without(fields[name], "expr", "repairable")
        else:
            gone = gone | {name}
            del fields[name]
    constraints = [
        spec
        for spec, c in zip(document["constraints"], contract.constraints, strict=True)
        if gone.isdisjoint(c.expr.names)
    ]
    return {**document, "fields": fields, "constraints": constraints}


def names_and_units_taken_raw(episode: Document) -> Document:
    """Every observation that a field knows, as if exposed under the field's name and in its unit; its value as it is.

    A name that two fields share is taken for the first. Schema identifiers are no units, and stay.
    """
    contract = contract_of(episode)
    observations = []
    for o in episode["observations"]:
        fields = observed_by(contract, o["name"])
        known = {"name": fields[0], "unit": contract.fields[fields[0]].unit} if fields else {}
        observations.append({**o, **known})
    return {**episode, "observations": observations}


def plan_taken_raw(plan: Mapping[str, Any], contract: Contract) -> dict[str, Any]:
    """Every entry whose name a field knows, under that field's name and in its unit; its value as it is."""
    found: dict[str, Any] = {}
    for name, entry in plan.items():
        fields = contract.by_name.get(normalise(name), ())
        if fields and isinstance(entry, Mapping):
            found.setdefault(fields[0], {"value": entry.get("value"), "unit": contract.fields[fields[0]].unit})
    return found


def no_conflict_no_age(episode: Document) -> Document:
    """No age is too old, no gap too long, no difference material, and no report has a version.

    A text has no tolerance: of a text field, observations that say otherwise than the newest of its first source that
    says anything are left out.
    """
    contract = episode["contract"]
    document = _with_observed(
        contract, lambda spec: {**spec, "freshness_ms": ENDLESS_MS, "tolerance": ANY_DIFFERENCE}
    )
    constraints = [{**c, "max_gap_ms": ENDLESS_MS} if "window_ms" in c else c for c in contract.get("constraints", ())]
    dissenters = _dissenters(contract_of(episode), episode)
    observations = [_without(o, "version") for o in episode["observations"] if o["id"] not in dissenters]
    return {**episode, "contract": {**document, "constraints": constraints}, "observations": observations}


def _dissenters(contract: Contract, episode: Document) -> frozenset[str]:
    found: set[str] = set()
    for name, f in contract.fields.items():
        if f.kind != "observed" or f.type != "string":
            continue
        bound = [o for o in episode["observations"] if name in observed_by(contract, o["name"])]
        heard = [o for o in bound if o["source"] in f.sources and isinstance(o["value"], str)]
        if heard:
            first = min(heard, key=lambda o: (f.sources.index(o["source"]), -o["event_time_ms"], o["id"]))
            found |= {o["id"] for o in bound if o["value"] != first["value"]}
    return frozenset(found)


def no_memory(episode: Document) -> Document:
    """Without what agents remember."""
    return {**episode, "observations": [o for o in episode["observations"] if o.get("origin") != "memory"]}


def _with_observed(contract: Document, change: Callable[[Document], Document]) -> dict[str, Any]:
    fields = {
        name: change(spec) if spec["kind"] == "observed" else spec for name, spec in contract["fields"].items()
    }
    return {"constraints": [], **contract, "fields": fields}


def _without(document: Document, *keys: str) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key not in keys}


FULL: Final = Ablation("wirelessopsagent", "nothing", _as_it_is, _as_written)

ABLATIONS: Final[Mapping[str, Ablation]] = {
    a.name: a
    for a in (
        Ablation("monitor-only", "every repair, and the plan gate", evidence_only, _nothing, "as_proposed"),
        Ablation("no-integrity-monitor", "integrity: evidence is taken as good", evidence_taken_as_good, _as_written),
        Ablation("no-action-governor", "the governor", _as_it_is, _as_written, governed=False),
        Ablation("no-utility-repair", "recomputation, and the plan gate", evidence_only, _nothing, "normalised"),
        Ablation("no-normalizer", "names and units", names_and_units_taken_raw, plan_taken_raw),
        Ablation("no-conflict-freshness", "conflict, order and age", no_conflict_no_age, _as_written),
        Ablation("no-memory", "memory candidates", no_memory, _as_written),
    )
}
