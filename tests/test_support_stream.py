"""The support gate in the stream: the folder, the decision path, replay, the command line, what operators are told."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import orjson
import pytest
import yaml
from replay_samples import DATA, SCOPE_HEADER, T0, scope_row, write
from typer.testing import CliRunner

from streams import support_folder, support_watch
from streams.alarm_watch import AlarmWatch
from streams.alarms import Alarms, Problem
from streams.cli import app
from streams.configuration import Configuration
from streams.deciding import NO_MAPS, Gated, Outcome, Read, RegionState, Stamp, read_proposal_bytes
from streams.guard import Guard
from streams.messages import schemas
from streams.metrics import render
from streams.recording import RecordedMessage, RecordingWriter
from streams.replay import replay
from streams.settings import GuardSettings, SettingsError
from streams.support_folder import SupportFolder, load_support, read_folder
from streams.support_health import SupportHealth, alarming
from streams.support_watch import MapsInForce
from streams.web.dossier import dossier
from xapp.contract import Contract
from xapp.contract_loading import load_contract
from xapp.contracts import shipped
from xapp.faithfulness import verify
from xapp.support.book import SupportBook, window_ms
from xapp.support.reference_map import ReferenceMap, map_json, read_map
from xapp.support.terms import load_terms, read_terms

ROOT = Path(__file__).parent.parent
P = 10_000  # a partition, ms
T = 1_800_000_000_000  # 08:00 UTC: two hours into a quarter of the day
CONTRACT: dict[str, Any] = {
    "contract_id": "test/1",
    "fields": {
        "cqi": {
            "kind": "observed", "unit": "1", "min": 0, "max": 15, "subject": "cell:{cell}/ue:{ue}",
            "freshness_ms": 3000, "sources": ["e2:gnb-1"],
        },
        "bandwidth": {"kind": "planned", "unit": "MHz", "min": 0, "max": 20},
    },
    "constraints": [{"id": "served", "expr": "bandwidth >= cqi / 10"}],
}  # fmt: skip
TERMS: dict[str, Any] = {
    "format": "wirelessops.support-terms/1",
    "contract_id": "test/1",
    "partition_ms": P,
    "rule": {"min_visits": 4, "min_partitions": 3, "partitions": 4},
    "expires_after_ms": 3_600_000,
    "drift_partitions": 2,
}
def loaded(document: Mapping[str, Any]) -> dict[str, Contract]:
    contract = load_contract(document)
    return {contract.contract_id: contract}


HERE = loaded(CONTRACT)
TERMED = load_terms(TERMS)
VERDICTS = ("SUPPORTED", "RUNTIME_ABSTAIN", "REFERENCE_ABSTAIN")


def telemetry(event_ms: int, cqi: Any = 7, name: str | None = None) -> bytes:
    return orjson.dumps(
        {
            "format": "wirelessops.telemetry/1", "report_id": name or f"r{event_ms}", "source": "e2:gnb-1",
            "event_time_ms": event_ms, "subject": "cell:1/ue:7",
            "measurements": [{"name": "cqi", "value": cqi, "unit": "1"}],
        }
    )  # fmt: skip


def proposal(name: str = "p-1", at_ms: int = T) -> bytes:
    return orjson.dumps(
        {
            "proposal_id": name, "proposer": "xapp:test", "contract_ref": "test/1", "created_at_ms": at_ms,
            "control_key": "cell:1/ue:7/prb", "bindings": {"cell": "1", "ue": "7"},
            "plan": {"bandwidth": {"value": 8, "unit": "MHz"}},
        }
    )  # fmt: skip


def arrivals(since_ms: int, until_ms: int, every_ms: int = 2_000) -> list[tuple[int, bytes]]:
    """(arrival, message) of a source that reports steadily, 20 ms on the way."""
    return [(event + 20, telemetry(event)) for event in range(since_ms, until_ms, every_ms)]


def recording_of(path: Path, messages: list[tuple[int, bytes]], region: str = "north") -> Path:
    with RecordingWriter(path) as writer:
        for offset, (at_ms, value) in enumerate(messages):
            writer.write(RecordedMessage("wirelessops.telemetry", 0, offset, at_ms, region.encode(), value))
    return path


def said(*words: Any) -> tuple[int, str, str]:
    """Exit code and both outputs of a command."""
    ran = CliRunner().invoke(app, [str(word) for word in words])
    return ran.exit_code, ran.stdout, ran.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Terms, contracts, a recording that ends an hour before T, and the map that the command line made of it."""
    base = tmp_path_factory.mktemp("support")
    (base / "contracts").mkdir()
    (base / "contracts" / "test.json").write_bytes(orjson.dumps(CONTRACT))
    (base / "gate").mkdir()
    (base / "gate" / "test.yaml").write_text(yaml.safe_dump(TERMS))
    recording_of(base / "run.jsonl.gz", arrivals(T - 3_600_000, T - 3_600_000 + 8 * P))
    code, out, err = said(*built(base, base / "gate" / "north.json"))
    assert (code, err) == (0, "")
    assert "admitted   1 of 1 fields in components" in out
    return base


