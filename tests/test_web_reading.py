"""What the page reads over HTTP: the board, its events, one decision, contracts; and how every reply is sent."""

from __future__ import annotations

import asyncio
import base64
import gzip
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from guard_rig import REGION, proposal, report
from web_rig import WAIT_S, Page, served, tokens_file

from streams.guard import unix_ms
from streams.web.assets import load_assets
from xapp.faithfulness import verify
from xapp.signing import open_envelope


class Events:
    """Server-sent events, read as a browser reads them."""

    def __init__(self, reply: aiohttp.ClientResponse) -> None:
        self.reply = reply

    async def next(self, name: str) -> Any:
        """The data of the next event of that name."""
        async with asyncio.timeout(WAIT_S):
            while True:
                fields: dict[str, str] = {}
                while (line := (await self.reply.content.readline()).decode()) not in ("\n", ""):
                    key, _, value = line.rstrip("\n").partition(": ")
                    fields[key] = value
                assert line, "the stream ended"
                if fields.get("event") == name:
                    return orjson.loads(fields["data"])


@asynccontextmanager
async def listening(page: Page, cursor: Any = None, **headers: str) -> AsyncIterator[Events]:
    query = {} if cursor is None else {"cursor": str(cursor)}
    async with page.http.get("/v1/events", params=query, headers=headers) as reply:
        assert (reply.status, reply.content_type) == (200, "text/event-stream")
        yield Events(reply)


async def test_the_page_and_its_files_are_served_with_their_type_and_tag() -> None:
    async with served() as page:
        for path in ("/", *(f"/static/{name}" for name in load_assets())):
            async with page.http.get(path) as reply:
                body, tag = await reply.read(), reply.headers["ETag"]
                assert (reply.status, bool(body)) == (200, True)
                assert reply.headers["Cache-Control"] == "no-cache"
            async with page.http.get(path, headers={"If-None-Match": tag}) as reply:
                assert (reply.status, await reply.read()) == (304, b"")
            async with page.http.head(path) as reply:
                assert (reply.status, await reply.read(), reply.headers["ETag"]) == (200, b"", tag)
        assert (await page.http.get("/")).content_type == "text/html"


async def test_every_reply_carries_what_keeps_a_browser_safe_and_nothing_for_other_origins() -> None:
    async with served() as page:
        for path in ("/", "/v1/board", "/v1/nothing", "/ric/v1/health/alive", "/v1/decisions/x", "/v1/events"):
            async with page.http.get(path, headers={"Origin": "http://evil.example"}) as reply:
                policy = reply.headers["Content-Security-Policy"]
                assert "default-src 'none'" in policy
                assert "frame-ancestors 'none'" in policy
                assert "unsafe" not in policy
                assert reply.headers["X-Content-Type-Options"] == "nosniff"
                assert reply.headers["Referrer-Policy"] == "no-referrer"
                assert not [name for name in reply.headers if name.lower().startswith("access-control")]
                assert "Server" not in reply.headers


@pytest.mark.parametrize("path", ["/router", "/table", "/graph", "/performance", "/stats", "/router/x", "/metrics"])
async def test_nothing_of_faust_is_served(path: str) -> None:
    async with served() as page:
        assert (await page.get(path))[0] == 404


