"""The language model client against a real server that speaks the protocol."""

from __future__ import annotations

import fcntl
import json
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
from simulators.optbench.backbones import Watched
from streams.language_model import MAX_WAIT_S, LanguageModel
from streams.language_model_cache import MAX_TOKENS, Question, Reply, ReplyCache

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
        ({"prompt_tokens": MAX_TOKENS, "completion_tokens": 7}, {"price_in": 1e308, "price_out": 1.0}),
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


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ([], ""),
        (5, ""),
        ([{"type": "text", "text": "AP"}, {"type": "image_url"}, "x", {"type": "text", "text": "PLY"}], "APPLY"),
        ([{"type": "refusal", "refusal": "I cannot"}], ""),
    ],
)
def test_a_message_without_text_is_what_the_model_said_and_is_paid_once(
    content: Any, text: str, tmp_path: Path
) -> None:
    with serving(lambda *_: said(content, {"prompt_tokens": 5, "completion_tokens": 1})) as server:
        for _ in range(2):
            model = asking(server.url, cache=ReplyCache(tmp_path / "replies.jsonl"), price_in=1.0, price_out=1.0)
            completion = model.complete(ASKED)
            assert (completion.text, completion.tokens_in, completion.error) == (text, 5, None)
            assert completion.cost_usd == pytest.approx(6e-6)
    assert len(server.asked) == 1


def test_a_reply_can_be_sent_back_whatever_characters_it_holds() -> None:
    with serving(lambda *_: said("half \ud800 of \U0001f600")) as server:
        model = asking(server.url)
        text = model.complete(ASKED).text
        assert model.complete(Prompt("e", (("assistant", text), ("user", "again")))).error is None
    assert text == "half \ufffd of \U0001f600"
    assert server.asked[1]["messages"][0]["content"] == text


@pytest.mark.parametrize("tokens", [10**400, 2**63, MAX_TOKENS + 1, True, 1.5, "100", None, -1])
def test_a_count_that_is_none_is_not_known_and_costs_nothing_that_is_told(tokens: Any) -> None:
    with serving(lambda *_: said("ok", {"prompt_tokens": tokens, "completion_tokens": 1})) as server:
        completion = asking(server.url, price_in=1.0, price_out=1.0).complete(ASKED)
    assert completion == Completion("ok", 0, 1, None)


@pytest.mark.parametrize(
    "slow",
    [
        {"before_s": 1.5},
        {"drip_s": 0.05},
        {"drip_head_s": 0.05},
        {"drip_s": 0.05, "status": 500},
        {"drip_s": 0.05, "status": 404},
        {"drip_s": 0.05, "status": 302, "headers": {"Location": "/v1/elsewhere"}},
    ],
)
def test_a_call_ends_with_its_timeout_however_the_server_dawdles(slow: dict[str, Any]) -> None:
    dawdling = Answer(**({"body": said("late" * 20).body} | slow))
    with serving(lambda n, _: said("ok") if n == 0 else dawdling) as server:
        model = asking(server.url, timeout_s=3.0, retries=0)
        assert model.complete(ASKED).text == "ok"  # what is loaded once is loaded
    with serving(lambda *_: dawdling) as server:
        model = asking(server.url, timeout_s=0.3, retries=0)
        started = time.monotonic()
        assert "no whole reply within 0.3 s" in str(model.complete(ASKED).error)
        assert time.monotonic() - started < 1.4


@pytest.mark.parametrize("status", [200, 302, 400, 500])
def test_a_response_of_any_status_is_read_up_to_a_size(status: int) -> None:
    with serving(lambda *_: Answer(status, b"x" * 4_000_001)) as server:
        completion = asking(server.url).complete(ASKED)
    assert completion.error == "a reply of more than 4000000 bytes"
    assert len(server.asked) == 1


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
            return refused(400, "Not so", param=named)
        return refused(400, f"Unsupported parameter: '{named}'. Try another model.")

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
    assert (unheard.text, unheard.error) == (
        "", "replay only: the cache holds no reply to this prompt: the prompt was never asked"
    )
    assert file.read_bytes() == before


