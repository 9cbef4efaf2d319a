"""The language model client against a real server that speaks the protocol."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from chat_server import Answer, refused, said, serving

from simulators.optbench.agents import Completion, Prompt
from streams.language_model import MAX_WAIT_S, LanguageModel
from streams.language_model_cache import Reply, ReplyCache, key

SECRET = "sk-geheim-0123456789"
ASKED = Prompt("e-1", (("system", "You are an agent of a radio network."), ("user", "Δ = 5 µs — 切片?")))


def asking(url: str, waits: list[float] | None = None, **options: Any) -> LanguageModel:
    waited = [] if waits is None else waits
    return LanguageModel("m", "some/model", url, SECRET, sleep=waited.append, **options)


def test_a_reply_comes_back_with_its_tokens_and_its_cost() -> None:
    with serving(lambda *_: said("APPLY — 切片 é", {"prompt_tokens": 2000, "completion_tokens": 500})) as server:
        model = asking(server.url, price_in=1.5, price_out=6.0, seed=11)
        assert model.complete(ASKED) == Completion("APPLY — 切片 é", 2000, 500, pytest.approx(0.006))
    (request,) = server.asked
    assert request["messages"] == [{"role": role, "content": text} for role, text in ASKED.messages]
    assert (request["model"], request["temperature"], request["seed"]) == ("some/model", 0, 11)
    assert (server.keys, server.paths) == ({f"Bearer {SECRET}"}, {"/v1/chat/completions"})


@pytest.mark.parametrize(
    ("usage", "prices"),
    [
        (None, {"price_in": 1.0, "price_out": 1.0}),
        ({"prompt_tokens": "many", "completion_tokens": -1}, {"price_in": 1.0, "price_out": 1.0}),
        ({"prompt_tokens": 7, "completion_tokens": 7}, {"price_in": 1.0}),
        ({"prompt_tokens": 7, "completion_tokens": 7}, {}),
    ],
)
def test_a_cost_that_is_not_known_stays_unknown(usage: Any, prices: dict[str, float]) -> None:
    with serving(lambda *_: said("ok", usage)) as server:
        completion = asking(server.url, **prices).complete(ASKED)
    assert (completion.text, completion.cost_usd, completion.error) == ("ok", None, None)


def test_a_wait_that_the_server_asks_for_is_honoured_and_bounded() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=20), usegmt=True)
    told = ["3", "86400", later, "soon", "nan"]
    with serving(lambda n, _: refused(429, Retry_After=told[n]) if n < len(told) else said("ok")) as server:
        waits: list[float] = []
        assert asking(server.url, waits).complete(ASKED).text == "ok"
    assert waits[:2] == [3.0, MAX_WAIT_S]
    assert 15 < waits[2] <= 20
    assert all(0 < wait < 10 for wait in waits[3:])
    assert len(server.asked) == len(told) + 1


@pytest.mark.parametrize("status", [500, 503, 429, 408])
def test_a_server_that_fails_for_good_is_asked_a_bounded_number_of_times_at_growing_intervals(status: int) -> None:
    with serving(lambda *_: refused(status, "overloaded")) as server:
        waits: list[float] = []
        completion = asking(server.url, waits, retries=3).complete(ASKED)
    assert completion.text == ""
    assert completion.error == f"HTTP {status}: overloaded (4 tries)"
    assert len(server.asked) == 4
    assert waits == sorted(waits)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_what_does_not_pass_by_itself_is_asked_once(status: int) -> None:
    with serving(lambda *_: refused(status, f"bad key {SECRET[:7]}***{SECRET[-4:]}, {SECRET}\nnever")) as server:
        completion = asking(server.url).complete(ASKED)
    assert len(server.asked) == 1
    assert completion.error is not None
    assert str(status) in completion.error
    assert SECRET not in completion.error
    assert "\n" not in completion.error
    if status in (401, 403):
        assert SECRET[:7] not in completion.error


@pytest.mark.parametrize(
    "body",
    [b"<html>bad gateway</html>", b"", b"[]", b'{"choices": []}', b'{"choices": [{"message": null}]}', b"[" * 100_000,
     b'"text"', b"\xff\xfe", b'{"error": {"message": "x"}}'],
)  # fmt: skip
def test_what_is_no_chat_completion_is_tried_again_and_then_an_error(body: bytes) -> None:
    with serving(lambda n, _: Answer(body=body) if n < 3 else said("ok")) as server:
        assert asking(server.url, retries=3).complete(ASKED).text == "ok"
    with serving(lambda *_: Answer(body=body)) as server:
        completion = asking(server.url, retries=1).complete(ASKED)
    assert (completion.text, completion.error) == ("", "the reply is no chat completion (2 tries)")


def test_a_reply_without_text_is_an_error_that_counts_its_tokens() -> None:
    with serving(lambda *_: said(None, {"prompt_tokens": 5, "completion_tokens": 1})) as server:
        completion = asking(server.url).complete(ASKED)
    assert (completion.text, completion.tokens_in) == ("", 5)
    assert completion.error == "the reply has no text: finish_reason stop"


@pytest.mark.parametrize("slow", [{"before_s": 1.5}, {"drip_s": 0.05}])
def test_a_call_ends_with_its_timeout_however_the_server_dawdles(slow: dict[str, float]) -> None:
    dawdling = Answer(body=said("late").body, **slow)
    with serving(lambda n, _: dawdling if n == 0 else said("ok")) as server:
        started = time.monotonic()
        assert asking(server.url, timeout_s=0.3).complete(ASKED).text == "ok"
        assert time.monotonic() - started < 1.4
    with serving(lambda *_: dawdling) as server:
        assert "within 0.3 s" in str(asking(server.url, timeout_s=0.3, retries=0).complete(ASKED).error)


def test_a_server_that_is_not_there_is_an_error_and_no_exception() -> None:
    with serving(lambda *_: said("x")) as server:
        gone = server.url
    waits: list[float] = []
    completion = asking(gone, waits, retries=2).complete(ASKED)
    assert completion.error is not None
    assert "(3 tries)" in completion.error
    assert len(waits) == 2
    assert asking("no url", retries=0).complete(ASKED).error is not None


@pytest.mark.parametrize("named", ["temperature", "seed"])
@pytest.mark.parametrize("by_param", [True, False])
def test_a_sampling_parameter_that_the_server_refuses_is_left_out_from_then_on(
    named: str, by_param: bool, tmp_path: Path
) -> None:
    def answer(_: int, request: dict[str, Any]) -> Answer:
        if named not in request:
            return said("ok")
        if by_param:
            return refused(400, "Unsupported value", param=named)
        return refused(400, f"Unrecognized argument: {named}")

    other = {"temperature": "seed", "seed": "temperature"}[named]
    with serving(answer) as server:
        model = asking(server.url, cache=ReplyCache(tmp_path / "replies.jsonl"))
        assert [model.complete(Prompt("e", (("user", text),))).text for text in ("a", "b")] == ["ok", "ok"]
    replay = asking(server.url, cache=ReplyCache(tmp_path / "replies.jsonl"), replay_only=True)
    assert [replay.complete(Prompt("e", (("user", text),))).text for text in ("a", "b")] == ["ok", "ok"]
    assert [(named in request, other in request) for request in server.asked] == [
        (True, True), (False, True), (False, True),
    ]  # fmt: skip


def test_threads_share_one_model_and_each_gets_its_own_answer(tmp_path: Path) -> None:
    def answer(_: int, request: dict[str, Any]) -> Answer:
        return Answer(body=said(request["messages"][0]["content"] + "!").body, before_s=0.05)

    with serving(answer) as server:
        model = asking(server.url, cache=ReplyCache(tmp_path / "replies.jsonl"))
        prompts = [Prompt(f"e-{n}", (("user", f"question {n}"),)) for n in range(40)]
        with ThreadPoolExecutor(8) as pool:
            texts = [completion.text for completion in pool.map(model.complete, prompts)]
    assert texts == [f"question {n}!" for n in range(40)]
    kept = ReplyCache(tmp_path / "replies.jsonl")
    assert kept.damaged == 0
    assert len((tmp_path / "replies.jsonl").read_bytes().splitlines()) == 40


def test_a_replay_without_the_server_gives_what_the_run_gave_failures_too(tmp_path: Path) -> None:
    file = tmp_path / "replies.jsonl"
    prompts = [Prompt(f"e-{n}", (("user", f"{n}: 切片"),)) for n in range(4)]

    def answer(_: int, request: dict[str, Any]) -> Answer:
        number = int(request["messages"][0]["content"][0])
        return refused(404, "no such model") if number == 3 else said(f"« {number} »", {"prompt_tokens": number})

    with serving(answer) as server:
        run = [asking(server.url, cache=ReplyCache(file)).complete(prompt) for prompt in prompts]
    before = file.read_bytes()
    again = asking(server.url, cache=ReplyCache(file), replay_only=True)
    replayed = [again.complete(prompt) for prompt in prompts]
    assert [(c.text, c.tokens_in, c.cost_usd, c.error) for c in replayed] == [
        (c.text, c.tokens_in, c.cost_usd, c.error) for c in run
    ]
    assert [c.cached for c in replayed] == [True] * 4
    assert replayed[3].error == "HTTP 404: no such model"
    unheard = again.complete(Prompt("e-9", (("user", "never asked"),)))
    assert (unheard.text, unheard.error) == ("", "replay only: the cache holds no reply to this prompt")
    assert file.read_bytes() == before


def test_a_failure_is_asked_again_by_a_later_run_and_a_reply_never_is(tmp_path: Path) -> None:
    file = tmp_path / "replies.jsonl"
    with serving(lambda n, _: refused(404) if n == 0 else said("ok")) as server:
        assert asking(server.url, cache=ReplyCache(file)).complete(ASKED).error is not None
        assert asking(server.url, cache=ReplyCache(file)).complete(ASKED).text == "ok"
        assert asking(server.url, cache=ReplyCache(file)).complete(ASKED).cached
    assert len(server.asked) == 2


def test_every_part_of_a_question_counts_for_its_key() -> None:
    asked: tuple[Any, ...] = ("m", "http://a", {"seed": 0}, (("user", "x"),))
    others: list[tuple[Any, ...]] = [
        ("n", *asked[1:]), ("m", "http://b", *asked[2:]), (*asked[:2], {"seed": 1}, asked[3]),
        (*asked[:3], (("system", "x"),)), (*asked[:3], (("user", "y"),)), (*asked[:3], (("user", "x"), ("user", "x"))),
    ]  # fmt: skip
    assert len({key(*asked), *(key(*other) for other in others)}) == 7


def test_a_line_that_a_killed_run_left_half_is_passed_over_and_the_next_reply_is_kept_whole(tmp_path: Path) -> None:
    file = tmp_path / "replies.jsonl"
    cache = ReplyCache(file)
    cache.keep("a", Reply("first"))
    cache.keep("b", Reply("second"))
    file.write_bytes(file.read_bytes()[:-9])
    torn = ReplyCache(file)
    assert (torn.get("a"), torn.get("b"), torn.damaged) == (Reply("first"), None, 1)
    torn.keep("c", Reply("third \ud800"))
    after = ReplyCache(file)
    assert (after.get("a"), after.get("c"), after.damaged) == (Reply("first"), Reply("third \ud800"), 1)


def test_of_two_replies_to_one_question_the_first_holds(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "replies.jsonl")
    assert cache.keep("a", Reply("first")) == Reply("first")
    assert cache.keep("a", Reply("second")) == Reply("first")
    assert ReplyCache(tmp_path / "replies.jsonl").get("a") == Reply("first")


def test_the_key_is_in_no_file_and_no_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    echo = refused(400, f"you sent {SECRET}")
    with serving(lambda n, _: [said("ok"), echo, refused(401, SECRET), Answer(body=b"")][min(n, 3)]) as server:
        model = asking(server.url, cache=ReplyCache(tmp_path / "replies.jsonl"), retries=1)
        told = [repr(model.complete(Prompt("e", (("user", str(n)),)))) for n in range(4)]
    text = (tmp_path / "replies.jsonl").read_text() + "".join(told) + caplog.text + repr(model)
    assert len(server.asked) == 5
    assert SECRET not in text


def test_no_other_key_of_the_environment_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-of-an-admin")
    with serving(lambda *_: said("ok")) as server:
        assert LanguageModel("m", "m", server.url, None).complete(ASKED).text == "ok"
    assert server.keys == {"Bearer none"}


def test_importing_the_client_does_not_load_the_package_behind_it() -> None:
    code = "import streams.language_model, sys; sys.exit(int('openai' in sys.modules))"
    root = Path(__file__).parent.parent
    assert subprocess.run([sys.executable, "-c", code], cwd=root, env=dict(os.environ), timeout=60).returncode == 0