def built(base: Path, out: Path, *more: Any) -> list[Any]:
    return [
        "support", "build", "--terms", base / "gate" / "test.yaml", "--recording", base / "run.jsonl.gz",
        "--contracts", base / "contracts", "--out", out, *more,
    ]  # fmt: skip


@pytest.fixture
def support(folder: Path) -> SupportFolder:
    return load_support(folder / "gate", HERE)


def state_of(messages: list[tuple[int, bytes]], terms: Mapping[str, Any] | None = None) -> RegionState:
    state = RegionState("north", HERE, terms=terms)
    for at_ms, value in messages:
        state.ingest(value, at_ms)
    return state


def decided(state: RegionState, maps: Any = NO_MAPS, t_ms: int = T) -> Outcome:
    document = read_proposal_bytes(proposal())
    stamp = Stamp("guard", 0, "wirelessops.telemetry", 0, Read(0, 0, 0))
    return state.outcome(state.decide(document, t_ms, maps=maps), document, t_ms, stamp)


FULL = arrivals(T - 6 * P, T)


# The decision path.


def test_where_no_gate_is_set_every_byte_is_as_it_was(support: SupportFolder) -> None:
    plain, with_books = state_of(FULL), state_of(FULL, support.terms)
    one, other = decided(plain), decided(with_books, None)
    assert (one.control_value, one.record_value) == (other.control_value, other.record_value)
    assert b'"support":{' not in one.control_value + one.record_value
    assert plain.gated == {}
    gated = decided(with_books, support.newest)
    assert gated.control_value != one.control_value


def test_apply_where_the_network_was_before_and_lately_and_only_there(support: SupportFolder) -> None:
    supported = decided(state_of(FULL, support.terms), support.newest).decision
    assert (supported.action, supported.support and supported.support.state) == ("APPLY", "SUPPORTED")
    begun = decided(state_of(arrivals(T - P - 100, T), support.terms), support.newest).decision
    assert begun.support is not None
    assert (begun.action, begun.support.state) == ("ABSTAIN", "RUNTIME_ABSTAIN")
    assert [v.code for v in begun.violations if v.blocking] == ["support"]
    assert begun.support.short[0].partitions == 2
    assert begun.support.earliest_ms == T + 2 * P
    for none in ({"test/1": None}, NO_MAPS):  # who forgets the maps is let through by no gate
        nowhere = decided(state_of(FULL, support.terms), none).decision
        assert (nowhere.action, nowhere.support and nowhere.support.state) == ("ABSTAIN", "REFERENCE_ABSTAIN")
    expired = decided(state_of(FULL, support.terms), support.newest, T + 3_600_000)
    assert expired.decision.action != "APPLY"


def test_a_repeated_report_is_no_visit(support: SupportFolder) -> None:
    few = arrivals(T - 6 * P, T, every_ms=P)
    again = [(at_ms + 10 * i, value) for at_ms, value in few for i in range(8)]
    for messages in (few, again):
        found = decided(state_of(messages, support.terms), support.newest).decision
        assert found.support is not None
        assert found.support.state == "RUNTIME_ABSTAIN"
        assert found.support.short[0].visits == 3 * (4 - 1)