def test_a_failure_is_asked_again_by_a_later_run_and_a_reply_never_is(tmp_path: Path) -> None:
    file = tmp_path / "replies.jsonl"
    with serving(lambda n, _: refused(404) if n == 0 else said("ok")) as server:
        assert asking(server.url, cache=ReplyCache(file)).complete(ASKED).error is not None
        assert asking(server.url, cache=ReplyCache(file)).complete(ASKED).text == "ok"
        assert asking(server.url, cache=ReplyCache(file)).complete(ASKED).cached
    assert len(server.asked) == 2


def question(text: str = "x", model: str = "m", url: str | None = "http://a", seed: int = 0) -> Question:
    return Question.of(model, url, {"seed": seed}, (("user", text),))


def test_every_part_of_a_question_tells_it_from_others() -> None:
    roles = [(("system", "x"),), (("user", "x"), ("user", "x"))]
    others = [question("y"), question(model="n"), question(url="http://b"), question(seed=1)]
    others += [Question.of("m", "http://a", {"seed": 0}, messages) for messages in roles]
    assert len({question(), *others}) == 7


def test_a_line_that_a_killed_run_left_half_is_passed_over_and_the_next_reply_is_kept_whole(tmp_path: Path) -> None:
    file, (a, b, c) = tmp_path / "replies.jsonl", map(question, "abc")
    cache = ReplyCache(file)
    cache.keep(a, Reply("first"))
    cache.keep(b, Reply("second"))
    file.write_bytes(file.read_bytes()[:-9])
    torn = ReplyCache(file)
    assert (torn.get(a), torn.get(b), torn.damaged) == (Reply("first"), None, 1)
    torn.keep(c, Reply("third"))
    after = ReplyCache(file)
    assert (after.get(a), after.get(c), after.damaged) == (Reply("first"), Reply("third"), 1)


def test_of_two_replies_to_one_question_the_first_holds_in_every_run_that_shares_the_file(tmp_path: Path) -> None:
    file, asked = tmp_path / "replies.jsonl", question()
    cache, other = ReplyCache(file), ReplyCache(file)
    assert cache.keep(asked, Reply("first")) == Reply("first")
    assert cache.keep(asked, Reply("second")) == Reply("first")
    assert other.keep(asked, Reply("third")) == Reply("first")
    assert other.keep(asked, Reply("", error="lost")) == Reply("first")
    assert ReplyCache(file).get(asked) == Reply("first")


def test_a_reply_is_kept_once_no_other_run_is_writing(tmp_path: Path) -> None:
    file = tmp_path / "replies.jsonl"
    cache = ReplyCache(file)
    with ThreadPoolExecutor(1) as pool:
        with file.open("ab") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            kept = pool.submit(cache.keep, question(), Reply("mine"))
            with pytest.raises(TimeoutError):
                kept.result(timeout=0.2)
            ReplyCache(tmp_path / "b").keep(question(), Reply("theirs"))
            other.write((tmp_path / "b").read_bytes())
        assert kept.result(timeout=5) == Reply("theirs")


@pytest.mark.parametrize("turned", [False, True])
def test_of_the_lines_of_one_question_the_first_without_an_error_holds(turned: bool, tmp_path: Path) -> None:
    file = tmp_path / "replies.jsonl"
    replies = [Reply("", error="lost"), Reply("first"), Reply("second"), Reply("", error="later")]
    for n, reply in enumerate(replies[2:] if turned else replies):
        ReplyCache(tmp_path / str(n)).keep(question(), reply)
        with file.open("ab") as stream:
            stream.write((tmp_path / str(n)).read_bytes())
    assert ReplyCache(file).get(question()) == Reply("second" if turned else "first")


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("tokens_in", "100"), ("tokens_out", 10**400), ("tokens_in", -1), ("tokens_in", True), ("text", None),
        ("text", 5), ("error", 5), ("sent", []), ("more", 1), ("asked", None), ("asked", {}), ("asked", {"model": "m"}),
        ("asked", {"model": [], "base_url": "b", "parameters": "{}", "prompt": "p"}),
        ("sent", "NESTED"),
    ],
)  # fmt: skip
def test_a_line_of_another_shape_is_damaged_and_asked_again(member: str, value: Any, tmp_path: Path) -> None:
    file = tmp_path / "replies.jsonl"
    with serving(lambda *_: said("ok", {"prompt_tokens": 1, "completion_tokens": 1})) as server:
        asking(server.url, cache=ReplyCache(file)).complete(ASKED)
        line = json.dumps(json.loads(file.read_bytes()) | {member: value})
        file.write_text(line.replace('"NESTED"', "[" * 100_000) + "\n")
        cache = ReplyCache(file)
        assert cache.damaged == 1
        completion = asking(server.url, cache=cache, price_in=1.0, price_out=1.0).complete(ASKED)
    assert (completion.text, completion.cached, completion.error) == ("ok", False, None)
    assert len(server.asked) == 2


