"""Ledger: each claim is what its file says, and none stands over the others (sections 5.4, 8.4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from simulators.closedloop.validator.check import Check, Fault
from simulators.closedloop.validator.design import (
    CASES,
    COMPONENTS,
    FAMILIES,
    PARTITIONS,
    UNITS,
)
from simulators.closedloop.validator.keys import cube
from simulators.closedloop.validator.layout import LEDGER
from simulators.closedloop.validator.reading import Document, Saved, at

MEMBERS: Final = (
    "id", "layer", "population", "numerator", "denominator", "estimator", "interval", "frozen_rule", "status",
    "forbidden_inference",
)  # fmt: skip
STATUSES: Final = (
    "EXECUTED", "CONFIRMED", "NOT_CONFIRMED", "PASS", "FAIL", "DESCRIPTIVE", "NOT_ESTIMABLE", "SMOKE_TEST", "WITHDRAWN",
)  # fmt: skip
LAYERS: Final = ("execution", "coverage", "safety", "power", "structure", "drift", "audit", "solver")
"""Of claims; `execution` is about rows, `audit` about what leaks: none is about the study as a whole."""

Wanted = dict[str, Any]
"""Members of a claim → what they must be; `value` is the estimator's."""


def _claims(saved: Saved) -> Iterator[Fault]:
    seen: set[str] = set()
    wanted = _wanted(saved)
    for line, claim in enumerate(saved.ledger, 1):
        place = f"line {line}"
        yield from _form(place, claim)
        name = claim.get("id")
        if not isinstance(name, str):
            continue
        if name in seen:
            yield Fault(LEDGER, place, f"{name} is there twice")
        seen.add(name)
        if name not in wanted:
            yield Fault(LEDGER, place, f"{name} is no claim of the study")
        for member, value in wanted.get(name, {}).items():
            said = at(claim, "estimator", "value") if member == "value" else claim.get(member)
            if not _same(said, value):
                yield Fault(LEDGER, place, f"{member} of {name} is {said!r}; by the files {value!r}")
    for name in wanted:
        if name not in seen:
            yield Fault(LEDGER, "", f"has no claim {name}")


def _form(place: str, claim: Document) -> Iterator[Fault]:
    if tuple(claim) != MEMBERS:
        yield Fault(LEDGER, place, f"its members are not {', '.join(MEMBERS)}")
    if (status := claim.get("status")) not in STATUSES:
        yield Fault(LEDGER, place, f"status is {status!r}, none of those that a claim can have")
    if (layer := claim.get("layer")) not in LAYERS:
        yield Fault(LEDGER, place, f"layer is {layer!r}: a claim is of {', '.join(LAYERS)}")
    forbidden = claim.get("forbidden_inference")
    if not isinstance(forbidden, str) or not forbidden:
        yield Fault(LEDGER, place, "does not say what must not be concluded from it")


def _same(said: Any, value: Any) -> bool:
    if isinstance(value, float) and isinstance(said, int | float) and not isinstance(said, bool):
        return abs(said - value) <= 1e-8
    if isinstance(value, list) and isinstance(said, list) and len(said) == len(value):
        return all(_same(one, other) for one, other in zip(said, value, strict=True))
    return type(said) is type(value) and bool(said == value)


def _wanted(saved: Saved) -> dict[str, Wanted]:
    """The claims of a study, and of each what its files say."""
    return {
        **_coverage(saved),
        **_safety(saved.documents["calibration.json"]),
        **_power(saved.documents["analysis.json"]),
        **_drift(saved.documents["drift.json"]),
        **_audit(saved.documents["leakage.json"]),
        "solver.exact_mhs_advantage": {"numerator": None, "denominator": None, "value": None, "status": "WITHDRAWN"},
        "solver.localisation": {"numerator": None, "denominator": None, "value": None, "status": "NOT_ESTIMABLE"},
    }


def _share(numerator: Any, denominator: Any) -> Wanted:
    counts = all(isinstance(count, int) and not isinstance(count, bool) for count in (numerator, denominator))
    value = numerator / denominator if counts and denominator else None
    return {"numerator": numerator, "denominator": denominator, "value": value}


def _coverage(saved: Saved) -> dict[str, Wanted]:
    run = int(np.count_nonzero(cube(saved, "current.csv").there))
    units = saved.tables["units.csv"]
    admitted = sum(state != "REFERENCE_ABSTAIN" for state in units.texts["state"])
    eligible = sum(state == "SIGNAL_ELIGIBLE" for state in units.texts["state"])
    represented = saved.documents["calibration.json"].get("represented")
    scheduled = CASES * PARTITIONS
    return {
        "execution.schedule": {**_share(run, scheduled), "status": "EXECUTED" if run == scheduled else "FAIL"},
        "coverage.reference": {**_share(admitted, UNITS), "status": "DESCRIPTIVE"},
        "coverage.runtime": {
            **_share(eligible, admitted),
            "status": "DESCRIPTIVE" if admitted else "NOT_ESTIMABLE",
        },
        "coverage.components": {**_share(represented, COMPONENTS), "status": "DESCRIPTIVE"},
    }


