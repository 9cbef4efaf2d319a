"""The leakage audit: does a verifier's evidence name the answer before a solver has chosen anything (section 4, 8.1)?

Twelve development cases, two planted components each. Three verdicts on each way of compiling conflicts, which are
never made one:

- LABEL_DEPENDENT: with the traces fixed, another hidden label gives another conflict family;
- SINGLETON_REVEAL: planted components stand alone in a conflict, counted by what made them stand alone;
- RESIDUAL_EMPTY: after propagation no case has anything left to choose. Then comparing solvers is NOT_ESTIMABLE,
  whatever they score: they were not asked.

The fault of a case shifts every changeable cell of both components, outward in one run and inward in another. The clean
reference is the pilot block, the runs under faults are the development block: disjoint seeds, none of the formal ones.
Faults are planted where both blocks, clean, support the component: elsewhere no verifier could be asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from simulators.closedloop.conflicts import (
    SCOPES,
    SINGLE,
    Compiled,
    Components,
    Conflict,
    Evidence,
    aggregate,
    anchor_on_all,
    anchor_on_planted,
    hard_probe_on_planted,
)
from simulators.closedloop.draws import Uniforms, other_uniforms
from simulators.closedloop.gates import RULE
from simulators.closedloop.hitting import Propagation, Support, exact, greedy, propagate
from simulators.closedloop.loop import COMPONENTS, DIRECTIONS, FAMILIES, PARTITIONS, REGIMES
from simulators.closedloop.masks import cells, shifted
from simulators.closedloop.rollout import traces
from simulators.closedloop.rows import Ints

Verdict = Literal["LABEL_DEPENDENT", "SINGLETON_REVEAL", "RESIDUAL_EMPTY"]
Origin = Literal["anchor", "hard_probe", "support_made", "unexplained"]
"""What made a component stand alone: a predicate about it alone; a probe of it alone; the reference gate, which admits
no other component of a wider scope; none of these (a compiler that left out others of its scope).
"""
ORIGINS: Final[tuple[Origin, ...]] = ("anchor", "hard_probe", "support_made", "unexplained")

PAIRS_A_REGIME: Final = 4
COSTS: Final[Mapping[int, int]] = dict.fromkeys(range(COMPONENTS), 1)
"""Of components for both solvers: the same, so that a cost names nobody."""
_STREAMS: Final = len(REGIMES) * COMPONENTS * len(FAMILIES)
"""The first stream of `other_uniforms` that draws pairs: those below draw masks."""


@dataclass(frozen=True, slots=True)
class Blind:
    """A way of compiling conflicts that is not told what is planted."""

    name: str
    compiler: Callable[[Evidence], Compiled]

    def compile(self, evidence: Evidence, label: Components) -> Compiled:
        """The conflicts; the label stays here."""
        return self.compiler(evidence)


@dataclass(frozen=True, slots=True)
class Told:
    """A way of compiling conflicts that is told what is planted."""

    name: str
    compiler: Callable[[Evidence, Components], Compiled]

    def compile(self, evidence: Evidence, label: Components) -> Compiled:
        """The conflicts, were `label` planted."""
        return self.compiler(evidence, label)


Mode = Blind | Told

MODES: Final[tuple[Mode, ...]] = (
    Blind("aggregate", aggregate),
    Blind("anchor_on_all", anchor_on_all),
    Told("anchor_on_planted", anchor_on_planted),
    Told("hard_probe_on_planted", hard_probe_on_planted),
)


@dataclass(frozen=True, slots=True)
class Case:
    """A development case. `planted`: the hidden label; `others`: labels that it might as well have had, the planted
    pairs of its regime's other cases.
    """

    case: int
    regime: int
    planted: Components
    others: tuple[Components, ...]
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class CaseAudit:
    """One case compiled in one mode. `revealed`: planted components that stand alone, by what made them."""

    case: Case
    compiled: Compiled
    label_dependent: bool
    revealed: Mapping[Origin, Components]
    propagation: Propagation
    exact: Support
    greedy: Support


@dataclass(frozen=True, slots=True)
class ModeAudit:
    """All cases in one mode."""

    mode: Mode
    cases: tuple[CaseAudit, ...]

    def tripped(self) -> frozenset[Verdict]:
        """The verdicts against this mode. Each stands for itself: none cures or implies another."""
        found: dict[Verdict, bool] = {
            "LABEL_DEPENDENT": any(case.label_dependent for case in self.cases),
            "SINGLETON_REVEAL": any(any(case.revealed.values()) for case in self.cases),
            "RESIDUAL_EMPTY": not any(case.propagation.residual for case in self.cases),
        }
        return frozenset(verdict for verdict, holds in found.items() if holds)

    def comparison(self) -> Literal["NOT_ESTIMABLE", "DESCRIPTIVE"]:
        """Whether comparing the solvers on these conflicts says anything about solvers."""
        return "NOT_ESTIMABLE" if "RESIDUAL_EMPTY" in self.tripped() else "DESCRIPTIVE"


def planted_cases(
    policies: Mapping[int, NDArray[np.int8]],
    pilot: Uniforms,
    development: Uniforms,
    master_seed: int,
    cutoff: float,
) -> tuple[Case, ...]:
    """The twelve cases: four disjoint pairs a regime, drawn among the components that both clean blocks support.

    `policies`: λ0 → int8[24, 111, 6], one for each of REGIMES; `pilot`, `development`: the draws of these blocks,
    float64[2400, DRAWS]. Raises ValueError where a regime supports too few components for its pairs.
    """
    found: list[Case] = []
    for place, regime in enumerate(REGIMES):
        policy = policies[regime]
        reference, clean = (
            np.moveaxis(traces(policy[None], regime, drawn, PARTITIONS)[0], 0, 1) for drawn in (pilot, development)
        )
        states = [
            RULE.judge(*visits)
            for visits in zip(reference.sum(axis=-1).tolist(), clean.sum(axis=-1).tolist(), strict=True)
        ]
        admitted = frozenset(c for c, state in enumerate(states) if state != "REFERENCE_ABSTAIN")
        supported = frozenset(c for c, state in enumerate(states) if state == "SUPPORTED")
        pairs = _pairs(supported, other_uniforms(master_seed, _STREAMS + place, COMPONENTS), regime)
        for pair in pairs:
            seen = _runs(policy, regime, development, pair)
            evidence = Evidence(admitted, reference, seen(None), seen, cutoff)
            others = tuple(other for other in pairs if other != pair)
            found.append(Case(len(found), regime, pair, others, evidence))
    return tuple(found)


def _pairs(supported: Components, order: NDArray[np.float64], regime: int) -> tuple[Components, ...]:
    if len(supported) < 2 * PAIRS_A_REGIME:
        raise ValueError(f"regime {regime} supports {len(supported)} components: {PAIRS_A_REGIME} pairs need more")
    drawn = sorted(supported, key=order.__getitem__)
    return tuple(frozenset(drawn[2 * pair : 2 * pair + 2]) for pair in range(PAIRS_A_REGIME))


def _runs(policy: NDArray[np.int8], regime: int, drawn: Uniforms, planted: Components) -> Callable[[int | None], Ints]:
    """The traces under the fault, int64[2, 24, 15, 8], and the same with one component restored (None: none is)."""

    @cache
    def run(at_fault: Components) -> Ints:
        selected = [cell for component in sorted(at_fault) for cell in cells(policy, component).cell.tolist()]
        faulty = np.stack([shifted(policy, selected, direction) for direction in DIRECTIONS])
        return np.moveaxis(traces(faulty, regime, drawn, PARTITIONS), 1, 2)

    return lambda restored: run(planted - {restored})


def audit(mode: Mode, cases: Sequence[Case]) -> ModeAudit:
    """Compile every case in this mode, hold it against other labels, propagate, and solve.

    Raises ValueError for an empty conflict, and for one that names components outside its scope or not admitted.
    """
    return ModeAudit(mode, tuple(_audited(mode, case) for case in cases))


def _audited(mode: Mode, case: Case) -> CaseAudit:
    compiled = mode.compile(case.evidence, case.planted)
    for conflict in compiled:
        if not conflict.components <= conflict.scope.components & case.evidence.admitted:
            raise ValueError(
                f"{mode.name}, case {case.case}: a conflict of {conflict.scope.name} names"
                f" {sorted(conflict.components)}, not all of them admitted components of that scope"
            )
    family = [conflict.components for conflict in compiled]
    return CaseAudit(
        case=case,
        compiled=compiled,
        label_dependent=any(mode.compile(case.evidence, other) != compiled for other in case.others),
        revealed=_revealed(case, compiled),
        propagation=propagate(family),
        exact=exact(family, COSTS),
        greedy=greedy(family, COSTS),
    )


def _revealed(case: Case, compiled: Compiled) -> dict[Origin, Components]:
    found: dict[Origin, Components] = dict.fromkeys(ORIGINS, frozenset())
    for conflict in compiled:
        if len(conflict.components) == 1 and conflict.components <= case.planted:
            found[_origin(conflict, case.evidence.admitted)] |= conflict.components
    return found


def _origin(conflict: Conflict, admitted: Components) -> Origin:
    """Of a conflict of one component."""
    if conflict.probed == conflict.components:
        return "hard_probe"
    if conflict.scope.components == conflict.components:
        return "anchor"
    return "support_made" if conflict.scope.components & admitted == conflict.components else "unexplained"


def audit_document(
    policies: Mapping[int, NDArray[np.int8]],
    pilot: Uniforms,
    development: Uniforms,
    master_seed: int,
    cutoff: float,
) -> dict[str, Any]:
    """`leakage.json`: every mode audited on the twelve cases. Arguments as for `planted_cases`."""
    cases = planted_cases(policies, pilot, development, master_seed, cutoff)
    modes = [mode_document(audit(mode, cases)) for mode in MODES]
    return {
        "format": "wirelessops.study-leakage/1",
        "cutoff": cutoff,
        "blocks": {"reference": "pilot", "current": "development"},
        "fault": "every changeable cell of both planted components, outward in one run, inward in another",
        "costs": "1 for each component",
        "scopes": {scope.name: sorted(scope.components) for scope in (*SCOPES, *SINGLE)},
        "cases": [
            {
                "case": case.case,
                "regime": case.regime,
                "planted": sorted(case.planted),
                "admitted": sorted(case.evidence.admitted),
            }
            for case in cases
        ],
        "modes": modes,
        "published": [
            {"what": what, "published": published, "mode": mode, "ours": _figure(modes, mode, figure)}
            for what, published, mode, figure in PUBLISHED
        ],
    }


def mode_document(found: ModeAudit) -> dict[str, Any]:
    """One mode as `leakage.json` has it: counts over cases, verdicts, solvers, and the family of each case."""
    cases, tripped = found.cases, found.tripped()
    conflicts = [conflict for case in cases for conflict in case.compiled]
    by_origin = Counter(origin for case in cases for origin, components in case.revealed.items() if components)
    alone = [frozenset().union(*case.revealed.values()) for case in cases]
    return {
        "mode": found.mode.name,
        "told_what_is_planted": isinstance(found.mode, Told),
        "cases": len(cases),
        "conflicts": len(conflicts),
        "not_singleton": sum(len(conflict.components) > 1 for conflict in conflicts),
        "verdicts": {
            "LABEL_DEPENDENT": {
                "tripped": "LABEL_DEPENDENT" in tripped,
                "cases": sum(case.label_dependent for case in cases),
            },
            "SINGLETON_REVEAL": {
                "tripped": "SINGLETON_REVEAL" in tripped,
                "cases_with_any": sum(bool(components) for components in alone),
                "cases_with_pair": sum(
                    components == case.case.planted for components, case in zip(alone, cases, strict=True)
                ),
                "cases_by_origin": {origin: by_origin[origin] for origin in ORIGINS},
            },
            "RESIDUAL_EMPTY": {
                "tripped": "RESIDUAL_EMPTY" in tripped,
                "cases_with_residual": sum(bool(case.propagation.residual) for case in cases),
            },
        },
        "solvers": {
            "comparison": found.comparison(),
            "same_supports": sum(case.exact == case.greedy for case in cases),
            "recovered_exact": sum(set(case.exact.components) == case.case.planted for case in cases),
            "recovered_greedy": sum(set(case.greedy.components) == case.case.planted for case in cases),
        },
        "families": [_case_document(case) for case in cases],
    }


def _case_document(found: CaseAudit) -> dict[str, Any]:
    return {
        "case": found.case.case,
        "conflicts": provenance(found.compiled),
        "forced": sorted(found.propagation.forced),
        "residual": [sorted(conflict) for conflict in found.propagation.residual],
        "exact": {"components": list(found.exact.components), "cost": found.exact.cost},
        "greedy": {"components": list(found.greedy.components), "cost": found.greedy.cost},
    }


def provenance(compiled: Compiled) -> list[dict[str, Any]]:
    """A conflict family as `leakage.json` writes it, in the order of the compiler."""
    return [
        {
            "components": sorted(conflict.components),
            "predicate": conflict.predicate,
            "scope": conflict.scope.name,
            "role": conflict.role,
            "probed": sorted(conflict.probed),
        }
        for conflict in compiled
    ]


Figure = Callable[[Mapping[str, Any]], str]


def _share(*path: str) -> Figure:
    """A count of cases of a mode's document, out of all."""

    def figure(mode: Mapping[str, Any]) -> str:
        found: Any = mode
        for name in path:
            found = found[name]
        return f"{found}/{mode['cases']}"

    return figure


