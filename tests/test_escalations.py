"""An operator's answer says what it settles, and fits the escalation it answers."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from guard_rig import CONTRACT, contracts, proposal, report

from streams.deciding import History, RegionState, read_proposal_bytes
from streams.escalations import NotSettled, answer_to, disputes, told
from streams.messages import AnswerMessage
from xapp.authorization import decision_json
from xapp.faithfulness import verify
from xapp.model import Decision

T0 = 1_790_000_000_000


def observation(identity: str, value: Any, source: str, subject: str = "cell:1/ue:7") -> dict[str, Any]:
    return {"id": identity, "name": "cqi", "value": value, "unit": "1", "source": source, "subject": subject}


def record(action: str = "ESCALATE", code: str = "conflict", field: str | None = "cqi") -> dict[str, Any]:
    held = [observation("a", 3, "e2"), observation("b", 12, "rt"), observation("c", 7, "rt", "cell:1/ue:8")]
    violation = {"code": code, "field": field, "observations": ["a", "b"], "blocking": True}
    return {
        "action": action,
        "decision_id": "d1",
        "proposal_id": "p1",
        "violations": [violation],
        "explanation": "why",
        "record": {"episode": {"observations": held}},
    }


def answered(verdict: str, *said: str, of: dict[str, Any] | None = None) -> Any:
    return answer_to(
        record() if of is None else of,
        answer_id="x", verdict=verdict, operator="alice", reason="because", at_ms=T0, said=said,
    )  # fmt: skip


def test_an_approval_names_the_observations_in_dispute_and_their_subject() -> None:
    answer = answered("approve", "cqi=12:1")
    (settled,) = answer.settles
    assert (settled.field, settled.subject, settled.value, settled.unit) == ("cqi", "cell:1/ue:7", 12, "1")
    assert settled.observations == ["a", "b"]
    assert (answer.decision_id, answer.proposal_id) == ("d1", "p1")


@pytest.mark.parametrize(
    ("text", "value"), [("cqi=12", 12), ("cqi=-1.5", -1.5), ("cqi=true", True), ("cqi=on-air", "on-air")]
)
def test_a_value_is_read_as_what_it_looks_like(text: str, value: Any) -> None:
    assert answered("approve", text).settles[0].value == value


def of_several() -> dict[str, Any]:
    """The same field disputed of two subjects."""
    made = record()
    made["record"]["episode"]["observations"].append(observation("d", 2, "e2", "cell:1/ue:8"))
    made["violations"].append({"code": "conflict", "field": "cqi", "observations": ["c", "d"], "blocking": True})
    return made


def test_what_holds_of_one_subject_is_nothing_said_of_another() -> None:
    assert [d.name for d in disputes(of_several())] == ["cqi@cell:1/ue:7", "cqi@cell:1/ue:8"]
    with pytest.raises(NotSettled, match="say of which: cqi@cell:1/ue:7, cqi@cell:1/ue:8"):
        answered("approve", "cqi=12:1", of=of_several())
    answer = answered("approve", "cqi@cell:1/ue:8=7:1", of=of_several())
    assert [(s.subject, s.value, s.observations) for s in answer.settles] == [("cell:1/ue:8", 7, ["c", "d"])]


def test_a_denial_settles_nothing() -> None:
    assert answered("deny").settles == []
    with pytest.raises(NotSettled):
        answered("deny", "cqi=12")


@pytest.mark.parametrize("said", ["cqi", "cqi=", "rsrp=3"])
def test_what_settles_nothing_is_refused_with_the_reason(said: str) -> None:
    with pytest.raises(NotSettled, match=r"FIELD=VALUE|not disputed"):
        answered("approve", said)


def test_an_approval_without_a_value_lists_what_is_disputed() -> None:
    with pytest.raises(NotSettled) as refused:
        answered("approve")
    assert "cqi@cell:1/ue:7: 3 1 from e2 (a)" in str(refused.value)
    assert "cqi@cell:1/ue:7: 12 1 from rt (b)" in told(record())


def test_only_an_escalation_waits_for_an_operator() -> None:
    with pytest.raises(NotSettled, match="HOLD"):
        answered("deny", of=record("HOLD"))


@pytest.mark.parametrize("code", ["stale", "missing", "unknown_source", "unresolved_provenance"])
def test_what_is_no_ambiguity_and_no_conflict_is_not_for_an_operator_to_settle(code: str) -> None:
    assert disputes(record(code=code)) == []
    with pytest.raises(NotSettled, match="only to deny: why"):
        answered("approve", "cqi=12", of=record(code=code))


DISPUTED = {
    **CONTRACT,
    "fields": {
        **CONTRACT["fields"],
        "cqi": {**CONTRACT["fields"]["cqi"], "sources": ["e2:gnb-1", "rt:north"], "tolerance": 1},
    },
}


def state_with(*said: tuple[str, float, int], history: History) -> RegionState:
    """A region in which each (source, cqi, t) was reported."""
    state = RegionState("north", contracts(DISPUTED), history)
    for source, cqi, t_ms in said:
        state.ingest(report(f"{source}/{t_ms}", cqi, t_ms, source=source), t_ms)
    return state


def decided_in(state: RegionState, t_ms: int) -> Decision:
    document = {**orjson.loads(proposal("p1")), "created_at_ms": T0}
    return state.decide(read_proposal_bytes(orjson.dumps(document)), t_ms)


def approved(record: dict[str, Any], at_ms: int) -> AnswerMessage:
    return answer_to(
        record, answer_id="a1", verdict="approve", operator="alice", reason="seen", at_ms=at_ms, said=["cqi=12"]
    )


@pytest.mark.parametrize("history", [History(), History(count=1)])
@pytest.mark.parametrize(
    ("before", "after", "action"),
    [
        ((), (), "APPLY"),
        ((3.5, 12), (), "APPLY"),
        ((), (3.5, 12), "APPLY"),
        ((3.9, 12), (2.2, 12.9), "APPLY"),
        ((), (4.5, 12), "ESCALATE"),
        ((3.9, 12), (4.8, 12), "ESCALATE"),
        ((5, 12), (3, 12), "APPLY"),
    ],
)
def test_what_the_sources_repeat_of_what_the_operator_saw_is_settled_whenever_they_repeat_it(
    before: tuple[float, ...], after: tuple[float, ...], action: str, history: History
) -> None:
    """`before` and `after`: reports between the escalation and the answer, and between the answer and the decision."""
    state = state_with(("e2:gnb-1", 3, T0), ("rt:north", 12, T0), history=history)
    escalated = decided_in(state, T0 + 10)
    assert escalated.action == "ESCALATE"
    answer = approved(orjson.loads(decision_json(escalated)), T0 + 1_500)
    for t_ms, values in ((T0 + 1_000, before), (T0 + 1_600, after)):
        if t_ms > answer.at_ms:
            state.take_answer(answer, answer.at_ms)
        for source, cqi in zip(("e2:gnb-1", "rt:north"), values, strict=False):
            state.ingest(report(f"{source}/{t_ms}", cqi, t_ms, source=source), t_ms)
    found = decided_in(state, T0 + 1_700)
    assert found.action == action
    assert verify(orjson.loads(decision_json(found))) == []


def test_an_answer_that_is_sent_again_is_the_same_whatever_was_reported_meanwhile() -> None:
    state = state_with(("e2:gnb-1", 3, T0), ("rt:north", 12, T0), history=History())
    answer = approved(orjson.loads(decision_json(decided_in(state, T0 + 10))), T0 + 100)
    state.take_answer(answer, answer.at_ms)
    state.ingest(report("e2:gnb-1/later", 3, T0 + 200, source="e2:gnb-1"), T0 + 200)
    state.take_answer(answer, T0 + 300)
    assert decided_in(state, T0 + 400).action == "APPLY"
