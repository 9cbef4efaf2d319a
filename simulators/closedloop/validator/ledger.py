"""Ledger: each claim is what its file says, and none stands over the others (sections 5.4, 8.4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from simulators.closedloop.validator import audit, drift, words
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
from simulators.closedloop.validator.reading import Document, Saved, at, same

TOLERANCE: Final = 1e-8
ESTIMATOR: Final = {"name", "value"}
MEMBERS: Final = (
    "id", "layer", "population", "numerator", "denominator", "estimator", "interval", "frozen_rule", "status",
    "forbidden_inference",
)  # fmt: skip

Wanted = dict[str, Any]
"""Members of a claim → what they must be; `value` is the estimator's, and an interval not named is none."""


def _claims(saved: Saved) -> Iterator[Fault]:
    seen: dict[str, None] = {}
    counted = at(saved.documents["analysis.json"], "bootstrap", "clusters")
    wanted = _wanted(saved)
    yield from drift.faults(saved)
    yield from audit.faults(saved)
    for line, claim in enumerate(saved.ledger, 1):
        place = f"line {line}"
        estimator = claim.get("estimator")
        if tuple(claim) != MEMBERS or not isinstance(estimator, dict) or estimator.keys() != ESTIMATOR:
            yield Fault(LEDGER, place, f"its members are not {', '.join(MEMBERS)}")
        name = claim.get("id")
        if not isinstance(name, str):
            continue
        if name in seen:
            yield Fault(LEDGER, place, f"{name} is there twice")
        seen[name] = None
        if name not in wanted:
            yield Fault(LEDGER, place, f"{name} is no claim of the study")
        for member, value in ({"interval": None} | wanted[name] if name in wanted else {}).items():
            said = at(claim, "estimator", "value") if member == "value" else claim.get(member)
            if not same(said, value, TOLERANCE):
                yield Fault(LEDGER, place, f"{member} of {name} is {said!r}; by the files {value!r}")
        if name in wanted and (found := words.of_claim(claim)) != words.CLAIMS[name]:
            told = "layer, population, rule, estimator or forbidden inference"
            yield Fault(LEDGER, place, f"{name} is not worded as in the design in {told}: {found}")
        if any(text != f"over {counted} clusters" for text in words.clusters(claim)):
            yield Fault(LEDGER, place, f"{name} does not speak of the {counted} clusters of analysis.json")
    for name in wanted:
        if name not in seen:
            yield Fault(LEDGER, "", f"has no claim {name}")
    if seen.keys() == wanted.keys() and list(seen) != list(wanted):
        yield Fault(LEDGER, "", "its claims are not in their order")


def _wanted(saved: Saved) -> dict[str, Wanted]:
    """The claims of a study, and of each what its files say."""
    found = {
        **_coverage(saved),
        **_safety(saved.documents["calibration.json"]),
        **_power(saved.documents["analysis.json"]),
        **_drift(saved.documents["drift.json"]),
        **_audit(saved.documents["leakage.json"]),
        "solver.exact_mhs_advantage": {"numerator": None, "denominator": None, "value": None, "status": "WITHDRAWN"},
        "solver.localisation": {"numerator": None, "denominator": None, "value": None, "status": "NOT_ESTIMABLE"},
    }
    return {name: found.get(name, {}) for name in words.CLAIMS}


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
            "value": None,
            "status": "SMOKE_TEST",
        },
    }


def _audit(leakage: Document) -> dict[str, Wanted]:
    found: dict[str, Wanted] = {}
    for mode in _rows(leakage.get("modes")):
        name, cases = mode.get("mode"), mode.get("cases")
        for verdict, counted in (
            ("LABEL_DEPENDENT", "cases"),
            ("SINGLETON_REVEAL", "cases_with_any"),
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


_DRIFT: Final = (drift.FILE, drift.ROWS, *drift.CLEAN.values())
_AUDIT: Final = (audit.FILE, "protocol.json")

CHECKS: Final = (
    Check(
        "claims",
        "ledger",
        "Every claim has its words, and is what its files say; these are, of drift and audit, what their rows say.",
        (LEDGER, "current.csv", "units.csv", "calibration.json", "analysis.json", *_DRIFT, *_AUDIT),
        _claims,
    ),
)
