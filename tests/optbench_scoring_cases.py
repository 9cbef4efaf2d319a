"""Cases made by hand for the tests of scoring: one slicing task with a primary and a secondary source per field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from simulators.optbench.agents import Bundle, RawProposal
from simulators.optbench.model import (
    BaseItem,
    Case,
    Domain,
    Exposure,
    Facts,
    Scalar,
    Sealed,
)

T = 1_790_000_000_000
SLICING_ANSWER = {"slice_type": "eMBB", "cqi": 10, "bandwidth": 10.0, "throughput": 104.14}
MOBILITY_ANSWER = {
    "predicted_position": {"x": -176.24, "y": -33.06}, "predicted_cqi": 10, "slice_type": "eMBB",
    "bandwidth": 10.0, "throughput": 104.14, "qos_satisfied": True, "min_rate_required": 20,
}  # fmt: skip


def observed(unit: str, *aliases: str, freshness_ms: int = 1000, **more: Any) -> dict[str, Any]:
    sources = ["primary", "secondary"]
    return {"kind": "observed", "unit": unit, "aliases": list(aliases), "freshness_ms": freshness_ms,
            "sources": sources, **more}  # fmt: skip


CONTRACT: dict[str, Any] = {
    "contract_id": "slicing-test/1",
    "fields": {
        "service": {**observed("1", "service_type"), "type": "string"},
        "capacity": observed("MHz", "Capacity Total", "shared", min=0, max=1000, rel_tolerance=0.02),
        "users": observed("1", "shared", min=0, max=1000, tolerance=0.5),
        "x": observed("m", "ue_x", tolerance=1.0),
        "cqi": observed("1", min=0, max=15, tolerance=1, schemas=["rt/1"]),
        "load": {**observed("%"), "critical": False},
        "slice_type": {"kind": "planned", "type": "string", "repairable": True, "expr": "service"},
        "bandwidth": {
            "kind": "planned", "unit": "MHz", "min": 0, "max": 20, "rel_tolerance": 0.01, "repairable": True,
            "expr": 'if(slice_type == "eMBB", min(max(round(capacity/(users+1), 2), 6), 20), 1)',
        },
        "throughput": {"kind": "derived", "unit": "Mbit/s", "expr": "round(10*bandwidth*log10(1+10**(cqi/10)), 2)"},
    },
    "constraints": [],
    "max_clock_skew_ms": 100,
    "override_intent": True,
}  # fmt: skip
CRITICAL = ("service", "capacity", "users", "x", "cqi")
VALUES: dict[str, Scalar] = {"service": "eMBB", "capacity": 90, "users": 8, "x": 12.5, "cqi": 10, "load": 40}
UNITS = {"capacity": "MHz", "x": "m", "load": "%"}
PLAN = {"slice_type": {"value": "eMBB", "unit": None}, "bandwidth": {"value": 10.0, "unit": "MHz"}}
ITEM = BaseItem(
    task="WCNS", item_id="i-1", origin="generated", question="?", input={}, contract=CONTRACT, observed=VALUES,
    lineage={"cqi": ("x",)}, plan={"slice_type": "eMBB", "bandwidth": 10.0, "throughput": 104.14},
    answer=SLICING_ANSWER,
)  # fmt: skip
CALCULATION = BaseItem(
    task="WCHW", item_id="c-1", origin="generated", question="?", input={},
    contract={
        "contract_id": "calculation-test/1",
        "fields": {
            "rate": observed("bit/s"), "result": observed("bit/s"),
            "answer": {"kind": "planned", "unit": "bit/s", "min": 0, "max": 1e12, "rel_tolerance": 0.005,
                       "repairable": True, "expr": "result"},
        },
    },
    observed={"rate": 14000.0, "result": 168000.0}, lineage={"result": ("rate",)}, plan={"answer": 168000.0},
    answer={"value": 168, "unit": "kbit/s"},
)  # fmt: skip


def observation(field: str, source: str = "primary", age_ms: int = 100, **more: Any) -> dict[str, Any]:
    """What a source tells of a field, `age_ms` before t; `more` changes members."""
    told: dict[str, Any] = {
        "id": f"{field}-{source}", "name": field, "value": VALUES[field], "unit": UNITS.get(field), "source": source,
        "event_time_ms": T - age_ms, "ingest_time_ms": T - age_ms + 10, "parents": [],
    }  # fmt: skip
    return {**told, **more}


CLEAN = tuple(observation(name) for name in VALUES)


def view_of(*observations: Mapping[str, Any], episode_id: str = "e-1", item: BaseItem = ITEM) -> dict[str, Any]:
    """A public view with these observations, which replace clean ones of their id."""
    ledger = {o["id"]: o for o in (*CLEAN, *observations)}
    return {
        "episode_id": episode_id,
        "task": {"task": item.task, "question": item.question, "input": {}},
        "episode": {
            "format": "wirelessops.episode/1", "episode_id": episode_id, "decided_at_ms": T,
            "contract": item.contract, "sources": {}, "observations": list(ledger.values()),
        },
    }  # fmt: skip


def case_of(
    reference: str = "APPLY",
    blocked: Sequence[str] = (),
    facts: Facts | None = None,
    view: Mapping[str, Any] | None = None,
    domain: Domain = "conflict_provenance",
    item: BaseItem = ITEM,
) -> Case:
    facts = Facts(tuple(Exposure(name, "primary", 100) for name in item.observed)) if facts is None else facts
    return Case(
        view=view_of() if view is None else view,
        sealed=Sealed(item, "family", domain, facts, reference, frozenset(blocked)),
    )


def claim(told: Mapping[str, Any]) -> dict[str, Any]:
    return {"state": "supported", "observation": told["id"], "value": told["value"], "unit": told["unit"]}


BLOCKED = {"state": "blocked", "observation": None, "value": None, "unit": None}


def record_of(**claims: Any) -> dict[str, Any]:
    """The faithful record of the clean ledger, with these claims instead."""
    fields = {o["name"]: claim(o) for o in CLEAN if o["name"] in CRITICAL}
    return {"fields": {**fields, **claims}, "blocked": [], "repairs": []}


def bundle_of(action: str | None = "APPLY", **more: Any) -> Bundle:
    members: dict[str, Any] = {"answer": SLICING_ANSWER, "plan": PLAN, "record": record_of(),
                               "proposed": RawProposal("APPLY", SLICING_ANSWER, PLAN)}  # fmt: skip
    return Bundle("e-1", action, **{**members, **more})


OLDER = observation("users", age_ms=600, id="older", value=5)
"""A value that was replaced."""

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["value", "unit", "cqi", "bandwidth", "slice_type", "predicted_position", "x", "y"]), inner
    ),
    max_leaves=8,
)
"""Whatever a stranger may write."""
