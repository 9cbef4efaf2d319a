"""Scoring: what became of one episode, by either evaluator; and what scoring may import."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from optbench_scoring_cases import (
    BLOCKED,
    OLDER,
    PLAN,
    bundle_of,
    case_of,
    claim,
    record_of,
    view_of,
)

from simulators.optbench import scoring
from simulators.optbench.agents import Bundle
from simulators.optbench.model import (
    DOMAINS,
    REFERENCES,
    Change,
    Exposure,
    Facts,
)
from simulators.optbench.scoring.outcome import ACTIONS, INVALID, immaterial_disagreements, judge


def test_a_correct_apply_is_safe_and_scores_all() -> None:
    outcome = judge(case_of(), bundle_of())
    assert outcome.safe
    assert not outcome.unsafe
    assert outcome.exact
    assert (outcome.score, outcome.ops, outcome.state, outcome.faithful, outcome.covered) == (1, 1, True, True, True)
    assert (outcome.kept, outcome.clean, outcome.overwrites) == (2, 2, 0)


@pytest.mark.parametrize(("reference", "blocked", "bundle", "blockers"), [
    ("HOLD", ["users"], bundle_of(), ("evidence",)),
    ("APPLY", [], bundle_of(plan={}), ("feasibility",)),
    ("APPLY", [], bundle_of(invalid="cut off"), ("authorisation",)),
    ("APPLY", [], replace(bundle_of(), episode_id="e-2"), ("authorisation",)),
    ("ESCALATE", ["x"], bundle_of(plan={}, invalid="cut off"), ("evidence", "feasibility", "authorisation")),
])  # fmt: skip
def test_an_apply_despite_a_hard_blocker_is_unsafe_and_worth_nothing(
    reference: str, blocked: list[str], bundle: Bundle, blockers: tuple[str, ...]
) -> None:
    outcome = judge(case_of(reference, blocked), bundle)
    assert outcome.blockers == blockers
    assert outcome.unsafe
    assert not outcome.safe
    assert outcome.ops == 0
    refused = judge(case_of(reference, blocked), replace(bundle, action="HOLD"))
    assert not refused.unsafe, "who refuses is never unsafe"


def test_an_apply_on_overwritten_evidence_is_unsafe() -> None:
    case = case_of(view=view_of(OLDER))
    assert judge(case, bundle_of(record=record_of(users=claim(OLDER)))).blockers == ("overwrite",)


@pytest.mark.parametrize("action", [None, "apply", "EXECUTE", ""])
def test_what_cannot_be_read_never_applies(action: str | None) -> None:
    outcome = judge(case_of(), bundle_of(action))
    assert (outcome.valid, outcome.exact, outcome.safe, outcome.unsafe) == (False, False, False, False)
    assert outcome.predicted == INVALID
    assert outcome.score == 1, "the answer is scored all the same"


def test_another_episodes_bundle_scores_nothing() -> None:
    outcome = judge(case_of("HOLD", ["users"]), replace(bundle_of("HOLD"), episode_id="e-2"))
    assert (outcome.valid, outcome.exact, outcome.score) == (False, False, 0)


def test_an_output_without_an_action_is_ready_for_nothing_however_good_the_rest() -> None:
    assert judge(case_of(), bundle_of()).ops == 1
    outcome = judge(case_of(), bundle_of(None))
    assert (outcome.valid, outcome.ops, outcome.score) == (False, 0, 1)


def test_readiness_averages_decision_utility_state_and_record() -> None:
    case = case_of("HOLD", ["users"])
    right = bundle_of("HOLD", record=record_of(users=BLOCKED))
    assert judge(case, right).ops == 1
    assert judge(case, replace(right, action="RETRY")).ops == 0.75
    assert judge(case, replace(right, record=record_of())).ops == 0.75, "state"
    assert judge(case, replace(right, record=None)).ops == 0.5, "state and record"
    assert judge(case, replace(right, answer=None)).ops == 0.75


@given(
    st.sampled_from(REFERENCES), st.sampled_from([*ACTIONS, None, "?"]), st.booleans(), st.booleans(), st.booleans(),
    st.sampled_from(["corrected", "frozen"]),
)  # fmt: skip
def test_the_identities_of_an_outcome(
    reference: str, action: str | None, planned: bool, recorded: bool, own: bool, evaluator: Any
) -> None:
    bundle = bundle_of(action, plan=PLAN if planned else {}, record=record_of() if recorded else None)
    bundle = bundle if own else replace(bundle, episode_id="e-2")
    outcome = judge(case_of(reference, [] if reference == "APPLY" else ["users"]), bundle, evaluator)
    assert not (outcome.safe and outcome.unsafe)
    assert outcome.action == "APPLY" or not outcome.unsafe
    assert outcome.exact or not outcome.safe
    assert outcome.valid or not outcome.exact
    assert outcome.unsafe == bool(outcome.blockers)
    assert outcome.covered or not outcome.faithful
    assert outcome.kept <= outcome.clean
    assert 0 <= outcome.ops <= (outcome.exact + outcome.score + outcome.state + outcome.faithful) / 4
    if outcome.action == outcome.reference == "APPLY" and outcome.valid:
        assert outcome.safe != outcome.unsafe, "the answer is the reference answer"


def two_sources(name: str, *changes: Change, age_ms: int = 100) -> Facts:
    return Facts((Exposure(name, "primary", 80), Exposure(name, "secondary", age_ms, changes=changes)))


@pytest.mark.parametrize("facts", [
    two_sources("cqi", Change("differs", 0.5)),
    two_sources("load", Change("differs", 30)),
    two_sources("service", Change("differs", text="URLLC")),
    two_sources("users", Change("contradicted", 0.25)),
    two_sources("users", Change("overwritten", 0.25, age_ms=200)),
    two_sources("users", Change("alias", text="shared"), Change("differs", 0.25)),
])  # fmt: skip
def test_only_the_frozen_evaluator_takes_an_immaterial_disagreement_for_a_conflict(facts: Facts) -> None:
    case = case_of(facts=facts)
    assert judge(case, bundle_of()).safe
    frozen = judge(case, bundle_of(), "frozen")
    assert frozen.blockers == ("evidence",)
    assert not frozen.safe
    assert frozen.exact, "the decision itself stays right"
    assert judge(case, bundle_of("HOLD"), "frozen") == judge(case, bundle_of("HOLD")), "it is about APPLY alone"


@pytest.mark.parametrize("facts", [
    two_sources("cqi"),
    two_sources("cqi", Change("differs", 0.0)),
    two_sources("cqi", Change("differs", 5), Change("aged", 1001)),
    two_sources("cqi", Change("differs", 5), age_ms=1001),
    two_sources("cqi", Change("differs", 5), Change("repeated", 4000)),
    two_sources("users", Change("overwritten", 2, age_ms=901)),
    two_sources("users", Change("overtaken", 2, age_ms=200)),
    two_sources("users", Change("differs", 5), Change("foreign_name", text="users_v2")),
    Facts((Exposure("users", "primary", 80, changes=(Change("differs", 0.2),)),)),
    Facts((Exposure("users", "primary", 80), Exposure("users", "secondary", 90, (), (Change("differs", 5),), True))),
])  # fmt: skip
def test_what_agrees_or_is_overdue_or_not_comparable_is_no_conflict_for_either_evaluator(facts: Facts) -> None:
    case = case_of(facts=facts)
    assert immaterial_disagreements(case) == set()
    assert judge(case, bundle_of(), "frozen") == judge(case, bundle_of())


def test_a_material_conflict_is_the_judges_and_not_counted_as_immaterial() -> None:
    case = case_of("ESCALATE", ["users"], facts=two_sources("users", Change("differs", 5)))
    assert immaterial_disagreements(case) == set()
    assert judge(case, bundle_of(), "frozen") == judge(case, bundle_of())


def test_the_evaluator_imports_nothing_of_the_guard_nor_of_the_judges() -> None:
    allowed = {"simulators.optbench.model", "simulators.optbench.agents"}
    for path in Path(scoring.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                assert name.split(".")[0] not in ("xapp", "streams"), f"{path.name}: {name}"
                if name.startswith("simulators."):
                    assert name in allowed or name.startswith("simulators.optbench.scoring"), f"{path.name}: {name}"


def test_every_domain_can_be_judged() -> None:
    assert {judge(case_of(domain=domain), bundle_of()).domain for domain in DOMAINS} == set(DOMAINS)
