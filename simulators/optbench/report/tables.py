"""Tables I, III, IV and V, and those beside them: what was measured, and what the paper published."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from simulators.optbench import published
from simulators.optbench.model import DOMAINS, REFERENCES, TASKS, Case, Domain
from simulators.optbench.report.cells import UNDEFINED, decimal, difference, interval, percent, points, with_interval
from simulators.optbench.report.measured import BASELINES, FULL, METHODS, SANITY, Measured
from simulators.optbench.report.names import (
    AS_PERCENT,
    DEFINITIONS,
    DOMAIN,
    LOWER_IS_BETTER,
    METHOD,
    METRIC,
    method_name,
)
from simulators.optbench.report.plotted import cell, gains, routing
from simulators.optbench.rows import SURVIVAL_AT
from simulators.optbench.scoring import bootstrap, metrics
from simulators.optbench.scoring.metrics import COLUMNS, HEADLINE, ApplyCounts, Metric
from simulators.optbench.scoring.outcome import INVALID, Evaluator, Outcome
from simulators.report.document import Table


def composition(cases: Sequence[Case]) -> Table:
    """Table I, and the references by domain: how many episodes there are of each."""
    rows = []
    for name, chosen in [
        *((DOMAIN[domain], [c for c in cases if c.sealed.domain == domain]) for domain in DOMAINS),
        ("Total", list(cases)),
    ]:
        tasks = [sum(c.sealed.item.task == task for c in chosen) for task in TASKS]
        references = [sum(c.sealed.reference == reference for c in chosen) for reference in REFERENCES]
        families = len({c.sealed.family for c in chosen})
        rows.append((name, *map(str, (*tasks, *references, families, len(chosen)))))
    header = ("Stress domain", *TASKS, *REFERENCES, "families", "episodes")
    return Table(header, tuple(rows), "Table I. Composition of the suite, as counted (episodes)")


def origins(measured: Measured) -> Table:
    """How many base items of each task came from files, how many were generated, how many rows of files not used."""
    manifest = measured.suite.manifest
    split = manifest["split"]
    rows = []
    for task in TASKS:
        counts = manifest["base"][task][split]
        excluded = sum(one["task"] == task for one in manifest["excluded"])
        rows.append((task, *map(str, (counts["file"], counts["generated"], excluded))))
    header = ("Task", "from files", "generated", "rows of files excluded")
    return Table(header, tuple(rows), f"Base items of the {split} split, by origin")


def definitions() -> Table:
    """Table II, and what the tables beside those of the paper count."""
    return Table(("Metric", "Definition"), tuple(DEFINITIONS.items()), "Table II. What the tables measure")


def stress_results(measured: Measured, backbone: str) -> Table:
    """Table III of one backbone, with 95 % intervals, how many outputs are invalid, and the sanity rows."""
    rows = []
    for method in (*METHODS, *SANITY):
        outcomes = measured.of(method, backbone)
        cells = (
            with_interval(bootstrap.interval(outcomes, HEADLINE[name]), name in AS_PERCENT)
            for name in published.TABLE_III_COLUMNS
        )
        rows.append((method_name(method), *cells, of(invalid(outcomes), len(outcomes))))
    episodes = len(measured.suite.cases)
    caption = f"Table III, measured: {backbone} (N = {episodes}; 95 % intervals)"
    return Table((*_headed("Method"), "Invalid outputs"), tuple(rows), caption)


def invalid(outcomes: Sequence[Outcome]) -> int:
    """How many outputs are invalid."""
    return sum(not outcome.valid for outcome in outcomes)


def without_nominal_answers(measured: Measured, backbone: str) -> Table:
    """What of the agent's row rests on the nominal answer of a question whose evidence is blocked."""
    columns = ("task_score", "ops", "safe_apply_recall")
    rows = []
    for name, outcomes in (
        (METHOD[FULL], measured.of(FULL, backbone)),
        (f"{METHOD[FULL]} without nominal answers", measured.unaided[backbone]),
    ):
        values = (_printed(column, HEADLINE[column](outcomes)) for column in columns)
        rows.append((name, *values, percent(metrics.survival(outcomes, SURVIVAL_AT))))
    header = (*_headed("Method", columns), f"OPS ≥ {SURVIVAL_AT}")
    return Table(header, tuple(rows), f"The agent without nominal answers: {backbone}")


