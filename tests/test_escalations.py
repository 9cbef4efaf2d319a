"""An operator's answer says what it settles, and fits the escalation it answers."""

from __future__ import annotations

from typing import Any

import pytest

from streams.escalations import NotSettled, answer_to, disputes, told

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
