"""What the documents say is so: their commands run, their examples are valid, their links lead somewhere.

Every line of every `sh` block in the README and in docs/ is run here, in the order in which it stands, against a guard
that the document itself starts; or it is named in ELSEWHERE with the test that runs it, or in NOT_RUN with the reason.
"""

from __future__ import annotations

import asyncio
import re
import shlex
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import jsonschema
import orjson
import pytest
import yaml
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from typer.testing import CliRunner

from streams.cli import app
from streams.client import GuardClient
from streams.kafka_acls import EVERYTHING, READS, WRITES
from streams.messages import schemas
from xapp.contract_document import contract_schema
from xapp.contract_loading import load_contract

pytestmark = pytest.mark.live  # guards in processes of their own

ROOT = Path(__file__).parents[1]
DOCUMENTS = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
WIRELESSOPS = (sys.executable, "-c", "from streams.cli import main; main()")
PROGRAMS: Mapping[str, Sequence[str]] = {"python": (sys.executable,), "curl": ("curl",)}
"""What a document types beside `wirelessops` → the program."""
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)

ELSEWHERE = {
    "test_demo": {
        "test_the_demo_runs_over_the_broker_and_ends_by_itself": r"make demo",
    },
    "test_chaos_slice": {
        "test_every_law_holds_over_killed_and_paused_workers_and_a_killed_broker": r"make chaos.*",
    },
    "test_helm": {
        "test_each_command_of_the_document_runs": r"helm .*",
    },
    "test_docs": {
        "test_a_guard_takes_every_option_that_a_document_gives_it": (
            r"(\w+=\S+ )*wirelessops run --bootstrap-servers .*"
        ),
    },
    "test_optbench_cli": {
        "test_a_table_fits_in_80_columns_and_shows_every_headline_number": (
            r"wirelessops optbench run --backbone synthetic-a"
        ),
        "test_methods_and_backbones_multiply_in_the_order_asked_for_each_once": (
            r"wirelessops optbench run --backbone synthetic-a --method wirelessopsagent .*"
        ),
        "test_results_are_taken_up_where_they_stop_and_give_the_same": r"wirelessops optbench run --suite .*",
        "test_a_language_model_is_replayed_without_its_server_to_the_same_bytes": (
            r"wirelessops optbench run --model .*"
        ),
        "test_an_agent_of_ones_own_is_run_beside_the_methods": (
            r"wirelessops optbench run --backbone .* --method docs/examples/.*"
        ),
        "test_proposals_of_a_users_agent_are_a_backbone_and_scored_as_they_stand": (
            r"wirelessops optbench run --proposals .*"
        ),
        "test_a_suite_read_back_gives_the_rows_that_it_gives_when_it_is_built": r"wirelessops optbench build .*",
        "test_prompts_hold_the_public_view_of_each_episode_and_the_text_to_send": r"wirelessops optbench prompts .*",
        "test_results_are_scored_as_they_were_run": r"wirelessops optbench score .*",
    },
    "test_optbench_results": {
        "test_other_items_and_seeds_give_the_same_within_a_hundredth": (
            r"wirelessops optbench run --split development .*"
        ),
    },
    "test_optbench_report": {
        "test_a_report_from_stored_results_runs_nothing_again_and_is_the_same_bytes": (
            r"wirelessops optbench report .*"
        ),
    },
    "test_optbench_audit": {
        "test_an_audit_says_what_was_checked_and_fails_where_a_claim_does": r"wirelessops optbench audit",
        "test_a_suite_from_a_folder_is_audited_into_one_document_and_a_leak_names_its_check": (
            r"wirelessops optbench audit --seed-leak .*"
        ),
    },
    "test_support_live": {
        "test_a_guard_applies_where_it_was_before_abstains_until_its_window_is_full_and_outlives_a_restart": (
            r"(mkdir -p support|wirelessops support (build --terms|refresh) support/|wirelessops replay tuesday|"
            r"wirelessops run .*--support-dir support).*"
        ),
    },
    "test_support_stream": {
        "test_a_map_shows_what_is_admitted_and_what_is_not_and_by_how_much": r"wirelessops support show .*",
        "test_the_real_recordings_are_gated": (
            r"(mkdir -p first gate|for f in Trial2|wirelessops support build --terms gate/|wirelessops replay Trial2).*"
        ),
    },
    "test_cli_verify": {
        "test_the_end_can_only_be_missed_where_a_checkpoint_knows_of_it": r"wirelessops verify records.jsonl --keys .*",
        "test_a_recording_is_read_compressed_too_and_one_cut_short_says_so": (
            r"wirelessops verify run.jsonl.gz --keys .*"
        ),
    },
    "test_actuation": {
        "test_the_state_lets_the_next_run_refuse_what_this_one_permitted": r"wirelessops actuate-check .*",
    },
}
"""File of tests → test → the command that it runs: one that needs a cluster, minutes, or a recording of its own."""

