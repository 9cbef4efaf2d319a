"""`wirelessops optbench run --model`: what is refused, when it stops, what its results rest on."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chat_server import Answer, refused, said, serving
from optbench_suites import suite as suite_of

from simulators.optbench.agents import Completion
from simulators.optbench.suite import subset, write
from streams.commands.answering import NotRun
from streams.commands.optbench import run
from streams.commands.optbench_model import address, api_key, check_model
from streams.commands.optbench_options import ModelOptions, RunOptions
from streams.commands.optbench_suites import SuiteOptions

SECRET = "sk-geheim-0123456789"
HOLD = json.dumps({"action": "HOLD", "answer": None, "plan": {}})
USAGE = {"prompt_tokens": 1000, "completion_tokens": 10}
NO_MODEL = ModelOptions(None, None, None, None, None, None, False, 5.0)
N = 12


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory, whole = tmp_path_factory.mktemp("suite"), suite_of()
    write(subset(whole, whole.cases[:: len(whole.cases) // N][:N]), directory)
    return directory


Run = Callable[..., tuple[int, list[dict[str, Any]], str]]


@pytest.fixture
def ask(suite: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs `direct` with options; gives (exit code, rows, standard error)."""
    monkeypatch.setenv("TEST_MODEL_KEY", SECRET)

    def asked(**options: Any) -> tuple[int, list[dict[str, Any]], str]:
        of_model = {name: options.pop(name) for name in list(options) if name in ModelOptions.__dataclass_fields__}
        chosen: dict[str, Any] = {
            "methods": ("direct",), "backbones": (), "proposals": None, "evaluator": "corrected", "scorer": "strict",
            "results": None, "as_json": True, "parallel": 1,
        }  # fmt: skip
        chosen |= options | {"model": replace(NO_MODEL, **of_model)}
        code = run(SuiteOptions(suite, None, None, None), RunOptions(**chosen))
        out, err = capsys.readouterr()
        return code, json.loads(out) if out else [], err

    return asked


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"model": ""}, "--model"),
        ({"model": " "}, "--model"),
        ({"price_in": 0.0}, "--price-in"),
        ({"price_out": 1.0}, "--price-out"),
        ({"base_url": ""}, "--base-url"),
        ({"model": "m", "price_in": float("nan")}, "--price-in"),
        ({"model": "m", "price_out": float("inf")}, "--price-out"),
        ({"model": "m", "timeout_s": float("inf")}, "--timeout"),
        ({"model": "m", "base_url": "localhost:8000/v1"}, "http://HOST"),
        ({"model": "synthetic-a"}, "another backbone"),
        ({"model": "synthetic-a", "backbones": ("synthetic-a",)}, "another backbone"),
        ({"model": "proposals:mine", "proposals": "mine.jsonl"}, "another backbone"),
        ({"model": "m", "cache": Path("/dev/null")}, "/dev/null: not a regular file"),
        ({"model": "m", "cache": Path("/")}, "not a regular file"),
        ({"model": "m", "cache": Path("/nowhere/cache")}, "/nowhere/cache: No such file"),
        ({"model": "m", "cache": Path("/nowhere/cache"), "replay_only": True}, "/nowhere/cache: No such file"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(options: dict[str, Any], told: str, ask: Run) -> None:
    code, rows, err = ask(**options)
    assert (code, rows, len(err.splitlines())) == (2, [], 1), err
    assert told in err


@pytest.mark.parametrize(
    "base_url",
    [
        "", "localhost:8000/v1", "localhost", "ftp://host/v1", "http://", "http:///v1", "http://:80/v1", "http://[::1/v1",
        "http://host:port/v1", "http://host:99999/v1", "http://ho st/v1", "http://host/\n/v1", f"http://me:{SECRET}@host/v1",
        f"me:{SECRET}@host/v1", f"//me:{SECRET}@host", f"https://{SECRET}@host", f"http://host/v1?key={SECRET}",
        f"http://host/v1#{SECRET}", f"http://me:{SECRET}/v1", SECRET,
    ],
)  # fmt: skip
def test_an_address_that_is_none_or_holds_a_secret_is_refused_and_the_secret_not_repeated(base_url: str) -> None:
    with pytest.raises(NotRun, match="--base-url") as told:
        check_model(replace(NO_MODEL, model="m", base_url=base_url))
    assert SECRET not in str(told.value)


@pytest.mark.parametrize(
    "spelling", ["http://localhost:8000/v1", "http://localhost:8000/v1/", "HTTP://LocalHost:8000/v1", " http://localhost:8000/v1\n"]
)  # fmt: skip
def test_spellings_of_one_address_are_one(spelling: str) -> None:
    assert address(spelling) == "http://localhost:8000/v1"


@pytest.mark.parametrize("path", ["http://[::1]:8000/v1", "https://host/OpenAI/v1"])
def test_an_address_keeps_what_tells_servers_apart(path: str) -> None:
    assert address(path) == path


def test_a_server_is_one_however_its_address_is_spelt(ask: Run, tmp_path: Path) -> None:
    with serving(lambda *_: said(HOLD)) as server:
        for url in (server.url, f" {server.url}/", server.url.replace("http", "HTTP")):
            options: dict[str, Any] = {"model": "m", "cache": tmp_path / "cache", "results": tmp_path / "results"}
            assert ask(**options, base_url=url)[0] == 0
    assert len(server.asked) == N


def test_a_key_is_sent_without_the_white_space_round_it(ask: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_MODEL_KEY", f" {SECRET}\r\n")
    with serving(lambda *_: said(HOLD)) as server:
        assert ask(model="m", base_url=server.url, api_key_env="TEST_MODEL_KEY")[0] == 0
    assert server.keys == {f"Bearer {SECRET}"}


@pytest.mark.parametrize("key", ["", " \n", "a\nb", "a\x01b", "a\tb", "schlüssel"])
def test_a_key_that_no_header_can_hold_is_refused_and_not_repeated(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_MODEL_KEY", key)
    with pytest.raises(NotRun, match="TEST_MODEL_KEY") as told:
        api_key(replace(NO_MODEL, model="m", api_key_env="TEST_MODEL_KEY"))
    assert not key.strip() or key not in str(told.value)


@pytest.mark.parametrize("parallel", [1, 4])
def test_a_run_whose_server_is_not_there_stops_and_says_where_and_how_far_it_came(parallel: int, ask: Run) -> None:
    with serving(lambda *_: refused(404, f"no model for {SECRET}")) as server:
        options = {"model": "m", "base_url": server.url, "api_key_env": "TEST_MODEL_KEY", "parallel": parallel}
        code, rows, err = ask(**options)
    first, *_, last = err.splitlines()
    assert (code, rows) == (2, [])
    assert first == f"m: {server.url}: HTTP 404: no model for [key]"
    assert last == f"stopped: {server.url}: HTTP 404: no model for [key]; 0 of {N} episodes were decided"
    assert len(server.asked) <= 2 + parallel


def test_what_was_kept_before_a_server_went_away_is_taken_up_by_the_next_run(ask: Run, tmp_path: Path) -> None:
    there: list[bool] = []

    def answer(n: int, _: Any) -> Answer:
        return said(HOLD, USAGE) if there or n < 2 else refused(401)

    with serving(answer) as server:
        options: dict[str, Any] = {"model": "m", "base_url": server.url, "results": tmp_path}
        code, _, err = ask(**options)
        assert (code, len(server.asked)) == (2, 10)
        assert f"2 of {N} episodes were decided" in err
        there.append(True)
        code, (row,), _ = ask(**options)
    assert (code, row["n"], row["invalid"], len(server.asked)) == (0, N, 0, 10 + N - 2)


def test_a_resumed_run_does_not_mix_prices(ask: Run, tmp_path: Path) -> None:
    with serving(lambda *_: said(HOLD, USAGE)) as server:
        asked: dict[str, Any] = {"model": "m", "base_url": server.url, "cache": tmp_path / "cache.jsonl"}
        assert ask(**asked, results=tmp_path / "a")[1][0]["cost_usd"] is None
        code, rows, err = ask(**asked, results=tmp_path / "a", price_in=2.0, price_out=10.0)
        assert (code, rows, "US dollars per million tokens: 2.0 in, 10.0 out" in err) == (2, [], True)
        for price_in, cost in ((2.0, 0.0021 * N), (4.0, 0.0041 * N)):
            priced = {"price_in": price_in, "price_out": 10.0, "results": tmp_path / str(price_in)}
            for _ in range(2):
                assert ask(**asked, **priced)[1][0]["cost_usd"] == pytest.approx(cost)
    assert len(server.asked) == N


def test_a_replay_that_names_no_server_gives_the_rows_and_goes_on_with_the_results_of_the_run(
    ask: Run, tmp_path: Path
) -> None:
    cache = tmp_path / "cache.jsonl"
    with serving(lambda *_: said(HOLD, USAGE)) as server:
        _, ran, _ = ask(model="m", base_url=server.url, cache=cache, results=tmp_path)
    for results in (tmp_path, None):
        assert ask(model="m", cache=cache, replay_only=True, results=results)[:2] == (0, ran)
    code, _, err = ask(model="n", cache=cache, replay_only=True)
    assert (code, "it holds one of model m, not n" in err) == (1, True)
    with serving(lambda *_: said(HOLD.replace("HOLD", "BLOCK"))) as other:
        ask(model="m", base_url=other.url, cache=cache)
    code, rows, err = ask(model="m", cache=cache, replay_only=True)
    assert (code, rows, len(err.splitlines())) == (2, [], 1)
    assert server.url in err
    assert other.url in err


def test_a_backbone_that_raises_is_told_with_exit_1_and_kept_by_no_results(
    ask: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Completion:
        raise OverflowError("too large")

    monkeypatch.setattr("streams.language_model.LanguageModel.complete", broken)
    code, (row,), err = ask(model="m", base_url="http://localhost:1/v1", results=tmp_path)
    assert (code, row["invalid"]) == (1, N)
    assert "OverflowError: too large" in err
    (kept,) = tmp_path.iterdir()
    assert len(kept.read_text().splitlines()) == 1