@pytest.mark.parametrize("device", ["/dev/null", "/"])
def test_what_is_no_regular_file_is_no_cache(device: str) -> None:
    with pytest.raises(OSError, match="not a regular file"):
        ReplyCache(Path(device))


def replay(file: Path, url: str | None, model: str = "some/model", **options: Any) -> LanguageModel:
    return LanguageModel("m", model, url, cache=ReplyCache(file), replay_only=True, **options)


def test_a_replay_that_names_no_server_is_answered_from_any_and_one_that_names_another_is_told(tmp_path: Path) -> None:
    file = tmp_path / "replies.jsonl"
    with serving(lambda *_: said("ok")) as server:
        asking(server.url, cache=ReplyCache(file)).complete(ASKED)
    anywhere = replay(file, None)
    assert anywhere.complete(ASKED) == Completion("ok", cached=True)
    assert anywhere.server == server.url
    missed = {
        f"server {server.url}, not http://127.0.0.1/v1": replay(file, "http://127.0.0.1/v1"),
        "model some/model, not other": replay(file, None, "other"),
        'parameters {"seed":0,"temperature":0}, not {"seed":1,"temperature":0}': replay(file, None, seed=1),
    }
    for told, model in missed.items():
        assert told in str(model.complete(ASKED).error)
    unheard = anywhere.complete(Prompt("e", (("user", "never asked"),)))
    assert "the prompt was never asked" in str(unheard.error)


def test_a_replay_that_names_no_server_takes_a_reply_before_a_failure_and_refuses_two_that_differ(
    tmp_path: Path,
) -> None:
    file = tmp_path / "replies.jsonl"
    with serving(lambda *_: refused(400)) as first, serving(lambda *_: said("ok")) as second:
        for url in (first.url, second.url):
            asking(url, cache=ReplyCache(file)).complete(ASKED)
    assert replay(file, None).complete(ASKED).text == "ok"
    with serving(lambda *_: said("else")) as third:
        asking(third.url, cache=ReplyCache(file)).complete(ASKED)
    with pytest.raises(ValueError, match="different replies") as told:
        replay(file, None)
    assert second.url in str(told.value)
    assert third.url in str(told.value)
    assert replay(file, third.url).complete(ASKED).text == "else"


def prompts(n: int) -> list[Prompt]:
    return [Prompt(f"e-{k}", (("user", str(k)),)) for k in range(n)]


@pytest.mark.parametrize("status", [302, 308, 401, 403, 404, 405])
def test_a_server_that_lets_nobody_in_is_given_up_after_three_calls(status: int) -> None:
    told: list[str] = []
    with serving(lambda *_: refused(status)) as server:
        model = asking(server.url, tell=told.append)
        assert model.gave_up() is None
        errors = [model.complete(prompt).error for prompt in prompts(9)]
    assert all(error is not None for error in errors)
    assert len(server.asked) == 3
    why = model.gave_up()
    assert why is not None
    assert why.startswith(f"{server.url}: HTTP {status}")
    (first,) = told
    assert f"{server.url}: HTTP {status}" in first


def test_a_server_that_is_not_there_is_given_up_and_told_before_it_is_tried_again() -> None:
    with serving(lambda *_: said("x")) as server:
        gone = server.url
    told: list[str] = []
    waits: list[int] = []
    model = LanguageModel(
        "m", "m", gone, tell=told.append, retries=2, sleep=lambda _: waits.append(len(told))
    )
    for prompt in prompts(9):
        model.complete(prompt)
    assert "no connection" in str(model.gave_up())
    assert waits == [1] * 6