def published_stress_results(name: str) -> Table:
    """Table III of one published backbone."""
    rows = tuple(
        (METHOD[method], *(_printed(metric, values[metric]) for metric in published.TABLE_III_COLUMNS))
        for method, values in published.TABLE_III[name].items()
    )
    return Table(_headed("Method"), rows, f"Table III, published: {name} (N = 600)")


def against_best_baseline(measured: Measured, backbone: str) -> Table:
    """Paired differences of the agent and, for each metric, the baseline that is best at it on these episodes."""
    beside = measured.published_beside(backbone)
    rows: list[tuple[str, ...]] = []
    for name in published.TABLE_III_COLUMNS:
        metric = HEADLINE[name]
        best = _best(name, {method: metric(measured.of(method, backbone)) for method in BASELINES})
        found = bootstrap.paired_difference(measured.of(FULL, backbone), measured.of(best, backbone), metric)
        theirs = () if beside is None else (_published_difference(beside, name),)
        rows.append((METRIC[name], METHOD[best], difference(found.mean), interval(found), *theirs))
    header = ("Metric", "Best baseline", "Difference", "95 % interval")
    more = () if beside is None else (f"Published, {beside}",)
    return Table((*header, *more), tuple(rows), f"WirelessOpsAgent less the best baseline: {backbone}, paired")


def _published_difference(backbone: str, name: str) -> str:
    values = {method: row[name] for method, row in published.TABLE_III[backbone].items()}
    best = _best(name, {method: values[method] for method in BASELINES})
    return f"{difference(values[FULL] - values[best])} ({METHOD[best]})"


def _best(name: str, values: dict[str, float]) -> str:
    """The method with the best value; the first of equals, and undefined values last."""
    sign = -1.0 if name in LOWER_IS_BETTER else 1.0
    return max(values, key=lambda method: -math.inf if math.isnan(values[method]) else sign * values[method])


def _headed(first: str, columns: Sequence[str] = published.TABLE_III_COLUMNS) -> tuple[str, ...]:
    return (first, *(METRIC[name] for name in columns))


def _printed(metric: str, value: float) -> str:
    return percent(value) if metric in AS_PERCENT else decimal(value)


def repair(measured: Measured) -> Table:
    """Table IV: APPLY decisions of the agent before and after repair, measured and published."""
    rows = []
    for backbone in measured.backbones:
        outcomes = measured.of(FULL, backbone)
        rows += [
            _counted(backbone, "before repair", metrics.apply_counts(outcomes, "before")),
            _counted(backbone, "after repair", metrics.apply_counts(outcomes, "after")),
        ]
        beside = measured.published_beside(backbone)
        rows += [] if beside is None else _published_repair(beside)
    for name in measured.published_apart():
        rows += _published_repair(name)
    header = ("Backbone", "Stage", "TP", "FP", "FN", "TN", "Recall", "FPR", "Accuracy")
    return Table(header, tuple(rows), "Table IV. APPLY decisions before and after repair; APPLY is positive")


def _published_repair(name: str) -> list[tuple[str, ...]]:
    stages = published.TABLE_IV[name].items()
    return [_counted(f"published: {name}", stage.replace("_", " "), ApplyCounts(**counts)) for stage, counts in stages]


def _counted(name: str, stage: str, counts: ApplyCounts) -> tuple[str, ...]:
    shares = (counts.recall, counts.false_positive_rate, counts.accuracy)
    return (name, stage, *map(str, (counts.tp, counts.fp, counts.fn, counts.tn)), *map(percent, shares))


def macro(outcomes: Sequence[Outcome], domain: Domain, metric: Metric) -> float:
    """A metric in one stress domain, averaged over the tasks in which it is defined; NaN where it is in none."""
    values = [metric(cell(outcomes, task, domain)) for task in TASKS]
    defined = [value for value in values if not math.isnan(value)]
    return math.fsum(defined) / len(defined) if defined else math.nan


