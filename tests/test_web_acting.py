"""What operators do over HTTP: only with a token, each act a message that the guard obeys and a line in the log."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from guard_rig import PARTITIONS, PREFIX, REGION, proposal, report
from structlog.testing import capture_logs
from web_rig import BEARER, BOB, TOKEN, Page, repeat_the_dispute, served, tokens_file

from streams.messages import AnswerMessage, SwitchMessage
from streams.topics import partition_of

OF_BOB = {"Authorization": f"Bearer {BOB}"}


async def on_answers(page: Page) -> list[Any]:
    """All messages on `answers`, by partition and offset."""
    consumer = AIOKafkaConsumer(bootstrap_servers=page.rig.bootstrap_servers, auto_offset_reset="earliest")
    await consumer.start()
    try:
        tps = [TopicPartition(PREFIX + "answers", p) for p in range(PARTITIONS)]
        consumer.assign(tps)
        ends = await consumer.end_offsets(tps)
        found: list[Any] = []
        while len(found) < sum(ends.values()):
            for messages in (await consumer.getmany(timeout_ms=100)).values():
                found += messages
        return sorted(found, key=lambda m: (m.partition, m.offset))
    finally:
        await consumer.stop()


ACTS: list[tuple[str, dict[str, Any]]] = [
    ("/v1/answers", {"decision": "0-0", "verdict": "deny", "reason": "r"}),
    ("/v1/switch", {"mode": "hold", "reason": "r"}),
]


@pytest.mark.parametrize(("path", "body"), ACTS)
async def test_without_a_tokens_file_nobody_can_act(path: str, body: dict[str, Any]) -> None:
    async with served() as page:
        assert (await page.post(path, body))[0] == 403
        assert (await page.get("/v1/operator", headers=BEARER))[0] == 403
        assert (await page.board())["acting"] is False


@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer ", "Bearer no such token", f"Basic {TOKEN}", TOKEN, f"bearer: {TOKEN}", "Bearer \xff"],
)
async def test_without_a_token_that_is_known_nothing_is_done_and_that_is_logged(
    tmp_path: Path, header: str | None
) -> None:
    async with served(operator_tokens=tokens_file(tmp_path)) as page:
        headers = {} if header is None else {"Authorization": header}
        for path, body in ACTS:
            with capture_logs() as logs:
                async with page.http.post(path, json=body, headers=headers) as reply:
                    assert reply.status == 401
                    assert reply.headers["WWW-Authenticate"].startswith("Bearer")
            (told,) = [entry for entry in logs if entry["event"] == "an act was refused"]
            assert (told["operator"], told["remote"], told["path"]) == (None, "127.0.0.1", path)
            assert TOKEN not in str(logs)
        assert (await page.get("/v1/operator", headers=headers))[0] == 401
        assert await on_answers(page) == []


async def test_a_token_tells_whose_it_is_and_a_removed_one_is_worth_nothing(tmp_path: Path) -> None:
    path = tokens_file(tmp_path)
    async with served(operator_tokens=path) as page:
        assert (await page.board())["acting"] is True
        assert await page.get("/v1/operator", headers=BEARER) == (200, {"operator": "alice"})
        assert await page.get("/v1/operator", headers={"Authorization": f"bearer {BOB}"}) == (200, {"operator": "bob"})
        path.write_text("".join(line for line in path.read_text().splitlines(True) if "alice" not in line))
        assert (await page.get("/v1/operator", headers=BEARER))[0] == 401
        assert (await page.get("/v1/operator", headers=OF_BOB))[0] == 200


async def test_an_approval_settles_the_conflict_and_the_guard_applies(tmp_path: Path) -> None:
    async with served(operator_tokens=tokens_file(tmp_path)) as page:
        said = await page.escalated()
        asked = {"decision": said["id"], "verdict": "approve", "reason": "drive test", "settles": ["cqi=12:1"]}
        with capture_logs() as logs:
            status, answer = await page.post("/v1/answers", asked)
        assert status == 200
        assert (answer["operator"], answer["verdict"], answer["proposal_id"]) == ("alice", "approve", "p1")
        done = await page.final("p1")
        assert (done["action"], done["attempt"]) == ("APPLY", 2)
        (message,) = await on_answers(page)
        assert message.key == REGION.encode()
        assert AnswerMessage.model_validate_json(message.value).model_dump() == answer
        (told,) = [entry for entry in logs if entry["event"] == "an operator acted"]
        assert (told["operator"], told["verdict"], told["proposal_id"]) == ("alice", "approve", "p1")
        assert (told["decision_id"], told["remote"]) == (said["decision_id"], "127.0.0.1")


async def test_an_approval_holds_though_the_guard_keeps_no_report_that_was_looked_at(tmp_path: Path) -> None:
    async with served(operator_tokens=tokens_file(tmp_path), history_count=1) as page:
        said = await page.escalated()
        await repeat_the_dispute(page.rig)
        asked = {"decision": said["id"], "verdict": "approve", "reason": "drive test", "settles": ["cqi=12:1"]}
        status, answer = await page.post("/v1/answers", asked)
        assert status == 200
        seen = {o["id"]: o["value"] for o in answer["settles"][0]["seen"]}
        assert seen == {"p1/e2:gnb-1#0": 3, "p1/rt:north#0": 12}
        assert (await page.final("p1"))["action"] == "APPLY"


async def test_a_denial_ends_the_proposal_and_the_second_operator_is_told(tmp_path: Path) -> None:
    async with served(operator_tokens=tokens_file(tmp_path)) as page:
        said = await page.escalated()
        asked = {"decision": said["id"], "verdict": "deny", "reason": "not now"}
        assert (await page.post("/v1/answers", asked))[0] == 200
        done = await page.final("p1")
        assert (done["action"], done["violations"][0]["code"]) == ("ABSTAIN", "denied")
        await page.board(lambda b: not b["open"])
        status, document = await page.post("/v1/answers", asked, OF_BOB)
        assert status == 409
        assert "final decision" in document["error"]


async def test_who_acted_is_whom_the_token_belongs_to_whatever_the_request_says(tmp_path: Path) -> None:
    async with served(operator_tokens=tokens_file(tmp_path)) as page:
        said = await page.escalated()
        asked = {"decision": said["id"], "verdict": "deny", "reason": "r", "operator": "alice"}
        assert (await page.post("/v1/answers", asked, OF_BOB))[0] == 400
        asked.pop("operator")
        assert (await page.post("/v1/answers", asked, OF_BOB))[1]["operator"] == "bob"


async def test_what_does_not_fit_the_escalation_is_refused_with_the_reason(tmp_path: Path) -> None:
    async with served(operator_tokens=tokens_file(tmp_path)) as page:
        said = await page.escalated()
        for verdict, settles, why in (
            ("approve", [], "which value holds"),
            ("approve", ["rsrp=3"], "not disputed"),
            ("approve", ["cqi"], "FIELD=VALUE"),
            ("deny", ["cqi=12"], "settles nothing"),
        ):
            asked = {"decision": said["id"], "verdict": verdict, "reason": "r", "settles": settles}
            status, document = await page.post("/v1/answers", asked)
            assert status == 422
            assert why in document["error"]
        assert await on_answers(page) == []


async def test_what_does_not_wait_for_an_operator_cannot_be_answered(tmp_path: Path) -> None:
    async with served(operator_tokens=tokens_file(tmp_path), hold_ms=60_000) as page:
        await page.rig.send("proposals", proposal("held"))
        held = await page.decided("held")
        asked = {"decision": held["id"], "verdict": "deny", "reason": "r"}
        status, document = await page.post("/v1/answers", asked)
        assert (status, "HOLD" in document["error"]) == (409, True)
        await page.rig.send("telemetry", report("r1", 9))
        await page.final("held")
        await page.board(lambda b: not b["open"])
        assert (await page.post("/v1/answers", asked))[0] == 409
        for identity, status in (("0-77", 404), ("9-0", 404), ("x", 400)):
            assert (await page.post("/v1/answers", {**asked, "decision": identity}))[0] == status


BAD_BODIES: list[tuple[str, bytes]] = [
    ("/v1/answers", b""),
    ("/v1/answers", b"{"),
    ("/v1/answers", b"[]"),
    ("/v1/answers", b"null"),
    ("/v1/answers", b'{"decision":"0-0","verdict":"maybe","reason":"r"}'),
    ("/v1/answers", b'{"decision":"0-0","verdict":"deny","reason":" "}'),
    ("/v1/answers", b'{"decision":"0-0","verdict":"deny"}'),
    ("/v1/answers", b'{"decision":7,"verdict":"deny","reason":"r"}'),
    ("/v1/answers", b'{"decision":"0-0","verdict":"deny","reason":"r","settles":"cqi=1"}'),
    ("/v1/answers", b'{"decision":"0-0","verdict":"deny","reason":"' + b"x" * 501 + b'"}'),
    ("/v1/switch", b'{"mode":"off","reason":"r"}'),
    ("/v1/switch", b'{"mode":"hold","reason":""}'),
    ("/v1/switch", b'{"mode":"hold"}'),
    ("/v1/switch", b'{"mode":"hold","reason":"r","region":""}'),
    ("/v1/switch", b'{"mode":"hold","reason":"r","at_ms":0}'),
    ("/v1/switch", b'{"mode":"hold","reason":"' + b"[" * 200 + b'"'),
]


async def test_what_cannot_be_read_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    async with served(operator_tokens=tokens_file(tmp_path)) as page:
        headers = {**BEARER, "Content-Type": "application/json"}
        for path, body in BAD_BODIES:
            async with page.http.post(path, data=body, headers=headers) as reply:
                assert (reply.status, path, body) == (400, path, body)
                assert orjson.loads(await reply.read())["error"]
        assert await on_answers(page) == []


async def test_a_body_is_json_that_says_so_and_of_a_size(tmp_path: Path) -> None:
    async with served(operator_tokens=tokens_file(tmp_path)) as page:
        body = orjson.dumps({"mode": "hold", "reason": "r"})
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonx"):
            async with page.http.post("/v1/switch", data=body, headers={**BEARER, "Content-Type": kind}) as reply:
                assert reply.status == 415
        for path in ("/v1/switch", "/v1/answers", "/ric/v1/config"):
            send = page.http.put if path == "/ric/v1/config" else page.http.post
            headers = {**BEARER, "Content-Type": "application/json"}
            async with send(path, data=b"x" * 10_000_000, headers=headers) as reply:
                assert reply.status == 413
            async with send(path, data=b"no gzip", headers={**headers, "Content-Encoding": "gzip"}) as reply:
                assert (reply.status, "body" in (await reply.json())["error"]) == (400, True)
        assert await on_answers(page) == []


async def test_the_kill_switch_is_in_every_partition_and_turns_what_would_be_applied_into_a_hold(
    tmp_path: Path,
) -> None:
    async with served(operator_tokens=tokens_file(tmp_path), hold_ms=60_000) as page:
        await page.rig.send("telemetry", report("r1", 9))
        with capture_logs() as logs:
            status, done = await page.post("/v1/switch", {"mode": "hold", "reason": "incident 7"})
        assert (status, done["partitions"], done["failed"]) == (200, list(range(PARTITIONS)), [])
        assert (done["switch"]["operator"], done["switch"]["mode"], done["switch"]["region"]) == ("alice", "hold", None)
        assert [m.partition for m in await on_answers(page)] == list(range(PARTITIONS))
        (told,) = [entry for entry in logs if entry["event"] == "an operator acted"]
        assert (told["operator"], told["mode"], told["reason"]) == ("alice", "hold", "incident 7")
        board = await page.board(lambda b: b["switches"] and len(b["switches"][0]["partitions"]) == PARTITIONS)
        (switch,) = board["switches"]
        assert (switch["mode"], switch["operator"], switch["reason"]) == ("hold", "alice", "incident 7")
        await page.rig.send("proposals", proposal("p1"))
        held = await page.decided("p1")
        assert (held["action"], held["final"], held["switched"]) == ("HOLD", False, "hold")
        assert held["codes"] == ["kill_switch"]
        assert (await page.post("/v1/switch", {"mode": "live", "reason": "over", "region": None}, OF_BOB))[0] == 200
        assert (await page.final("p1"))["action"] == "APPLY"
        await page.board(lambda b: not b["switches"])


async def test_shadow_mode_of_one_region_says_what_would_have_been_released(tmp_path: Path) -> None:
    async with served(operator_tokens=tokens_file(tmp_path)) as page:
        await page.rig.send("telemetry", report("r1", 9))
        status, done = await page.post("/v1/switch", {"mode": "shadow", "reason": "trial", "region": REGION})
        own = partition_of(REGION, range(PARTITIONS))
        assert (status, done["partitions"]) == (200, [own])
        (message,) = await on_answers(page)
        assert (message.key, message.partition) == (REGION.encode(), own)
        assert SwitchMessage.model_validate_json(message.value).model_dump() == done["switch"]
        await page.board(lambda b: b["switches"])
        await page.rig.send("proposals", proposal("p1"))
        said = await page.decided("p1")
        assert (said["action"], said["final"], said["switched"]) == ("HOLD", True, "shadow")


async def test_a_region_that_no_key_can_name_gets_no_switch(tmp_path: Path) -> None:
    async with served(operator_tokens=tokens_file(tmp_path)) as page:
        for region in ("a\nb", "\u0000", "a\u2028b"):
            assert (await page.post("/v1/switch", {"mode": "hold", "reason": "r", "region": region}))[0] == 422
        assert await on_answers(page) == []


async def test_two_operators_at_once_are_both_served(tmp_path: Path) -> None:
    async with served(operator_tokens=tokens_file(tmp_path)) as page:
        bodies = [{"mode": mode, "reason": "r", "region": REGION} for mode in ("hold", "shadow")]
        replies = await asyncio.gather(*map(page.post, ("/v1/switch",) * 2, bodies, (BEARER, OF_BOB)))
        assert [status for status, _ in replies] == [200, 200]
        assert {done["switch"]["operator"] for _, done in replies} == {"alice", "bob"}


async def test_a_change_of_configuration_needs_a_token_and_is_logged(tmp_path: Path) -> None:
    async with served(operator_tokens=tokens_file(tmp_path)) as page:
        assert (await page.get("/ric/v1/config"))[0] == 200
        change = {"config": {"controls": {"hold_ms": 1_234}}, "reason": "r"}
        async with page.http.put("/ric/v1/config", json=change) as reply:
            assert reply.status == 401
        with capture_logs() as logs:
            async with page.http.put("/ric/v1/config", json=change, headers=BEARER) as reply:
                assert reply.status == 200
        told = [entry for entry in logs if entry["event"] == "an operator acted"]
        assert [(entry["operator"], entry["method"]) for entry in told] == [("alice", "PUT")]
