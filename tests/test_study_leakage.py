"""The compiler of conflicts and the leakage audit: what a verifier is told, what it reveals, what is left to solve."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable
from dataclasses import fields, replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import orjson
import pytest

from simulators.closedloop import conflicts, draws, leakage, loop, policy, schedule, tables
from simulators.closedloop.conflicts import SCOPES, Conflict, Evidence
from simulators.closedloop.hitting import exact, greedy
from simulators.closedloop.leakage import MODES, Blind, Case, ModeAudit, Told, audit

CUTOFF = 1.5
MODE_NAMES = [mode.name for mode in MODES]
LEAKY = [name for name in MODE_NAMES if name != "aggregate"]


@pytest.fixture(scope="module")
def policies() -> dict[int, np.ndarray]:
    return {regime: policy.fit(regime) for regime in loop.REGIMES}


@pytest.fixture(scope="module")
def drawn() -> dict[str, draws.Uniforms]:
    blocks = schedule.blocks()
    return {
        name: draws.uniforms(schedule.MASTER_SEED, blocks[name].first, blocks[name].count)
        for name in ("pilot", "development")
    }


@pytest.fixture(scope="module")
def cases(policies: dict[int, np.ndarray], drawn: dict[str, draws.Uniforms]) -> tuple[Case, ...]:
    return leakage.planted_cases(policies, drawn["pilot"], drawn["development"], schedule.MASTER_SEED, CUTOFF)


@pytest.fixture(scope="module")
def audits(cases: tuple[Case, ...]) -> dict[str, ModeAudit]:
    return {mode.name: audit(mode, cases) for mode in MODES}


@pytest.fixture(scope="module")
def document(policies: dict[int, np.ndarray], drawn: dict[str, draws.Uniforms]) -> dict[str, Any]:
    return leakage.audit_document(policies, drawn["pilot"], drawn["development"], schedule.MASTER_SEED, CUTOFF)


def origins(found: ModeAudit) -> set[str]:
    return {origin for case in found.cases for origin, components in case.revealed.items() if components}


# Scopes, and the aggregate compiler on traces written by hand


def test_there_is_a_scope_for_every_choice_of_one_or_two_axes() -> None:
    expected = set()
    for quarter, half, third in product([*range(4), None], [*range(2), None], [*range(3), None]):
        wanted = (quarter, half, third)
        if sum(value is None for value in wanted) in (1, 2):
            expected.add(
                frozenset(
                    component
                    for component in range(24)
                    if all(w in (None, part) for w, part in zip(wanted, loop.parts(component), strict=True))
                )
            )
    assert {scope.components for scope in SCOPES} == expected
    assert len(SCOPES) == len({scope.name for scope in SCOPES}) == 35
    assert Counter(len(scope.components) for scope in SCOPES) == {6: 4, 12: 2, 8: 3, 3: 8, 2: 12, 4: 6}


def by_hand(admitted: set[int], current: dict[tuple[int, int], list[int]], visits: int = 20) -> Evidence:
    """Every component takes action 3 `visits` times a partition; `current`: (direction, component) → its histogram."""
    reference = np.zeros((24, 15, 8), dtype=np.int64)
    reference[:, :, 3] = visits
    seen = np.stack([reference, reference])
    for (direction, component), histogram in current.items():
        seen[direction, component] = histogram
    return Evidence(frozenset(admitted), reference, seen, lambda _: seen, CUTOFF)


SHIFTED = [0, 0, 0, 0, 20, 0, 0, 0]


def violated(evidence: Evidence) -> dict[str, set[int]]:
    return {conflict.scope.name: set(conflict.components) for conflict in conflicts.aggregate(evidence)}


def test_a_scope_is_violated_where_the_shift_is_not_diluted_below_the_cutoff() -> None:
    evidence = by_hand(set(range(24)), {(0, 0): SHIFTED, (1, 0): SHIFTED})
    # shares of n equal components differ by 2/n: over 0.20 that is 1.5 or more for up to 6; by 1/n over 0.35: for 1
    assert violated(evidence) == {
        "quarter 0": {0, 1, 2, 3, 4, 5},
        "half 0 third 0": {0, 6, 12, 18},
        "quarter 0 third 0": {0, 3},
        "quarter 0 half 0": {0, 1, 2},
    }


def test_components_pool_by_their_visits_so_that_a_busy_neighbour_hides_a_shift() -> None:
    evidence = by_hand({0, 3}, {(0, 0): SHIFTED, (1, 0): SHIFTED})
    busy = evidence.reference.copy()
    busy[3] *= 50
    current = evidence.current.copy()
    current[:, 3] *= 50
    assert "quarter 0 third 0" not in violated(replace(evidence, reference=busy, current=current))


def test_a_signal_in_one_direction_only_is_no_conflict() -> None:
    assert violated(by_hand(set(range(24)), {(0, 0): SHIFTED})) == {}
    assert violated(by_hand(set(range(24)), {(1, 0): SHIFTED})) == {}


def test_a_signal_without_joint_support_of_the_scope_is_no_conflict() -> None:
    few = [0, 0, 0, 0, 5, 0, 0, 0]
    shifted = {(direction, component): few for direction in (0, 1) for component in (0, 3)}
    assert "quarter 0 third 0" not in violated(by_hand({0, 3}, shifted, visits=5))
    assert "quarter 0" in violated(by_hand({0, 3}, {(d, c): few for d in (0, 1) for c in range(6)}, visits=5))


def test_a_conflict_names_the_admitted_components_of_its_scope_and_a_scope_without_any_gives_none() -> None:
    evidence = by_hand({3, 4, 7}, {(d, c): SHIFTED for d in (0, 1) for c in range(24)})
    found = violated(evidence)
    assert found["quarter 0"] == {3, 4}
    assert found["quarter 0 third 0"] == {3}
    assert set(found) == {scope.name for scope in SCOPES if scope.components & {3, 4, 7}}
    assert violated(replace(evidence, admitted=frozenset())) == {}


def test_the_pooled_signal_recomputed_from_the_counts_gives_the_same_conflicts(audits: dict[str, ModeAudit]) -> None:
    for found in audits["aggregate"].cases:
        evidence = found.case.evidence
        stable = set()
        for scope in SCOPES:
            members = sorted(scope.components)
            reference = evidence.reference[members].sum(axis=0).tolist()
            both = [direction[members].sum(axis=0).tolist() for direction in evidence.current]
            if all(sum(map(signals, reference, current)) >= 14 for current in both):
                stable.add(scope)
        expected = {(scope.name, scope.components & evidence.admitted) for scope in stable}
        assert {(conflict.scope.name, conflict.components) for conflict in found.compiled} == {
            (name, components) for name, components in expected if components
        }


def signals(a: list[int], b: list[int]) -> bool:
    """One partition by section 5.3, in fractions."""
    n, m = sum(a), sum(b)
    if n < 12 or m < 12:
        return False
    gaps = [Fraction(y, m) - Fraction(x, n) for x, y in zip(a, b, strict=True)]
    distance = sum(map(abs, gaps)) / Fraction(1, 5)
    mean = abs(sum(action * gap for action, gap in enumerate(gaps))) / Fraction(7, 20)
    return max(distance, mean) >= Fraction(3, 2)


# The planted cases


def test_twelve_cases_of_two_supported_components_four_disjoint_pairs_a_regime(cases: tuple[Case, ...]) -> None:
    assert Counter(case.regime for case in cases) == dict.fromkeys(loop.REGIMES, 4)
    for regime in loop.REGIMES:
        planted = [component for case in cases if case.regime == regime for component in case.planted]
        assert len(planted) == len(set(planted)) == 8
    for case in cases:
        assert case.planted <= case.evidence.admitted
        assert len(case.others) == 3
        assert not any(other & case.planted for other in case.others)


def test_the_clean_reference_and_the_runs_under_faults_share_no_seed_with_each_other_or_the_formal_grid() -> None:
    taken = {name: set(range(seeds.first, seeds.first + seeds.count)) for name, seeds in schedule.blocks().items()}
    for block in ("pilot", "development"):
        for name in sorted(set(taken) - {block}):
            assert not taken[block] & taken[name]


def test_a_regime_that_supports_too_few_components_is_named(policies: dict[int, np.ndarray]) -> None:
    always_the_same = np.full((2400, draws.DRAWS), 0.5)
    with pytest.raises(ValueError, match=r"regime 5 supports [0-7] components: 4 pairs need more"):
        leakage.planted_cases(policies, always_the_same, always_the_same, schedule.MASTER_SEED, CUTOFF)


def test_restoring_a_component_takes_its_own_fault_away_and_no_other(cases: tuple[Case, ...]) -> None:
    for case in cases:
        seen, restored = case.evidence.current, case.evidence.restored
        for component in case.planted:
            assert not np.array_equal(restored(component)[:, component], seen[:, component])
        earlier, later = sorted(case.planted)
        if earlier // 6 < later // 6:  # of another quarter: what happens later cannot reach back
            assert np.array_equal(restored(later)[:, earlier], seen[:, earlier])
        for bystander in case.evidence.admitted - case.planted:
            assert np.array_equal(restored(bystander), seen)


# What each mode is told


def test_what_a_compiler_is_told_stands_in_its_signature() -> None:
    assert not {field.name for field in fields(Evidence)} & {"planted", "label", "case", "others"}
    for mode in MODES:
        parameters = list(inspect.signature(mode.compiler).parameters)
        assert parameters == (["evidence", "planted"] if isinstance(mode, Told) else ["evidence"])
    assert {mode.name for mode in MODES if isinstance(mode, Told)} == {"anchor_on_planted", "hard_probe_on_planted"}


@pytest.mark.parametrize("name", MODE_NAMES)
def test_the_provenance_of_every_conflict_is_complete_and_true(name: str, audits: dict[str, ModeAudit]) -> None:
    for found in audits[name].cases:
        case = found.case
        for conflict in found.compiled:
            assert conflict.components == conflict.scope.components & case.evidence.admitted
            if conflict.predicate == "pooled":
                assert (conflict.role, conflict.probed) == ("passive", frozenset())
                assert conflict.scope in SCOPES
            elif conflict.predicate == "anchor":
                assert (conflict.role, conflict.probed) == ("passive", frozenset())
                assert len(conflict.scope.components) == 1
            else:
                assert conflict.predicate == "hard_probe"
                assert (conflict.role, conflict.probed) == ("counterfactual", conflict.scope.components)
                assert len(conflict.probed) == 1
    predicates = {conflict.predicate for found in audits[name].cases for conflict in found.compiled}
    extra = {"aggregate": set(), "hard_probe_on_planted": {"hard_probe"}}.get(name, {"anchor"})
    assert predicates == {"pooled"} | extra


# The verdicts

EXPECTED = {
    "aggregate": (set(), {"support_made"}),
    "anchor_on_all": ({"SINGLETON_REVEAL", "RESIDUAL_EMPTY"}, {"anchor", "support_made"}),
    "anchor_on_planted": ({"LABEL_DEPENDENT", "SINGLETON_REVEAL", "RESIDUAL_EMPTY"}, {"anchor", "support_made"}),
    "hard_probe_on_planted": (
        {"LABEL_DEPENDENT", "SINGLETON_REVEAL", "RESIDUAL_EMPTY"},
        {"hard_probe", "support_made"},
    ),
}
"""Mode → the verdicts that it must trip, and what may make its planted components stand alone."""


@pytest.mark.parametrize("name", MODE_NAMES)
def test_every_mode_trips_the_verdicts_that_it_must_and_no_other(name: str, audits: dict[str, ModeAudit]) -> None:
    must, may_reveal = EXPECTED[name]
    tripped = audits[name].tripped()
    assert must <= tripped
    assert origins(audits[name]) <= may_reveal
    allowed = must | ({"SINGLETON_REVEAL"} if origins(audits[name]) == {"support_made"} else set())
    assert tripped <= allowed


@pytest.mark.parametrize("name", LEAKY)
def test_a_leaky_mode_reveals_in_every_case_and_leaves_no_case_anything(
    name: str, audits: dict[str, ModeAudit]
) -> None:
    by = "hard_probe" if name.startswith("hard") else "anchor"
    assert all(found.revealed[by] for found in audits[name].cases)
    assert not any(found.propagation.residual for found in audits[name].cases)
    assert audits[name].comparison() == "NOT_ESTIMABLE"


def test_the_aggregate_mode_leaves_something_to_choose(audits: dict[str, ModeAudit]) -> None:
    assert any(found.propagation.residual for found in audits["aggregate"].cases)
    assert audits["aggregate"].comparison() == "DESCRIPTIVE"


def test_another_label_over_the_same_traces_leaves_the_aggregate_family_the_same_to_the_byte(
    cases: tuple[Case, ...], audits: dict[str, ModeAudit]
) -> None:
    for case, found in zip(cases, audits["aggregate"].cases, strict=True):
        before = orjson.dumps(leakage.provenance(found.compiled))
        for other in case.others:
            swapped = replace(case, planted=other, others=(case.planted,))
            again = audit(MODES[0], [swapped]).cases[0]
            assert orjson.dumps(leakage.provenance(again.compiled)) == before
            assert (again.exact, again.greedy) == (found.exact, found.greedy)


def only_what_meets_the_answer(evidence: Evidence, planted: frozenset[int]) -> tuple[Conflict, ...]:
    """Honest conflicts, of which the answer chooses; none of one component."""
    return tuple(
        conflict
        for conflict in conflicts.aggregate(evidence)
        if len(conflict.components) > 1 and conflict.components & planted
    )


def the_loudest_of_a_scope(evidence: Evidence) -> tuple[Conflict, ...]:
    """Told nothing, but the first conflict is narrowed to the component that moved most."""
    found = [conflict for conflict in conflicts.aggregate(evidence) if len(conflict.components) > 1]
    moved = np.abs(evidence.current - evidence.reference).sum(axis=(0, 2, 3))
    return tuple(
        replace(conflict, components=frozenset({max(conflict.components, key=moved.__getitem__)}))
        if not k
        else conflict
        for k, conflict in enumerate(found)
    )


def nothing(evidence: Evidence) -> tuple[Conflict, ...]:
    """A verifier that never objects."""
    return ()


@pytest.mark.parametrize(
    ("mode", "verdict"),
    [
        (Told("only what meets the answer", only_what_meets_the_answer), "LABEL_DEPENDENT"),
        (Blind("the loudest of a scope", the_loudest_of_a_scope), "SINGLETON_REVEAL"),
        (Blind("nothing", nothing), "RESIDUAL_EMPTY"),
    ],
    ids=["told", "narrowed", "silent"],
)
def test_each_verdict_catches_a_compiler_that_the_others_let_pass(
    mode: leakage.Mode, verdict: str, cases: tuple[Case, ...]
) -> None:
    found = audit(mode, cases)
    assert found.tripped() == {verdict}
    assert found.comparison() == ("NOT_ESTIMABLE" if verdict == "RESIDUAL_EMPTY" else "DESCRIPTIVE")
    assert origins(found) == ({"unexplained"} if verdict == "SINGLETON_REVEAL" else set())


def test_a_component_stands_alone_by_support_only_where_the_gate_admits_no_other_of_its_scope() -> None:
    def one_of_quarter_0(evidence: Evidence) -> tuple[Conflict, ...]:
        return (Conflict(frozenset({3}), "pooled", SCOPES[0], "passive", frozenset()),)

    scope = SCOPES[0].components
    assert {0, 3} <= scope
    for admitted, origin in (({3, 4}, "support_made"), ({0, 3, 4}, "unexplained")):
        assert {3, 4} & scope == {3}
        case = Case(0, 5, frozenset({3, 4}), (), by_hand(admitted, {}))
        assert origins(audit(Blind("one", one_of_quarter_0), [case])) == {origin}


@pytest.mark.parametrize(
    ("components", "said"),
    [({}, "conflict 0 is empty"), ({0, 1}, r"case 0: a conflict of third 0 names \[0, 1\]"), ({6}, r"names \[6\]")],
    ids=["empty", "outside its scope", "not admitted"],
)
def test_a_conflict_that_cannot_be_is_an_error_that_names_it(components: set[int], said: str) -> None:
    def compiler(evidence: Evidence) -> tuple[Conflict, ...]:
        return (Conflict(frozenset(components), "pooled", SCOPES[0], "passive", frozenset()),)

    with pytest.raises(ValueError, match=said):
        audit(Blind("broken", compiler), [Case(0, 5, frozenset({0, 3}), (), by_hand({0, 1, 3}, {}))])


# The document


def test_every_count_of_the_document_follows_from_the_families_in_it(document: dict[str, Any]) -> None:
    planted = [set(case["planted"]) for case in document["cases"]]
    for mode in document["modes"]:
        families = [[set(c["components"]) for c in case["conflicts"]] for case in mode["families"]]
        alone = [set().union(*[c for c in family if len(c) == 1]) for family in families]
        residual = [
            {frozenset(c) for c in family if not c & forced} for family, forced in zip(families, alone, strict=True)
        ]
        assert mode["cases"] == len(families) == 12
        assert mode["conflicts"] == sum(map(len, families))
        assert mode["not_singleton"] == sum(len(c) > 1 for family in families for c in family)
        revealed = [forced & pair for forced, pair in zip(alone, planted, strict=True)]
        singles = mode["verdicts"]["SINGLETON_REVEAL"]
        assert singles["cases_with_any"] == sum(map(bool, revealed))
        assert singles["cases_with_pair"] == sum(found == pair for found, pair in zip(revealed, planted, strict=True))
        left = mode["verdicts"]["RESIDUAL_EMPTY"]
        assert left["cases_with_residual"] == sum(map(bool, residual))
        assert left["tripped"] is (not any(residual))
        assert mode["solvers"]["comparison"] == ("DESCRIPTIVE" if any(residual) else "NOT_ESTIMABLE")
        unit_costs = dict.fromkeys(range(24), 1)
        supports = {
            name: [solve(family, unit_costs).components for family in families]
            for name, solve in (("exact", exact), ("greedy", greedy))
        }
        for name, of_cases in supports.items():
            assert [tuple(case[name]["components"]) for case in mode["families"]] == of_cases
            recovered = sum(set(support) == pair for support, pair in zip(of_cases, planted, strict=True))
            assert mode["solvers"][f"recovered_{name}"] == recovered
        assert mode["solvers"]["same_supports"] == sum(map(tuple.__eq__, *supports.values()))


def test_what_each_solver_recovers_is_counted_by_its_own_support() -> None:
    half = next(scope for scope in SCOPES if scope.name == "half 0")
    a, b, c, *others = sorted(half.components)
    family = [
        {a, c, others[0]},
        {a, c, others[1]},
        {b, c, others[2]},
        {b, c, others[3]},
        {a, others[4]},
        {b, others[5]},
    ]

    def compiler(evidence: Evidence) -> tuple[Conflict, ...]:
        return tuple(Conflict(frozenset(found), "pooled", half, "passive", frozenset()) for found in family)

    case = Case(0, 5, frozenset({a, b}), (), by_hand(set(range(24)), {}))
    assert leakage.mode_document(audit(Blind("a trap for greed", compiler), [case]))["solvers"] == {
        "comparison": "DESCRIPTIVE",
        "same_supports": 0,
        "recovered_exact": 1,
        "recovered_greedy": 0,
    }


def test_the_document_says_of_every_conflict_where_it_is_from(document: dict[str, Any]) -> None:
    admitted = [set(case["admitted"]) for case in document["cases"]]
    for mode in document["modes"]:
        for case in mode["families"]:
            for conflict in case["conflicts"]:
                assert set(conflict) == {"components", "predicate", "scope", "role", "probed"}
                of_scope = set(document["scopes"][conflict["scope"]])
                assert set(conflict["components"]) == of_scope & admitted[case["case"]]


def test_the_document_is_the_same_bytes_again(
    document: dict[str, Any], cases: tuple[Case, ...], policies: dict[int, np.ndarray], drawn: dict[str, draws.Uniforms]
) -> None:
    again = leakage.audit_document(policies, drawn["pilot"], drawn["development"], schedule.MASTER_SEED, CUTOFF)
    assert tables.document(again) == tables.document(document)
    assert tables.read_document("leakage.json", tables.document(document)) == document
    assert [case["planted"] for case in document["cases"]] == [sorted(case.planted) for case in cases]


def test_the_published_audit_stands_beside_ours(document: dict[str, Any]) -> None:
    assert [row["published"] for row in document["published"]] == [
        "12/12", "9/12", "55.5 %", "9/9", "8/9", "9/9", "0/9",
    ]  # fmt: skip
    assert {row["mode"] for row in document["published"]} <= set(MODE_NAMES)


@pytest.mark.parametrize("rows", [leakage.mode_rows, leakage.published_rows])
def test_the_tables_for_a_report_have_a_cell_under_every_head(
    rows: Callable[[dict[str, Any]], list[tuple[str, ...]]], document: dict[str, Any]
) -> None:
    heads, *found = rows(document)
    assert len(found) == len(document["modes" if rows is leakage.mode_rows else "published"])
    assert all(len(row) == len(heads) and all(row) for row in found)


def test_the_table_of_modes_keeps_the_three_verdicts_apart(document: dict[str, Any]) -> None:
    heads, *found = leakage.mode_rows(document)
    for row, mode in zip(found, document["modes"], strict=True):
        cell = dict(zip(heads, row, strict=True))
        assert cell["LABEL_DEPENDENT"] == f"{mode['verdicts']['LABEL_DEPENDENT']['cases']}/12"
        assert cell["SINGLETON_REVEAL, any planted"] == (
            f"{mode['verdicts']['SINGLETON_REVEAL']['cases_with_any']}/12"
        )
        assert cell["the whole pair"] == f"{mode['verdicts']['SINGLETON_REVEAL']['cases_with_pair']}/12"
        assert cell["with a residual family"] == f"{mode['verdicts']['RESIDUAL_EMPTY']['cases_with_residual']}/12"
        assert cell["solver comparison"] == mode["solvers"]["comparison"]
