"""The board is a fold of the log: the same messages give the same views, strangers' messages change nothing."""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson
import pytest

from streams.web.board import Board, shares
from streams.web.summaries import DecisionId, summary
from xapp.signing import KnownKeys, Signer, sign_document

T0 = 1_790_000_000_000
SIGNER = Signer.of_seed(bytes(32))
STRANGER = Signer.of_seed(bytes(31) + b"\1")


class Message(NamedTuple):
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


def decision(proposal_id: str = "p1", action: str = "APPLY", **over: Any) -> dict[str, Any]:
    return {
        "format": "wirelessops.decision/1",
        "decision_id": f"d/{proposal_id}",
        "proposal_id": proposal_id,
        "action": action,
        "control_key": "cell:1/ue:7/prb",
        "bindings": {"cell": "1", "ue": ["7", "8"], "serving": "2", "source_cell": ["3", "1"]},
        "released": None,
        "valid_until_ms": None,
        "violations": [],
        "repairs": [],
        "explanation": "why",
        "attempt": 1,
        "final": action in ("APPLY", "ABSTAIN"),
        "guard": "g",
        "region": "north",
        "decided_at_ms": T0,
        "proposer": "xapp:test",
        "contract_ref": "test/1",
        "until_ms": None,
        **over,
    }


def message(document: Any, offset: int = 0, partition: int = 2, key: bytes | None = b"north") -> Message:
    return Message(partition, offset, key, orjson.dumps(document))


def control(decision_id: str = "d1", granted_at_ms: int = T0, **over: Any) -> Message:
    given = {
        "control_key": "k", "decision_id": decision_id, "proposal_id": "p1", "proposer": "xapp:test",
        "values": {"prb": {"value": 3, "unit": "1"}}, "granted_at_ms": granted_at_ms,
        "lease_until_ms": granted_at_ms + 1_000, **over,
    }  # fmt: skip
    return message({"format": "wirelessops.control/1", "region": "north", "control": given}, key=b'["north","k"]')


def outcome(kind: str, decision_id: str = "d1") -> Message:
    said = {"decision_id": decision_id, "proposal_id": "p1", "outcome": kind, "at_ms": T0 + 5}
    return message({"format": "wirelessops.outcome/1", **said})


def status(partition: int = 2, at_ms: int = T0, **over: Any) -> Message:
    document = {
        "format": "wirelessops.status/1", "guard": "g", "partition": partition, "at_ms": at_ms, "started_at_ms": T0,
        "warm": True, "why_not_ready": None, "open": {"HOLD": 0, "RETRY": 0, "ESCALATE": 0, "ready": 0}, "behind": {},
        "decisions": 0, "records": 0, "leases": 0, "sources": [], "source_counts": {}, "omitted": 0, "switches": [],
        **over,
    }  # fmt: skip
    return message(document, partition=partition, key=str(partition).encode())


def switched(mode: str = "hold", **over: Any) -> dict[str, Any]:
    return {"region": None, "mode": mode, "operator": "alice", "reason": "r", "at_ms": T0, "switch_id": "s", **over}


def shown(board: Board) -> list[dict[str, Any]]:
    return [orjson.loads(encoded) for encoded in board.decisions()]


def waiting(board: Board) -> list[str]:
    return [orjson.loads(encoded)["proposal_id"] for encoded in board.open()]


def test_a_summary_says_what_a_decision_says_in_a_line() -> None:
    violations = [
        {"code": "stale", "blocking": True, "field": "sinr"},
        {"code": "range", "blocking": False},
        {"code": "kill_switch", "blocking": True},
        {"code": "stale", "blocking": True, "field": "load", "constraint": "qos"},
        {"code": "qos", "blocking": True, "field": None, "constraint": "rate_floor"},
        {"code": "stale", "blocking": True, "field": "sinr"},
    ]
    document = decision(action="HOLD", violations=violations, repairs=[{"operator": "rename"}] * 2, until_ms=T0 + 9)
    said = summary(document, DecisionId(2, 1041), None, T0 - 3)
    assert (said["id"], said["partition"], said["contract"]) == ("2-1041", 2, "test/1")
    assert (said["codes"], said["repairs"]) == (("stale", "kill_switch", "qos"), ("rename",))
    assert said["reasons"] == ("stale sinr", "kill_switch", "stale load", "qos rate_floor")
    assert (said["until_ms"], said["late_ms"], said["switched"]) == (T0 + 9, 3, "hold")
    assert said["cells"] == ["1", "2", "3"]
    assert (said["signed_by"], said["believed"]) == (None, None)


@pytest.mark.parametrize("text", ["", "1", "-", "a-1", "1-", "-1-2", "1-2-3", "１-2", "1-" + "9" * 20, "1 -2"])
def test_what_is_no_id_of_a_decision_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no id of a decision"):
        DecisionId.read(text)


