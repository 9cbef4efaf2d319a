"""The command line that the rules are checked through (section 8), run as a user runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest
from episodes import clean, observation


def wirelessops(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", "from streams.cli import main; main()", *arguments],
        input=stdin, capture_output=True, timeout=60, check=False,
    )  # fmt: skip


def assure(document: Any) -> subprocess.CompletedProcess[bytes]:
    return wirelessops("assure", "-", stdin=document if isinstance(document, bytes) else orjson.dumps(document))


def test_assure_prints_one_decision_and_verify_finds_it_faithful(tmp_path: Path) -> None:
    file = tmp_path / "episode.json"
    file.write_bytes(orjson.dumps(clean()))
    result = wirelessops("assure", str(file))
    assert (result.returncode, result.stderr) == (0, b"")
    assert orjson.loads(result.stdout)["action"] == "APPLY"
    verified = wirelessops("verify", "-", stdin=result.stdout)
    assert (verified.returncode, verified.stdout.strip()) == (0, b"faithful")
    edited = wirelessops("verify", "-", stdin=result.stdout.replace(b'"APPLY"', b'"HOLD"', 1))
    assert edited.returncode == 1
    assert edited.stdout.startswith(b"action:")


def bent(**changes: Any) -> dict[str, Any]:
    return clean() | changes


DEEP = b"[" * 200 + b"]" * 200
INVALID: list[tuple[Any, str]] = [
    (b"{", "$: not JSON"),
    (b"\xff\xfe", "$: not JSON"),
    (b"[1]", "$: must be an object"),
    (bent(colour="red"), "$.colour: unknown key"),
    (bent(format="x"), "$.format: "),
    (bent(episode_id=7), "$.episode_id: "),
    (bent(decided_at_ms=1_800_000_000), "$.decided_at_ms: 1800000000 is no time in milliseconds since 1970"),
    (bent(decided_at_ms=1_800_000_000_000_000), "$.decided_at_ms: "),
    (bent(decided_at_ms=True), "$.decided_at_ms: must be an integer"),
    (bent(contract_ref="slicing/1"), "$.contract: "),
    (bent(sources={"rt": {"status": "degraded"}}), "$.sources.rt.status: "),
    (bent(sources={"rt": {"status": "outage", "retries_left": -1}}), "$.sources.rt.retries_left: "),
    (bent(proposal=[]), "$.proposal: "),
    (bent(proposal={"proposal_id": 7}), "$.proposal.proposal_id: "),
    (bent(proposal={}), "$.proposal.proposal_id: "),
    (bent(observations={}), "$.observations: "),
    (bent(observations=[observation("a", "cqi", [1], "rt")]), "$.observations[0].value: "),
    (bent(observations=[observation("a", "cqi", 1, "rt", colour="red")]), "$.observations[0].colour: unknown key"),
    (bent(observations=[observation("a", "cqi", 1, "rt", quality="fine")]), "$.observations[0].quality: "),
    (bent(observations=[observation("a", "cqi", 1, "rt", version=1.5)]), "$.observations[0].version: "),
    (bent(observations=[observation("a", "cqi", 1, "rt")] * 2), "$.observations[1].id: "),
    (orjson.dumps(clean()).replace(b'"value":5,', b'"value":NaN,'), "$.observations[1].value: is no finite number"),
    (orjson.dumps(clean()).replace(b'"value":5,', b'"value":1e999,'), "$.observations[1].value: is no finite number"),
    (orjson.dumps(clean()).replace(b'"e-1"', b'"\\ud800"'), "$.episode_id: is no valid Unicode"),
    (orjson.dumps(clean()).replace(b'"e-1"', DEEP), "$: nested deeper than 100"),
    (b"[" * 101 + b"]" * 101, "$: nested deeper than 100"),
    (b"[" * 10_000 + b"]" * 10_000, "$: nested deeper than 100"),
    (b'"' + b"x" * 10_000_000 + b'"', "$: larger than 10 MB"),
]


@pytest.mark.parametrize(("document", "said"), INVALID)
def test_an_invalid_episode_is_exit_2_with_one_line_that_names_the_place(document: Any, said: str) -> None:
    result = assure(document)
    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr.decode().startswith(said)
    assert result.stderr.count(b"\n") == 1


def test_what_is_no_number_inside_the_proposal_is_decided_as_malformed_and_verifies() -> None:
    result = assure(orjson.dumps(clean()).replace(b'"value":10,"unit":"MHz"}}', b'"value":NaN,"unit":"MHz"}}'))
    decision = orjson.loads(result.stdout)
    assert (result.returncode, decision["action"]) == (0, "ABSTAIN")
    assert decision["violations"][0]["detail"] == "$.proposal.plan.bandwidth.value: is no finite number"
    assert wirelessops("verify", "-", stdin=result.stdout).returncode == 0


def test_jsonl_decides_the_good_lines_and_numbers_the_bad_ones() -> None:
    good = orjson.dumps(clean())
    result = wirelessops("assure", "--jsonl", "-", stdin=good + b"\n\n{}\n" + good + b"\r\nnope")
    lines = [orjson.loads(line) for line in result.stdout.splitlines()]
    assert result.returncode == 1
    assert [line.get("action") or line["line"] for line in lines] == ["APPLY", 3, "APPLY", 5]
    assert wirelessops("assure", "--jsonl", "-", stdin=good + b"\n").returncode == 0


def test_a_line_that_is_too_long_is_one_bad_line_and_the_next_is_decided() -> None:
    result = wirelessops("assure", "--jsonl", "-", stdin=b"x" * 25_000_000 + b"\n" + orjson.dumps(clean()))
    lines = [orjson.loads(line) for line in result.stdout.splitlines()]
    assert [line.get("action") or line["line"] for line in lines] == [1, "APPLY"]


def test_view_shows_what_would_be_admitted_and_needs_no_proposal() -> None:
    episode = clean()
    del episode["proposal"]
    episode["observations"][0]["value"] = 99
    view = orjson.loads(wirelessops("view", "-", stdin=orjson.dumps(episode)).stdout)
    assert view["fields"]["capacity"] | {"subject": None} == {
        "value": 60.0, "unit": "MHz", "source": "oam", "observation": "o3", "age_ms": 100, "limit_ms": 60_000,
        "subject": None, "critical": True, "violations": [],
    }  # fmt: skip
    assert view["fields"]["cqi"]["value"] is None
    assert view["fields"]["cqi"]["violations"] == ["out_of_range"]


def test_contract_check_and_files_that_are_not_there(tmp_path: Path) -> None:
    file = tmp_path / "contract.json"
    file.write_bytes(orjson.dumps(clean()["contract"]))
    assert wirelessops("contract", "check", str(file)).returncode == 0
    file.write_bytes(orjson.dumps(clean()["contract"] | {"contract_id": 7, "colour": 1}))
    result = wirelessops("contract", "check", str(file))
    assert (result.returncode, result.stdout) == (2, b"")
    lines = result.stderr.decode().splitlines()
    assert lines[0] == f"{file}: $.colour: unknown key", "before what may follow from it"
    assert all(line.startswith(f"{file}: $.") for line in lines)
    assert len(lines) > 1
    for command in (("assure",), ("view",), ("verify",), ("contract", "check")):
        missing = wirelessops(*command, str(tmp_path / "none.json"))
        assert (missing.returncode, missing.stdout) == (2, b"")
        assert b"none.json: No such file" in missing.stderr


def test_contract_check_takes_files_and_folders_which_may_be_loaded_together(tmp_path: Path) -> None:
    def write(name: str, contract_id: str, **over: object) -> Path:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(orjson.dumps({**clean()["contract"], "contract_id": contract_id, **over}))
        return tmp_path / name

    alone, folder = write("a.json", "a/1"), write("more/b.yaml", "b/1").parent
    write("more/c.yml", "c/1")
    (folder / "readme.txt").write_text("no contract")
    result = wirelessops("contract", "check", str(alone), str(folder))
    assert (result.returncode, result.stderr) == (0, b"")
    assert [line.split(b":")[0] for line in result.stdout.splitlines()] == [b"a/1", b"b/1", b"c/1"]
    again, bad = write("again.json", "a/1"), write("bad.json", "d/1", control=7)
    result = wirelessops("contract", "check", "-", str(again), str(bad), stdin=alone.read_bytes())
    assert result.returncode == 2
    assert result.stderr.decode().splitlines() == [
        f"{again}: $.contract_id: 'a/1' is taken by standard input",
        *(line for line in result.stderr.decode().splitlines() if line.startswith(f"{bad}: $.control: ")),
    ]
    (tmp_path / "empty").mkdir()
    assert b"empty: no contract" in wirelessops("contract", "check", str(tmp_path / "empty")).stderr
    noted = wirelessops("contract", "check", str(write("own.json", "slicing/1")))
    assert (noted.returncode, b"--no-shipped-contracts" in noted.stderr) == (0, True)


def test_prov_export_names_the_evidence_the_activity_and_the_agents() -> None:
    decision = assure(clean()).stdout
    prov = orjson.loads(wirelessops("record", "export", "--prov", "-", stdin=decision).stdout)
    identity = orjson.loads(decision)["decision_id"]
    assert prov["entity"][f"w:decision/{identity}"]["w:action"] == "APPLY"
    assert {f"w:observation/o{i}" for i in range(1, 5)} <= prov["entity"].keys()
    assert {"w:source/rt", "w:proposer/xapp:slicer", "w:agent/assure"} <= prov["agent"].keys()
    entities, activities = prov["entity"].keys(), prov["activity"].keys()
    for relation in prov["wasDerivedFrom"].values():
        assert set(relation.values()) <= entities, "every end of a relation is declared"
    for relation in (*prov["used"].values(), *prov["wasGeneratedBy"].values()):
        assert relation["prov:activity"] in activities
        assert relation["prov:entity"] in entities
