"""The text of the study's report: coverage, calibration, power, coordinates, alarm, audit, and the ledger."""

from __future__ import annotations

from collections.abc import Iterator

from simulators.closedloop import published
from simulators.closedloop.loop import FAMILIES
from simulators.closedloop.report import tables
from simulators.closedloop.report.cells import interval, number, share
from simulators.closedloop.report.study import Study
from simulators.report.document import Block, Document, Heading, Paragraph, Picture


def document(study: Study) -> Document:
    """The whole report of a study."""
    parts = (_opening, _coverage, _cutoff, _calibration, _power, _coordinates, _family, _drift, _leakage, _ledger)
    return Document(tuple(block for part in parts for block in part(study)))


def _opening(study: Study) -> Iterator[Block]:
    hashes, commit = study.protocol["hashes"], study.protocol.get("commit") or {}
    made = commit.get("id") or commit.get("reason") or "unknown"
    changes = ", with uncommitted changes" if commit.get("dirty") else ""
    yield Heading(1, "Verifier study report")
    yield Paragraph(
        "Is the evidence of a verifier eligible, and does it not name the answer? The design of the paper, repeated on "
        "a simulated control loop: a slice that spends a finite PRB credit. Published figures are the paper's, of "
        "another simulator and policy; they stand beside ours and are no target. Each claim is told by itself: whether "
        "the study ran, whether it is safe, and what it shows are different questions, and nothing here adds them up."
    )
    yield Paragraph(
        f"The formal grid, as in the paper: {published.CASES:,} cases, {published.ROWS:,} partition rows, "
        f"{published.EPISODES:,} episodes. Episodes are Monte Carlo trajectories, not independent units; components "
        f"are what safety and intervals count. Master seed {study.protocol['seeds']['master']}, cutoff "
        f"{study.protocol['cutoff']['chosen']}, protocol {hashes['frozen']}, code {hashes['code']}, commit "
        f"{made}{changes}. That the saved rows are what they should be is what `wirelessops study validate` checks; "
        "this report takes them as they are."
    )


def _coverage(study: Study) -> Iterator[Block]:
    yield Heading(2, "Coverage: what the verifier does not answer for")
    yield tables.coverage(study)
    yield Picture(
        "figure-coverage",
        "Units by component and regime: eligible, or the gate that abstains; the number is the fewest of 15 partitions "
        "with support, in the reference and in any case.",
    )
    yield Paragraph(
        "An abstention says that the policy does not go there often enough to be judged there. It is no missing value "
        "to be imputed, and neither a pass nor a failure of the unit."
    )
    yield tables.units(study)


def _cutoff(study: Study) -> Iterator[Block]:
    yield Heading(2, "The cutoff")
    yield Paragraph(
        f"Chosen: {study.protocol['cutoff']['chosen']} (published: {published.CUTOFF}), by {_rule(study)}. The formal "
        "reference, the cases and the null were not looked at."
    )
    yield tables.cutoffs(study)


def _rule(study: Study) -> str:
    return str(study.protocol["cutoff"]["rule"])


def _calibration(study: Study) -> Iterator[Block]:
    found = study.calibration
    yield Heading(2, "Calibration: false admission in a clean stream")
    yield tables.calibration(study)
    yield Paragraph(
        f"Claim safety.false_admission: {found['status']}. {share(found['false_admissions'], found['represented'])} "
        "represented components; where none was seen, the rate is not shown to be zero: the bound is the claim. "
        f"{found['represented'] - found['sensitivity']['represented']} of them abstain in the null and could not be "
        "admitted, so that a zero of theirs is no evidence; the sensitivity leaves them out."
    )
    yield Picture(
        "figure-calibration",
        "The most partitions, of 15, in which a reference-admitted unit of each component signalled in the clean null.",
    )


def _power(study: Study) -> Iterator[Block]:
    yield Heading(2, "Power: detections by affected traffic")
    yield Picture("figure-power", "Units past both gates that are stable in both directions, by target of τ.")
    yield tables.detections(study)
    for family in FAMILIES:
        holds = study.analysis["nondecreasing"][family]
        falls = "of nobody do nothing" if holds is None else "do not fall" if holds else "fall somewhere"
        yield Paragraph(f"{tables.FAMILY_NAME[family].capitalize()} masks: counts {falls} from a target to the next.")