def test_decisions_are_shown_in_the_order_of_their_time_and_only_the_newest() -> None:
    board = Board(limit=3)
    for offset, at in enumerate((4, 1, 3, 2)):
        assert board.take("control", message(decision(f"p{at}", decided_at_ms=T0 + at), offset))
    assert [said["proposal_id"] for said in shown(board)] == ["p1", "p2", "p3"]
    assert board.find(DecisionId(2, 0)) is None
    held = board.find(DecisionId(2, 3))
    assert held is not None
    assert held.summary["proposal_id"] == "p2"


def test_what_is_open_is_found_though_newer_ones_displaced_it_from_the_list() -> None:
    board = Board(limit=2)
    for offset, action in enumerate(("ESCALATE", "APPLY", "APPLY", "APPLY")):
        assert board.take("control", message(decision(f"p{offset}", action), offset))
    held = board.find(DecisionId(2, 0))
    assert held is not None
    assert held.summary["proposal_id"] == "p0"
    assert board.find(DecisionId(2, 1)) is None
    assert board.take("control", message(decision("p0", "ABSTAIN"), 4))
    assert board.find(DecisionId(2, 0)) is None


def test_a_page_that_knows_a_cursor_is_told_what_came_after_it_and_no_other_is() -> None:
    board = Board(first_cursor=1_000, limit=3)
    assert board.covers(999)
    for offset in range(5):
        board.take("control", message(decision(f"p{offset}"), offset))
    assert [board.covers(cursor) for cursor in (0, 999, 1_000, 1_001, 1_004, 1_005)] == [
        False, False, False, True, True, False,
    ]  # fmt: skip
    assert [kept.where.offset for kept in board.after(1_001)] == [2, 3, 4]
    assert board.after(1_004) == []


def test_a_message_that_is_read_again_is_one_decision() -> None:
    board = Board()
    for _ in range(2):
        board.take("control", message(decision()))
    assert len(shown(board)) == 1


def test_a_proposal_is_open_until_its_final_decision_and_escalations_come_first() -> None:
    board = Board()
    for offset, (proposal_id, action) in enumerate((("a", "ESCALATE"), ("b", "HOLD"), ("c", "RETRY"), ("d", "APPLY"))):
        board.take("control", message(decision(proposal_id, action), offset))
    assert waiting(board) == ["a", "c", "b"]
    board.take("control", message(decision("a", "ABSTAIN", attempt=2), 4))
    board.take("control", message(decision("b", "ESCALATE", attempt=2), 5))
    assert waiting(board) == ["b", "c"]
    newest = board.newest("north", "b")
    assert newest is not None
    assert newest.where == DecisionId(2, 5)
    assert board.newest("north", "a") is None


def test_regions_do_not_share_proposals() -> None:
    board = Board()
    board.take("control", message(decision("p", "HOLD"), 0))
    board.take("control", message(decision("p", "APPLY", region="south"), 1, key=b"south"))
    assert waiting(board) == ["p"]


def test_where_guards_are_known_a_stranger_decision_is_shown_and_marked_and_closes_nothing() -> None:
    board = Board(KnownKeys([SIGNER.public_key]))
    forged = sign_document(orjson.dumps(decision("p", attempt=2)), STRANGER)
    altered = sign_document(orjson.dumps(decision("p", attempt=3)), SIGNER).replace(b'"why"', b'"who"')
    board.take("control", Message(2, 0, b"north", sign_document(orjson.dumps(decision("p", "HOLD")), SIGNER)))
    board.take("control", Message(2, 1, b"north", forged))
    board.take("control", message(decision("p", attempt=4), 2))
    board.take("control", Message(2, 3, b"north", altered))
    assert [(d["signed_by"], d["believed"]) for d in shown(board)] == [
        (SIGNER.keyid, True), (STRANGER.keyid, False), (None, False), (SIGNER.keyid, False),
    ]  # fmt: skip
    assert waiting(board) == ["p"]


def test_where_guards_are_known_nobody_else_grants_a_lease() -> None:
    board = Board(KnownKeys([SIGNER.public_key]))
    assert not board.take("controls", control())
    signed = sign_document(control().value or b"", SIGNER)
    assert board.take("controls", control()._replace(value=signed))
    assert len(board.leases(T0)) == 1


JUNK = (None, b"", b"{", b"[]", b"null", b"1", b'{"format":1}', b"\xff", b"[" * 200 + b"]" * 200)


@pytest.mark.parametrize("topic", ["control", "controls", "outcomes", "answers", "status"])
def test_a_foreign_or_malformed_message_is_passed_over_and_counted(topic: Any) -> None:
    board = Board()
    for value in JUNK:
        board.take(topic, Message(2, 0, b"north", value))
    assert board.passed_over[topic] == len(JUNK)
    assert (board.decisions(), board.open(), board.leases(T0), board.partitions()) == ([], [], [], [])