NOT_RUN = {
    r"make test": "it is what runs this",
    r"(make|wirelessops) bench": "minutes of a whole machine; its figures are of that machine",
    r"make image": "needs a Docker engine: make compose-check builds the same image",
    r"make compose-check": "minutes, root and a Docker engine; docs/compose.md has the output of a run",
    r"(docker compose|docker-compose|docker) .*": "needs a Docker engine: make compose-check is what runs it",
    r"pip install .*": "installs from a package index",
    r"kubectl .*": "needs a Kubernetes cluster",
}
"""Command → why no test runs it. Its options are held against the command's help all the same."""


def lines_of(document: Path) -> list[str]:
    """The command lines of a document: comments off, continued lines joined."""
    found: list[str] = []
    for kind, block in BLOCK.findall(document.read_text()):
        if kind == "sh":
            joined = block.replace("\\\n", " ")
            found += [" ".join(shlex.split(line, comments=True, posix=False)) for line in joined.splitlines()]
    return [line for line in found if line]


RUN_ELSEWHERE = tuple(pattern for tests in ELSEWHERE.values() for pattern in tests.values())


def runs_here(line: str) -> bool:
    return not any(re.fullmatch(pattern, line) for pattern in (*RUN_ELSEWHERE, *NOT_RUN))


@contextmanager
def a_guard(words: list[str], log: Path) -> Iterator[str]:
    """The guard of a document's own `wirelessops run` line, started where the reader is: the address of its Kafka."""
    with log.open("wb") as errors, subprocess.Popen(
        [*WIRELESSOPS, *words], stdout=subprocess.PIPE, stderr=errors, text=True
    ) as guard:  # fmt: skip
        try:
            assert guard.stdout is not None
            address = re.search(r"Kafka at ([^\s,]+)", guard.stdout.readline())
            assert address is not None, log.read_text()
            yield address.group(1)
        finally:
            guard.terminate()
    assert guard.returncode == 0, log.read_text()
    assert '"event":"stopped"' in log.read_text()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


SAID: Mapping[str, Sequence[tuple[str, float, str | None, str]]] = {
    "e2:gnb-du-1": [("sinr", 15.0, "dB", "cell:1/ue:8"), ("capacity", 30.0, "MHz", "cell:1/slice:1"),
                    ("users", 5, None, "cell:1/slice:1")],
    "o1:gnb-du-1": [("sinr", 3.0, "dB", "cell:1/ue:8")],
    "a1:policy": [("min_rate", 5.0, "Mbit/s", "cell:1/slice:1")],
}  # fmt: skip


@contextmanager
def disputed(address: str) -> Iterator[str]:
    """A proposal that waits for an operator, for as long as two sources keep on disagreeing: its id."""
    escalated: Future[str] = Future()
    settled = Event()
    with ThreadPoolExecutor(1) as thread:
        ends = thread.submit(asyncio.run, _dispute(address, escalated, settled))
        try:
            yield escalated.result(20)
        finally:
            settled.set()
        assert ends.result(20)["violations"][0]["code"] == "denied"


async def _dispute(address: str, escalated: Future[str], settled: Event) -> Mapping[str, Any]:
    producer = AIOKafkaProducer(bootstrap_servers=address)
    control = AIOKafkaConsumer("wirelessops.control", bootstrap_servers=address, auto_offset_reset="latest")
    async with GuardClient(address, region="north", name="xapp:test") as guard:
        await asyncio.gather(producer.start(), control.start())
        try:
            await control.seek_to_end()
            await _say(producer)  # all sides first: on one of them alone the proposal would be applied
            proposing = asyncio.ensure_future(
                guard.propose(
                    contract_ref="slicing/1",
                    bindings={"cell": "1", "ue": "8", "slice": "1"},
                    control_key="cell:1/slice:1/ue:8/prb",
                    plan={"bandwidth": {"value": 1.317, "unit": "MHz"}},
                    timeout_s=30.0,
                )
            )
            while not proposing.done():
                await _say(producer)
                for messages in (await control.getmany(timeout_ms=200)).values():
                    for decision in (orjson.loads(message.value) for message in messages):
                        if decision["action"] == "ESCALATE" and not escalated.done():
                            escalated.set_result(decision["proposal_id"])
                if settled.is_set():
                    await asyncio.wait([proposing], timeout=10)
            return await proposing
        finally:
            await asyncio.gather(producer.stop(), control.stop())