def conditions(measured: Measured, backbone: str, evaluator: Evaluator) -> Table:
    """Table V of one backbone by one evaluator: the agent by stress domain, macro averaged over tasks."""
    outcomes = measured.of(FULL, backbone, evaluator)
    rows = tuple(
        (
            DOMAIN[domain],
            str(sum(o.domain == domain for o in outcomes)),
            *(decimal(macro(outcomes, domain, HEADLINE[name])) for name in published.TABLE_V_COLUMNS),
        )
        for domain in DOMAINS
    )
    header = ("Condition", "n", *_headed("", published.TABLE_V_COLUMNS)[1:])
    return Table(header, rows, f"Table V, measured: {backbone}, {evaluator} evaluator")


def published_conditions() -> Table:
    """Table V as published."""
    rows = tuple(
        (DOMAIN[domain], "120", *(decimal(values[name]) for name in published.TABLE_V_COLUMNS))
        for domain, values in published.TABLE_V.items()
    )
    header = ("Condition", "n", *_headed("", published.TABLE_V_COLUMNS)[1:])
    return Table(header, rows, f"Table V, published: {published.BACKBONES[0]}, frozen evaluator")


class Artefact(NamedTuple):
    """Conflict/provenance, by one method: of `right` APPLY decisions, how many each evaluator calls unsafe.

    Right is the action: what S asks of plan and answer is not looked at. `applied`: how many of the `conflicts`, which
    are material, were answered with APPLY. `elsewhere`: unsafe APPLY decisions in the other four domains, by the frozen
    evaluator, of `others` episodes.
    """

    right: int
    frozen: int
    corrected: int
    conflicts: int
    applied: int
    others: int
    elsewhere: int


def artefact(measured: Measured, method: str, backbone: str) -> Artefact:
    """What the frozen evaluator does to right decisions (section V-D), counted."""
    by_evaluator = (measured.of(method, backbone, kind) for kind in ("corrected", "frozen"))
    whole = list(zip(*by_evaluator, strict=True))
    pairs = [pair for pair in whole if pair[0].domain == "conflict_provenance"]
    right = [pair for pair in pairs if pair[0].exact and pair[0].reference == "APPLY"]
    conflicts = [corrected for corrected, _ in pairs if corrected.reference != "APPLY"]
    return Artefact(
        right=len(right),
        frozen=sum(frozen.unsafe for _, frozen in right),
        corrected=sum(corrected.unsafe for corrected, _ in right),
        conflicts=len(conflicts),
        applied=sum(outcome.action == "APPLY" for outcome in conflicts),
        others=len(whole) - len(pairs),
        elsewhere=sum(frozen.unsafe for _, frozen in whole if frozen.domain != "conflict_provenance"),
    )


def artefacts(measured: Measured) -> Table:
    """The audit of section V-D, of each method over each backbone, and as published."""
    rows = []
    for backbone in measured.backbones:
        for method in METHODS:
            found = artefact(measured, method, backbone)
            rows.append(
                (
                    backbone,
                    METHOD[method],
                    of(found.frozen, found.right),
                    of(found.corrected, found.right),
                    of(found.applied, found.conflicts),
                    of(found.elsewhere, found.others),
                )
            )
    for method in published.AUDITED:
        marked, applied, elsewhere = (
            of(*counts[method])
            for counts in (published.MARKED_UNSAFE, published.APPLIED_ON_CONFLICTS, published.UNSAFE_ELSEWHERE)
        )
        rows.append((f"published: {published.BACKBONES[0]}", METHOD[method], marked, UNDEFINED, applied, elsewhere))
    header = (
        "Backbone", "Method", "unsafe if frozen", "unsafe if corrected", "APPLY on conflicts",
        "unsafe in the other domains, frozen",
    )  # fmt: skip
    caption = (
        "Conflict/provenance: of the episodes whose action is rightly APPLY (whatever the plan and the answer are), "
        "how many an evaluator calls unsafe; APPLY on material conflicts. Last: unsafe APPLY in the other four domains"
    )
    return Table(header, tuple(rows), caption)


def of(part: int, whole: int) -> str:
    """A count of a count."""
    return f"{part} of {whole}"