@pytest.mark.parametrize(
    "over",
    [
        {"format": "wirelessops.decision/2"}, {"action": "RUN"}, {"final": 1}, {"attempt": "1"}, {"decided_at_ms": 1.5},
        {"decided_at_ms": True}, {"violations": [{}]}, {"violations": 3}, {"repairs": [None]}, {"bindings": []},
        {"bindings": {"cell": 1}}, {"region": "south"}, {"region": None}, {"decision_id": []}, {"proposal_id": {}},
        {"control_key": 7}, {"guard": 3}, {"until_ms": "soon"}, {"proposer": 1},
    ],
)  # fmt: skip
def test_a_decision_of_a_wrong_form_is_none(over: dict[str, Any]) -> None:
    board = Board()
    assert not board.take("control", message(decision(**over)))
    assert board.decisions() == []
    assert board.cursor == 0


def test_a_summary_of_whatever_size_stays_small() -> None:
    released = {"prb": {"value": {f"ue{n}": n for n in range(100_000)}, "unit": "1"}}
    document = decision(released=released, explanation="x" * 100_000, bindings={"cell": [str(n) for n in range(9_999)]})
    board = Board()
    assert board.take("control", message(document))
    assert len(board.decisions()[0]) < 10_000


def test_what_is_released_to_many_is_said_in_short_and_never_as_nothing() -> None:
    values = {
        "prb": {"value": {f"ue{n}": n for n in range(600)}, "unit": "1"}, "mode": {"value": "x" * 9_999, "unit": None},
        **{f"f{n}": {"value": n, "unit": "dB"} for n in range(30)},
    }  # fmt: skip
    board = Board()
    board.take("control", message(decision(released=values)))
    board.take("controls", control(values=values))
    for said in (shown(board)[0]["released"], board.leases(T0)[0]["values"]):
        assert said["prb"] == {"value": "600 members", "unit": "1"}
        assert (len(said["mode"]["value"]), said["f0"]) == (80, {"value": 0, "unit": "dB"})
        assert said["…"] == "and 12 more"


def test_few_values_are_shown_as_they_are() -> None:
    values = {"prb": {"value": {"ue1": 3, "ue2": 4}, "unit": "1"}}
    board = Board()
    board.take("control", message(decision(released=values)))
    board.take("controls", control(values=values))
    assert shown(board)[0]["released"] == board.leases(T0)[0]["values"] == values


def test_decisions_of_whatever_size_take_no_more_than_so_many_bytes() -> None:
    board = Board()
    names = dict.fromkeys(("proposer", "contract_ref", "control_key", "explanation", "guard"), "\1" * 2_000)
    for n in range(900):
        of = decision(f"p{n}" + "x" * 9_999, "HOLD", decision_id=f"d{n}", **names)
        assert board.take("control", message(of, n))
    assert sum(map(len, board.decisions())) <= 24_000_000
    assert len(board.decisions()) < 900
    assert sum(map(len, board.open())) <= 2_000_000
    newest = shown(board)[-1]
    assert newest["id"] == orjson.loads(board.open()[0])["id"] == "2-899"
    assert board.covers(board.cursor - len(board.decisions()))
    assert not board.covers(board.cursor - len(board.decisions()) - 1)
    assert board.find(DecisionId(2, 0)) is None


def test_controls_of_whatever_size_are_held_by_what_a_line_shows() -> None:
    board = Board()
    values = {"prb": {"value": {f"ue{n}": n for n in range(20_000)}, "unit": "1"}}
    for n in range(20):
        board.take("controls", control(f"d{n}", control_key=f"k{n}", values=values, bindings={"ue": ["7"] * 9_999}))
    assert len(board.leases(T0)) == 20
    assert len(orjson.dumps(board.leases(T0))) < 10_000


def test_the_newest_control_of_a_key_is_its_lease_and_outcomes_say_what_became_of_it() -> None:
    board = Board()
    board.take("controls", control("d1"))
    board.take("controls", control("d2", T0 + 10))
    (lease,) = board.leases(T0 + 20)
    assert (lease["granted_at_ms"], lease["state"], lease["proposer"]) == (T0 + 10, "granted", "xapp:test")
    for kind, state in (("refused", "refused"), ("effect", "effect"), ("applied", "effect")):
        board.take("outcomes", outcome(kind, "d2"))
        assert [found["state"] for found in board.leases(T0 + 20)] == [state]
    board.take("outcomes", outcome("refused", "d1"))
    assert [found["state"] for found in board.leases(T0 + 20)] == ["effect"]


