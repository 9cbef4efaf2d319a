"""Hand-made cases of WirelessOptBench: small contracts, a ledger with the usual irregularities, and a label at will."""

from __future__ import annotations

from typing import Any

from simulators.optbench.model import DOMAINS, TASKS, BaseItem, Case, Domain, Facts, Sealed, Task

T_MS = 1_790_000_000_000

# domain → cases by reference, over the three tasks (composition of the suite)
COMPOSITION: dict[Domain, dict[str, int]] = {
    "schema_unit": {"APPLY": 80, "HOLD": 20, "ESCALATE": 20},
    "freshness_order": {"APPLY": 40, "HOLD": 60, "ESCALATE": 20},
    "availability_brownout": {"APPLY": 40, "RETRY": 80},
    "conflict_provenance": {"APPLY": 40, "ESCALATE": 80},
    "mixed_evidence": {"HOLD": 20, "RETRY": 20, "ESCALATE": 80},
}


def observed(unit: str = "1", *, critical: bool = True, **more: Any) -> dict[str, Any]:
    return {
        "kind": "observed", "unit": unit, "sources": ["a:first", "b:second"], "freshness_ms": 1000,
        "critical": critical, **more,
    }  # fmt: skip


SLICING_FIELDS = {
    "service_class": {**observed(), "type": "string"},
    "users": observed(aliases=["DRB.Mean-Users"]),
    "cqi": observed(aliases=["wb cqi"], tolerance=1),
    "load": observed("%", critical=False),
    "slice_type": {"kind": "planned", "type": "string", "repairable": True, "expr": "service_class"},
    "bandwidth": {"kind": "planned", "unit": "MHz", "repairable": True, "rel_tolerance": 0.01, "expr": "90/(users+1)"},
    "throughput": {"kind": "derived", "unit": "Mbit/s", "rel_tolerance": 0.01, "expr": "bandwidth*cqi"},
}
POSITION_FIELDS = {
    axis: {"kind": "planned", "unit": "m", "repairable": True, "tolerance": 0.01, "expr": "users"}
    for axis in ("position_x", "position_y")
}
FIELDS: dict[Task, dict[str, Any]] = {
    "WCHW": {
        "snr": observed(),
        "result": observed("Mbit/s"),
        "answer": {"kind": "planned", "unit": "Mbit/s", "repairable": True, "rel_tolerance": 0.005, "expr": "result"},
    },
    "WCNS": SLICING_FIELDS,
    "WCMSA": {**SLICING_FIELDS, **POSITION_FIELDS},
}
SLICING_PLAN = {"slice_type": "eMBB", "bandwidth": 18.0, "throughput": 270.5}
PLANS: dict[Task, dict[str, Any]] = {
    "WCHW": {"answer": 0.585},
    "WCNS": SLICING_PLAN,
    "WCMSA": {**SLICING_PLAN, "position_x": -176.24, "position_y": -33.06},
}
ANSWERS: dict[Task, dict[str, Any]] = {
    "WCHW": {"value": 0.585, "unit": "Mbit/s"},
    "WCNS": {**SLICING_PLAN, "cqi": 15},
    "WCMSA": {
        **SLICING_PLAN, "predicted_position": {"x": -176.24, "y": -33.06}, "predicted_cqi": 15, "qos_satisfied": True,
        "min_rate_required": 10,
    },
}  # fmt: skip


def observation(place: int, name: str, value: Any, source: str, age_ms: int, **more: Any) -> dict[str, Any]:
    return {
        "id": f"o{place}", "name": name, "value": value, "unit": "1", "source": source,
        "event_time_ms": T_MS - age_ms, "ingest_time_ms": T_MS - age_ms + 20, **more,
    }  # fmt: skip


LEDGER = [
    observation(1, "WB-CQI", 14, "a:first", 300),
    observation(2, "cqi", 15, "b:second", 100),
    observation(3, "DRB.mean_USERS", 4, "b:second", 90, parents=["o2"], version=7),
    observation(4, "cqi", 15, "a:first", 200, version=0),
    observation(5, "snr", 0.5, "stranger", 10),
    observation(6, "something else", None, "a:first", 50, quality="no_value"),
]


def case(
    episode_id: str = "e-1", task: Task = "WCNS", reference: str = "APPLY", domain: Domain = "schema_unit"
) -> Case:
    """One case; only its id, task, label and domain vary."""
    contract = {
        "contract_id": f"{task}/1",
        "fields": FIELDS[task],
        "constraints": [{"id": "low", "expr": "1 <= bandwidth"}],
    }
    item = BaseItem(
        task, f"sealed-{episode_id}", "generated", f"What is asked in {task}?",
        {} if task == "WCHW" else {"region": "north", "users": 4}, contract, {}, {}, PLANS[task], ANSWERS[task],
    )  # fmt: skip
    view = {
        "episode_id": episode_id,
        "task": {"task": task, "question": item.question, "input": item.input},
        "episode": {
            "format": "wirelessops.episode/1", "episode_id": episode_id, "decided_at_ms": T_MS, "contract": contract,
            "sources": {"b:second": {"status": "outage", "retryable": True, "retry_after_ms": 200, "retries_left": 2}},
            "observations": LEDGER,
        },
    }  # fmt: skip
    return Case(view, Sealed(item, "a sealed family", domain, Facts(()), reference, frozenset()))


def six_hundred() -> tuple[Case, ...]:
    """A suite of the composition above; the tasks take turns."""
    labels = [
        (domain, reference) for domain in DOMAINS for reference, n in COMPOSITION[domain].items() for _ in range(n)
    ]
    return tuple(
        case(f"e-{place}", TASKS[place % len(TASKS)], reference, domain)
        for place, (domain, reference) in enumerate(labels)
    )