async def _say(producer: AIOKafkaProducer) -> None:
    for source, values in SAID.items():
        await producer.send_and_wait("wirelessops.telemetry", _report(source, values), key=b"north")


def _report(source: str, values: Sequence[tuple[str, float, str | None, str]]) -> bytes:
    at = time.time_ns() // 1_000_000
    measured = [{"name": n, "value": v, "unit": u, "subject": s} for n, v, u, s in values]
    return orjson.dumps(
        {
            "format": "wirelessops.telemetry/1",
            "report_id": f"{source}/{at}",
            "source": source,
            "event_time_ms": at,
            "measurements": measured,
        }
    )


class Reader:
    """Somebody who types the lines of a document, one after the other, in a folder that has docs/ in it."""

    def __init__(self, folder: Path) -> None:
        self.address = self.token = ""
        self.web_port = free_port()
        (folder / "docs").symlink_to(ROOT / "docs")
        (folder / "secrets").mkdir()

    def types(self, line: str) -> str:
        """Run one line, pipes and all; its standard output."""
        if "PROPOSAL_ID" in line:
            with disputed(self.address) as proposal_id:
                return self.types(line.replace("PROPOSAL_ID", proposal_id))
        line = re.sub(r"127\.0\.0\.1:PORT|localhost:9092", self.address, line)
        line = re.sub(r"--seconds \d+", "--seconds 2", line).replace("--web-port 8080", f"--web-port {self.web_port}")
        line = line.replace("127.0.0.1:8080", f"127.0.0.1:{self.web_port}").replace("TOKEN", self.token)
        given = b""
        for part in line.split(" | "):
            words = shlex.split(part)
            if words[0] in PROGRAMS or words[1] in ("demo", "simulate"):
                program = PROGRAMS.get(words[0], WIRELESSOPS)
                ran = subprocess.run(
                    [*program, *words[1:]], input=given, capture_output=True, timeout=60, check=False
                )  # fmt: skip
                code, given, errors = ran.returncode, ran.stdout, ran.stderr.decode()
            else:
                assert words[0] == "wirelessops", line
                result = CliRunner().invoke(app, words[1:], input=given)
                code, given, errors = result.exit_code, result.stdout_bytes, result.stderr
            assert code == 0, f"{line}: {given.decode()[-2000:]}{errors[-2000:]}"
            self.token = given.decode().strip() if words[:3] == ["wirelessops", "keys", "token"] else self.token
        assert given, f"{line}: said nothing"
        return given.decode()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_command_of_a_document_runs(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    reader = Reader(tmp_path)
    lines = [line for line in lines_of(document) if runs_here(line) and line != ". .venv/bin/activate"]
    started = next((line for line in lines if line.startswith("wirelessops run")), "wirelessops run")
    talks = [line for line in lines if re.search(r"PORT|localhost:9092", line)]
    before = lines[: lines.index(started)] if started in lines else [line for line in lines if line not in talks]
    after = [line for line in lines if line not in before and line != started]
    for line in before:
        reader.types(line)
    if not after:
        return
    words = shlex.split(started.replace("--web-port 8080", f"--web-port {reader.web_port}"))
    with a_guard(words[1:], tmp_path / "guard.log") as reader.address:
        for line in after:
            said = reader.types(line)
            if "first_xapp" in line:
                assert re.findall(r"^[A-Z]+$", said, re.MULTILINE) == ["APPLY", "HOLD"]
        if "--web-port" in started:
            with urllib.request.urlopen(f"http://127.0.0.1:{reader.web_port}/", timeout=10) as page:
                assert b"<html" in page.read()


def test_whatever_is_run_elsewhere_is_run_there() -> None:
    for file, tests in ELSEWHERE.items():
        text = (ROOT / "tests" / f"{file}.py").read_text()
        for name in tests:
            assert re.search(rf"^(async )?def {name}\(", text, re.MULTILINE), f"{file}: {name}"


def test_no_entry_of_the_table_is_left_over() -> None:
    lines = [line for document in DOCUMENTS for line in lines_of(document)]
    for pattern in RUN_ELSEWHERE:
        assert any(re.fullmatch(pattern, line) for line in lines), pattern


def _inline(document: Path) -> str:
    """A document's text, with its blocks of other languages left out."""
    return BLOCK.sub(lambda found: found.group(2) if found.group(1) == "sh" else "", document.read_text())


def test_every_command_that_a_document_names_exists_with_its_options() -> None:
    helps: dict[tuple[str, ...], str] = {}

    def help_of(words: tuple[str, ...]) -> str:
        if words not in helps:
            result = CliRunner().invoke(app, [*words, "--help"], terminal_width=200)
            helps[words] = result.stdout if result.exit_code == 0 else ""
        return helps[words]

    groups = ("contract", "keys", "optbench", "study", "support")
    for document in DOCUMENTS:
        for said in re.findall(r"(?:^|[`|] ?)wirelessops ([^`|\n]+)", _inline(document), re.MULTILINE):
            words = [word for word in said.split("#")[0].split() if not word.startswith("-")]
            if not words or not re.fullmatch(r"[a-z][a-z-]*", words[0]):
                continue
            group = words[0] in groups or words[:2] == ["record", "export"]
            text = help_of(tuple(words[: 2 if group else 1]))
            assert text, f"{document.name}: wirelessops {said}"
            for option in re.findall(r"(?<=\s)--[a-z][a-z-]*", f" {said}".split("#")[0]):
                known = option == "--help" or re.search(rf"{option}(?![\w-])", text)
                assert known, f"{document.name}: wirelessops {said}: {option}"


def test_a_guard_takes_every_option_that_a_document_gives_it(tmp_path: Path) -> None:
    """Where its web port is taken it gets as far as saying so: what it was told was taken, up to reaching Kafka."""
    lines = [line for document in DOCUMENTS for line in lines_of(document) if "wirelessops run --bootstrap" in line]
    assert lines
    assert CliRunner().invoke(app, ["keys", "new", "--out", str(tmp_path / "guard.pem")]).exit_code == 0
    (tmp_path / "support").mkdir()
    (tmp_path / "support" / "slicing.yaml").write_bytes((ROOT / "docs/examples/support-slicing.yaml").read_bytes())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for line in lines:
            port = taken.getsockname()[1]
            words = shlex.split(line[line.index("wirelessops") :].replace("--web-port 8080", ""))
            result = subprocess.run(
                [*WIRELESSOPS, *words[1:], "--web-port", str(port)],
                capture_output=True, cwd=tmp_path, timeout=60, check=False, text=True,
            )  # fmt: skip
            assert (result.returncode, str(port) in result.stderr) == (2, True), f"{line}: {result.stderr}"


def test_every_target_of_make_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for document in DOCUMENTS:
        for target in re.findall(r"(?:`|^)make ([a-z][a-z-]*)", _inline(document), re.MULTILINE):
            assert target in targets, f"{document.name}: make {target}"


def test_every_file_of_ours_that_is_named_exists() -> None:
    for document in DOCUMENTS:
        for path in re.findall(
            r"`((?:xapp|streams|simulators|tests|deploy|helm|docs)/[\w./-]+\.\w+)`", document.read_text()
        ):
            assert (ROOT / path).exists(), f"{document.name}: {path}"


@pytest.mark.parametrize("name", ["performance.md", "chaos.md", "kafka.md", "optbench.md"])
def test_a_document_with_figures_names_the_command_that_gives_them(name: str) -> None:
    said = (ROOT / "docs" / name).read_text()
    for module in re.findall(r"python -m (streams[\w.]+)", said):
        assert (ROOT / (module.replace(".", "/") + ".py")).exists(), module
    assert re.search(r"`make (bench|chaos)|python -m streams|wirelessops (optbench|bench)", said)


def _slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-")


def anchors_of(document: Path) -> set[str]:
    text = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)
    return {_slug(heading) for heading in re.findall(r"^#{1,6} (.+)$", text, re.MULTILINE)}


