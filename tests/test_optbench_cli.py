"""`wirelessops optbench` as a user runs it: over one suite that is built once, mostly over 60 episodes of it."""

from __future__ import annotations

import ast
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from chat_server import Answer, refused, said, serving

from simulators.optbench.suite import load, subset, write

SECRET = "sk-geheim-0123456789"
MEMBERS = {
    "method", "backbone", "suite", "evaluator", "scorer", "exact", "macro_f1", "safe_apply_recall", "unsafe_apply_rate",
    "safe_apply_utility", "task_score", "ops", "n", "ops_survival", "record_coverage", "record_faithfulness",
    "clean_preservation", "unsafe_overwrites", "applied_on_blocking", "invalid", "calls", "tokens_in", "tokens_out",
    "cost_usd",
}  # fmt: skip
MAIN = (sys.executable, "-c", "from streams.cli import main; main()", "optbench")
N = 60
HOLD = {"action": "HOLD", "answer": {}, "plan": {}}


def optbench(*arguments: Any, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*MAIN, *map(str, arguments)], input=stdin, capture_output=True, text=True, timeout=120, check=False,
        env=os.environ | environment,
    )  # fmt: skip


def rows(*arguments: Any, code: int = 0, **environment: str) -> list[dict[str, Any]]:
    result = optbench(*arguments, "--json", **environment)
    assert result.returncode == code, result.stderr
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return found


def lines(path: Path, *documents: Any) -> Path:
    path.write_text("".join(f"{d if isinstance(d, str) else json.dumps(d)}\n" for d in documents))
    return path


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("optbench") / "suite"
    result = optbench("build", "--out", directory)
    assert (result.returncode, result.stderr) == (0, ""), result.stderr
    assert "600 episodes in " in result.stdout
    assert all(f"{task}: " in result.stdout for task in ("WCHW", "WCNS", "WCMSA"))
    return directory