def _not_singleton(mode: Mapping[str, Any]) -> str:
    return f"{100 * mode['not_singleton'] / mode['conflicts']:.1f} %" if mode["conflicts"] else "none"


_PAIRS: Final = _share("verdicts", "SINGLETON_REVEAL", "cases_with_pair")
_RESIDUAL: Final = _share("verdicts", "RESIDUAL_EMPTY", "cases_with_residual")

PUBLISHED: Final[tuple[tuple[str, str, str, Figure], ...]] = (
    ("exact and greedy return the same support", "12/12", "anchor_on_planted", _share("solvers", "same_supports")),
    ("the planted pair is recovered", "9/12", "anchor_on_planted", _share("solvers", "recovered_exact")),
    ("conflicts of more than one component", "55.5 %", "anchor_on_planted", _not_singleton),
    ("anchors alone give the planted pair", "9/9", "anchor_on_planted", _PAIRS),
    ("recovered without anchors", "8/9", "hard_probe_on_planted", _share("solvers", "recovered_exact")),
    ("hard probes alone give the planted pair", "9/9", "hard_probe_on_planted", _PAIRS),
    ("cases with a residual family", "0/9", "hard_probe_on_planted", _RESIDUAL),
)
"""The paper's audit (abstract; section 4), and our mode and figure that come nearest. Another simulator and verifier:
to be read side by side, not compared.
"""