def test_an_outcome_that_is_read_before_its_control_counts_as_well() -> None:
    board = Board()
    for kind in ("effect", "applied"):
        assert board.take("outcomes", outcome(kind, "d2"))
    for decision_id, state in (("d1", "granted"), ("d2", "effect")):
        board.take("controls", control(decision_id))
        assert [found["state"] for found in board.leases(T0)] == [state]
    assert not board.take("outcomes", outcome("applied", "d" * 1_000_000))


def test_a_lease_leaves_the_board_soon_after_its_end() -> None:
    board = Board()
    board.take("controls", control())
    assert board.leases(T0 + 1_000)
    assert board.leases(T0 + 3_600_000) == []


def test_the_switches_in_force_are_told_once_with_where_they_are() -> None:
    board = Board()
    board.take("status", status(0, switches=[switched()]))
    board.take("status", status(1, switches=[switched(), switched("shadow", region="south")]))
    assert [(s["mode"], s["region"], s["partitions"]) for s in board.switches()] == [
        ("hold", None, [0, 1]), ("shadow", "south", [1]),
    ]  # fmt: skip
    board.take("status", status(0))
    board.take("status", status(1))
    assert board.switches() == []


def test_a_status_in_the_partition_of_another_is_passed_over() -> None:
    board = Board()
    assert not board.take("status", status(0)._replace(partition=1))
    assert board.partitions() == []


def test_sources_are_told_with_their_partition() -> None:
    source = {
        "region": "north", "source": "e2", "state": "up", "event_time_ms": T0, "ingest_time_ms": T0 + 1,
        "limit_ms": 800, "period_ms": None,
    }  # fmt: skip
    board = Board()
    board.take("status", status(3, sources=[source]))
    assert board.sources() == [{**source, "partition": 3}]


def test_a_denied_proposal_is_known_until_its_final_decision() -> None:
    board = Board()
    board.take("control", message(decision("p", "ESCALATE"), 0))
    said = {"answer_id": "a", "decision_id": "d/p", "proposal_id": "p", "operator": "bob", "reason": "r", "at_ms": T0}
    board.take("answers", message({"format": "wirelessops.answer/1", "verdict": "approve", **said}))
    assert board.denied_by("north", "p") is None
    board.take("answers", message({"format": "wirelessops.answer/1", "verdict": "deny", **said}, 1))
    assert board.denied_by("north", "p") == "bob"
    board.take("control", message(decision("p", "ABSTAIN", attempt=2), 1))
    assert board.denied_by("north", "p") is None


def test_a_denial_that_is_read_before_what_it_answers_counts_as_well() -> None:
    board = Board()
    said = {"answer_id": "a", "decision_id": "d/p", "proposal_id": "p", "operator": "bob", "reason": "r", "at_ms": T0}
    board.take("answers", message({"format": "wirelessops.answer/1", "verdict": "deny", **said}))
    board.take("control", message(decision("p", "ESCALATE"), 0))
    assert board.denied_by("north", "p") == "bob"


def test_what_stands_too_far_back_to_be_listed_still_tells_what_is_open() -> None:
    board = Board()
    board.list_from(DecisionId(2, 3))
    for offset, (name, action) in enumerate((("a", "ESCALATE"), ("b", "HOLD"), ("b", "APPLY"), ("c", "APPLY"))):
        assert board.take("control", message(decision(name, action), offset))
    assert [said["proposal_id"] for said in shown(board)] == ["c"]
    assert waiting(board) == ["a"]
    assert [kept.where.offset for kept in board.after(0)] == [3]
    assert board.covers(0)
    newest = board.newest("north", "a")
    assert newest is not None
    assert str(newest.where) == "2-0"
    board.take("control", message(decision("a", "ABSTAIN"), 4))
    assert waiting(board) == []


def test_how_late_a_decision_is_is_known_where_the_append_time_is() -> None:
    board = Board()
    board.appended("d/a", 1, T0 - 40)
    board.take("control", message(decision("a"), 0))
    board.take("control", message(decision("b"), 1))
    assert [said["late_ms"] for said in shown(board)] == [40, None]


@pytest.mark.parametrize(
    ("available", "expected"),
    [
        ({}, {}),
        ({0: 5}, {0: 5}),
        ({0: 50}, {0: 10}),
        ({0: 0, 1: 100}, {0: 0, 1: 10}),
        ({0: 2, 1: 100, 2: 100}, {0: 2, 1: 4, 2: 4}),
        ({0: 100, 1: 3, 2: 1}, {2: 1, 1: 3, 0: 6}),
    ],
)
def test_what_one_partition_does_not_need_of_the_share_the_others_get(
    available: dict[int, int], expected: dict[int, int]
) -> None:
    assert shares(available, 10) == expected