@pytest.fixture(scope="session")
def suite(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every tenth episode."""
    directory, every = tmp_path_factory.mktemp("suite"), load(whole)
    write(subset(every, every.cases[::10]), directory)
    return directory


@pytest.fixture(scope="session")
def episode_ids(suite: Path) -> list[str]:
    return [case.episode_id for case in load(suite).cases]


@pytest.fixture(scope="session")
def direct(suite: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The results of `direct` with synthetic-a, and their row."""
    results = tmp_path_factory.mktemp("results")
    (row,) = rows("run", "--suite", suite, "--method", "direct", "--backbone", "synthetic-a", "--results", results)
    return results / "direct--synthetic-a.jsonl", row


def test_a_row_names_its_method_its_backbone_and_what_they_reach(direct: tuple[Path, dict[str, Any]]) -> None:
    file, row = direct
    assert row.keys() == MEMBERS
    assert (row["method"], row["backbone"], row["n"], row["calls"]) == ("direct", "synthetic-a", N, N)
    assert row["cost_usd"] is None
    assert len(file.read_text().splitlines()) == N + 1


def test_a_suite_read_back_gives_the_rows_that_it_gives_when_it_is_built(whole: Path) -> None:
    asked = ("run", "--method", "direct", "--backbone", "synthetic-a")
    (row,) = rows(*asked, "--seed", 0, "--split", "final")
    assert rows(*asked, "--suite", whole) == [row]
    assert row["n"] == 600
    assert 0.2 < row["exact"] < 0.5  # it applies on most episodes, and a third of them ask for APPLY


def test_methods_and_backbones_multiply_in_the_order_asked_for_each_once(suite: Path) -> None:
    asked = [word for name in ("always-block", "direct", "always-block") for word in ("--method", name)]
    found = rows("run", "--suite", suite, *asked, "--backbone", "synthetic-b", "--backbone", "synthetic-a")
    assert [(row["method"], row["backbone"]) for row in found] == [
        ("always-block", "synthetic-b"), ("direct", "synthetic-b"),
        ("always-block", "synthetic-a"), ("direct", "synthetic-a"),
    ]  # fmt: skip
    held = sum(case.sealed.reference == "HOLD" for case in load(suite).cases)
    assert (found[0]["exact"], found[0]["unsafe_apply_rate"]) == (pytest.approx(held / N), 0.0)


def test_a_table_says_that_synthetic_proposers_are_no_models(suite: Path) -> None:
    result = optbench("run", "--suite", suite, "--method", "always-block", "--backbone", "synthetic-a")
    assert result.returncode == 0
    assert re.fullmatch(r"always-block, synthetic-a: 60 episodes in \d+ s\n", result.stderr)
    assert "always-block" in result.stdout
    assert "synthetic-a: no language models" in result.stdout


def test_results_are_taken_up_where_they_stop_and_give_the_same(
    suite: Path, direct: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    file, row = direct
    whole = file.read_bytes()
    copy = tmp_path / file.name
    copy.write_bytes(whole[: len(whole) // 2])
    run = ("run", "--suite", suite, "--method", "direct", "--backbone", "synthetic-a", "--results", tmp_path)
    assert rows(*run) == [row]
    assert copy.read_bytes() == whole
    assert rows(*run, "--parallel", 4) == [row]
    assert copy.read_bytes() == whole


def test_results_of_another_suite_are_refused_in_one_line(
    suite: Path, direct: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    head, *rest = direct[0].read_text().splitlines()
    other = json.loads(head) | {"suite": "sha256:0"}
    copy = lines(tmp_path / direct[0].name, other, *rest)
    result = optbench(
        "run", "--suite", suite, "--method", "direct", "--backbone", "synthetic-a", "--results", tmp_path
    )
    assert (result.returncode, result.stdout, len(result.stderr.splitlines())) == (2, "", 1)
    assert "were made on the suite sha256:0" in result.stderr
    assert "use another --results folder, or delete this file" in result.stderr
    scored = optbench("score", copy, "--suite", suite)
    assert (scored.returncode, scored.stdout) == (2, "")
    assert scored.stderr.startswith(f"{copy}: line 1: $.suite: results on another suite")


@pytest.mark.parametrize("name", ["episodes.jsonl", "sealed.jsonl"])
def test_a_suite_that_is_not_as_its_manifest_says_is_refused(suite: Path, tmp_path: Path, name: str) -> None:
    for file in suite.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    text = (tmp_path / name).read_text()
    (tmp_path / name).write_text(text.replace("eMBB", "mMTC", 1))
    result = optbench("run", "--suite", tmp_path, "--method", "direct")
    assert (result.returncode, result.stdout, len(result.stderr.splitlines())) == (2, "", 1)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("run", "--method", "guess"), "no method 'guess': direct, "),
        (("run", "--backbone", "gpt"), "no backbone 'gpt': synthetic-a, "),
        (("run", "--suite", "nowhere"), "nowhere"),
        (("run", "--suite", "nowhere", "--seed", "1"), "--seed"),
        (("run", "--cache", "c"), "belong to a --model"),
        (("run", "--model", "m", "--replay-only"), "--replay-only needs the --cache"),
        (("run", "--model", "m", "--api-key-env", "NOT_SET_AT_ALL"), "NOT_SET_AT_ALL is not set"),
        (("run", "--model", "m", "--base-url", f"https://me:{SECRET}@host/v1"), "--base-url holds a password"),
        (("build", "--out", "/dev/null/x"), "/dev/null/x"),
        (("prompts", "--out", "-", "--suite", "SUITE", "--base", "b"), "--base"),
        (("build", "--out", "OUT", "--base", "nowhere"), "nowhere"),
        (("prompts", "--out", "/dev/null/x"), "/dev/null/x"),
        (("score", "nowhere.jsonl", "--suite", "SUITE"), "nowhere.jsonl: No such file"),
        (("run", "--proposals", "nowhere.jsonl", "--suite", "SUITE"), "nowhere.jsonl: No such file"),
    ],
)
def test_what_cannot_be_run_is_refused_in_one_line(
    arguments: tuple[str, ...], told: str, suite: Path, tmp_path: Path
) -> None:
    places = {"SUITE": suite, "OUT": tmp_path}
    result = optbench(*(places.get(word, word) for word in arguments))
    assert (result.returncode, result.stdout, len(result.stderr.splitlines())) == (2, "", 1), result.stderr
    assert told in result.stderr
    assert SECRET not in result.stderr


@pytest.mark.parametrize("base", ["nowhere", "", "file.txt"])
def test_a_build_that_fails_leaves_nothing_behind(base: str, tmp_path: Path) -> None:
    (tmp_path / "file.txt").write_text("no folder\n")
    result = optbench("build", "--out", tmp_path / "new" / "suite", "--base", tmp_path / base)
    assert (result.returncode, result.stdout, len(result.stderr.splitlines())) == (2, "", 1), result.stderr
    assert str(tmp_path / base) in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["file.txt"]


def test_a_build_into_a_file_is_refused_before_it_begins(tmp_path: Path) -> None:
    file = lines(tmp_path / "file", "kept")
    for out in (file, file / "suite"):
        result = optbench("build", "--out", out)
        assert (result.returncode, result.stdout, result.stderr) == (2, "", f"{out}: no folder can be made there\n")
    assert file.read_text() == "kept\n"


def test_prompts_hold_the_public_view_of_each_episode_and_the_text_to_send(suite: Path, tmp_path: Path) -> None:
    out = tmp_path / "prompts.jsonl"
    assert optbench("prompts", "--out", out, "--suite", suite).returncode == 0
    views = [json.loads(line) for line in (suite / "episodes.jsonl").read_text().splitlines()]
    told = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["view"] for line in told] == views
    assert [line["episode_id"] for line in told] == [view["episode_id"] for view in views]
    for line in told:
        assert line.keys() == {"episode_id", "view", "messages"}
        assert line["view"]["task"]["question"] in line["messages"][-1]["content"]
    assert optbench("prompts", "--out", "-", "--suite", suite).stdout == out.read_text()


def test_results_are_scored_as_they_were_run(suite: Path, direct: tuple[Path, dict[str, Any]]) -> None:
    file, row = direct
    assert rows("score", file, "--suite", suite) == [row]


def test_proposals_of_a_users_agent_are_a_backbone_and_scored_as_they_stand(
    suite: Path, direct: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    bundles = [json.loads(line) for line in direct[0].read_text().splitlines()[1:]]
    mine = [{"episode_id": b["episode_id"], "proposal": b["proposed"]} for b in bundles]
    file = lines(tmp_path / "mine.jsonl", *mine)
    (scored,) = rows("score", file, "--suite", suite)
    (ran,) = rows("run", "--suite", suite, "--method", "direct", "--proposals", file)
    free = {"method", "backbone", "calls", "tokens_in", "tokens_out"}
    assert {k: v for k, v in scored.items() if k not in free} == {k: v for k, v in direct[1].items() if k not in free}
    assert (scored["method"], scored["backbone"]) == ("mine", "external")
    assert (ran["method"], ran["backbone"]) == ("direct", "proposals:mine")
    assert {k: v for k, v in ran.items() if k not in free} == {k: v for k, v in scored.items() if k not in free}


def test_episodes_that_a_file_leaves_out_are_invalid_outputs_of_every_method(
    suite: Path, episode_ids: list[str], tmp_path: Path
) -> None:
    file = lines(tmp_path / "few.jsonl", *({"episode_id": i, "proposal": HOLD} for i in episode_ids[:10]))
    result = optbench(
        "run", "--suite", suite, "--method", "wirelessopsagent", "--method", "direct", "--proposals", file, "--json",
        "--results", tmp_path / "results",
    )  # fmt: skip
    assert result.returncode == 0
    assert "50 of 60 episodes are missing and count as invalid outputs" in result.stderr
    assert f"{episode_ids[10]} the first" in result.stderr
    for row in json.loads(result.stdout):
        assert (row["n"], row["invalid"], row["calls"]) == (N, 50, 10)
        assert row["exact"] <= 10 / N
    bundles = lines(tmp_path / "bundles.jsonl", *({"episode_id": i, **HOLD, "record": None} for i in episode_ids[:7]))
    scored = optbench("score", bundles, "--suite", suite, "--json")
    assert "53 of 60 episodes are missing" in scored.stderr
    assert json.loads(scored.stdout)[0]["invalid"] == 53


def test_a_file_with_wrong_lines_is_refused_with_each_of_them(
    suite: Path, episode_ids: list[str], tmp_path: Path
) -> None:
    one, two = episode_ids[:2]
    file = lines(
        tmp_path / "wrong.jsonl",
        {"episode_id": one, **HOLD},
        {"episode_id": one, "proposal": HOLD},
        {"episode_id": "nobody", **HOLD},
        {"episode_id": two, "action": "WAIT"},
        "{",
        '{"episode_id": "a", "episode_id": "b", "action": "HOLD"}',
        {"episode_id": two, "action": "HOLD", "plan": {"bandwidth": 7}},
    )
    result = optbench("score", file, "--suite", suite)
    assert (result.returncode, result.stdout) == (2, "")
    told = [line.removeprefix(f"{file}: ") for line in result.stderr.splitlines()]
    assert [line.split(": ")[:2] for line in told] == [
        ["line 2", "$.episode_id"], ["line 3", "$.episode_id"], ["line 4", "$.action"], ["line 5", "$"],
        ["line 6", "$"], ["line 7", "$.plan.bandwidth"],
    ]  # fmt: skip
    assert "was answered in line 1" in told[0]
    bundle = lines(tmp_path / "bundle.jsonl", {"episode_id": one, **HOLD})
    refusal = optbench("run", "--suite", suite, "--proposals", bundle)
    assert (refusal.returncode, len(refusal.stderr.splitlines())) == (2, 1)
    assert "optbench score" in refusal.stderr


def test_standard_input_is_a_file_too(suite: Path, episode_ids: list[str]) -> None:
    line = json.dumps({"episode_id": episode_ids[0], **HOLD})
    result = optbench("score", "-", "--suite", suite, "--json", stdin=line + "\n")
    assert json.loads(result.stdout)[0]["invalid"] == N - 1


def test_the_evaluator_and_the_scorer_are_what_is_asked_for(
    suite: Path, direct: tuple[Path, dict[str, Any]]
) -> None:
    file, row = direct
    (frozen,) = rows("score", file, "--suite", suite, "--evaluator", "frozen")
    (published,) = rows("score", file, "--suite", suite, "--scorer", "published")
    assert frozen["unsafe_apply_rate"] > row["unsafe_apply_rate"]
    assert published["task_score"] >= row["task_score"]
    assert optbench("score", file, "--suite", suite, "--evaluator", "kind").returncode == 2


def model(suite: Path, url: str, *more: Any) -> tuple[Any, ...]:
    return ("run", "--suite", suite, "--method", "direct", "--model", "some/model", "--base-url", url,
            "--api-key-env", "TEST_MODEL_KEY", "--parallel", 8, *more)  # fmt: skip


def test_a_language_model_is_replayed_without_its_server_to_the_same_bytes(suite: Path, tmp_path: Path) -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 10}
    cache, priced = tmp_path / "cache.jsonl", ("--price-in", 2, "--price-out", 10)
    with serving(lambda *_: said(json.dumps(HOLD), usage)) as server:
        options = model(suite, server.url, "--cache", cache, *priced)
        ran = optbench(*options, "--results", tmp_path / "ran", "--json", TEST_MODEL_KEY=SECRET)
        asked = len(server.asked)
    assert (ran.returncode, asked) == (0, N)
    assert server.keys == {f"Bearer {SECRET}"}
    (row,) = json.loads(ran.stdout)
    assert (row["backbone"], row["tokens_in"], row["cost_usd"]) == ("some/model", 60_000, pytest.approx(0.126))
    again = optbench(
        *options, "--replay-only", "--results", tmp_path / "again", "--json", TEST_MODEL_KEY=SECRET
    )
    assert (again.returncode, again.stdout) == (0, ran.stdout)
    first, second = (next((tmp_path / name).iterdir()) for name in ("ran", "again"))
    assert sorted(first.read_text().splitlines()) == sorted(second.read_text().splitlines())
    kept = "".join(path.read_text() for path in tmp_path.rglob("*.jsonl"))
    assert SECRET not in kept + ran.stdout + ran.stderr + again.stderr


def test_calls_that_failed_are_told_counted_and_made_again_by_the_next_run(
    suite: Path, episode_ids: list[str], tmp_path: Path
) -> None:
    with serving(lambda n, _: refused(400, f"no sense, {SECRET}") if n < 20 else said(json.dumps(HOLD))) as server:
        options = model(suite, server.url, "--results", tmp_path)
        result = optbench(*options, "--json", TEST_MODEL_KEY=SECRET)
        assert result.returncode == 1
        assert json.loads(result.stdout)[0]["invalid"] == 20
        assert "direct, some/model: calls failed on 20 episodes; the first: HTTP 400: no sense, [key]" in result.stderr
        assert SECRET not in result.stderr
        (row,) = rows(*options, TEST_MODEL_KEY=SECRET)
        assert (row["invalid"], len(server.asked)) == (0, N + 20)


def test_an_interrupted_run_ends_at_once_and_goes_on_later(suite: Path, tmp_path: Path) -> None:
    def answer(number: int, _: Any) -> Answer:
        return Answer(body=said(json.dumps(HOLD)).body, before_s=0 if number < 20 else 20)

    with serving(answer) as server:
        options = model(suite, server.url, "--results", tmp_path)
        process = subprocess.Popen(
            [*MAIN, *map(str, options)], stderr=subprocess.PIPE, text=True, env=os.environ | {"TEST_MODEL_KEY": SECRET},
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip
        while len(server.asked) < 28:
            time.sleep(0.05)
            assert process.poll() is None
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=5)
    assert (process.returncode, told) == (130, "stopped; the same command goes on from here\n")
    with serving(lambda *_: said(json.dumps(HOLD))) as server:
        options = (*model(suite, server.url), "--results", tmp_path)
        (file,) = tmp_path.iterdir()
        assert file.name.startswith("direct--some-model-")
        head, *kept = file.read_text().splitlines()
        lines(file, json.loads(head) | {"settings": server.url}, *kept)
        assert rows(*options, TEST_MODEL_KEY=SECRET)[0]["n"] == N
        assert (len(kept), len(server.asked)) == (20, N - 20)


def test_bars_are_drawn_for_a_terminal_and_only_there(suite: Path) -> None:
    command = [*MAIN, "run", "--suite", str(suite), "--method", "always-block", "--backbone", "synthetic-a", "--json"]
    parent, child = pty.openpty()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=child, env=os.environ | {"TERM": "xterm"})
    os.close(child)
    drawn = b""
    while True:
        try:
            block = os.read(parent, 4096)
        except OSError:
            break
        if not block:
            break
        drawn += block
    out, _ = process.communicate(timeout=60)
    os.close(parent)
    assert process.returncode == 0
    assert json.loads(out)[0]["n"] == N
    assert b"always-block, synthetic-a" in drawn