async def test_only_files_of_the_page_are_served_whatever_a_path_says() -> None:
    async with served() as page:
        for path in ("..%2fserver.py", "%2e%2e/server.py", "../../app.py", "", "%00", "index.html/..", "//etc/passwd"):
            reader, writer = await asyncio.open_connection("127.0.0.1", page.port)
            writer.write(f"GET /static/{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
            head = (await asyncio.wait_for(reader.read(), WAIT_S)).decode()
            assert head.startswith("HTTP/1.1 404"), path
            assert "import" not in head
            writer.close()


RAW = [
    b"GET /v1/evidence?region=%ff&name=%ff HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /v1/evidence?region=\xff&name=cqi HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /v1/view?region=a&contract_ref=%ed%a0%80&binding.=1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /v1/decisions/%ff HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /v1/decisions/%0d%0aSet-Cookie:%20a=b/record HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /v1/contracts/\xff%2e%2e/\xed\xa0\x80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /static/\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /v1/operator HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \xff\xed\xa0\x80\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: \xff\r\nIf-None-Match: \"\xff\r\nAccept-Encoding: \xff;;;,\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: W/x,\"\"\r\n\r\n",
    b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: \xff\r\n\r\n",
    b"POST /v1/switch\xff HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
    b"PUT /v1/\xed\xa0\x80 HTTP/1.1\r\nHost: localhost\r\nContent-Type: \xff\r\nContent-Length: 0\r\n\r\n",
    b"FOO / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"\x16\x03\x01\x00",
]


async def test_bytes_that_are_no_text_are_the_fault_of_who_sends_them(tmp_path: Path) -> None:
    async with served(operator_tokens=tokens_file(tmp_path)) as page:
        for raw in RAW:
            reader, writer = await asyncio.open_connection("127.0.0.1", page.port)
            writer.write(raw)
            writer.write_eof()
            head = await asyncio.wait_for(reader.read(), WAIT_S)
            assert not head.startswith(b"HTTP/1.1 5"), (raw, head)
            assert b"Set-Cookie" not in head
            writer.close()
        assert (await page.get("/v1/contracts"))[0] == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200), ("localhost:80", 200), ("LOCALHOST", 200), ("[::1]:80", 200), ("127.9.9.9", 200),
        ("evil.example", 421), ("evil.example:80", 421), ("localhost.evil.example", 421), ("", 421), ("10.0.0.1", 421),
        ("127.0.0.1.evil.example", 421),
    ],
)  # fmt: skip
async def test_on_loopback_only_its_own_names_are_served(host: str, status: int) -> None:
    async with served() as page:
        assert (await page.get("/v1/contracts", headers={"Host": host}))[0] == status


async def test_errors_are_json_and_name_the_methods_that_are_allowed() -> None:
    async with served() as page:
        async with page.http.post("/v1/board", json={}) as reply:
            assert (reply.status, reply.headers["Allow"]) == (405, "GET,HEAD")
            assert orjson.loads(await reply.read())["error"]
        for path in ("/nothing", "/v1/contracts/none", "/v1/decisions/0-0", "/v1/decisions/77-0/record"):
            status, document = await page.get(path)
            assert status == 404
            assert list(document) == ["error"]
        for path in ("/v1/decisions/x", "/v1/decisions/1-2-3/record", "/v1/events?cursor=x", "/v1/events?cursor=-1"):
            status, document = await page.get(path)
            assert status == 400
            assert document["error"]


async def test_contracts_are_listed_and_given_as_they_were_loaded() -> None:
    async with served() as page:
        assert await page.get("/v1/contracts") == (200, {"contracts": ["test/1"]})
        status, document = await page.get("/v1/contracts/test/1")
        assert status == 200
        assert document["fields"]["cqi"]["sources"] == ["e2:gnb-1", "rt:north"]


async def test_health_metrics_evidence_and_stats_stay_where_they_were() -> None:
    async with served() as page:
        assert await page.get("/ric/v1/health/alive") == (200, {"status": "alive"})
        assert await page.get("/ric/v1/health/ready") == (200, {"status": "ready"})
        assert (await page.get("/v1/stats"))[1]["guard"] == "guard"
        assert (await page.get("/v1/evidence?region=north&name=cqi"))[1]["observations"] == []
        assert (await page.get("/v1/evidence?name=cqi"))[0] == 400
        assert (await page.get("/v1/view?region=north&contract_ref=none/1"))[0] == 400
        async with page.http.get("/ric/v1/metrics") as reply:
            assert reply.status == 200
            assert reply.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            assert b"ricxapp_wirelessops_" in await reply.read()


async def test_before_the_control_path_is_up_the_web_says_that_it_is_alive_and_why_it_is_not_ready() -> None:
    async with served() as page:
        await page.guard.stop()
        assert (await page.get("/ric/v1/health/alive"))[0] == 200
        status, document = await page.get("/ric/v1/health/ready")
        assert (status, document["status"]) == (503, "not ready")
        assert (await page.get("/v1/view?region=north&contract_ref=test/1"))[0] == 503


async def test_a_guard_that_failed_or_has_ceased_to_read_is_not_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a bug of ours")

    async with served() as page:
        with monkeypatch.context() as ceased:
            ceased.setattr("streams.guard._DEAD_S", -1)
            status, document = await page.get("/ric/v1/health/alive")
            assert (status, document["status"]) == (503, "dead")
        assert (await page.get("/ric/v1/health/alive"))[0] == 200
        monkeypatch.setattr("streams.guard_desk.Desk._settle", broken)
        await page.rig.send("proposals", proposal("p1"))
        async with asyncio.timeout(8):
            while (await page.get("/ric/v1/health/alive"))[0] == 200:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert (await page.get("/ric/v1/health/alive"))[1]["why"] == "it failed: its log says why"


