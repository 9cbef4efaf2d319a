"""The report's text: what was measured and how, then each table and figure of the paper in its order."""

from __future__ import annotations

from collections.abc import Iterator

from simulators.optbench import published
from simulators.optbench.ablations import ABLATIONS
from simulators.optbench.report import tables, variants
from simulators.optbench.report.measured import CALIBRATED_BY, FULL, Measured
from simulators.optbench.scoring.bootstrap import DRAWS
from simulators.optbench.synthetic import MENDED
from simulators.report.document import Beside, Block, Document, Heading, Paragraph, Picture

_EVALUATOR = {
    "corrected": "counts a disagreement as a conflict only where it is material",
    "frozen": "counts a disagreement within tolerance as a conflict, as the paper's frozen evaluator did",
}
_SCORER = {
    "strict": "scores a calculation off by 10^±3, 10^±6, 2 or ½ as 0, as the published text says",
    "published": "scores a calculation off by 10^±3 or 10^±6 as .5, and by 2 or ½ as .3, as the published code does",
}


def document(measured: Measured) -> Document:
    """The whole report of what was measured."""
    parts = (_opening, _suite, _metrics, _stress, _survival, _repair, _routing, _confusion, _conditions, _gains,
             _variants, _records)  # fmt: skip
    return Document(tuple(block for part in parts for block in part(measured)))


def _opening(measured: Measured) -> Iterator[Block]:
    manifest = measured.suite.manifest
    yield Heading(1, "WirelessOptBench report")
    if measured.synthetic:
        pairs = "; ".join(
            f"{name} after {CALIBRATED_BY[name]}" for name in measured.backbones if name in CALIBRATED_BY
        )
        yield Paragraph(
            f"Synthetic proposers, not language models: {_listed(measured)}. Such a proposer draws its proposals by "
            f"the error rates before repair that table IV of the paper gives ({pairs}); its other error rates are a "
            "choice of this software. Its rows say what each workflow does to the same raw proposals. They are not "
            "comparable with the published rows as results of models, and nothing is tuned to table III. "
            "Whatever is headed as published is the paper's, with its language models, on its own episodes."
        )
    yield Paragraph(
        f"Evaluator: {measured.evaluator}, which {_EVALUATOR[measured.evaluator]}. Scorer: {measured.scorer}, which "
        f"{_SCORER[measured.scorer]}. Intervals: the 2.5th and 97.5th percentiles of {DRAWS:,} bootstrap draws, "
        "stratified by task; differences are paired by episode. Invalid outputs stay in every denominator. A dash: "
        "undefined, for there is nothing to count."
    )
    yield Paragraph(
        f"Suite: {len(measured.suite.cases)} episodes, split {manifest['split']}, seed {manifest['seed']}, digest "
        f"{measured.suite.digest}, generator {manifest['generator']}. Version of this software: {measured.version}."
    )


def _suite(measured: Measured) -> Iterator[Block]:
    yield Heading(2, "Table I: the suite")
    yield Beside((tables.composition(measured.suite.cases), tables.origins(measured)))


def _metrics(measured: Measured) -> Iterator[Block]:
    yield Heading(2, "Table II: the metrics")
    yield Paragraph("Score 0 to 1. N counts every output, invalid ones too; N_A the references that are APPLY.")
    yield tables.definitions()


def _stress(measured: Measured) -> Iterator[Block]:
    yield Heading(2, "Table III: stress results")
    yield Paragraph(
        "Rows of always-apply and always-block show what is earned by one action, whatever the evidence says. The best "
        "baseline is the one that is best at a metric on these very episodes, which favours the baselines. A row with "
        "many invalid outputs (calls that failed, replies that do not read) says little of its method."
    )
    yield from map(Paragraph, _meaning(measured))
    for backbone in measured.backbones:
        yield Heading(3, f"Stress results: {backbone}")
        beside = measured.published_beside(backbone)
        results = tables.stress_results(measured, backbone)
        yield results if beside is None else Beside((results, tables.published_stress_results(beside)))
        yield tables.against_best_baseline(measured, backbone)
        yield tables.without_nominal_answers(measured, backbone)
    apart = measured.published_apart()
    if apart:
        yield Heading(3, "Stress results as published")
        yield Beside(tuple(map(tables.published_stress_results, apart)))


def _meaning(measured: Measured) -> Iterator[str]:
    """What the rows of table III say, and what they do not."""
    yield (
        "What a row of WirelessOpsAgent near 1 says: labels follow the same written policy that the guard implements, "
        "the contracts set override_intent, so that its action is its own and not the proposer's, and every planned "
        "value can be computed from evidence. An implementation without faults gives such a row, whatever the "
        "proposer. It measures that the rules are kept over 32 families and what proposals need repair, not the "
        "intelligence of the backbone."
    )
    yield (
        "Task and OPS of that row on refusals rest on the nominal answer: where evidence is blocked, the answer is "
        "rebuilt from the task's own statement with the same tools that the baselines may call, and nothing of it is "
        "executed. The table of the agent without nominal answers takes it away: what the evidence supports makes the "
        "answer, and the rest is the proposer's word."
    )
    if measured.synthetic:
        yield (
            f"{_listed(measured)} do not read prompts: what a method shows them changes nothing that they propose, so "
            "Task is the same for Direct, its variants and WirelessAgent++ + contract. A critique they do heed: each "
            f"thing disputed is put right with probability {MENDED}, and then with the right value, on which the "
            "CRITIC style row rests."
        )