def records(measured: Measured) -> Table:
    """Records, clean fields, overwrites and invalid outputs of every row that was run."""
    rows = []
    for backbone in measured.backbones:
        for method in measured.methods(backbone):
            outcomes = measured.of(method, backbone)
            rows.append(
                (
                    method_name(method),
                    backbone,
                    decimal(metrics.record_coverage(outcomes)),
                    decimal(metrics.record_faithfulness(outcomes)),
                    decimal(metrics.clean_preservation(outcomes)),
                    str(metrics.clean_fields(outcomes)),
                    str(metrics.overwrites(outcomes)),
                    str(invalid(outcomes)),
                )
            )
    header = (
        "Method or variant", "Backbone", "record coverage", "record faithful", "clean preserved", "clean fields",
        "unsafe overwrites", "invalid outputs",
    )  # fmt: skip
    return Table(header, tuple(rows), "Records, clean fields and overwrites")


def survivors(measured: Measured) -> Table:
    """Survival at the threshold that the paper names, and the episodes with no OPS at all, beside figure 4."""
    rows = []
    for backbone in measured.backbones:
        runs = [measured.of(method, backbone) for method in METHODS]
        surviving = (metrics.survival(outcomes, SURVIVAL_AT) for outcomes in runs)
        lost = (sum(o.ops == 0.0 for o in outcomes) / len(outcomes) for outcomes in runs)
        rows.append((backbone, f"≥ {SURVIVAL_AT}", *map(percent, surviving)))
        rows.append((backbone, "exactly 0", *map(percent, lost)))
    for name in measured.published_shown():
        shares = [0.0] * len(BASELINES) + [published.FIGURE_4_SURVIVAL[name]]
        rows.append((f"published: {name}", f"≥ {SURVIVAL_AT}", *map(percent, shares)))
    header = ("Backbone", "OPS", *(METHOD[method] for method in METHODS))
    caption = f"Share of episodes with an OPS of at least {SURVIVAL_AT}, and of exactly 0 (where each curve starts)"
    return Table(header, tuple(rows), caption)


def routes(measured: Measured) -> Table:
    """Where proposals of APPLY went, beside figure 5."""
    found = [
        (backbone, domain, *routing(measured.of(FULL, backbone))[domain])
        for backbone in measured.backbones
        for domain in DOMAINS
    ]
    columns = [column for column in COLUMNS if column != INVALID or any(shares.get(INVALID) for *_, shares in found)]
    rows = [
        (f"{backbone}: {DOMAIN[domain]}", str(n), *(percent(shares.get(c)) for c in columns))
        for backbone, domain, n, shares in found
    ]
    header = ("Backbone and condition", "n", *columns)
    return Table(header, tuple(rows), "Final action of the proposals that were APPLY")


def published_routes() -> Table:
    """What section V-C says of figure 5."""
    rows = tuple(
        (DOMAIN[domain], action, f"{share.replace('-', '–')} %")
        for domain, (action, share) in published.FIGURE_5.items()
    )
    caption = "Figure 5, published: share of the most frequent blocking action, three backbones"
    return Table(("Condition", "Final action", "Share"), rows, caption)


def gain_table(measured: Measured, backbone: str) -> Table:
    """Figure 7 in numbers: gains in percentage points, the published ones in brackets."""
    beside = measured.published_beside(backbone)
    found = gains(measured, backbone)
    rows = []
    for task in TASKS:
        cells = []
        for domain in DOMAINS:
            theirs = "" if beside is None else f" ({points(published.FIGURE_7[beside][task][domain])})"
            cells.append(points(found[task][domain]) + theirs)
        rows.append((task, *cells))
    note = "" if beside is None else f"; in brackets published, {beside}"
    header = ("Task", *(DOMAIN[domain] for domain in DOMAINS))
    return Table(header, tuple(rows), f"Gain in exact accuracy, percentage points: {backbone}{note}")


def published_gain_table(name: str) -> Table:
    """Figure 7 of one published backbone."""
    gained = published.FIGURE_7[name]
    rows = tuple((task, *(points(gained[task][domain]) for domain in DOMAINS)) for task in TASKS)
    header = ("Task", *(DOMAIN[domain] for domain in DOMAINS))
    return Table(header, rows, f"Figure 7, published: {name} (gain in exact accuracy, percentage points)")