async def test_a_decision_is_on_the_board_with_what_its_proposal_and_record_say() -> None:
    async with served() as page:
        await page.rig.send("telemetry", report("r1", 9))
        await page.rig.send("proposals", proposal("p1"))
        said = await page.decided("p1")
        assert (said["action"], said["final"], said["region"], said["guard"]) == ("APPLY", True, REGION, "guard")
        assert (said["proposer"], said["contract"], said["cells"]) == ("xapp:test", "test/1", ["1"])
        assert said["partition"] == page.rig.partition_of_region()
        assert said["late_ms"] >= 0
        assert said["released"]["bandwidth"] == {"value": 8, "unit": "MHz"}
        board = await page.board(lambda b: len(b["partitions"]) == 4 and b["sources"])
        assert board["guard"] == "guard"
        assert (board["open"], board["acting"], board["contracts"]) == ([], False, ["test/1"])
        assert abs(board["now_ms"] - unix_ms()) < 60_000
        (source,) = board["sources"]
        assert (source["region"], source["source"], source["state"]) == (REGION, "e2:gnb-1", "up")


async def test_a_hold_is_open_with_its_time_until_its_final_decision() -> None:
    async with served(hold_ms=60_000) as page:
        await page.rig.send("proposals", proposal("p1"))
        board = await page.board(lambda b: b["open"])
        (held,) = board["open"]
        assert (held["action"], held["final"], held["codes"]) == ("HOLD", False, ["missing"])
        assert held["until_ms"] > held["decided_at_ms"]
        await page.rig.send("telemetry", report("r1", 9))
        await page.board(lambda b: not b["open"] and b["decisions"][-1]["action"] == "APPLY")


async def test_larger_replies_go_by_gzip_where_the_client_takes_it() -> None:
    async with served() as page:
        await page.rig.send("proposals", proposal("p1"))
        await page.decided("p1")
        for asked, packed in (("gzip", True), ("br, GZIP;q=0.5", True), ("gzip;q=0", False), ("identity", False)):
            async with aiohttp.ClientSession(f"http://127.0.0.1:{page.port}", auto_decompress=False) as raw:
                for path in ("/v1/board", "/ric/v1/metrics"):
                    async with raw.get(path, headers={"Accept-Encoding": asked}) as reply:
                        body = await reply.read()
                        assert (reply.headers.get("Content-Encoding") == "gzip") is packed
                        assert b"guard" in (gzip.decompress(body) if packed else body)
                        assert "Accept-Encoding" in reply.headers["Vary"]


async def test_an_opened_decision_is_its_dossier_and_its_record_is_the_envelope_that_stands_in_the_log() -> None:
    async with served() as page:
        await page.rig.send("telemetry", report("r1", 9))
        await page.rig.send("proposals", proposal("p1"))
        said = await page.decided("p1")
        status, opened = await page.get(f"/v1/decisions/{said['id']}")
        assert (status, opened["summary"]) == (200, said)
        assert opened["proposal"]["proposal_id"] == "p1"
        async with page.http.get(f"/v1/decisions/{said['id']}/record") as reply:
            envelope = await reply.read()
            assert "attachment" in reply.headers["Content-Disposition"]
        (message,) = page.rig.written["records"]
        assert envelope == message.value
        document = orjson.loads(open_envelope(envelope).payload)
        assert document["decision_id"] == said["decision_id"]
        assert verify(document) == []


async def test_each_attempt_at_a_proposal_has_its_own_record() -> None:
    async with served(hold_ms=60_000) as page:
        await page.rig.send("proposals", proposal("p1"))
        await page.decided("p1")
        many = [page.rig.send("proposals", proposal(f"m{n}", bindings={"cell": "1", "ue": "8"})) for n in range(200)]
        await asyncio.gather(*many)
        await page.rig.send("telemetry", report("r1", 9))
        await page.final("p1")
        board = await page.board(lambda b: len(b["decisions"]) == 202)
        records = {m.headers[1][1].decode(): m.value for m in page.rig.written["records"]}
        first, second = (d for d in board["decisions"] if d["proposal_id"] == "p1")
        assert (first["attempt"], second["attempt"]) == (1, 2)
        for said in (first, second, board["decisions"][100], board["decisions"][-1]):
            async with page.http.get(f"/v1/decisions/{said['id']}/record") as reply:
                assert await reply.read() == records[f"{said['decision_id']}/{said['attempt']}"]


