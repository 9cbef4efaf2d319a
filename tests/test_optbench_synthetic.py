"""Laws of the synthetic proposers, and of reading what a backbone says."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optbench_cases import ANSWERS, FIELDS, PLANS, case, six_hundred

from simulators.optbench.agents import Prompt, RawProposal
from simulators.optbench.model import TASKS, Case
from simulators.optbench.prompts import propose, revise
from simulators.optbench.replies import ACTIONS, MAX_CHARACTERS, Unreadable, read_reply
from simulators.optbench.synthetic import MENDED, PROFILES, SyntheticProposer, proposer, proposers

SUITE = six_hundred()
NAMES = tuple(PROFILES)


def asked(c: Case) -> Prompt:
    return propose(c.view, "direct")


def said(backbone: SyntheticProposer, prompt: Prompt) -> RawProposal:
    completion = backbone.complete(prompt)
    assert completion.error is None
    read = read_reply(completion.text)
    assert isinstance(read, RawProposal), completion.text
    return read


def proposals(backbone: SyntheticProposer, cases: Sequence[Case] = SUITE) -> dict[str, RawProposal]:
    return {c.episode_id: said(backbone, asked(c)) for c in cases}


def right_plan(c: Case) -> dict[str, Any]:
    task = c.sealed.item.task
    return {name: {"value": v, "unit": FIELDS[task][name].get("unit", "1")} for name, v in PLANS[task].items()}


def right_answer(c: Case) -> dict[str, Any]:
    return {key: value for key, value in ANSWERS[c.sealed.item.task].items() if key != "min_rate_required"}


# --- the rates of table IV


@pytest.mark.parametrize(
    ("name", "on_blocking", "on_apply"),
    [("synthetic-a", 369, 187), ("synthetic-b", 342, 198), ("synthetic-c", 357, 194)],
)
@pytest.mark.parametrize("seed", [0, 7])
def test_on_the_suite_the_counts_of_table_iv_are_met_exactly(
    name: str, on_blocking: int, on_apply: int, seed: int
) -> None:
    said_of = proposals(proposer(name, SUITE, seed))
    applied = Counter(c.sealed.reference == "APPLY" for c in SUITE if said_of[c.episode_id].action == "APPLY")
    assert applied == {False: on_blocking, True: on_apply}


@settings(max_examples=40)
@given(size=st.sampled_from([0, 1, 2, 7, 33]) | st.integers(0, 60), seed=st.integers(0, 9), name=st.sampled_from(NAMES))
def test_on_a_suite_of_any_size_each_count_is_the_rate_rounded(size: int, seed: int, name: str) -> None:
    cases = SUITE[:: max(1, 600 // size)][:size] if size else ()
    said_of = proposals(proposer(name, cases, seed), cases)
    for group, rate in (
        ([c for c in cases if c.sealed.reference == "APPLY"], PROFILES[name].applies_applicable),
        ([c for c in cases if c.sealed.reference != "APPLY"], PROFILES[name].applies_blocking),
    ):
        applied = sum(said_of[c.episode_id].action == "APPLY" for c in group)
        assert abs(applied - rate * len(group)) <= Fraction(1, 2)


@pytest.mark.parametrize("name", NAMES)
def test_no_domain_and_task_is_favoured_by_a_whole_episode(name: str) -> None:
    said_of = proposals(proposer(name, SUITE, 3))
    for applicable in (True, False):
        group = [c for c in SUITE if (c.sealed.reference == "APPLY") is applicable]
        rate = Fraction(sum(said_of[c.episode_id].action == "APPLY" for c in group), len(group))
        sizes = Counter((c.sealed.domain, c.sealed.item.task) for c in group)
        applied = Counter(
            (c.sealed.domain, c.sealed.item.task) for c in group if said_of[c.episode_id].action == "APPLY"
        )
        assert len(sizes) >= 12
        assert all(abs(applied[stratum] - rate * n) < 1 for stratum, n in sizes.items())


def test_what_is_not_applied_is_refused_mostly_by_holding_where_applying_was_right() -> None:
    cases = [case(f"e-{n}", TASKS[n % 3]) for n in range(2000)]
    refused = Counter(p.action for p in proposals(proposer("synthetic-a", cases, 1), cases).values())
    assert refused.pop("APPLY") == 1870
    assert refused["HOLD"] > 0.7 * sum(refused.values())
    assert set(refused) <= set(ACTIONS)


# --- determinism


def test_there_are_three_and_they_are_called_synthetic() -> None:
    three = proposers(SUITE, 5)
    assert [p.name for p in three] == ["synthetic-a", "synthetic-b", "synthetic-c"]
    assert all(p.synthetic for p in three)


def test_the_same_prompt_has_the_same_completion_in_any_order_of_cases_and_calls() -> None:
    cases = SUITE[::5]
    first, second = proposer("synthetic-b", cases, 2), proposer("synthetic-b", cases[::-1], 2)
    forward = [first.complete(asked(c)) for c in cases]
    backward = [second.complete(asked(c)) for c in cases[::-1]]
    assert forward == backward[::-1] == [first.complete(asked(c)) for c in cases]


def test_seeds_and_names_draw_differently() -> None:
    drawn = {(n, s): proposals(proposer(n, SUITE, s), SUITE[:30]) for n in NAMES for s in (1, 2)}
    assert len({repr(p) for p in drawn.values()}) == len(drawn)


def test_tokens_are_a_quarter_of_the_characters() -> None:
    prompt = asked(SUITE[0])
    completion = proposer("synthetic-a", SUITE, 0).complete(prompt)
    assert completion.tokens_out == len(completion.text) // 4
    assert completion.tokens_in == sum(len(text) for _, text in prompt.messages) // 4


def test_an_episode_that_it_was_not_built_for_is_an_error_in_the_completion() -> None:
    completion = proposer("synthetic-a", SUITE[:9], 0).complete(asked(case("e-unheard-of")))
    assert completion.text == ""
    assert completion.error is not None


def test_two_cases_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="episode id"):
        proposer("synthetic-a", [SUITE[0], SUITE[0]], 0)


# --- content


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("reference", ["APPLY", "ESCALATE"])
def test_errors_of_content_do_not_depend_on_the_label(name: str, reference: str) -> None:
    relabelled = [replace(c, sealed=replace(c.sealed, reference=reference)) for c in SUITE]
    before, after = proposals(proposer(name, SUITE, 4)), proposals(proposer(name, relabelled, 4))
    assert all((p.plan, p.answer) == (after[e].plan, after[e].answer) for e, p in before.items())


@pytest.mark.parametrize("name", NAMES)
def test_a_quarter_to_a_half_of_the_proposals_are_right_in_the_whole_of_plan_and_answer(name: str) -> None:
    said_of = proposals(proposer(name, SUITE, 6))
    right = sum(
        (said_of[c.episode_id].plan, said_of[c.episode_id].answer) == (right_plan(c), right_answer(c)) for c in SUITE
    )
    assert 0.25 <= right / len(SUITE) <= 0.5


def within(count: int, n: int, rate: float) -> bool:
    """Four standard deviations of a binomial count."""
    return abs(count - n * rate) <= 4 * math.sqrt(n * rate * (1 - rate))


@pytest.mark.parametrize("name", NAMES)
def test_every_kind_of_error_has_its_documented_rate(name: str) -> None:
    profile, cases = PROFILES[name], [c for c in SUITE if c.sealed.item.task == "WCMSA"]
    found = list(proposals(proposer(name, SUITE, 8), cases).values())
    planned = {f for f, field in FIELDS["WCMSA"].items() if field["kind"] == "planned"}
    incomplete = [p for p in found if not planned & p.plan.keys()]
    assert within(len(incomplete), len(cases), profile.incomplete_plan)
    whole = [p for p in found if planned & p.plan.keys()]
    assert within(sum(len(p.plan) < len(PLANS["WCMSA"]) for p in whole), len(whole), profile.omitted_field)
    # a field that lost its unit may be the one that is left out: 1 in 5
    unitless = sum(any(entry["unit"] is None for entry in p.plan.values()) for p in whole)
    assert within(unitless, len(whole), profile.omitted_unit * (1 - profile.omitted_field / 5))
    # what the plan omits, the answer still states: a wrong value shows there
    right = case(task="WCMSA").sealed.item.plan
    factors = Counter(round(math.log10(p.answer["bandwidth"] / right["bandwidth"])) for p in found)
    others = sum(p.answer["slice_type"] != right["slice_type"] for p in found)
    assert factors[3] + factors[-3] > 0
    assert set(factors) <= {-3, 0, 3}
    assert within(factors[3] + factors[-3], len(cases), profile.unit_slip / 4)
    assert within(others, len(cases), profile.wrong_arithmetic / 5)


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_value_in_the_plan_shows_in_the_answer_as_it_is_written(name: str) -> None:
    said_of = proposals(proposer(name, SUITE, 9))
    for c in SUITE:
        plan, answer = said_of[c.episode_id].plan, said_of[c.episode_id].answer
        if c.sealed.item.task == "WCHW":
            places = {"answer": answer["value"]}
            assert all(entry["unit"] == answer["unit"] for entry in plan.values())
        else:
            places = {key: answer[key] for key in ("slice_type", "bandwidth", "throughput")}
        if c.sealed.item.task == "WCMSA":
            places |= {f"position_{axis}": answer["predicted_position"][axis] for axis in "xy"}
        assert all(entry["value"] == places[field] for field, entry in plan.items())


@pytest.mark.parametrize("name", NAMES)
def test_a_miscalculated_value_lies_beyond_the_tolerance(name: str) -> None:
    said_of = proposals(proposer(name, SUITE, 10))
    for c in SUITE:
        for field, entry in said_of[c.episode_id].plan.items():
            right, stated = c.sealed.item.plan[field], FIELDS[c.sealed.item.task][field]
            if entry["value"] != right and not isinstance(right, str):
                bound = max(stated.get("tolerance", 0), stated.get("rel_tolerance", 0) * abs(entry["value"]))
                assert abs(entry["value"] - right) > bound


def test_observed_fields_are_claimed_and_never_restated_in_the_plan() -> None:
    backbone = proposer("synthetic-c", SUITE, 0)
    for c in SUITE[:60]:
        p = said(backbone, asked(c))
        fields = c.view["episode"]["contract"]["fields"]
        assert all(fields[name]["kind"] != "observed" for name in p.plan)
        assert p.fields.keys() == {name for name, field in fields.items() if field["kind"] == "observed"}


def test_a_claim_names_the_newest_observation_of_the_first_source_that_told_the_field() -> None:
    cases = [case(f"e-{n}") for n in range(60)]
    backbone = proposer("synthetic-b", cases, 0)
    p = next(p for p in proposals(backbone, cases).values() if p.action == "APPLY")
    assert {name: claim["observation"] for name, claim in p.fields.items()} == {
        "service_class": None,  # nothing told it
        "users": "o3",  # by an alias, of the second source
        "cqi": "o4",  # not o2, which is newer but of the second source
        "load": None,
    }
    assert {claim["state"] for claim in p.fields.values()} == {"supported"}


def test_who_does_not_apply_claims_one_critical_field_blocked() -> None:
    backbone = proposer("synthetic-a", SUITE, 1)
    refusals = [(c, p) for c in SUITE if (p := said(backbone, asked(c))).action != "APPLY"]
    assert refusals
    for c, p in refusals:
        (blocked,) = [name for name, claim in p.fields.items() if claim["state"] == "blocked"]
        assert c.view["episode"]["contract"]["fields"][blocked]["critical"]


# --- revision


def disputes(c: Case) -> list[str]:
    fields = c.view["episode"]["contract"]["fields"]
    kinds = {"observed": "fields", "planned": "plan", "derived": "plan"}
    return [f"{kinds[field['kind']]}:{name}" for name, field in fields.items()] + ["action:RETRY"]


@given(
    at=st.integers(0, 599),
    name=st.sampled_from(NAMES),
    data=st.data(),
    rounds=st.integers(1, 3),
    seed=st.integers(0, 3),
)
def test_a_revision_mends_disputed_things_and_leaves_the_rest(
    at: int, name: str, data: st.DataObject, rounds: int, seed: int
) -> None:
    c = SUITE[at]
    backbone = proposer(name, SUITE[max(0, at - 20) : at + 20], seed)
    text = backbone.complete(asked(c)).text
    for turn in range(1, rounds + 1):
        disputed = data.draw(st.lists(st.sampled_from(disputes(c)), unique=True))
        before = read_reply(text)
        prompt = revise(c.view, text, [(d, "this is wrong") for d in disputed], turn)
        text = backbone.complete(prompt).text
        after = read_reply(text)
        assert isinstance(before, RawProposal)
        assert isinstance(after, RawProposal)
        assert after.action == before.action or (after.action == "RETRY" and "action:RETRY" in disputed)
        for field in before.plan.keys() | after.plan.keys():
            if after.plan.get(field) != before.plan.get(field):
                assert f"plan:{field}" in disputed
                assert after.plan[field] == right_plan(c)[field]
        for field in before.fields:
            if after.fields[field] != before.fields[field]:
                assert f"fields:{field}" in disputed
                assert after.fields[field]["state"] == "blocked"
        if not any(d.startswith("plan:") for d in disputed):
            assert after.answer == before.answer


@pytest.mark.parametrize("name", NAMES)
def test_what_is_disputed_is_mended_with_the_documented_chance_in_each_round(name: str) -> None:
    backbone, mended, wrong = proposer(name, SUITE, 11), 0, 0
    for c in SUITE:
        first = backbone.complete(asked(c)).text
        before = read_reply(first)
        assert isinstance(before, RawProposal)
        faulty = [f for f, entry in right_plan(c).items() if before.plan.get(f) != entry]
        for turn in (1, 2):
            after = said(backbone, revise(c.view, first, [(f"plan:{f}", "differs") for f in faulty], turn))
            wrong += len(faulty)
            mended += sum(after.plan.get(f) == right_plan(c)[f] for f in faulty)
    assert within(mended, wrong, MENDED)


def test_a_proposal_whose_whole_plan_is_mended_answers_rightly() -> None:
    backbone = proposer("synthetic-b", SUITE, 12)
    for c in SUITE[:60]:
        text = backbone.complete(asked(c)).text
        for turn in range(1, 25):
            critiques = [(f"plan:{field}", "differs") for field in right_plan(c)]
            text = backbone.complete(revise(c.view, text, critiques, turn)).text
        read = read_reply(text)
        assert isinstance(read, RawProposal)
        assert (read.plan, read.answer) == (right_plan(c), right_answer(c))


def test_a_dispute_about_what_does_not_exist_changes_nothing() -> None:
    backbone = proposer("synthetic-a", SUITE, 0)
    for c in SUITE[:60]:
        text = backbone.complete(asked(c)).text
        unknown = ("plan:colour", "fields:colour", "action:PERHAPS", "nonsense", "plan:cqi", "fields:bandwidth")
        critiques = [(disputed, "?") for disputed in unknown]
        assert said(backbone, revise(c.view, text, critiques, 1)) == read_reply(text)


# --- reading replies

REPLY = {
    "action": "APPLY",
    "answer": {"value": 18, "unit": "MHz"},
    "plan": {"bandwidth": {"value": 18, "unit": "MHz"}},
    "fields": {"cqi": {"state": "supported", "observation": "o4"}},
}
TEXT = json.dumps(REPLY)
READ = RawProposal(**REPLY)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        json.dumps(REPLY, indent=2),
        f"```json\n{TEXT}\n```",
        f"```\n{TEXT}\n```\nThat is all.",
        f"With C = \\frac{{B}}{{2}} {{as usual}} I find: {TEXT} Note {{this}}.",
        f'<think>first {{"action": "HOLD"}}, but no</think>{TEXT}',
        json.dumps({**REPLY, "confidence": 0.9, "reasoning": {"steps": ["a", "b"]}}),
        json.dumps({**REPLY, "plan": {"bandwidth": "18 MHz"}}),
        json.dumps({**REPLY, "plan": {"bandwidth": {"value": "18", "unit": " MHz "}}}),
        json.dumps({**REPLY, "plan": {"bandwidth": {"value": "18 MHz"}}, "answer": {"value": "18MHz"}}),
        json.dumps({**REPLY, "plan": {"bandwidth": {"value": 18, "unit": "MHz", "note": "half"}}}),
        json.dumps({**REPLY, "fields": {"cqi": {"state": "Supported", "observation": "o4"}, "x": "perhaps"}}),
        json.dumps({"tool": "calculator"}) + TEXT,
        '{"action": "APPLY", "plan": {}}' + TEXT,
    ],
)
def test_one_proposal_is_read_however_it_is_dressed(text: str) -> None:
    assert read_reply(text) == READ


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("dress", ["{}", " {}.", "**{}**", "Action: {}", "{}: cqi is not fresh", '"{}"'])
def test_an_action_is_read_in_any_case_and_with_text_behind_it(action: str, dress: str) -> None:
    for name in (action, action.lower(), action.title()):
        read = read_reply(json.dumps({"action": dress.format(name)}))
        assert isinstance(read, RawProposal)
        assert read.action == action


@pytest.mark.parametrize(
    "action", ["APPLY or HOLD", "HOLD (do not APPLY)", "do not APPLY", "APPLYING", "", "go", None, 1, ["APPLY"], {}]
)
def test_several_actions_or_another_word_are_none(action: Any) -> None:
    read = read_reply(json.dumps({**REPLY, "action": action}))
    assert isinstance(read, RawProposal)
    assert read.action is None
    assert read.plan == READ.plan


def test_two_objects_that_name_different_actions_name_none() -> None:
    read = read_reply('{"action": "HOLD"} or rather ' + TEXT)
    assert isinstance(read, RawProposal)
    assert (read.action, read.plan) == (None, READ.plan)


@pytest.mark.parametrize(
    ("written", "value", "unit"),
    [
        (18, 18, None), (18.5, 18.5, None), ("18", 18, None), ("1,800 kHz", 1800, "kHz"), ("-3e-2 dBm", -0.03, "dBm"),
        (".5", 0.5, None), ("50 %", 50, "%"), ("eMBB", "eMBB", None), ("about 18 MHz", "about 18 MHz", None),
        (None, None, None), (True, True, None), ([18, "MHz"], None, None), ({"unit": "MHz"}, None, "MHz"),
        ({"value": 3, "unit": 1}, 3, "1"), ({"value": 3, "unit": ""}, 3, None), ({"value": 3, "unit": {}}, 3, None),
        ({"value": "18 MHz", "unit": "kHz"}, "18 MHz", "kHz"), ({"value": {"value": 3}, "unit": "m"}, None, "m"),
        ("1e999", "1e999", None), ("nan", "nan", None), ("Infinity", "Infinity", None),
    ],
)  # fmt: skip
def test_a_single_value_stands_for_value_and_unit(written: Any, value: Any, unit: str | None) -> None:
    read = read_reply(json.dumps({"action": "APPLY", "plan": {"p": written}}))
    assert isinstance(read, RawProposal)
    assert read.plan == {"p": {"value": value, "unit": unit}}
    assert type(read.plan["p"]["value"]) is type(value)


def test_a_free_text_answer_stays_text_and_numbers_as_text_become_numbers() -> None:
    free = read_reply(json.dumps({"action": "HOLD", "answer": "about 18 MHz, I think"}))
    structured = read_reply(
        '{"action": "HOLD", "answer": {"cqi": "15", "predicted_position": {"x": "-1.5"}, "slice_type": "eMBB"}}'
    )
    assert isinstance(free, RawProposal)
    assert isinstance(structured, RawProposal)
    assert free.answer == "about 18 MHz, I think"
    assert structured.answer == {"cqi": 15, "predicted_position": {"x": -1.5}, "slice_type": "eMBB"}


@pytest.mark.parametrize(
    "text",
    [
        "", "APPLY", "[]", "{}", "null", '{"bandwidth": 18}', TEXT[:-1], TEXT[:60], "{" * 60_000,
        TEXT + " " * MAX_CHARACTERS, '{"action": "APPLY", "action": "HOLD"}', '{"a":' * 9_000 + "1" + "}" * 9_000,
        '{"action": "APPLY", "plan": ' + "[" * 30 + "]" * 30 + "}", '{"action": "APPLY", "x": ' + "9" * 5_000 + "}",
        '{"a"' * 16_000, *(TEXT.replace("18", n) for n in ("NaN", "Infinity", "-Infinity", "1e999")),
    ],
)  # fmt: skip
def test_what_is_no_proposal_is_unreadable_with_a_reason(text: str) -> None:
    read = read_reply(text)
    assert isinstance(read, Unreadable)
    assert read.reason


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12) | st.sampled_from(ACTIONS)
documents = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.sampled_from(["action", "answer", "plan", "fields", "value", "unit", "state", "x"]), inner),
    max_leaves=25,
)


def finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(finite, value.values()))
    if isinstance(value, list):
        return all(map(finite, value))
    return not isinstance(value, float) or math.isfinite(value)


@given(document=documents, before=st.text(max_size=30), after=st.text(max_size=30), cut=st.integers(0, 400))
def test_whatever_is_said_reading_does_not_raise_and_keeps_the_form(
    document: Any, before: str, after: str, cut: int
) -> None:
    whole = before + json.dumps(document) + after
    for text in (whole, whole[:cut], whole[cut:]):
        read = read_reply(text)
        if isinstance(read, RawProposal):
            assert read.action is None or read.action in ACTIONS
            assert finite(read.answer)
            for entry in read.plan.values():
                assert entry.keys() == {"value", "unit"}
                assert finite(entry["value"])
                assert entry["value"] is None or isinstance(entry["value"], str | bool | int | float)
                assert entry["unit"] is None or isinstance(entry["unit"], str)
            for claim in read.fields.values():
                assert claim["state"] in ("supported", "blocked")


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    assert isinstance(read_reply(text), RawProposal | Unreadable)