def _survival(measured: Measured) -> Iterator[Block]:
    yield Heading(2, "Figure 4: OPS survival")
    yield Picture(
        "figure-4-survival",
        f"OPS survival over {len(measured.suite.cases)} episodes for each method on each backbone: the share of "
        "episodes with an OPS of at least τ. At τ = 0 all survive; the step right of it is the share with an OPS of "
        "exactly 0, the unsafe ones among them, which the table gives.",
    )
    yield tables.survivors(measured)


def _repair(measured: Measured) -> Iterator[Block]:
    yield Heading(2, "Table IV: APPLY before and after repair")
    if measured.synthetic:
        yield Paragraph("The rows before repair of synthetic proposers agree with the published ones by construction.")
    yield tables.repair(measured)


def _routing(measured: Measured) -> Iterator[Block]:
    yield Heading(2, "Figure 5: where proposals of APPLY went")
    yield Picture(
        "figure-5-routing",
        "Final routing of proposals initially marked APPLY. Bars are normalised by the count above them. Conditions: "
        "schema/unit (S/U), freshness/order (F/O), availability/brownout (A/B), conflict/provenance (C/P), mixed "
        "evidence.",
    )
    yield tables.routes(measured)
    yield tables.published_routes()


def _confusion(measured: Measured) -> Iterator[Block]:
    yield Heading(2, "Figure 6: confusion of actions")
    yield Picture(
        "figure-6-confusion",
        f"Row-normalised confusion of actions, averaged over {_counted(len(measured.backbones), 'backbone')} "
        f"({', '.join(measured.backbones)}{_kind(measured)}). Rows are reference actions; what a row lacks to 1 are "
        "invalid outputs.",
    )


def _conditions(measured: Measured) -> Iterator[Block]:
    yield Heading(2, "Table V: WirelessOpsAgent by condition")
    yield Paragraph(
        "Macro averaged over the three tasks. The frozen evaluator takes a disagreement within tolerance for a "
        "conflict, and so calls right decisions in conflict/provenance unsafe; the paper retains its score for "
        "reproducibility and excludes that slice from its claims. Here both are shown. Of the right APPLY decisions of "
        f"WirelessOpsAgent there, the frozen evaluator calls unsafe {', '.join(_marked(measured))}; "
        f"{tables.of(*published.MARKED_UNSAFE[FULL])} as published."
    )
    for backbone in measured.backbones:
        shown = [tables.conditions(measured, backbone, kind) for kind in ("corrected", "frozen")]
        if backbone == measured.backbones[0]:
            shown.append(tables.published_conditions())
        yield Beside(tuple(shown))
    yield tables.artefacts(measured)
    yield Paragraph(
        "The conflicts here are values that differ beyond tolerance, and lineages that the ledger does not hold. The "
        "CRITIC style workflow looks at what is cited and at what else the ledger tells of the field, not at what that "
        "was computed from: a lost lineage it does not find."
    )


def _marked(measured: Measured) -> Iterator[str]:
    for backbone in measured.backbones:
        found = tables.artefact(measured, FULL, backbone)
        yield f"{tables.of(found.frozen, found.right)} with {backbone} (the corrected one {found.corrected})"


def _gains(measured: Measured) -> Iterator[Block]:
    yield Heading(2, "Figure 7: gain over the strongest baseline")
    yield Picture(
        "figure-7-gains",
        "Gain in exact action accuracy over the strongest baseline in each cell of backbone, task and condition, in "
        "percentage points. A negative cell would be orange.",
    )
    for backbone in measured.backbones:
        yield tables.gain_table(measured, backbone)
    yield from map(tables.published_gain_table, measured.published_apart())


def _variants(measured: Measured) -> Iterator[Block]:
    yield Heading(2, "Table VI: ablations")
    for backbone in measured.backbones:
        if any(variant in ABLATIONS for variant in measured.methods(backbone)):
            yield Beside((variants.matched(measured, backbone), variants.published_matched()))
            yield Paragraph(
                "As expected: what rises or falls does so by its whole interval; what stays moves by no more "
                f"than {variants.STAYS_WITHIN}; not better is 0 or worse. The paper names no-memory without measuring "
                "it, and its own changes come without intervals."
            )
            yield from map(Paragraph, _alike(measured, backbone))
            yield variants.directions(measured, backbone)


def _records(measured: Measured) -> Iterator[Block]:
    yield Heading(2, "Records, clean fields, overwrites")
    yield Paragraph(
        "Beside the primary metrics: whether there is a record, whether all of its claims hold, whether plan fields "
        "that were right came out as they went in, and how many fields were overwritten by older evidence. The paper "
        "publishes 1.000 for clean fields and 0 overwrites for the full agent and every variant."
    )
    yield Paragraph(
        "Clean fields and overwrites do not vary where a method touches only what failed and supports a field only by "
        "current evidence, or rewrites nothing at all. What would move them: a workflow that lets the backbone rewrite "
        "its whole plan, a repair beyond the fields that failed, a record that cites an older report beside a "
        "dependable newer one."
    )
    yield tables.records(measured)


def _listed(measured: Measured) -> str:
    return ", ".join(name for name in measured.backbones if name in measured.synthetic)


def _kind(measured: Measured) -> str:
    if not measured.synthetic:
        return ""
    every = all(backbone in measured.synthetic for backbone in measured.backbones)
    return "; synthetic" if every else f"; synthetic: {_listed(measured)}"


def _alike(measured: Measured, backbone: str) -> Iterator[str]:
    """Why some variants cannot differ here."""
    if backbone in measured.synthetic:
        yield (
            "monitor-only and no-utility-repair give the same numbers here: they differ in whether names and units of "
            "the proposer's plan are put into the contract's terms, and synthetic proposals never write an alias or a "
            "compatible unit into a plan."
        )
    yield (
        "no-memory changes nothing here: the only memory that a family offers is stale, and the full agent does not "
        "admit it either."
    )


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