async def test_a_page_is_told_of_each_decision_once_and_in_order_from_where_it_stands() -> None:
    async with served() as page:
        await page.rig.send("proposals", proposal("before"))
        await page.decided("before")
        board = await page.board()
        await page.rig.send("proposals", proposal("between"))
        await page.decided("between")
        async with listening(page, board["cursor"]) as events, listening(page, board["cursor"]) as other:
            await page.rig.send("proposals", proposal("after"))
            told: list[str] = []
            while "after" not in told:
                said = await events.next("decisions")
                told += [d["proposal_id"] for d in said["decisions"]]
                assert said["cursor"] > board["cursor"]
            assert told == ["between", "after"]
            assert (await other.next("decisions"))["decisions"][0]["proposal_id"] == "between"


async def test_a_board_event_has_all_of_the_board_but_the_decisions() -> None:
    async with served() as page:
        async with listening(page) as events:
            said = await events.next("board")
        board = await page.board()
        assert set(said) == set(board) - {"decisions", "cursor"}


async def test_who_is_too_far_behind_or_knows_another_board_loads_it_again() -> None:
    async with served() as page:
        for cursor in ("0", "999999999999999999"):
            async with listening(page, cursor) as events:
                assert await events.next("reset") == {}
        board = await page.board()
        async with listening(page, 0, **{"Last-Event-ID": str(board["cursor"])}) as events:
            await page.rig.send("proposals", proposal("p1"))
            assert (await events.next("decisions"))["decisions"][0]["proposal_id"] == "p1"


async def test_what_a_page_has_of_one_guard_is_no_place_at_another() -> None:
    async with served() as one, served() as other:
        for page in (one, other):
            await page.rig.send("proposals", proposal("p"))
            await page.final("p")
        boards = [await page.board(lambda b: bool(b["decisions"])) for page in (one, other)]
        for page, foreign in ((one, boards[1]), (other, boards[0])):
            async with listening(page, foreign["cursor"]) as events:
                assert await events.next("reset") == {}
        async with listening(one, boards[1]["cursor"], **{"Last-Event-ID": str(boards[0]["cursor"])}) as events:
            await one.rig.send("proposals", proposal("q"))
            said = await events.next("decisions")
            assert "p" not in {d["proposal_id"] for d in said["decisions"]}


async def test_asking_for_the_headers_of_the_events_does_not_listen() -> None:
    async with served() as page, page.http.head("/v1/events") as reply:
        assert (reply.status, reply.content_type) == (200, "text/event-stream")


async def test_fifty_pages_are_told_the_same() -> None:
    async with served() as page, AsyncExitStack() as stack:
        pages = [await stack.enter_async_context(listening(page)) for _ in range(50)]
        await page.rig.send("proposals", proposal("p1"))
        told = await asyncio.gather(*(each.next("decisions") for each in pages))
        assert len(told[0]["decisions"]) == 1
        assert all(each == told[0] for each in told)


async def test_what_a_stranger_writes_into_a_proposal_comes_out_as_it_was_and_as_json() -> None:
    evil = '<img src=x onerror=alert(1)>"\r\nSet-Cookie: a=b\n\u2028data: x'
    async with served() as page:
        async with listening(page) as events:
            await page.rig.send("proposals", proposal(evil, proposer=evil, control_key=evil))
            said = (await events.next("decisions"))["decisions"][0]
            assert (said["proposal_id"], said["control_key"]) == (evil, evil)
        async with page.http.get("/v1/board") as reply:
            assert reply.content_type == "application/json"
            assert "Set-Cookie" not in reply.headers
        async with page.http.get(f"/v1/decisions/{said['id']}/record") as reply:
            assert base64.b64decode(orjson.loads(await reply.read())["payload"])
            assert "Set-Cookie" not in reply.headers


async def test_messages_of_strangers_on_the_topics_do_not_keep_the_board_from_what_is_ours() -> None:
    async with served() as page:
        for topic in ("control", "controls", "outcomes", "answers", "status"):
            for value in (None, b"", b"{", b"\xff", b"[]"):
                await page.rig.send(topic, value)
        await page.rig.send("proposals", proposal("p1"))
        await page.decided("p1")
        assert sum(page.server.feed.board.passed_over.values()) == 25