def test_a_run_with_a_synthetic_proposer_loads_no_client_of_models_and_no_plots(suite: Path) -> None:
    code = (
        "import sys\nfrom streams.cli import main\n"
        f"sys.argv = ['wirelessops', 'optbench', 'run', '--suite', {str(suite)!r}, '--method', 'always-block',"
        " '--backbone', 'synthetic-a', '--json']\n"
        "try:\n    main()\nexcept SystemExit as stop:\n    assert not stop.code\n"
        "heavy = ('openai', 'matplotlib', 'rich', 'aiokafka', 'faust')\n"
        "print([m for m in heavy if m in sys.modules], file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert ast.literal_eval(ran.stderr.splitlines()[-1]) == []


def test_a_table_fits_in_80_columns_and_shows_every_headline_number(suite: Path) -> None:
    methods = ("--method", "wirelessagent-contract", "--method", "always-apply", "--method", "direct-nocontract")
    asked = ("run", "--suite", suite, "--backbone", "synthetic-a", "--backbone", "synthetic-b", *methods)
    told, (first, *_) = optbench(*asked).stdout, rows(*asked)
    assert max(map(len, told.splitlines())) <= 80
    for backbone in ("synthetic-a", "synthetic-b"):
        assert f"{backbone}: {N} episodes\n" in told
    heads = " ".join(told.split(":")[1].split("wirelessagent")[0].split())
    for head in ("macro", "F1", "safe", "recall", "unsafe", "util-", "ity", "task", "OPS", "≥0.8", "exact", "invalid"):
        assert head in heads
    (shown,) = re.findall(r"^wirelessagent-contract +(.*)$", told.split("synthetic-b")[0], re.MULTILINE)
    names = ("exact", "macro_f1", "safe_apply_recall", "unsafe_apply_rate", "safe_apply_utility", "task_score", "ops",
             "ops_survival")  # fmt: skip
    assert shown.split() == [*(f"{first[name]:.3f}" for name in names), str(first["invalid"])]


@pytest.mark.parametrize("where", ["/dev/full", "closed"])
@pytest.mark.parametrize(
    "command",
    ["run --method always-block --backbone synthetic-a", "run --method always-block --backbone synthetic-a --json",
     "score EMPTY", "prompts --out -", "show EPISODE"],
)  # fmt: skip
def test_what_cannot_be_printed_is_told_in_one_line(
    suite: Path, episode_ids: list[str], tmp_path: Path, command: str, where: str
) -> None:
    places = {"EMPTY": str(lines(tmp_path / "none.jsonl")), "EPISODE": episode_ids[0]}
    words = [places.get(word, word) for word in command.split()]
    to = ">&-" if where == "closed" else f"> {where}"
    shell = ["sh", "-c", f'"$@" {to}', "sh", *MAIN, *words, "--suite", str(suite)]
    result = subprocess.run(shell, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    told = result.stderr.splitlines()
    assert told[-1] == f"standard output{' is closed' if where == 'closed' else ': No space left on device'}"
    assert [line for line in told if "standard output" in line] == told[-1:]


def test_a_reader_that_has_read_enough_ends_a_command_quietly(suite: Path) -> None:
    process = subprocess.Popen(
        [*MAIN, "prompts", "--out", "-", "--suite", str(suite)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.read(10) == b'{"episode_'
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(60) == 1


def test_an_unwritable_seed_is_refused(tmp_path: Path) -> None:
    result = optbench("build", "--out", tmp_path, "--seed", 2**63)
    assert result.returncode == 2
    assert "--seed" in result.stderr
    assert "Traceback" not in result.stderr


def test_tokens_beyond_64_bits_are_an_invalid_output_and_no_traceback(suite: Path) -> None:
    usage = {"prompt_tokens": 2**62, "completion_tokens": 10**30}
    with serving(lambda *_: said(json.dumps(HOLD), usage)) as server:
        ran = optbench(*model(suite, server.url), "--json", TEST_MODEL_KEY=SECRET)
    assert "Traceback" not in ran.stderr
    assert json.loads(ran.stdout)[0]["n"] == N


def test_a_folder_that_holds_something_else_is_not_built_into(whole: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    started = time.monotonic()
    result = optbench("build", "--out", tmp_path)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert f"{tmp_path} is not empty, and holds no suite" in result.stderr
    assert time.monotonic() - started < 10, "before anything is built"
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_build_tells_what_it_replaced_and_where_the_reasons_of_exclusions_stand(
    suite: Path, tmp_path: Path
) -> None:
    base, out = tmp_path / "base", tmp_path / "out"
    base.mkdir()
    lines(base / "wchw_test_100.jsonl", {"id": "a row without a question"})
    out.mkdir()
    for file in suite.iterdir():
        (out / file.name).write_bytes(file.read_bytes())
    result = optbench("build", "--out", out, "--split", "development", "--base", base)
    assert (result.returncode, result.stderr) == (0, "")
    assert f"replaced the suite that was there, {load(suite).digest}\n" in result.stdout
    assert load(out).manifest["split"] == "development"
    assert f"{out / 'manifest.json'} under `excluded`" in result.stdout
    (excluded,) = load(out).manifest["excluded"]
    assert (excluded["task"], bool(excluded["reason"])) == ("WCHW", True)


def test_a_build_that_is_stopped_speaks_of_no_results(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*MAIN, "build", "--out", str(tmp_path / "suite")], stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    time.sleep(2.5)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=10)
    assert (process.returncode, told) == (130, "stopped; no suite was written\n")


def test_a_suite_of_another_version_is_told_and_run(suite: Path, tmp_path: Path) -> None:
    for file in suite.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    told = json.loads((tmp_path / "manifest.json").read_text())
    (tmp_path / "manifest.json").write_text(json.dumps(told | {"generator": "sha256:another"}))
    asked = ("--method", "always-block", "--backbone", "synthetic-a")
    result = optbench("run", "--suite", tmp_path, *asked)
    assert result.returncode == 0
    assert "made by another version" in result.stderr.splitlines()[0]
    (here,), (there,) = rows("run", "--suite", suite, *asked), rows("run", "--suite", tmp_path, *asked)
    assert here == there
    assert here["suite"] == told["digest"]


def test_a_wrong_line_of_proposals_is_told_with_the_members_of_proposals(
    suite: Path, episode_ids: list[str], tmp_path: Path
) -> None:
    file = lines(
        tmp_path / "mine.jsonl",
        {"episode_id": episode_ids[0], "propsal": HOLD},
        {"episode_id": episode_ids[1], "proposal": HOLD, "note": 1},
        {"episode_id": episode_ids[2]},
        {"episode_id": episode_ids[3], "proposal": 3},
    )
    result = optbench("run", "--suite", suite, "--proposals", file)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 4)
    assert "known are episode_id, proposal\n" in result.stderr
    assert "cost_usd" not in result.stderr


def test_invalid_outputs_are_told_with_the_first_reason_of_each_row(suite: Path, tmp_path: Path) -> None:
    with serving(lambda *_: said("I would rather not.")) as server:
        ran = optbench(*model(suite, server.url, "--method", "wirelessopsagent"), "--json", TEST_MODEL_KEY=SECRET)
    assert ran.returncode == 0
    assert [row["invalid"] for row in json.loads(ran.stdout)] == [N, N]
    why = f"{N} invalid outputs; the first: no JSON object with an action or a plan"
    told = [line for line in ran.stderr.splitlines() if "invalid" in line]
    assert told == [f"direct, some/model: {why}", f"wirelessopsagent, some/model: {why}"]


EXAMPLE = Path(__file__).parent.parent / "docs" / "examples" / "optbench_agent.py"


def test_an_agent_of_ones_own_is_run_beside_the_methods(suite: Path) -> None:
    own, direct = rows("run", "--suite", suite, "--backbone", "synthetic-a", "--method", f"{EXAMPLE}:Careful",
                       "--method", "direct")  # fmt: skip
    assert own["method"] == "careful"
    assert (own["n"], own["invalid"]) == (N, 0)
    assert own["unsafe_apply_rate"] < direct["unsafe_apply_rate"], "it holds what rests on old evidence"
    assert own["exact"] > direct["exact"]