def test_links_between_the_documents_lead_somewhere() -> None:
    more = (ROOT / "CHANGELOG.md", ROOT / "deploy" / "README.md", ROOT / "helm" / "README.md")
    for document in (*DOCUMENTS, *more):
        for target in re.findall(r"\]\(([^)\s]+)\)", document.read_text()):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            leads_to = document.parent / path if path else document
            assert leads_to.exists(), f"{document.name}: {target}"
            assert not anchor or anchor in anchors_of(leads_to), f"{document.name}: {target}"


def test_every_alert_has_its_section_in_the_runbook() -> None:
    found = set()
    for rules in (ROOT / "deploy").rglob("alerts.y*ml"):
        for name, anchor in re.findall(r"(docs/[\w-]+\.md)#([\w-]+)", rules.read_text()):
            assert anchor in anchors_of(ROOT / name), anchor
            found.add(anchor)
    sections = {anchor for anchor in anchors_of(ROOT / "docs" / "operations.md") if anchor.startswith("alert-")}
    assert sections == found


def test_every_module_is_on_the_map() -> None:
    said = (ROOT / "docs" / "architecture.md").read_text()
    rows = "".join(re.findall(r"^\|.*$", said, re.MULTILINE))
    words = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", rows))))
    for package in ("xapp", "xapp/integrity", "xapp/evidence", "simulators", "streams", "streams/web"):
        for path in sorted((ROOT / package).iterdir()):
            if (path.suffix == ".py" or (path / "__init__.py").exists()) and not path.stem.startswith("_"):
                assert path.stem in words or path.stem.startswith("bench"), f"{package}/{path.name}"


