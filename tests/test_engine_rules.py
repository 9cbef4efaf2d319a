"""Single rules of the engine, each by the smallest episode that shows it."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from episodes import T, clean, codes, decide, observation, operators


def test_a_clean_episode_is_applied_with_nothing_repaired() -> None:
    decision = decide(clean())
    assert decision["action"] == "APPLY"
    assert decision["violations"] == []
    assert decision["repairs"] == []
    assert decision["released"]["bandwidth"] == {"value": 10.0, "unit": "MHz"}
    assert decision["valid_until_ms"] == T - 100 + 1000, "the cqi is the first to expire"


def test_age_at_the_limit_is_fresh_and_one_ms_more_is_stale() -> None:
    for age, action in ((1000, "APPLY"), (1001, "HOLD")):
        episode = clean()
        episode["observations"][0] = observation("o1", "cqi", 10, "rt", age_ms=age)
        assert decide(episode)["action"] == action


def test_an_observation_that_arrives_after_t_takes_no_part() -> None:
    episode = clean()
    episode["observations"].append(observation("o9", "cqi", 2, "e2", age_ms=10) | {"ingest_time_ms": T + 1})
    assert decide(episode)["action"] == "APPLY"
    episode["observations"][-1]["ingest_time_ms"] = T
    assert decide(episode)["action"] == "ESCALATE"


@pytest.mark.parametrize(
    ("change", "action", "code"),
    [
        ({"source": "stranger"}, "ESCALATE", "unknown_source"),
        ({"event_time_ms": T + 101, "ingest_time_ms": T}, "HOLD", "future"),
        ({"parents": ["gone"]}, "ESCALATE", "unresolved_provenance"),
        ({"parents": ["o1"]}, "ESCALATE", "unresolved_provenance"),
        ({"quality": "suspect"}, "HOLD", "no_value"),
        ({"value": None}, "HOLD", "no_value"),
        ({"value": "ten"}, "HOLD", "unknown_schema"),
        ({"value": True}, "HOLD", "unknown_schema"),
        ({"unit": "dB"}, "ESCALATE", "ambiguous_unit"),
        ({"unit": "furlong"}, "HOLD", "unknown_unit"),
        ({"value": 16}, "HOLD", "out_of_range"),
        ({"name": "channel"}, "HOLD", "unknown_schema"),
        ({"subject": "cell:9"}, "HOLD", "missing"),
    ],
)
def test_each_fault_of_a_head_blocks_under_its_own_code(change: dict[str, Any], action: str, code: str) -> None:
    episode = clean()
    episode["observations"][0] |= change
    decision = decide(episode)
    assert (decision["action"], codes(decision, blocking=True)) == (action, [code])
    assert decision["released"] is None
    assert decision["valid_until_ms"] is None


@pytest.mark.parametrize(
    ("change", "operator"),
    [
        ({"name": "WB-CQI"}, "rename"),
        ({"unit": "%", "value": 1000}, "convert_unit"),
        ({"source": "e2"}, "substitute_source"),
        ({"origin": "memory"}, "recall"),
    ],
)
def test_what_can_be_repaired_is_and_says_how(change: dict[str, Any], operator: str) -> None:
    episode = clean()
    episode["observations"][0] |= change
    decision = decide(episode)
    assert (decision["action"], operators(decision)) == ("APPLY", [operator])
    assert decision["used"]["cqi"] == ["o1"]


def test_the_bounds_of_a_domain_belong_to_it() -> None:
    for value, action in ((0, "ABSTAIN"), (15, "APPLY"), (-0.1, "HOLD"), (15.1, "HOLD")):
        episode = clean()
        episode["observations"][0]["value"] = value
        assert decide(episode)["action"] == action, "cqi 0 is a valid value, with which the rate is too low"


def test_an_older_good_value_does_not_stand_in_for_a_newer_bad_head() -> None:
    episode = clean()
    episode["observations"].append(observation("o9", "cqi", None, "rt", age_ms=50))
    decision = decide(episode)
    assert decision["action"] == "HOLD"
    assert decision["blocked"] == ["o9"]


def test_a_newer_head_of_the_secondary_dissents_only_beyond_the_tolerance() -> None:
    for value, action in ((11, "APPLY"), (12, "ESCALATE")):
        episode = clean()
        episode["observations"].append(observation("o9", "cqi", value, "e2"))
        assert decide(episode)["action"] == action


def test_a_conflict_names_sources_and_values_in_the_fields_unit_first_and_the_observations_after() -> None:
    episode = clean()
    episode["contract"]["fields"]["capacity"]["sources"].append("o1:north")
    episode["observations"] += [
        observation("z", "capacity", 90_000, "o1:north", unit="kHz"), observation("o9", "cqi", 5, "e2"),
    ]  # fmt: skip
    details = {v["field"]: v["detail"] for v in decide(episode)["violations"] if v["code"] == "conflict"}
    assert details == {
        "cqi": "rt says 10, e2 says 5: more than the tolerance apart ('o1', 'o9')",
        "capacity": "oam says 60 MHz, o1:north says 90 MHz: more than the tolerance apart ('o3', 'z')",
    }


def test_a_stale_dissenter_is_no_conflict() -> None:
    episode = clean()
    episode["observations"].append(observation("o9", "cqi", 3, "e2", age_ms=1500))
    decision = decide(episode)
    assert decision["action"] == "APPLY"
    assert codes(decision, blocking=False) == ["stale"]


def test_a_source_that_contradicts_itself_at_one_event_time_is_a_conflict_unless_versions_order_it() -> None:
    episode = clean()
    episode["observations"].append(observation("o9", "cqi", 3, "rt"))
    assert codes(decide(episode), blocking=True) == ["conflict"]
    episode["observations"][0]["version"] = 2
    episode["observations"][-1]["version"] = 1
    decision = decide(episode)
    assert (decision["action"], decision["used"]["cqi"]) == ("APPLY", ["o1"])


def test_a_higher_version_on_an_older_event_blocks_where_it_differs_and_is_noted_where_it_agrees() -> None:
    for value, action in ((10, "APPLY"), (3, "ESCALATE")):
        episode = clean()
        episode["observations"][0]["version"] = 7
        episode["observations"].append(observation("o9", "cqi", value, "rt", age_ms=200, version=8))
        decision = decide(episode)
        assert decision["action"] == action
        assert codes(decision) == ["out_of_order"]


def test_an_agreeing_regression_is_resolved_even_where_another_blocks() -> None:
    episode = clean()
    episode["observations"][0]["version"] = 7
    episode["observations"] += [
        observation("o8", "cqi", 10, "rt", age_ms=200, version=8),
        observation("o9", "cqi", 3, "rt", age_ms=300, version=9),
    ]
    found = {v["observations"][-1]: (v["resolved"], v["blocking"]) for v in decide(episode)["violations"]}
    assert found == {"o8": (True, False), "o9": (False, True)}


def test_a_parent_that_was_retracted_takes_its_child_with_it() -> None:
    episode = clean()
    episode["observations"][0]["parents"] = ["o2"]
    assert decide(episode)["action"] == "APPLY"
    episode["observations"].append(observation("o9", "users", None, "e2") | {"ingest_time_ms": T - 20})
    episode["observations"].append(observation("o8", "users", 5, "e2", age_ms=50))
    decision = decide(episode)
    assert decision["action"] == "HOLD"
    assert codes(decision, blocking=True) == ["stale"]
    assert {"o1", "o2"} <= set(decision["blocked"])


@pytest.mark.parametrize(
    ("change", "action", "code"),
    [
        ({}, "APPLY", None),
        ({"event_time_ms": T + 101, "ingest_time_ms": T}, "HOLD", "future"),
        ({"quality": "incomplete"}, "HOLD", "no_value"),
        ({"value": None}, "HOLD", "no_value"),
        ({"source": "stranger"}, "ESCALATE", "unknown_source"),
        ({"event_time_ms": T - 1001}, "HOLD", "stale"),
        ({"parents": ["o1"]}, "ESCALATE", "unresolved_provenance"),
        ({"parents": ["deeper"]}, "HOLD", "no_value"),
    ],
)
def test_what_is_wrong_with_an_ancestor_that_no_field_binds_is_wrong_with_its_child(
    change: dict[str, Any], action: str, code: str | None
) -> None:
    episode = clean()
    episode["observations"][0]["parents"] = ["raw"]
    episode["observations"].append(observation("raw", "raw_power", 1, "rt") | change)
    episode["observations"].append(observation("deeper", "raw_power", None, "rt"))
    decision = decide(episode)
    assert (decision["action"], codes(decision, blocking=True)) == (action, [code] if code else [])


@pytest.mark.parametrize("order", [("note", "users", "cqi"), ("cqi", "users", "note")])
def test_an_ancestor_that_was_replaced_by_its_own_descendant_is_replaced_all_the_same(order: tuple[str, ...]) -> None:
    episode = clean()
    fields = episode["contract"]["fields"]
    episode["contract"]["fields"] = {name: fields[name] for name in (*order, *(f for f in fields if f not in order))}
    episode["observations"][0]["parents"] = ["m"]
    episode["observations"] += [
        observation("n1", "note", 1, "e2", age_ms=300, version=1),
        observation("n2", "note", 2, "e2", age_ms=300, version=2, parents=["m"]),
        observation("m", "filtered", 1, "e2", age_ms=290, parents=["n1"]),
    ]
    decision = decide(episode)
    assert (decision["action"], codes(decision, blocking=True)) == ("HOLD", ["stale"])
    assert "n1" in decision["blocked"]


def test_memory_takes_back_memory_and_never_live_evidence() -> None:
    for origin, action in (("live", "APPLY"), ("memory", "HOLD")):
        episode = clean()
        episode["observations"][0] |= {"parents": ["n1"]}
        episode["observations"] += [
            observation("n1", "note", 1, "e2", version=1, origin=origin),
            observation("n2", "note", None, "e2", version=2, origin="memory"),
        ]
        assert decide(episode)["action"] == action


def test_an_equal_copy_that_arrived_together_replaces_nothing() -> None:
    for value, action in ((5, "APPLY"), (6, "ESCALATE")):
        for parent in ("o2", "o9"):
            episode = clean()
            episode["observations"][0] |= {"parents": [parent], "event_time_ms": T - 50, "ingest_time_ms": T - 45}
            episode["observations"].append(observation("o9", "users", value, "e2"))
            assert decide(episode)["action"] == action


def test_an_ancestor_that_a_field_binds_must_pass_that_fields_own_checks() -> None:
    episode = clean()
    episode["observations"][0]["parents"] = ["o4"]
    assert decide(episode)["action"] == "APPLY"
    episode["observations"][3] |= {"event_time_ms": T - 900, "value": -1}
    decision = decide(episode)
    assert codes(decision, blocking=True) == ["out_of_range", "out_of_range"], "the field's own, and its child's"
    assert {"o1", "o4"} <= set(decision["blocked"])


def test_authority_ends_with_the_ancestors_too() -> None:
    episode = clean()
    episode["observations"][0]["parents"] = ["raw"]
    episode["observations"].append(observation("raw", "raw_power", 1, "rt", age_ms=700))
    assert decide(episode)["valid_until_ms"] == T - 700 + 1000


def test_a_long_line_of_ancestors_is_no_error_and_its_oldest_counts() -> None:
    episode = clean()
    line = [
        observation(f"x{i}", "raw_power", 1.0, "rt", age_ms=100, parents=[f"x{i + 1}"] if i < 2999 else [])
        for i in range(3000)
    ]
    episode["observations"][0]["parents"] = ["x0"]
    episode["observations"] += line
    assert decide(episode)["action"] == "APPLY"
    line[-1]["event_time_ms"] = T - 1001
    assert codes(decide(episode), blocking=True) == ["stale"]


def test_memory_stands_in_only_where_it_is_newer_than_all_live_evidence() -> None:
    for age, action in ((50, "APPLY"), (150, "HOLD")):
        episode = clean()
        episode["observations"][0]["value"] = None
        episode["observations"].append(observation("m1", "cqi", 10, "rt", age_ms=age, origin="memory"))
        assert decide(episode)["action"] == action


def test_memories_that_disagree_are_not_recalled_and_memory_is_no_side_of_a_conflict() -> None:
    episode = clean()
    episode["observations"].append(observation("m1", "cqi", 2, "e2", origin="memory"))
    assert decide(episode)["action"] == "APPLY"
    del episode["observations"][0]
    episode["observations"].append(observation("m2", "cqi", 9, "rt", origin="memory"))
    assert decide(episode)["action"] == "HOLD"


OUTAGE = {"status": "outage", "retryable": True, "retry_after_ms": 200, "retries_left": 2}


@pytest.mark.parametrize(
    ("terms", "action"),
    [
        ({}, "RETRY"),
        ({"retryable": False}, "ABSTAIN"),
        ({"retries_left": 0}, "ABSTAIN"),
        ({"retry_after_ms": None}, "ABSTAIN"),
        ({"retry_after_ms": 0}, "RETRY"),
        ({"retry_after_ms": 2000}, "RETRY"),
        ({"retry_after_ms": 2001}, "ABSTAIN"),
    ],
)
def test_an_outage_is_retried_only_while_a_retry_can_still_help(terms: dict[str, Any], action: str) -> None:
    episode = clean()
    del episode["observations"][0]
    episode["sources"] = {"rt": OUTAGE | terms}
    decision = decide(episode)
    assert decision["action"] == action
    assert codes(decision, blocking=True) == ["outage"]
    if action == "RETRY":
        assert decision["retry"] == {"source": "rt", "after_ms": (OUTAGE | terms)["retry_after_ms"], "left": 2}


def test_an_outage_that_a_current_secondary_covers_is_applied() -> None:
    episode = clean()
    episode["observations"][0]["source"] = "e2"
    episode["sources"] = {"rt": OUTAGE}
    assert decide(episode)["action"] == "APPLY"


def test_two_independent_risks_escalate_and_one_root_does_not() -> None:
    episode = clean()
    episode["observations"][0] = observation("o1", "cqi", 10, "rt", age_ms=2000)
    episode["observations"][2]["value"] = -1
    decision = decide(episode)
    assert decision["action"] == "ESCALATE", "stale from rt, out of range from oam"
    for o in (0, 2):
        episode["observations"][o]["parents"] = ["root"]
    episode["observations"].append(observation("root", "raw", 1, "rt"))
    assert decide(episode)["action"] == "HOLD", "they share an ancestor"


def test_a_field_that_is_not_critical_never_blocks() -> None:
    episode = clean()
    episode["observations"].append(observation("n1", "note", None, "e2", quality="suspect"))
    decision = decide(episode)
    assert decision["action"] == "APPLY"
    assert codes(decision, blocking=False) == ["no_value"]


# ── the plan ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        (None, "incomplete_plan"),
        ({"value": None, "unit": "MHz"}, "incomplete_plan"),
        ({"value": "10", "unit": "MHz"}, "incomplete_plan"),
        ({"value": 15, "unit": "MHz"}, "plan_mismatch"),
        ({"value": 10}, "ambiguous_unit"),
        ({"value": 10, "unit": "dBm"}, "ambiguous_unit"),
        ({"value": 10, "unit": "stone"}, "unknown_unit"),
    ],
)
def test_a_faulty_plan_value_is_recomputed_where_it_may_be_and_blocks_where_not(entry: Any, code: str) -> None:
    episode = clean()
    episode["proposal"]["plan"] = {} if entry is None else {"bandwidth": entry}
    decision = decide(episode)
    assert (decision["action"], operators(decision)) == ("APPLY", ["recompute"])
    assert decision["released"]["bandwidth"]["value"] == 10.0
    assert codes(decision, blocking=False) == [code]
    episode["contract"]["fields"]["bandwidth"]["repairable"] = False
    decision = decide(episode)
    assert decision["action"] == ("ESCALATE" if code == "ambiguous_unit" else "ABSTAIN")
    assert codes(decision, blocking=True) == [code]


def test_max_repair_bounds_a_recomputation_and_refuses_one_from_nothing() -> None:
    for value, action in ((12, "APPLY"), (13, "ABSTAIN"), (None, "ABSTAIN")):
        episode = clean()
        episode["contract"]["fields"]["bandwidth"]["max_repair"] = 2
        episode["proposal"]["plan"]["bandwidth"]["value"] = value
        assert decide(episode)["action"] == action


def test_a_recomputation_that_would_satisfy_fewer_constraints_is_rejected() -> None:
    episode = clean()
    episode["contract"]["constraints"].append({"id": "floor", "expr": "bandwidth >= 11"})
    episode["proposal"]["plan"]["bandwidth"]["value"] = 12
    decision = decide(episode)
    assert decision["action"] == "ABSTAIN"
    assert operators(decision) == []
    assert codes(decision, blocking=True) == ["plan_mismatch"]


def test_the_verifier_counts_constraints_on_derived_fields_too() -> None:
    episode = clean()
    episode["observations"][3]["value"] = 40  # the proposer's 12 MHz give 41.5 Mbit/s, the recomputed 10 only 34.6
    episode["proposal"]["plan"]["bandwidth"]["value"] = 12
    decision = decide(episode)
    assert operators(decision) == []
    assert codes(decision, blocking=True) == ["plan_mismatch"]


def test_a_recomputation_that_leaves_a_derived_field_without_a_value_is_rejected() -> None:
    for expr in ("log10(bandwidth - 10)", "bandwidth - 11"):
        episode = clean()
        episode["contract"]["fields"]["spare"] = {"kind": "derived", "unit": "MHz", "min": 0, "expr": expr}
        episode["proposal"]["plan"] = {"bandwidth": {"value": 12}}
        decision = decide(episode)
        assert decision["action"] == "ESCALATE", "the missing unit stays"
        assert operators(decision) == []


def test_within_tolerance_the_proposers_own_value_is_released_in_contract_units() -> None:
    episode = clean()
    episode["proposal"]["plan"] = {"Bandwidth": {"value": 10_050, "unit": "kHz"}}
    decision = decide(episode)
    assert decision["released"]["bandwidth"] == {"value": 10.05, "unit": "MHz"}
    assert operators(decision) == ["rename", "convert_unit"]


def test_while_the_inputs_are_blocked_the_faults_of_a_repairable_plan_are_not_filed() -> None:
    episode = clean()
    episode["proposal"]["plan"] = {}
    del episode["observations"][2]
    assert codes(decide(episode), blocking=True) == ["missing"]


def test_a_claim_of_a_derived_field_is_recomputed_and_never_an_input() -> None:
    episode = clean()
    episode["proposal"]["plan"]["rate"] = {"value": 9999, "unit": "Mbit/s"}
    decision = decide(episode)
    assert decision["action"] == "APPLY"
    assert decision["released"]["rate"]["value"] == pytest.approx(10 * 3.4594316, rel=1e-6)  # log2(1 + 10)


def test_nothing_is_recomputed_from_an_input_that_is_itself_refused() -> None:
    episode = clean()
    episode["contract"]["fields"]["bandwidth"]["repairable"] = False
    episode["proposal"]["plan"] = {
        "bandwidth": {"value": 15, "unit": "MHz"}, "rate": {"value": 9999, "unit": "Mbit/s"},
    }  # fmt: skip
    decision = decide(episode)
    assert operators(decision) == []
    assert codes(decision, blocking=True) == ["plan_mismatch"]


def test_an_observed_field_restated_in_the_plan_must_agree_with_its_support() -> None:
    for value, action in ((60_000, "APPLY"), (50_000, "ABSTAIN")):
        episode = clean()
        episode["proposal"]["plan"]["capacity"] = {"value": value, "unit": "kHz"}
        assert decide(episode)["action"] == action


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"plan": {"bandwith": {"value": 1, "unit": "MHz"}}}, "$.proposal.plan.bandwith"),
        ({"plan": {"bandwidth": 10}}, "$.proposal.plan.bandwidth"),
        ({"plan": {"bandwidth": {"value": 1, "unit": 5}}}, "$.proposal.plan.bandwidth.unit"),
        ({"plan": {"bandwidth": {"value": 1, "units": "MHz"}}}, "$.proposal.plan.bandwidth.units"),
        ({"plan": {"cqi": {"value": 10}, "wb_cqi": {"value": 10}}}, "$.proposal.plan.wb_cqi"),
        ({"plan": []}, "$.proposal.plan"),
        ({"intent": "GO"}, "$.proposal.intent"),
        ({"created_at_ms": T + 101}, "$.proposal.created_at_ms"),
        ({"created_at_ms": "now"}, "$.proposal.created_at_ms"),
        ({"created_at_ms": T // 1000}, "$.proposal.created_at_ms"),
        ({"deadline_ms": 1.5}, "$.proposal.deadline_ms"),
        ({"deadline_ms": (T + 100) * 1000}, "$.proposal.deadline_ms"),
        ({"contract_ref": "other/1"}, "$.proposal.contract_ref"),
        ({"bindings": {"ue": 7}}, "$.proposal.bindings.ue"),
        ({"bindings": {"ue": ["7", "7"]}}, "$.proposal.bindings.ue"),
        ({"note": "x"}, "$.proposal.note"),
    ],
)
def test_what_is_wrong_inside_a_proposal_is_malformed_with_its_place(change: dict[str, Any], place: str) -> None:
    episode = clean()
    episode["proposal"] |= change
    decision = decide(episode)
    assert decision["action"] == "ABSTAIN"
    assert codes(decision) == ["malformed"]
    assert decision["violations"][0]["detail"].startswith(place + ":")


def test_expiry_comes_before_everything_and_the_deadline_itself_is_in_time() -> None:
    for deadline, action in ((T, "APPLY"), (T - 1, "ABSTAIN")):
        episode = clean()
        episode["proposal"]["deadline_ms"] = deadline
        assert decide(episode)["action"] == action


def test_another_intent_than_apply_is_not_executed_unless_the_contract_overrides_it() -> None:
    episode = clean()
    episode["proposal"]["intent"] = "HOLD"
    assert decide(episode)["action"] == "ABSTAIN"
    episode["contract"]["override_intent"] = True
    assert decide(episode)["action"] == "APPLY"


def test_expected_old_values_must_match_what_evidence_says() -> None:
    for value, action in ((61, "ABSTAIN"), (60, "APPLY")):
        episode = clean()
        episode["proposal"]["expected"] = {"capacity": {"value": value, "unit": "MHz"}}
        assert decide(episode)["action"] == action
    episode["proposal"]["expected"] = {"bandwidth": {"value": 10, "unit": "MHz"}}
    assert codes(decide(episode), blocking=True) == ["precondition"], "the value last applied is not known here"


# ── many users ───────────────────────────────────────────────────────────────────────────────────────────────────────


def many() -> dict[str, Any]:
    episode = clean()
    fields = episode["contract"]["fields"]
    fields["cqi"]["subject"] = "ue:{ue}"
    fields["min_rate"]["subject"] = "ue:{ue}"
    fields["bandwidth"] |= {"subject": "ue:{ue}", "repairable": False, "min": 0}
    del fields["bandwidth"]["expr"]
    episode["contract"]["constraints"][0]["expr"] = "sum(bandwidth) <= capacity"
    episode["observations"] = episode["observations"][1:3]
    for ue in "78":
        episode["observations"] += [
            observation(f"c{ue}", "cqi", 10, "rt", subject=f"ue:{ue}"),
            observation(f"m{ue}", "min_rate", 20, "a1", unit="Mbit/s", subject=f"ue:{ue}"),
        ]
    episode["proposal"]["bindings"] = {"ue": ["7", "8"]}
    episode["proposal"]["plan"] = {"bandwidth": {"value": {"7": 30, "8": 30}, "unit": "MHz"}}
    episode["contract"]["fields"]["bandwidth"]["max"] = 60
    return episode


def test_a_list_binding_makes_mappings_and_every_member_must_be_valid() -> None:
    decision = decide(many())
    assert decision["action"] == "APPLY"
    assert decision["released"]["bandwidth"]["value"] == {"7": 30.0, "8": 30.0}
    assert decision["used"]["cqi"] == ["c7", "c8"]
    episode = many()
    episode["observations"][-2]["value"] = None
    episode["observations"][-4]["source"] = "e2"
    decision = decide(episode)
    assert decision["action"] == "HOLD"
    assert operators(decision) == [], "a repair of one member is none while its field is not supported"
    assert "cqi" not in decision["used"]


def test_eq_3_holds_over_all_users_or_not_at_all() -> None:
    episode = many()
    episode["proposal"]["plan"]["bandwidth"]["value"]["8"] = 30.1
    assert codes(decide(episode), blocking=True) == ["constraint"], "the sum is above the capacity"
    episode["proposal"]["plan"]["bandwidth"]["value"] |= {"7": 55, "8": 2}
    assert codes(decide(episode), blocking=True) == ["constraint"], "user 8 is below its rate"


def test_a_plan_that_leaves_a_user_out_or_adds_a_stranger_is_not_executed() -> None:
    episode = many()
    del episode["proposal"]["plan"]["bandwidth"]["value"]["8"]
    assert codes(decide(episode), blocking=True) == ["incomplete_plan"]
    episode["proposal"]["plan"]["bandwidth"]["value"] |= {"8": 1, "9": 1}
    assert codes(decide(episode), blocking=True) == ["malformed"]


# ── windows, eq. 4 ───────────────────────────────────────────────────────────────────────────────────────────────────


def handover(margins_db: dict[int, float]) -> dict[str, Any]:
    """Margins by age in ms, target over serving; a 300 ms window, samples at most 150 ms apart."""
    episode = clean()
    rsrp = {"kind": "observed", "unit": "dBm", "freshness_ms": 200, "sources": ["e2"]}
    episode["contract"] = {
        "contract_id": "test-handover/1",
        "fields": {"serving": rsrp, "target": copy.deepcopy(rsrp)},
        "constraints": [{"id": "a3", "expr": "target - serving >= 3", "window_ms": 300, "max_gap_ms": 150}],
    }
    episode["proposal"]["plan"] = {}
    episode["observations"] = [
        observation(f"{name}{age}", name, -100.0 + (margin if name == "target" else 0), "e2", age, unit="dBm")
        for age, margin in margins_db.items()
        for name in ("serving", "target")
    ]
    return episode


def test_a_margin_that_held_all_through_the_window_is_applied_until_the_next_sample_is_due() -> None:
    decision = decide(handover({350: 3, 250: 4, 100: 3}))
    assert decision["action"] == "APPLY"
    assert decision["valid_until_ms"] == T - 100 + 150


@pytest.mark.parametrize(
    ("margins", "action", "code"),
    [
        ({350: 3, 250: 4, 100: 2}, "ABSTAIN", "constraint"),
        ({350: 3, 250: 2, 100: 3}, "HOLD", "not_sustained"),
        ({350: 2, 250: 4, 100: 3}, "HOLD", "not_sustained"),
        ({250: 4, 100: 3}, "HOLD", "gap"),
        ({350: 3, 250: 4, 90: 3}, "HOLD", "gap"),
        ({350: 3, 250: 4, 151: 3}, "HOLD", "gap"),
    ],
)
def test_a_dip_a_gap_and_a_window_still_filling_hold(margins: dict[int, float], action: str, code: str) -> None:
    decision = decide(handover(margins))
    assert (decision["action"], codes(decision, blocking=True)) == (action, [code])


def test_a_derived_field_is_followed_through_the_window() -> None:
    for dip, action in ((4.0, "APPLY"), (2.0, "HOLD")):
        episode = handover({350: 3, 250: dip, 100: 3})
        episode["contract"]["fields"]["margin"] = {"kind": "derived", "unit": "dB", "expr": "target - serving"}
        episode["contract"]["fields"]["unrelated"] = {"kind": "derived", "expr": "1 / (serving - serving + 1)"}
        episode["contract"]["constraints"][0]["expr"] = "margin >= 3"
        assert decide(episode)["action"] == action


def test_a_window_whose_input_is_blocked_is_not_judged_and_one_over_a_plan_alone_bounds_nothing() -> None:
    episode = clean()
    episode["contract"]["constraints"].append({"id": "steady", "expr": "rate >= 1", "window_ms": 100})
    del episode["observations"][2]
    assert codes(decide(episode), blocking=True) == ["missing"]
    episode = clean()
    bandwidth = episode["contract"]["fields"]["bandwidth"]
    del bandwidth["expr"], bandwidth["repairable"]
    episode["contract"]["constraints"].append({"id": "cap", "expr": "bandwidth <= 30", "window_ms": 100})
    decision = decide(episode)
    assert (decision["action"], decision["valid_until_ms"]) == ("APPLY", T - 100 + 1000)


def test_a_window_over_many_members_holds_for_all_of_them() -> None:
    for dip, action in ((4.0, "APPLY"), (2.0, "HOLD")):
        episode = handover({350: 3, 250: 4, 100: 3})
        for field in episode["contract"]["fields"].values():
            field["subject"] = "ue:{ue}"
        second = handover({340: 3, 240: dip, 110: 3})["observations"]
        for ue, seen in (("7", episode["observations"]), ("8", second)):
            for o in seen:
                o |= {"id": f"{ue}-{o['id']}", "subject": f"ue:{ue}"}
        episode["observations"] += second
        episode["proposal"]["bindings"] = {"ue": ["7", "8"]}
        assert decide(episode)["action"] == action


def test_a_bad_sample_inside_the_window_is_a_gap_and_not_skipped() -> None:
    episode = handover({350: 3, 250: 4, 100: 3})
    episode["observations"][2]["value"] = None
    assert codes(decide(episode), blocking=True) == ["gap"]


def test_a_repair_is_not_refused_for_what_another_root_gets_wrong() -> None:
    """The mode is missing and the bandwidth slipped: the rate is too high either way, until both are mended."""
    episode = clean()
    fields = episode["contract"]["fields"]
    fields["mode"] = {"kind": "planned", "type": "string", "expr": 'if(cqi > 0, "wide", "narrow")', "repairable": True}
    fields["bandwidth"] = {
        "kind": "planned", "unit": "MHz", "min": 0, "max": 100_000, "repairable": True,
        "expr": 'if(mode == "wide", min(max(round(90/(users+1), 2), 6), 20), 1)',
    }  # fmt: skip
    fields["rate"]["max"] = 10_000
    right = decide({**episode, "proposal": {**episode["proposal"], "plan": {}}})
    assert right["action"] == "APPLY"
    slipped = {"bandwidth": {"value": 12_870, "unit": "MHz"}}
    for plan in (slipped, {**slipped, "mode": {"value": "narrow", "unit": "1"}}):
        decision = decide({**episode, "proposal": {**episode["proposal"], "plan": plan}})
        assert decision["action"] == "APPLY"
        assert decision["released"] == right["released"]
        assert {r["field"] for r in decision["repairs"]} == {"mode", "bandwidth"}


@pytest.mark.parametrize(("other", "action"), [(1.01e-13, "APPLY"), (1e-10, "ESCALATE"), (1.1e-13, "ESCALATE")])
def test_rounding_does_not_hide_what_a_small_tolerance_tells_apart(other: float, action: str) -> None:
    episode = clean()
    episode["contract"]["fields"]["noise"] = {
        "kind": "observed", "unit": "W", "freshness_ms": 1000, "sources": ["rt", "e2"], "rel_tolerance": 0.02,
    }  # fmt: skip
    episode["observations"] += [
        observation("o8", "noise", 1e-13, "rt", unit="W"), observation("o9", "noise", other, "e2", unit="W"),
    ]  # fmt: skip
    assert decide(episode)["action"] == action


def test_a_plan_of_tiny_values_is_held_against_its_expression() -> None:
    episode = clean()
    fields = episode["contract"]["fields"]
    fields["power"] = {"kind": "planned", "unit": "W", "rel_tolerance": 0.01, "expr": "cqi*1e-14", "repairable": True}
    plan = {**episode["proposal"]["plan"], "power": {"value": 1e-10, "unit": "W"}}
    decision = decide({**episode, "proposal": {**episode["proposal"], "plan": plan}})
    assert decision["released"]["power"] == {"value": pytest.approx(1e-13), "unit": "W"}
