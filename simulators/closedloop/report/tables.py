"""The tables of the study's report, published figures beside ours."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from simulators.closedloop import published
from simulators.closedloop.leakage import mode_rows, published_rows
from simulators.closedloop.loop import COMPONENTS, FAMILIES, PARTITIONS, REGIMES, TARGETS, component_name
from simulators.closedloop.report.cells import UNDEFINED, interval, number, share
from simulators.closedloop.report.study import Study
from simulators.report.document import Table

FAMILY_NAME = {"uniform": "uniform", "flow_weighted": "flow-weighted"}
SHORT_STATE = {"REFERENCE_ABSTAIN": "reference", "RUNTIME_ABSTAIN": "runtime", "SIGNAL_ELIGIBLE": "eligible"}
"""State of a unit → what stopped it, or that nothing did."""


def admitted(study: Study) -> int:
    """Units past the reference gate."""
    return sum(state != "REFERENCE_ABSTAIN" for *_, state in study.units)


def coverage(study: Study) -> Table:
    """Units and components past each gate."""
    eligible = sum(state == "SIGNAL_ELIGIBLE" for *_, state in study.units)
    return Table(
        ("what", "ours", "published"),
        (
            ("units past the reference gate", share(admitted(study), len(study.units)),
             share(published.REFERENCE_ADMITTED, published.UNITS)),
            ("of those, past the runtime gate", share(eligible, admitted(study)),
             share(published.RUNTIME_ADMITTED, published.REFERENCE_ADMITTED)),
            ("components represented past the reference gate", share(study.calibration["represented"], COMPONENTS),
             share(published.REPRESENTED, published.COMPONENTS)),
        ),
        "Coverage",
    )  # fmt: skip


def units(study: Study) -> Table:
    """A row for each component: what its unit is in each regime."""
    told = {(regime, component): (ours, now, state) for regime, component, ours, now, state in study.units}

    def cells(component: int) -> Iterator[str]:
        yield f"{component_name(component)} ({component})"
        for regime in REGIMES:
            ours, now, state = told[regime, component]
            counts = f"{ours}" if now is None else f"{ours}, {now}"
            yield f"{SHORT_STATE[state]} ({counts})"

    return Table(
        ("component", *(f"λ0 = {regime}" for regime in REGIMES)),
        tuple(tuple(cells(component)) for component in range(COMPONENTS)),
        f"Units: eligible, or the gate that abstains; partitions of {PARTITIONS} with support in the reference, and the"
        " least joint count over the cases where it was asked",
    )


def cutoffs(study: Study) -> Table:
    """What the development schedule showed at each cutoff."""
    shown = study.protocol["cutoff"]["shown"]
    return Table(
        ("cutoff", "most partitions in which a unit signalled", "stable units", "expected stable units"),
        tuple(
            (str(one["cutoff"]), share(one["worst"], PARTITIONS), share(one["stable"], shown["units"]),
             number(one["expected"]))
            for one in shown["cutoffs"]
        ),
        "The cutoff: clean development episodes",
    )  # fmt: skip


def calibration(study: Study) -> Table:
    """False admissions and their bound."""
    found, sensitivity = study.calibration, study.calibration["sensitivity"]

    def row(name: str, of: dict[str, object]) -> tuple[str, ...]:
        bound = of["bound"]
        return (
            name,
            share(of["false_admissions"], int(str(of["represented"]))),
            number(bound if isinstance(bound, float) else None),
        )

    return Table(
        ("components", "falsely admitted", "one-sided exact 95 % bound"),
        (
            row("represented past the reference gate", dict(found)),
            row("of those, with a unit past the runtime gate in the null (sensitivity)", sensitivity),
            ("published: represented", share(published.FALSE_ADMISSIONS, published.REPRESENTED),
             number(published.FALSE_ADMISSION_BOUND)),
        ),
        f"Stable false admissions; the frozen rule is a bound of at most {found['threshold']}",
    )  # fmt: skip


def detections(study: Study) -> Table:
    """Detections at each target, ours and published."""
    of = study.analysis["admitted"]
    rows = []
    for family in FAMILIES:
        name = FAMILY_NAME[family]
        rows.append((f"{name}, ours of {of}", *map(str, study.analysis["detections"][family])))
        rows.append(
            (f"{name}, published of {published.RUNTIME_ADMITTED}", *map(str, published.DETECTIONS[family]))
        )  # fmt: skip
    return Table(("masks", *(f"τ {target}" for target in TARGETS)), tuple(rows), "Units stable in both directions")


def models(study: Study) -> Table:
    """NLL of both coordinates, pooled and within each family, beside the published difference."""
    named = {"all arms": study.analysis["models"]}
    named |= {f"{FAMILY_NAME[family]} arms": study.analysis["within_family"][family] for family in FAMILIES}
    rows = [
        (name, number(of["traffic"]["nll"]), number(of["fraction"]["nll"]), number(of["difference"]),
         interval(of["interval"]))
        for name, of in named.items()
    ]  # fmt: skip
    rows.append(
        ("published: all arms", UNDEFINED, UNDEFINED, number(published.DIFFERENCE),
         interval(published.DIFFERENCE_INTERVAL))
    )  # fmt: skip
    return Table(
        ("rows", "NLL of traffic", "NLL of fraction", "difference", "95 % component-cluster interval"), tuple(rows),
        f"Models of stable detection over {study.analysis['rows']} unit-arm rows, nats a row",
    )  # fmt: skip


def family(study: Study) -> Table:
    """What the mask's family adds to traffic."""
    found = study.analysis["family"]
    return Table(
        ("", "gain, nats a row", "upper end of its interval", f"{found['rule']} less that"),
        tuple(
            (name, number(gain), number(bound), number(None if bound is None else found["rule"] - bound))
            for name, gain, bound in (
                ("ours", found["gain"], found["bound"]),
                ("published", published.FAMILY_GAIN, published.FAMILY_BOUND),
            )
        ),
        "What the family of the mask, and its interaction, add to affected traffic",
    )