def test_after_a_reply_eight_calls_in_a_row_give_a_run_up_and_seven_do_not() -> None:
    def answer(n: int, _: Any) -> Answer:
        return said("ok") if n in (0, 8) else refused(404)

    with serving(answer) as server:
        model = asking(server.url)
        gave_up = [(model.complete(prompt), model.gave_up() is not None)[1] for prompt in prompts(20)]
    assert gave_up == [False] * 16 + [True] * 4
    assert len(server.asked) == 17


@pytest.mark.parametrize("status", [400, 500, 429])
def test_calls_that_a_server_answers_otherwise_do_not_give_a_run_up(status: int) -> None:
    with serving(lambda *_: refused(status)) as server:
        model = asking(server.url, retries=0)
        for prompt in prompts(12):
            model.complete(prompt)
    assert (model.gave_up(), len(server.asked)) == (None, 12)


def test_what_the_cache_holds_is_answered_though_the_server_was_given_up(tmp_path: Path) -> None:
    with serving(lambda n, _: said("ok") if n == 0 else refused(401)) as server:
        model = asking(server.url, cache=ReplyCache(tmp_path / "replies.jsonl"))
        for prompt in prompts(12):
            model.complete(prompt)
        assert model.gave_up() is not None
        assert model.complete(prompts(1)[0]).text == "ok"


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 512 tokens; the prompt, seed words included, has 900",
        "Invalid input: the temperature of the cell. Images are not supported.",
        "temperatures are unsupported",
    ],
)
def test_an_error_that_only_mentions_a_parameter_leaves_it_in_later_calls(message: str) -> None:
    with serving(lambda n, _: refused(400, message) if n == 0 else said("ok")) as server:
        model = asking(server.url)
        assert "HTTP 400" in str(model.complete(ASKED).error)
        model.complete(ASKED)
    assert all({"seed", "temperature"} <= request.keys() for request in server.asked)


def test_a_parameter_is_left_out_for_good_only_where_that_helped() -> None:
    told = "the unsupported picture named seed"
    with serving(lambda n, _: refused(400, told) if n < 2 else said("ok")) as server:
        model = asking(server.url)
        assert "HTTP 400" in str(model.complete(ASKED).error)
        assert model.complete(ASKED).text == "ok"
    assert ["seed" in request for request in server.asked] == [True, False, True]


def test_whatever_a_backbone_raises_is_a_failed_call_of_that_episode() -> None:
    class Broken:
        name, synthetic = "broken", False

        def complete(self, _: Prompt) -> Completion:
            raise OverflowError("int too\nlarge " + "x" * 1000)

    watched = Watched(Broken())
    completion = watched.complete(ASKED)
    assert (completion.text, watched.failed) == ("", {"e-1": completion.error})
    assert str(completion.error).startswith("OverflowError: int too large x")
    assert len(str(completion.error)) <= 300


def test_another_module_in_the_place_of_the_client_is_a_failed_call(tmp_path: Path) -> None:
    (tmp_path / "openai.py").write_text("")
    code = (
        "from streams.language_model import LanguageModel\n"
        "from simulators.optbench.agents import Prompt\n"
        "print(LanguageModel('m', 'm', 'http://localhost:1/v1').complete(Prompt('e', (('user', 'x'),))).error)"
    )
    path = os.pathsep.join((str(tmp_path), str(Path(__file__).parent.parent)))
    ran = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": path}, cwd=tmp_path, timeout=60,
        capture_output=True, text=True,
    )  # fmt: skip
    assert "the package openai cannot be used: ImportError" in ran.stdout, ran.stderr


def test_the_key_is_in_no_file_and_no_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    echo = refused(400, f"you sent {SECRET}")
    answers = [said(f"you sent {SECRET}"), echo, refused(401, SECRET), said([{"text": SECRET}]), Answer(body=b"")]
    told: list[str] = []
    with serving(lambda n, _: answers[min(n, 4)]) as server:
        model = asking(server.url, cache=ReplyCache(tmp_path / "replies.jsonl"), retries=1, tell=told.append)
        told += [repr(model.complete(Prompt("e", (("user", str(n)),)))) for n in range(5)]
    text = (tmp_path / "replies.jsonl").read_text() + "".join(told) + caplog.text + repr(model)
    assert len(server.asked) == 6
    assert "you sent [key]" in text
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