def _safety(calibration: Document) -> dict[str, Wanted]:
    def bounded(*where: str) -> Wanted:
        bound = at(calibration, *where, "bound")
        return {
            "numerator": at(calibration, *where, "false_admissions"),
            "denominator": at(calibration, *where, "represented"),
            "value": bound,
            "interval": None if bound is None else [None, bound],
        }

    nothing = at(calibration, "sensitivity", "bound") is None
    return {
        "safety.false_admission": {**bounded(), "status": calibration.get("status")},
        "safety.false_admission_sensitivity": {
            **bounded("sensitivity"),
            "status": "NOT_ESTIMABLE" if nothing else "DESCRIPTIVE",
        },
    }


def _power(analysis: Document) -> dict[str, Wanted]:
    found: dict[str, Wanted] = {}
    pooled = "structure.traffic_over_fraction"
    found[pooled] = _compared(analysis, "models")
    interval = found[pooled]["interval"]
    if found[pooled]["value"] is not None:
        low = interval[0] if isinstance(interval, list) and interval else None
        found[pooled]["status"] = _confirmed(isinstance(low, int | float) and low > 0)
    for family in FAMILIES:
        holds = at(analysis, "nondecreasing", family)
        found[f"power.{family}"] = {
            "numerator": at(analysis, "detections", family),
            "denominator": analysis.get("admitted"),
            "value": None,
            "status": "NOT_ESTIMABLE" if holds is None else _confirmed(holds is True),
        }
        found[f"{pooled}.{family}"] = _compared(analysis, "within_family", family)
    bound, rule = at(analysis, "family", "bound"), at(analysis, "family", "rule")
    known = all(isinstance(number, int | float) for number in (bound, rule))
    found["structure.family_sufficiency"] = {
        "value": at(analysis, "family", "gain"),
        "interval": None if bound is None else [None, bound],
        "status": "NOT_ESTIMABLE" if bound is None else _confirmed(known and bound <= rule),
    }
    return found


def _compared(analysis: Document, *where: str) -> Wanted:
    difference = at(analysis, *where, "difference")
    return {
        "numerator": None,
        "denominator": None,
        "value": difference,
        "interval": at(analysis, *where, "interval"),
        "status": "NOT_ESTIMABLE" if difference is None else "DESCRIPTIVE",
    }


def _confirmed(holds: bool) -> str:
    return "CONFIRMED" if holds else "NOT_CONFIRMED"


def _drift(drift: Document) -> dict[str, Wanted]:
    alarms = {True: 0, False: 0}
    partitions = {True: 0, False: 0}
    for policy in _rows(drift.get("policies")):
        for stream in _rows(policy.get("streams")):
            own, counted = stream.get("demand") == policy.get("regime"), stream.get("alarms")
            alarms[own] += counted if isinstance(counted, int) else 0
            partitions[own] += PARTITIONS
    return {
        "drift.same_demand": {**_share(alarms[True], partitions[True]), "status": "DESCRIPTIVE"},
        "drift.other_demand": {**_share(alarms[False], partitions[False]), "status": "DESCRIPTIVE"},
        "drift.refresh": {
            "numerator": at(drift, "refresh", "limit_unchanged"),
            "denominator": at(drift, "refresh", "asked"),
            "status": "SMOKE_TEST",
        },
    }


def _audit(leakage: Document) -> dict[str, Wanted]:
    found: dict[str, Wanted] = {}
    for mode in _rows(leakage.get("modes")):
        name, cases = mode.get("mode"), mode.get("cases")
        for verdict, counted in (
            ("LABEL_DEPENDENT", "cases"),
            ("SINGLETON_REVEAL", "cases"),
            ("RESIDUAL_EMPTY", "cases_with_residual"),
        ):
            number = at(mode, "verdicts", verdict, counted)
            if counted == "cases_with_residual" and isinstance(number, int) and isinstance(cases, int):
                number = cases - number  # the claim counts where nothing is left
            share = _share(number, cases)
            status = "DESCRIPTIVE" if cases else "NOT_ESTIMABLE"
            found[f"audit.{name}.{verdict.lower()}"] = {**share, "status": status}
        same, comparison = at(mode, "solvers", "same_supports"), at(mode, "solvers", "comparison")
        found[f"solver.comparison.{name}"] = {**_share(same, cases), "status": comparison}
    return found


def _rows(value: Any) -> list[Document]:
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


CHECKS: Final = (
    Check(
        "claims",
        "ledger",
        "Every claim is what its files say, has its rule and status, and no row is a verdict over the others.",
        (LEDGER, "current.csv", "units.csv", "calibration.json", "analysis.json", "drift.json", "leakage.json"),
        _claims,
    ),
)