def drift(study: Study) -> Table:
    """Scores of the alarm by stream."""
    rows = [
        (f"fitted to λ0 = {policy['regime']}", f"λ0 = {stream['demand']}, {stream['block']}",
         number(policy["limit"], 2), number(median(stream["scores"]), 2),
         share(stream["alarms"], len(stream["scores"])))
        for policy in study.drift["policies"]
        for stream in policy["streams"]
    ]  # fmt: skip
    return Table(
        ("policy", "demand, block", "limit", "median score", "partitions with an alarm"), tuple(rows),
        f"The drift alarm, α = {study.drift['alpha']}",
    )  # fmt: skip


def leakage(study: Study) -> Table:
    """The audit, a row for each way of compiling conflicts."""
    head, *rows = mode_rows(study.leakage)
    return Table(head, tuple(rows), "The leakage audit: cases of each verdict by how conflicts are compiled")


def published_leakage(study: Study) -> Table:
    """The published audit beside ours."""
    head, *rows = published_rows(study.leakage)
    return Table(head, tuple(rows), "The published audit, and our figure that comes nearest")


def ledger(study: Study) -> Table:
    """Every claim by itself."""
    rows = [
        (
            claim["id"], claim["status"], share(claim["numerator"], claim["denominator"]), claim["estimator"]["name"],
            number(claim["estimator"]["value"]), interval(claim["interval"]), claim["frozen_rule"] or UNDEFINED,
            claim["forbidden_inference"],
        )
        for claim in study.claims
    ]  # fmt: skip
    return Table(
        ("claim", "status", "count", "estimator", "value", "interval", "frozen rule", "must not be inferred"),
        tuple(rows), "The claim ledger",
    )  # fmt: skip