def test_an_owner_that_read_back_what_the_window_needs_decides_to_the_same_bytes(support: SupportFolder) -> None:
    messages = arrivals(T - 20 * P, T, every_ms=1_700)
    messages += [(T - 3 * P + 500, telemetry(T - 3 * P - 900, name="late"))]
    messages.sort(key=lambda one: one[0])
    back_ms = window_ms(TERMED, HERE["test/1"])
    assert back_ms >= (TERMED.rule.partitions + 1) * P
    for t_ms in (T, T + P // 2, T + P - 1):
        since = t_ms - back_ms
        restarted = state_of([m for m in messages if m[0] >= since], support.terms)
        whole = state_of(messages, support.terms)
        one, other = (decided(state, support.newest, t_ms) for state in (whole, restarted))
        assert one.decision.support == other.decision.support
        assert one.control_value == other.control_value


def test_a_gated_decision_is_decided_again_from_its_record_and_is_valid_by_the_schema(support: SupportFolder) -> None:
    for messages, maps in ((FULL, support.newest), (FULL[-3:], support.newest), (FULL, {"test/1": None})):
        outcome = decided(state_of(messages, support.terms), maps)
        assert verify(orjson.loads(outcome.record_value)) == []
        jsonschema.Draft202012Validator(schemas()["wirelessops.decision/1"]).validate(
            orjson.loads(outcome.control_value)
        )
        assert orjson.loads(outcome.control_value)["support"]["state"] in VERDICTS


def test_documents_of_the_folder_are_valid_by_their_schemas(folder: Path) -> None:
    known = schemas()
    jsonschema.Draft202012Validator(known["wirelessops.support-terms/1"]).validate(TERMS)
    found = orjson.loads((folder / "gate" / "north.json").read_bytes())
    jsonschema.Draft202012Validator(known["wirelessops.support-map/1"]).validate(found)


# The folder.


def test_what_is_wrong_with_the_folder_is_told_with_its_place(folder: Path, tmp_path: Path) -> None:
    good = (folder / "gate" / "north.json").read_bytes()
    terms = yaml.safe_dump(TERMS).encode()
    cases: list[tuple[dict[str, bytes], str]] = [
        ({"a.yaml": terms, "b.json": orjson.dumps(TERMS)}, "b.json: $.contract_id: 'test/1' has terms in"),
        ({"a.json": orjson.dumps(TERMS | {"contract_id": "no/1"})}, "$.contract_id: no contract 'no/1' is here"),
        ({"m.json": good}, "m.json: $.contract_id: no terms of 'test/1' are here"),
        ({"t.yaml": terms, "a.json": good, "b.json": good}, "b.json: $.version: "),
        ({"t.yaml": b"format: wirelessops.support-terms/1\n"}, "t.yaml: $.contract_id: is required"),
        ({"t.yaml": terms, "m.json": good.replace(b'"version":1', b'"version":2')}, "m.json: $.digest: "),
        ({"t.yaml": terms, "m.json": b"{"}, "m.json: $"),
        ({"x.yaml": b"format: other/1\n"}, "x.yaml: $.format: must be"),
        ({"X.YAML": b"format: other/1\n"}, "X.YAML: $.format: must be"),
        ({"t.yaml": terms, "m.json": b"built: 2026-99-01\n"}, "m.json: $: neither JSON nor YAML: month must be"),
        ({"t.yaml": terms, "m.json": b"version: " + b"9" * 5_000}, "m.json: $: neither JSON nor YAML: "),
        ({}, "no terms in the folder"),
    ]
    for number, (files, message) in enumerate(cases):
        place = tmp_path / str(number)
        place.mkdir()
        for name, content in files.items():
            (place / name).write_bytes(content)
        with pytest.raises(SettingsError, match=re.escape(message)):
            load_support(place, HERE)
        with pytest.raises(SettingsError):
            Guard(GuardSettings.embedded("localhost:1", support_dir=place), HERE)
    with pytest.raises(SettingsError, match="no folder of support terms"):
        load_support(tmp_path / "nowhere", HERE)
    os.mkfifo(tmp_path / "0" / "pipe.json")
    (tmp_path / "0" / "folder.yml").mkdir()
    with pytest.raises(SettingsError, match=r"folder\.yml: no file\n.*pipe\.json: no file"):
        load_support(tmp_path / "0", HERE)


def test_a_guard_is_not_started_with_a_bad_folder(tmp_path: Path) -> None:
    for name in ("run", "demo"):
        command = [sys.executable, "-c", "from streams.cli import main; main()", name, "--support-dir", str(tmp_path)]
        ran = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)
        assert (ran.returncode, ran.stdout) == (2, "")
        assert "support: no terms in the folder (*.json, *.yaml, *.yml)" in ran.stderr.splitlines()