def test_who_may_do_what_on_kafka_is_as_the_table_says() -> None:
    rows = re.findall(r"^\| (guard|xApp|RAN|operator|auditor) \|([^|]*)\|([^|]*)\|$", _kafka(), re.MULTILINE)
    assert {role.lower() for role, *_ in rows} == READS.keys()
    for role, writes, reads in rows:
        for said, table in ((writes, WRITES), (reads, READS)):
            topics = table[role.lower()]
            listed = {topic.replace("-", "_") for topic in re.findall(r"`([\w-]+)`", said)}
            assert listed == (set() if topics == EVERYTHING else set(topics)), (role, said)
            assert (topics == EVERYTHING) == ("every topic" in said)


def _kafka() -> str:
    return (ROOT / "docs" / "kafka.md").read_text()


def test_every_document_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    for document in DOCUMENTS[1:]:
        assert document.name == "README.md" or f"({document.name}" in index, document.name


def test_blocks_of_json_and_yaml_can_be_read_and_are_valid_by_the_format_that_they_name() -> None:
    known, seen = schemas(), set()
    for document in DOCUMENTS:
        for kind, block in BLOCK.findall(document.read_text()):
            if kind not in ("json", "yaml"):
                continue
            found: Any = orjson.loads(block) if kind == "json" else yaml.safe_load(block)
            for one in found if isinstance(found, list) else [found]:
                name = one.get("format") or ("wirelessops.contract/1" if "contract_id" in one else None)
                name = name or ("wirelessops.proposal/1" if "control_key" in one and "plan" in one else None)
                if name in known:
                    jsonschema.Draft202012Validator(known[name]).validate(one)
                    seen.add(name)
                if name == "wirelessops.contract/1":
                    load_contract(one)
    kinds = ("telemetry", "source-status", "proposal", "request", "outcome", "answer", "query", "status", "contract")
    assert seen >= {f"wirelessops.{kind}/1" for kind in kinds}


def test_every_key_of_a_contract_is_in_the_reference() -> None:
    said = (ROOT / "docs" / "contracts.md").read_text()
    keys = set(re.findall(r"`([\w.]+)`", "".join(re.findall(r"^\|([^|]*)\|", said, re.MULTILINE))))
    parts = contract_schema()
    owners = {"BudgetDocument": "budget.", "EffectDocument": "effect."}
    for name, part in {**parts["$defs"], "ContractDocument": parts}.items():
        for key in part["properties"]:
            listed = key in ("budget", "effect") or owners.get(name, "") + key in keys
            assert listed, f"{name}: {key}"
    declared = {key for part in (*parts["$defs"].values(), parts) for key in part["properties"]}
    assert {key.split(".")[-1] for key in keys} <= declared


def test_the_example_episode_is_applied_after_the_repairs_it_shows() -> None:
    command = [*WIRELESSOPS, "assure", "docs/examples/slicing.json"]
    decision = orjson.loads(subprocess.run(command, capture_output=True, cwd=ROOT, timeout=60, check=True).stdout)
    assert decision["action"] == "APPLY"
    assert {repair["operator"] for repair in decision["repairs"]} == {"rename", "convert_unit"}
