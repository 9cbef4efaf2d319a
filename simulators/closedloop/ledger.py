"""The claim ledger: each claim with its own population, rule and status, and no verdict over them (sections 5.4, 8.4).

A claim is made from the documents of a run by its own function alone, so that one that changes leaves every other line
as it was, to the byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

import orjson

from simulators.closedloop.calibration import CONFIDENCE, THRESHOLD
from simulators.closedloop.gates import RULE
from simulators.closedloop.loop import COMPONENTS, EPISODES, FAMILIES, PARTITIONS, TARGETS

Status = Literal[
    "EXECUTED", "CONFIRMED", "NOT_CONFIRMED", "PASS", "FAIL", "DESCRIPTIVE", "NOT_ESTIMABLE", "SMOKE_TEST", "WITHDRAWN"
]
Layer = Literal["execution", "coverage", "safety", "power", "structure", "drift", "audit", "solver"]
Documents = Mapping[str, Any]
"""What claims rest on: `counts` (see `derived`), and the documents calibration, analysis, drift, leakage."""

_SUPPORT: Final = f"at least {RULE.min_visits} visits in at least {RULE.min_partitions} of {RULE.partitions} partitions"


@dataclass(frozen=True, slots=True)
class Claim:
    """One row. `numerator`, `denominator`: counts, or a list of them; None where it is no share. `estimator`: its name,

    and value where there is one. `interval`: its two ends, None for an open one. `forbidden_inference`: what must not
    be concluded from it.
    """

    id: str
    layer: Layer
    population: str
    numerator: int | Sequence[int] | None
    denominator: int | None
    estimator: Mapping[str, str | float | None]
    interval: Sequence[float | None] | None
    frozen_rule: str | None
    status: Status
    forbidden_inference: str


def ledger(documents: Documents) -> bytes:
    """`ledger.jsonl`: a claim a line, in the order of `CLAIMS`."""
    return b"".join(line(claim) for claim in claims(documents))


def claims(documents: Documents) -> tuple[Claim, ...]:
    """Every claim, in the order of `CLAIMS`."""
    return tuple(claim for made in CLAIMS for claim in made(documents))


def line(claim: Claim) -> bytes:
    """A claim as its line of `ledger.jsonl`."""
    return orjson.dumps(asdict(claim)) + b"\n"


def _execution(documents: Documents) -> Iterator[Claim]:
    rows, scheduled = documents["counts"]["rows"], documents["counts"]["scheduled_rows"]
    yield Claim(
        "execution.schedule", "execution", f"scheduled rows: a case and a partition of {EPISODES} episodes",
        rows, scheduled, _share("rows that were run", rows, scheduled), None,
        "every scheduled case has every partition, those of units that the gates refuse too",
        "EXECUTED" if rows == scheduled else "FAIL",
        "that what ran is right, or any endpoint favourable; episodes are no independent units of statistics, and the "
        "checks of the saved rows are told apart, by `wirelessops study validate`",
    )  # fmt: skip


def _reference(documents: Documents) -> Iterator[Claim]:
    counts = documents["counts"]
    yield Claim(
        "coverage.reference", "coverage", "regime-component units", counts["admitted"], counts["units"],
        _share("units past the reference gate", counts["admitted"], counts["units"]), None,
        f"clean reference: {_SUPPORT}", "DESCRIPTIVE",
        "that the units refused are sound, or faulty, or data to be imputed: the policy does not go there often enough",
    )  # fmt: skip


def _runtime(documents: Documents) -> Iterator[Claim]:
    counts = documents["counts"]
    yield Claim(
        "coverage.runtime", "coverage", "units past the reference gate", counts["eligible"], counts["admitted"],
        _share("units past the runtime gate", counts["eligible"], counts["admitted"]), None,
        f"every case of the unit, both directions: reference and current in the same partition, {_SUPPORT}",
        _described(counts["admitted"]), "that thresholds of this simulator transfer to another system",
    )  # fmt: skip


def _components(documents: Documents) -> Iterator[Claim]:
    found = documents["calibration"]
    yield Claim(
        "coverage.components", "coverage", "physical components", found["represented"], COMPONENTS,
        _share("components with a unit past the reference gate", found["represented"], COMPONENTS), None,
        None, "DESCRIPTIVE", "that a component is supported in a regime in which its unit is not",
    )  # fmt: skip


def _false_admission(documents: Documents) -> Iterator[Claim]:
    found = documents["calibration"]
    yield Claim(
        "safety.false_admission", "safety", "physical components represented among the reference-admitted units",
        found["false_admissions"], found["represented"], _bound(found["bound"]), _below(found["bound"]),
        f"the bound is at most {THRESHOLD}, on a clean schedule of its own seeds", found["status"],
        "that the rate is zero where none was seen: the bound is the claim; nor the rate of any other cutoff; nor that "
        "every component was put to the test: one whose units abstain in the null counts, and cannot be admitted",
    )  # fmt: skip


def _sensitivity(documents: Documents) -> Iterator[Claim]:
    found = documents["calibration"]["sensitivity"]
    yield Claim(
        "safety.false_admission_sensitivity", "safety",
        "physical components with a unit past both gates in the clean null",
        found["false_admissions"], found["represented"], _bound(found["bound"]), _below(found["bound"]), None,
        "NOT_ESTIMABLE" if found["bound"] is None else "DESCRIPTIVE",
        "a second safety verdict: this row says how the first hangs on who is counted",
    )  # fmt: skip


def _power(documents: Documents) -> Iterator[Claim]:
    found = documents["analysis"]
    for family in FAMILIES:
        yield Claim(
            f"power.{family}", "power", "units past both gates, at each target of affected clean traffic",
            found["detections"][family], found["admitted"],
            {"name": f"units stable in both directions at τ near {', '.join(map(str, TARGETS))}", "value": None}, None,
            "detections do not fall from a target to the next", _held(found["nondecreasing"][family]),
            "that a small edit is harmless, or a fault without a detection absent: it may touch what is never visited",
        )  # fmt: skip


def _traffic(documents: Documents) -> Iterator[Claim]:
    found = documents["analysis"]
    yield _comparison(
        "structure.traffic_over_fraction", "unit-arm rows of units past both gates", found["models"],
        "the 95 % component-cluster interval lies above 0",
        "that traffic is the better coordinate within a family of masks: much of the difference is between them (the "
        "rows within a family stand beside)",
    )  # fmt: skip


def _within(documents: Documents) -> Iterator[Claim]:
    found = documents["analysis"]["within_family"]
    for family in FAMILIES:
        yield _comparison(
            f"structure.traffic_over_fraction.{family}", f"unit-arm rows of {family} masks, units past both gates",
            found[family], None, "a verdict on the pooled claim",
        )  # fmt: skip


def _comparison(name: str, population: str, found: Mapping[str, Any], rule: str | None, forbidden: str) -> Claim:
    status: Status = "DESCRIPTIVE"
    if found["difference"] is None:
        status = "NOT_ESTIMABLE"
    elif rule is not None:
        status = _held(found["interval"][0] > 0.0)
    return Claim(
        name, "structure", population, None, None,
        {"name": "NLL a row of log nominal fraction less that of log affected traffic, nats",
         "value": found["difference"]},
        found["interval"], rule, status, forbidden,
    )  # fmt: skip


def _family(documents: Documents) -> Iterator[Claim]:
    found = documents["analysis"]["family"]
    bound, rule = found["bound"], found["rule"]
    clusters = documents["analysis"]["bootstrap"]["clusters"]
    yield Claim(
        "structure.family_sufficiency", "structure", "unit-arm rows of units past both gates", None, None,
        {"name": "gain in NLL a row from mask family and its interaction with log affected traffic, nats",
         "value": found["gain"]},
        None if bound is None else [None, bound],
        f"the upper end of the 95 % component-cluster interval is at most {rule} nat",
        _held(None if bound is None else bound <= rule),
        "that the families have equal coefficients, or, where it is not confirmed, that the family matters; a "
        f"percentile bootstrap over {clusters} clusters may undercover in favour of sufficiency",
    )  # fmt: skip


def _drift(documents: Documents) -> Iterator[Claim]:
    policies = documents["drift"]["policies"]
    own = [stream for policy in policies for stream in policy["streams"] if stream["demand"] == policy["regime"]]
    other = [stream for policy in policies for stream in policy["streams"] if stream["demand"] != policy["regime"]]
    rule = f"score above the split-conformal limit, α = {documents['drift']['alpha']}"
    for name, population, streams, forbidden in (
        ("drift.same_demand", "clean partitions under the demand of the reference", own,
         "a rate in the field: partitions of a policy share their limit"),
        ("drift.other_demand", "clean partitions under another demand", other,
         "that there was a fault: an alarm asks for a refresh of the reference; nor power against smaller drifts; nor "
         "how it answers a fault: none was scored"),
    ):  # fmt: skip
        alarms, partitions = sum(s["alarms"] for s in streams), PARTITIONS * len(streams)
        yield Claim(
            name, "drift", population, alarms, partitions, _share("partitions with an alarm", alarms, partitions), None,
            rule, _described(partitions), forbidden,
        )  # fmt: skip


def _refresh(documents: Documents) -> Iterator[Claim]:
    found = documents["drift"]["refresh"]
    yield Claim(
        "drift.refresh", "drift", "alarms of policies under another demand", found["limit_unchanged"], found["asked"],
        {"name": "refreshes from the same buffer that came round to the same limit", "value": None}, None, None,
        "SMOKE_TEST", "that a refresh repairs a stale reference after real drift: the buffer is the old one",
    )  # fmt: skip


def _audit(documents: Documents) -> Iterator[Claim]:
    for mode in documents["leakage"]["modes"]:
        name, cases, verdicts = mode["mode"], mode["cases"], mode["verdicts"]
        for verdict, found, told, forbidden in (
            ("LABEL_DEPENDENT", verdicts["LABEL_DEPENDENT"]["cases"],
             "cases whose conflicts change with the hidden label, traces fixed",
             "that conflicts which do not change reveal nothing"),
            ("SINGLETON_REVEAL", verdicts["SINGLETON_REVEAL"]["cases_with_any"],
             "cases in which a planted component stands alone in a conflict",
             "that a solver which returns it has localised anything"),
            ("RESIDUAL_EMPTY", cases - verdicts["RESIDUAL_EMPTY"]["cases_with_residual"],
             "cases with nothing left to choose after propagation",
             "that solvers which agree there are equal, or that what is left in other cases is hard"),
        ):  # fmt: skip
            yield Claim(
                f"audit.{name}.{verdict.lower()}", "audit", f"planted pairs in development, conflicts of {name}",
                found, cases, _share(told, found, cases), None, None, _described(cases), forbidden,
            )  # fmt: skip


def _solvers(documents: Documents) -> Iterator[Claim]:
    yield Claim(
        "solver.exact_mhs_advantage", "solver", "planted pairs in development", None, None,
        {"name": "planted pairs recovered by exact minimum hitting sets less those by greedy", "value": None}, None,
        None, "WITHDRAWN",
        "that exact search localises faults better than greedy, or that it does not: conflicts that name the planted "
        "components leave it no choice",
    )  # fmt: skip
    for mode in documents["leakage"]["modes"]:
        same, cases = mode["solvers"]["same_supports"], mode["cases"]
        yield Claim(
            f"solver.comparison.{mode['mode']}", "solver", f"planted pairs in development, conflicts of {mode['mode']}",
            same, cases, _share("cases in which exact and greedy return the same support", same, cases), None,
            "not estimable where no case has anything left to choose", mode["solvers"]["comparison"],
            "a ranking of solvers: development cases, and equal supports where propagation had forced them",
        )  # fmt: skip


def _localisation(documents: Documents) -> Iterator[Claim]:
    yield Claim(
        "solver.localisation", "solver", "cases of the formal grid", None, None,
        {"name": "planted faults found by a solver", "value": None}, None, None, "NOT_ESTIMABLE",
        "that a detection says where the fault is: the formal grid asks of each component by itself",
    )  # fmt: skip


CLAIMS: Final[tuple[Callable[[Documents], Iterator[Claim]], ...]] = (
    _execution, _reference, _runtime, _components, _false_admission, _sensitivity, _power, _traffic, _within, _family,
    _drift, _refresh, _audit, _solvers, _localisation,
)  # fmt: skip


def _share(name: str, numerator: int, denominator: int) -> dict[str, str | float | None]:
    return {"name": name, "value": round(numerator / denominator, 9) if denominator else None}


def _bound(bound: float | None) -> dict[str, str | float | None]:
    return {"name": f"one-sided exact (Clopper-Pearson) {100 * CONFIDENCE:.0f} % upper bound", "value": bound}


def _below(bound: float | None) -> list[float | None] | None:
    return None if bound is None else [None, bound]


def _held(rule: bool | None) -> Status:
    """Whether a frozen rule held; None: there was nothing to hold it against."""
    return "NOT_ESTIMABLE" if rule is None else "CONFIRMED" if rule else "NOT_CONFIRMED"


def _described(denominator: int) -> Status:
    """Of a share without a rule."""
    return "DESCRIPTIVE" if denominator else "NOT_ESTIMABLE"