def test_the_highest_version_counts_and_terms_without_a_map_are_in_force(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(yaml.safe_dump(TERMS))
    alone = load_support(tmp_path, HERE)
    assert dict(alone.newest) == {"test/1": None}
    first = read_map((folder / "gate" / "north.json").read_bytes())
    second = next_version(first)
    for name, one in (("z.json", first), ("a.json", second)):
        (tmp_path / name).write_bytes(map_json(one))
    both = load_support(tmp_path, HERE)
    assert [one.version for one in both.maps["test/1"]] == [2, 1]
    assert both.newest["test/1"] is both.maps["test/1"][0]
    assert both.of_digest("test/1", first.digest) is both.maps["test/1"][1]


def next_version(found: ReferenceMap) -> ReferenceMap:
    from xapp.support.reference_map import digest_of

    later = replace(found, version=found.version + 1)
    return replace(later, digest=digest_of(later))


# The folder of a running guard.


def test_a_replaced_map_is_taken_up_when_it_is_seen_twice_and_a_bad_one_keeps_the_old(
    folder: Path, tmp_path: Path
) -> None:
    first = read_map((folder / "gate" / "north.json").read_bytes())
    (tmp_path / "t.yaml").write_text(yaml.safe_dump(TERMS))
    (tmp_path / "m.json").write_bytes(map_json(first))
    maps = MapsInForce(tmp_path, HERE)

    def look() -> int | None:
        maps.look(read_folder(tmp_path))
        now = maps.now["test/1"]
        return None if now is None else now.version

    (tmp_path / "m.json").write_bytes(map_json(next_version(first)))
    assert [look(), look()] == [1, 2]
    (tmp_path / "m.json").write_bytes(map_json(next_version(first))[:-20])
    assert [look(), look()] == [2, 2]
    assert maps.refused is not None
    assert "m.json: $" in maps.refused
    (tmp_path / "m.json").write_bytes(map_json(first))
    assert [look(), look(), maps.refused] == [2, 1, None]
    (tmp_path / "t.yaml").write_text(yaml.safe_dump(TERMS | {"drift_partitions": 1}))
    assert [look(), look()] == [1, 1]
    assert maps.refused == "support terms of test/1 changed: they come into force with a restart"
    maps.unreadable("gone")
    assert maps.refused != "gone"
    maps.unreadable("gone")
    assert maps.refused == "gone"
    assert maps.now["test/1"] is not None


def test_a_folder_is_read_beside_the_decisions_and_of_what_it_held_before_nothing_is_read_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = read_map((folder / "gate" / "north.json").read_bytes())
    (tmp_path / "t.yaml").write_text(yaml.safe_dump(TERMS))
    (tmp_path / "1.json").write_bytes(map_json(first))
    maps = MapsInForce(tmp_path, HERE)
    read: list[tuple[int, threading.Thread]] = []
    really = support_folder.read_support_document

    def reading(content: bytes) -> Any:
        found = really(content)
        read.append((found.version if isinstance(found, ReferenceMap) else 0, threading.current_thread()))
        return found

    monkeypatch.setattr(support_watch, "LOOK_S", 0.001)
    monkeypatch.setattr(support_folder, "read_support_document", reading, raising=True)

    async def until_version(version: int) -> None:
        watching = asyncio.create_task(maps.watch())
        async with asyncio.timeout(30):
            while (now := maps.now["test/1"]) is None or now.version != version:  # noqa: ASYNC110 - of files
                await asyncio.sleep(0.001)
        watching.cancel()

    (tmp_path / "2.json").write_bytes(map_json(next_version(first)))
    asyncio.run(until_version(2))
    assert [version for version, _ in read] == [2]
    assert read[0][1] is not threading.main_thread()


# What operators are told.


class _States:
    def __init__(self, *states: RegionState) -> None:
        self.states = states

    def __call__(self) -> tuple[RegionState, ...]:
        return self.states


def test_a_map_is_due_where_it_is_missing_mismatched_expired_or_soon_will(folder: Path) -> None:
    maps = MapsInForce(folder / "gate", HERE)
    found = maps.now["test/1"]
    assert found is not None

    def due(t_ms: int, contracts: Mapping[str, Any] = HERE) -> set[str]:
        (one,) = SupportHealth(maps, contracts, _States(), lambda: t_ms).look()
        return set(one.due)

    life = found.expires_at_ms - found.built_at_ms
    assert due(found.built_at_ms) == set()
    assert due(found.expires_at_ms - life // 20) == {"expiring"}
    assert due(found.expires_at_ms + 1) == {"expired"}
    changed = loaded(CONTRACT | {"max_clock_skew_ms": 10})
    assert due(found.built_at_ms, changed) == {"mismatched"}
    maps._now = {"test/1": None}
    assert due(T) == {"missing"}


def test_more_regions_need_more_drift_before_it_is_told_and_never_more_than_the_gate() -> None:
    rule = {"min_visits": 12, "min_partitions": 14, "partitions": 15}
    paper = load_terms(TERMS | {"rule": rule, "drift_partitions": 15})
    counts = [alarming(paper, regions) for regions in (1, 10, 100, 10_000)]
    assert counts == sorted(counts)
    assert 1 < counts[0] < counts[-1]
    tight = load_terms(TERMS | {"rule": rule, "drift_partitions": 2})
    assert alarming(tight, 10_000) == 2


def test_drift_of_a_region_is_told_and_is_no_violation_before_the_map_is_drifted(tmp_path: Path) -> None:
    """A reference of one load and another cell now: shares of components have moved."""
    terms = load_terms(TERMS | {"drift_partitions": 3})
    steady = arrivals(T - 3_600_000, T - 3_600_000 + 60 * P)
    recorded = recording_of(tmp_path / "long.gz", steady)
    (tmp_path / "gate").mkdir()
    (tmp_path / "gate" / "t.json").write_bytes(terms.document)
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "c.json").write_bytes(orjson.dumps(CONTRACT))
    code, out, err = said(
        "support", "build", "--terms", tmp_path / "gate" / "t.json", "--recording", recorded, "--contracts",
        tmp_path / "c", "--out", tmp_path / "gate" / "m.json",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert "calibrated on" in out
    maps = MapsInForce(tmp_path / "gate", HERE)
    flood = state_of(arrivals(T - 6 * P, T, every_ms=50), maps.terms)
    (one,) = SupportHealth(maps, HERE, _States(flood), lambda: T).look()
    assert one.drifted == TERMED.rule.partitions
    assert "drifted" in one.due
    drifted = decided(flood, maps.now).decision
    assert drifted.support is not None
    assert (drifted.action, drifted.support.state) == ("ABSTAIN", "REFERENCE_ABSTAIN")
    assert "drifted" in drifted.support.because
    calm = state_of(FULL, maps.terms)
    assert SupportHealth(maps, HERE, _States(calm), lambda: T).look()[0].due == {}


def test_a_book_that_began_anew_is_told(folder: Path) -> None:
    maps = MapsInForce(folder / "gate", HERE)
    state, small = state_of([], maps.terms), SupportBook(HERE["test/1"], maps.terms["test/1"], max_held=1)
    state.gated["test/1"] = Gated(state.gated["test/1"].gate, small)
    health = SupportHealth(maps, HERE, _States(state), lambda: T)
    assert health.look()[0].forgotten == 0
    for at_ms, value in FULL:
        state.ingest(value, at_ms)
    assert health.look()[0].forgotten == small.overflows > 0


def test_metrics_and_alarms_say_that_a_map_is_missing_and_that_a_new_one_was_refused(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(yaml.safe_dump(TERMS))
    settings = GuardSettings.embedded("localhost:1", support_dir=tmp_path)
    guard = Guard(settings, HERE, lambda: T)

    def metric(line: str) -> bool:
        return f"ricxapp_wirelessops_{line}" in render(guard)[0].decode().splitlines()

    assert metric('support_refresh_due{contract="test/1",why="missing"} 1.0')
    assert metric('support_verdicts_total{contract="test/1",state="SUPPORTED"} 0.0')
    assert metric("support_maps_refused 0.0")
    alarms = Alarms("wirelessops", "guard", lambda _: None, lambda: None)
    watch = AlarmWatch(alarms, guard, Configuration(settings, guard.tuning), lambda: T, lambda: None)
    watch.look()
    told = {identity.problem: info for identity, info in alarms.book.standing.items()}
    assert told == {Problem.REFRESH_DUE: "test/1: there is no reference map"}
    guard.maps.unreadable("the folder is gone")
    guard.maps.unreadable("the folder is gone")
    watch.look()
    told = {identity.problem: info for identity, info in alarms.book.standing.items()}
    assert told[Problem.MAP_REFUSED] == "the folder is gone"
    assert metric("support_maps_refused 1.0")
    ungated = Guard(GuardSettings.embedded("localhost:1"), HERE)
    assert "support_refresh_due{" not in render(ungated)[0].decode()


def test_explain_and_the_dossier_show_deficit_earliest_time_and_map(support: SupportFolder, tmp_path: Path) -> None:
    outcome = decided(state_of(FULL[-3:], support.terms), support.newest)
    record = orjson.loads(outcome.record_value)
    file = tmp_path / "d.json"
    file.write_bytes(outcome.record_value)
    code, out, _ = said("explain", file)
    assert code == 0
    assert "Support: RUNTIME_ABSTAIN" in out
    assert "cqi of cell:1/ue:7 (cell:1, quarter 1, load any, cqi any) lacks" in out
    assert "It could pass at 2027-01-15 08:00:" in out
    assert "Reference map 'north' version 1, sha256:" in out
    assert "wirelessops verify" not in out
    for forged in (None, record["support"] | {"state": "SUPPORTED"}, record["support"] | {"earliest_ms": 1e300}):
        file.write_bytes(json.dumps(record | {"support": forged}).encode())
        code, again, _ = said("explain", file)
        assert (code, again.startswith(out.rstrip("\n"))) == (0, True), "what follows from its record is told"
        assert "`wirelessops verify` tells what is wrong with it" in again
    shown = dossier(record, {}, {})["support"]
    assert shown["state"] == "RUNTIME_ABSTAIN"
    assert (shown["earliest_ms"], shown["map"]["version"]) == (record["support"]["earliest_ms"], 1)
    newest = support.newest["test/1"]
    assert newest is not None
    assert shown["expires_at_ms"] == newest.expires_at_ms
    plain = orjson.loads(decided(state_of(FULL)).record_value)
    assert dossier(plain, {}, {})["support"] is None


# The command line.


def test_a_map_is_refreshed_and_the_same_buffer_is_a_smoke_test(folder: Path, tmp_path: Path) -> None:
    old = folder / "gate" / "north.json"
    newer = recording_of(tmp_path / "new.gz", arrivals(T - 600_000, T - 600_000 + 9 * P, every_ms=1_500))
    base = ["--contracts", folder / "contracts"]
    code, out, err = said("support", "refresh", old, "--recording", newer, "--out", tmp_path / "n.json", *base)
    assert (code, err) == (0, "")
    refreshed = read_map((tmp_path / "n.json").read_bytes())
    assert (refreshed.version, refreshed.label, refreshed.map_id) == (2, "REFRESHED", "north")
    again = ["--recording", folder / "run.jsonl.gz", "--out", tmp_path / "s.json", *base]
    code, out, err = said("support", "refresh", old, *again)
    assert (code, err) == (0, "")
    assert "SMOKE_TEST" in out
    assert read_map((tmp_path / "s.json").read_bytes()).label == "SMOKE_TEST"


def test_a_map_shows_what_is_admitted_and_what_is_not_and_by_how_much(folder: Path, tmp_path: Path) -> None:
    code, out, _ = said("support", "show", folder / "gate" / "north.json", "--json")
    assert code == 0
    (row,) = json.loads(out)["admissions"]
    assert (row["field"], row["partitions"], row["short"], row["admitted"]) == ("cqi", 4, 0, True)
    thin = recording_of(tmp_path / "thin.gz", arrivals(T - 3_600_000, T - 3_600_000 + 8 * P, every_ms=5_000))
    words = built(folder, tmp_path / "thin.json")
    words[words.index(folder / "run.jsonl.gz")] = thin
    code, out, _ = said(*words)
    assert (code, "with this map in force, nothing under its contract is applied" in out) == (1, True)
    shown = ["support", "show", tmp_path / "thin.json", "--terms", folder / "gate" / "test.yaml"]
    code, out, _ = said(*shown)
    assert code == 0
    assert "cqi in cell:1, quarter 1, load any, cqi any: 0 partitions, 3 too few" in out


def test_what_cannot_be_built_is_one_line_and_nothing_is_overwritten(folder: Path, tmp_path: Path) -> None:
    terms, run = folder / "gate" / "test.yaml", folder / "run.jsonl.gz"
    there = folder / "gate" / "north.json"
    before = there.read_bytes()
    other = tmp_path / "other.yaml"
    other.write_text(yaml.safe_dump(TERMS | {"contract_id": "no/1"}))
    two = tmp_path / "two.gz"
    with RecordingWriter(two) as writer:
        for offset, (region, (at_ms, value)) in enumerate((r, m) for m in FULL for r in (b"north", b"south")):
            writer.write(RecordedMessage("wirelessops.telemetry", 0, offset, at_ms, region, value))
    out = ["--out", tmp_path / "m.json", "--contracts", folder / "contracts"]
    cases: list[tuple[list[Any], str]] = [
        (built(folder, there), "it exists: --force replaces it"),
        (built(folder, run, "--force"), "it is read from"),
        (["support", "build", "--terms", other, "--recording", run, *out], "no contract 'no/1' is here"),
        (["support", "build", "--terms", tmp_path / "x", "--recording", run, *out], "No such file"),
        (["support", "build", "--terms", terms, "--recording", tmp_path / "x", *out], "No such file"),
        (["support", "build", "--terms", terms, "--recording", terms, *out], "begins like none of"),
        (["support", "build", "--terms", terms, "--recording", two, *out], "name one by --region"),
        (["support", "build", "--terms", terms, "--recording", run, "--region", "south", *out], "no report in it"),
        (["support", "refresh", terms, "--recording", run, *out], "not JSON"),
        (["support", "show", tmp_path / "none.json"], "No such file"),
    ]
    for words, message in cases:
        code, printed, err = said(*words)
        assert (code, printed, err.count("\n")) == (2, "", 1), (message, err)
        assert message in err
    assert there.read_bytes() == before
    assert not (tmp_path / "m.json").exists()
    assert said("support", "build", "--terms", terms, "--recording", two, "--region", "south", *out)[0] == 0
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "north.json").write_bytes(before)
    code, _, err = said("support", "show", alone / "north.json")
    assert (code, err.count("\n")) == (2, 1)
    assert "name them by --terms" in err


def test_what_a_recording_or_its_clock_cannot_say_is_told_and_makes_no_map(folder: Path, tmp_path: Path) -> None:
    """Damaged where it begins, of a clock that nobody has, of another kind than a file; and the terms stay."""
    good = (folder / "run.jsonl.gz").read_bytes()
    damaged = tmp_path / "damaged.gz"
    damaged.write_bytes(good[:60] + b"\x00\xff" * 20 + good[100:])
    forged = recording_of(tmp_path / "forged.gz", [(2**53 - 1, telemetry(T))])
    base = ["support", "build", "--terms", folder / "gate" / "test.yaml", "--contracts", folder / "contracts"]
    pipe, out = tmp_path / "pipe", tmp_path / "m.json"
    os.mkfifo(pipe)
    for recording, to, message in (
        (damaged, out, "damaged.gz: damaged gzip: "),
        (forged, out, "forged.gz: no map can be made of it: $.expires_at_ms: "),
        (folder / "run.jsonl.gz", pipe, "pipe: no file, and not to be replaced by one"),
    ):
        code, printed, err = said(*base, "--recording", recording, "--out", to, "--force")
        assert (code, printed, err.count("\n")) == (2, "", 1), err
        assert message in err
    assert not out.exists()
    assert pipe.is_fifo()
    refused = ["--out", folder / "gate" / "test.yaml", "--force", "--contracts", folder / "contracts"]
    code, _, err = said(
        "support", "refresh", folder / "gate" / "north.json", "--recording", folder / "run.jsonl.gz", *refused
    )
    assert (code, read_terms((folder / "gate" / "test.yaml").read_bytes()).digest) == (2, TERMED.digest)
    assert "it is read from" in err
    strange = recording_of(tmp_path / "strange.gz", [*FULL, (T, b"{}"), (T + 1, b"[")])
    code, printed, _ = said(*base, "--recording", strange, "--out", out)
    assert code == 0
    assert printed.splitlines()[-1] == "unreadable 2 places of the recordings: nothing counts of what stands there"


def test_a_map_is_the_same_in_every_process_however_its_recording_is_packed(folder: Path, tmp_path: Path) -> None:
    repacked = tmp_path / "run.gz"
    repacked.write_bytes(gzip.compress(gzip.decompress((folder / "run.jsonl.gz").read_bytes()), 1))
    words = built(folder, tmp_path / "north.json")
    words[words.index(folder / "run.jsonl.gz")] = repacked
    assert said(*words)[0] == 0
    assert (tmp_path / "north.json").read_bytes() == (folder / "gate" / "north.json").read_bytes()


# Replay of foreign recordings.


def scope_terms(**changes: Any) -> dict[str, Any]:
    return {**TERMS, "contract_id": "scope-slice/1", **changes}


def test_a_foreign_recording_is_gated_and_what_is_vetoed_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start = T0 // P * P
    rows = [scope_row(start + 250 * i, granted=10) for i in range(40 * 20)]
    whole = write(tmp_path / "whole.csv", SCOPE_HEADER, rows)
    first = write(tmp_path / "first.csv", SCOPE_HEADER, rows[: 40 * 8])
    gate = tmp_path / "gate"
    gate.mkdir()
    (gate / "t.json").write_bytes(orjson.dumps(scope_terms()))

    def summary(*options: Path) -> dict[str, Any]:
        capsys.readouterr()
        assert replay([whole], as_json=True, support_dir=options[0] if options else None) == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    plain, missing = summary(), summary(gate)
    assert "support" not in plain
    assert plain["actions"]["APPLY"] > 0
    assert missing["support"]["vetoed"] == missing["support"]["would_apply"] == plain["actions"]["APPLY"]
    assert missing["support"]["states"] == {"REFERENCE_ABSTAIN": missing["proposals"]}
    code, _, err = said(
        "support", "build", "--terms", gate / "t.json", "--recording", first, "--out", gate / "m.json"
    )
    assert (code, err) == (0, "")
    packed = gzip.compress(first.read_bytes())
    cut = tmp_path / "cut.csv.gz"
    cut.write_bytes(packed[:-600] + b"\x00\xff" * 300)
    out_of_cut = ["--recording", cut, "--out", tmp_path / "c.json"]
    code, out, _ = said("support", "build", "--terms", gate / "t.json", *out_of_cut)
    assert (code, out.splitlines()[-1][:11]) == (1, "unreadable ")
    gated = summary(gate)
    assert gated["actions"]["APPLY"] > 0
    assert gated["support"]["would_apply"] == plain["actions"]["APPLY"]
    assert gated["actions"]["APPLY"] + gated["support"]["vetoed"] == plain["actions"]["APPLY"]
    assert gated == summary(gate)


# What is shown to read.


def test_the_example_of_terms_is_one_of_the_shipped_contract() -> None:
    found = read_terms((ROOT / "docs" / "examples" / "support-slicing.yaml").read_bytes())
    assert found.contract_id in shipped()
    assert found.load is not None
    assert found.cqi is not None
    assert found.cqi.names <= {n for f in shipped()[found.contract_id].fields.values() for n in f.names}


def test_the_real_recordings_are_gated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As docs/support-gate.md does, with two of its files: a map from the first part, all of it gated."""
    files = sorted((DATA / "tractor").glob("*_metrics.csv"))[-2:]
    if not files:
        pytest.skip("the recordings of tractor are not beside this checkout")
    words: list[Any] = []
    for file in files:
        header, *rows = file.read_text().splitlines()
        part = [row for row in rows if int(row.partition(",")[0]) < 1_690_937_250_000]
        words += ["--recording", write(tmp_path / file.name, header, part)]
    gate = tmp_path / "gate"
    gate.mkdir()
    terms = gate / "support-scope.yaml"
    terms.write_bytes((ROOT / "docs" / "examples" / "support-scope.yaml").read_bytes())
    assert said("support", "build", "--terms", terms, *words, "--out", gate / "m.json")[0] == 0
    capsys.readouterr()
    assert replay(files, as_json=True, support_dir=gate) == 0
    support = json.loads(capsys.readouterr().out)["support"]
    assert set(support["states"]) == set(VERDICTS)
    assert 0 < support["vetoed"] < support["would_apply"]