COLUMNS: Final[tuple[tuple[str, Figure], ...]] = (
    ("conflicts from", lambda mode: mode["mode"].replace("_", " ")),
    ("told the answer", lambda mode: "yes" if mode["told_what_is_planted"] else "no"),
    ("LABEL_DEPENDENT", _share("verdicts", "LABEL_DEPENDENT", "cases")),
    ("SINGLETON_REVEAL, any planted", _share("verdicts", "SINGLETON_REVEAL", "cases_with_any")),
    ("the whole pair", _PAIRS),
    ("by anchor", _share("verdicts", "SINGLETON_REVEAL", "cases_by_origin", "anchor")),
    ("by hard probe", _share("verdicts", "SINGLETON_REVEAL", "cases_by_origin", "hard_probe")),
    ("made by support", _share("verdicts", "SINGLETON_REVEAL", "cases_by_origin", "support_made")),
    ("with a residual family", _RESIDUAL),
    ("not singletons", _not_singleton),
    ("same supports", _share("solvers", "same_supports")),
    ("recovered, exact", _share("solvers", "recovered_exact")),
    ("recovered, greedy", _share("solvers", "recovered_greedy")),
    ("solver comparison", lambda mode: mode["solvers"]["comparison"]),
)


def mode_rows(document: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The table of modes for a report, from `leakage.json`: the heads of `COLUMNS`, then a row for each mode."""
    rows = [tuple(figure(mode) for _, figure in COLUMNS) for mode in document["modes"]]
    return [tuple(head for head, _ in COLUMNS), *rows]


def published_rows(document: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The published audit beside ours, from `leakage.json`: heads, then a row for each published figure."""
    rows = [
        (row["what"], row["published"], row["ours"], row["mode"].replace("_", " ")) for row in document["published"]
    ]
    return [("figure", "published", "ours", "our conflicts from"), *rows]


def _figure(modes: Sequence[Mapping[str, Any]], name: str, figure: Figure) -> str:
    return figure(next(mode for mode in modes if mode["mode"] == name))