def _coordinates(study: Study) -> Iterator[Block]:
    yield Heading(2, "Power: traffic or the size of the edit")
    yield Picture(
        "figure-coordinates",
        "Arms detected in eight bands of equally many arms of a family, by affected clean traffic and by nominal "
        "fraction of cells, and the logistic model of each.",
    )
    yield tables.models(study)
    yield Picture(
        "figure-difference",
        "By how much the loss of the fraction's model exceeds that of traffic's; 95 % component-cluster intervals.",
    )
    clusters, draws = study.analysis["bootstrap"]["clusters"], study.analysis["bootstrap"]["draws"]
    yield Paragraph(
        f"Intervals: percentiles 2.5 and 97.5 of {draws:,} bootstrap draws over {clusters} components, models refitted "
        "in each. The pooled difference is not that of either family: a flow-weighted mask touches much traffic by few "
        f"cells and a uniform one does not, so part of it lies between families. {_within(study)}"
    )


def _within(study: Study) -> str:
    told = []
    for family in FAMILIES:
        found = study.analysis["within_family"][family]
        if found["difference"] is None:
            told.append(f"Within {tables.FAMILY_NAME[family]} masks nothing can be estimated.")
            continue
        low = found["interval"][0]
        side = "above 0" if low > 0 else "not above 0"
        told.append(
            f"Within {tables.FAMILY_NAME[family]} masks it is {number(found['difference'])} "
            f"{interval(found['interval'])}: the interval lies {side}."
        )
    return " ".join(told)


def _family(study: Study) -> Iterator[Block]:
    clusters = study.analysis["bootstrap"]["clusters"]
    status = next(claim["status"] for claim in study.claims if claim["id"] == "structure.family_sufficiency")
    yield Heading(2, "Is traffic enough: what the family of the mask adds")
    yield tables.family(study)
    yield Paragraph(
        f"Claim structure.family_sufficiency: {status}. A percentile bootstrap over {clusters} clusters may undercover "
        "in favour of sufficiency; a bound below the rule does not show that families have equal coefficients, nor one "
        "above it that the family matters."
    )


def _drift(study: Study) -> Iterator[Block]:
    refresh = study.drift["refresh"]
    yield Heading(2, "The drift alarm")
    yield Picture(
        "figure-drift",
        "Scores over their limit, a point a partition: green under the demand that the reference was taken in, orange "
        "under another.",
    )
    yield tables.drift(study)
    yield Paragraph(
        "An alarm asks for a refresh of the reference map. It is no fault, and nothing is detected by it; how it "
        "answers a fault is not told, since no partition under one was scored. Refresh, "
        f"{refresh['label']}: after alarms of {share(refresh['asked'], len(study.drift['policies']))} policies, the "
        f"refresh came round to the same limit in {refresh['limit_unchanged']}, from {refresh['buffer']}. It shows "
        "that the path can be walked, and nothing of repair after real drift."
    )


def _leakage(study: Study) -> Iterator[Block]:
    yield Heading(2, "The leakage audit")
    yield Paragraph(
        "Twelve planted pairs in development, conflicts compiled in four ways. LABEL_DEPENDENT: with the traces as "
        "they are, another hidden label gives other conflicts. SINGLETON_REVEAL: a planted component stands alone in a "
        "conflict. RESIDUAL_EMPTY: after propagation no case has anything left to choose, so that comparing solvers is "
        "NOT_ESTIMABLE, whatever they score. None of the three stands for another."
    )
    yield Picture(
        "figure-leakage",
        "Cases, of twelve, whose conflicts follow the hidden label, in which a planted component stands alone, and in "
        "which nothing is left to choose, by how conflicts are compiled.",
    )
    yield tables.leakage(study)
    yield tables.published_leakage(study)


def _ledger(study: Study) -> Iterator[Block]:
    yield Heading(2, "The claim ledger")
    yield Paragraph(
        "A claim has its own population, rule and status, and says what must not be inferred from it. EXECUTED says "
        "that it ran, and nothing more. There is no row that sums up the others."
    )
    yield tables.ledger(study)
