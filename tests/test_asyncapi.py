"""The AsyncAPI document: the committed one is the generated one, it is valid, and its examples are what it says."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import tarfile
from dataclasses import fields
from pathlib import Path
from typing import Any

import jsonschema
import orjson
import pytest

from streams.asyncapi import document
from streams.commands.schemas import schemas as export
from streams.kafka_acls import EVERYTHING, READS, WRITES
from streams.message_examples import examples
from streams.messages import schemas
from streams.topics import Topics
from xapp.faithfulness import verify
from xapp.signing import KnownKeys, Signer, check_document, open_envelope

ROOT = Path(__file__).parents[1]
SPECS = "@asyncapi/specs@6.11.1"
SPECS_SHA512 = "A3WBLqAKGoJ2+6FWFtpjBlCQ1oFCcs4GxF7zsIGvNqp/klGUHjlA3aAcZ9XMMpLGE8zPeYDz2x9FmO6DSuKraQ=="
"""The integrity that npm's registry states for that version."""


@pytest.fixture(scope="module")
def official() -> dict[str, Any]:
    """The AsyncAPI Initiative's own JSON Schema of 3.0.0, fetched once through npm into the cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wirelessops"
    kept = cache / "asyncapi-specs-6.11.1.tgz"
    if not kept.exists():
        if shutil.which("npm") is None:
            pytest.skip("the official schema of AsyncAPI is to be had from npm, which is not here")
        cache.mkdir(parents=True, exist_ok=True)
        result = subprocess.run(["npm", "pack", SPECS], cwd=cache, capture_output=True, timeout=120, check=False)
        if result.returncode != 0:
            pytest.skip(f"{SPECS} is not to be had: {result.stderr.decode().strip()[-200:]}")
    assert base64.b64encode(hashlib.sha512(kept.read_bytes()).digest()).decode() == SPECS_SHA512
    with tarfile.open(kept) as package:
        member = package.extractfile("package/schemas/3.0.0-without-$id.json")
        assert member is not None
        found: dict[str, Any] = orjson.loads(member.read())
        return found


def resolved(schema: Any, root: dict[str, Any]) -> Any:
    """A schema of the document that stands for itself: what it refers to stands under its own `components`."""
    return {**schema, "components": root["components"]}


def test_the_committed_document_is_the_generated_one(tmp_path: Path) -> None:
    export(tmp_path)
    assert (ROOT / "docs" / "asyncapi.json").read_bytes() == (tmp_path / "asyncapi.json").read_bytes(), (
        "docs/asyncapi.json: copy it anew from `wirelessops schemas --out DIR`"
    )


def test_it_is_valid_by_the_official_schema(official: dict[str, Any]) -> None:
    faults = list(jsonschema.Draft7Validator(official).iter_errors(document()))
    assert [(list(fault.path), fault.message[:200]) for fault in faults] == []
    bent = document()
    next(iter(bent["channels"].values()))["adress"] = "x"
    assert list(jsonschema.Draft7Validator(official).iter_errors(bent))


def test_every_reference_in_it_leads_somewhere() -> None:
    made = document()
    waiting: list[Any] = [made]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if isinstance(part.get("$ref"), str):
                place: Any = made
                for step in part["$ref"].removeprefix("#/").split("/"):
                    place = place[step]
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part


def test_every_topic_and_every_message_is_in_it() -> None:
    made = document()
    assert [channel["address"] for channel in made["channels"].values()] == [
        "{prefix}" + f.name.replace("_", "-") for f in fields(Topics)
    ]
    carried = {name for channel in made["channels"].values() for name in channel["messages"]}
    assert carried == made["components"]["messages"].keys()
    of_folders = {"wirelessops.contract/1", "wirelessops.support-terms/1", "wirelessops.support-map/1"}
    inside = {*of_folders, "wirelessops.checkpoint/1"}  # that one of an envelope
    assert {m["name"] for m in made["components"]["messages"].values()} == schemas().keys() - inside


def test_a_role_sends_and_receives_what_kafka_lets_it() -> None:
    operations = document()["operations"].values()
    said = {(op["tags"][0]["name"], op["action"], op["channel"]["$ref"].split("/")[-1]) for op in operations}
    allowed = {
        (role, action, topic.replace("_", "-"))
        for action, table in (("send", WRITES), ("receive", READS))
        for role, topics in table.items()
        for topic in ([f.name for f in fields(Topics)] if topics == EVERYTHING else topics)
    }
    assert said == allowed
    assert len(operations) == len(allowed)


@pytest.mark.parametrize("name", sorted(document()["components"]["messages"]))
def test_each_example_is_valid_by_the_schema_beside_it(name: str) -> None:
    made = document()
    message = made["components"]["messages"][name]
    (example,) = message["examples"]
    jsonschema.Draft202012Validator(resolved(message["payload"], made)).validate(example["payload"])
    jsonschema.Draft202012Validator(resolved(message["headers"], made)).validate(example["headers"])
    jsonschema.Draft202012Validator(schemas()[message["name"]]).validate(example["payload"])


def test_the_examples_that_a_guard_writes_are_signed_and_faithful() -> None:
    told = {example.schema: example.value for example in examples()}
    known = KnownKeys([Signer.of_seed(bytes(32)).public_key])
    for schema in ("wirelessops.decision/1", "wirelessops.control/1", "wirelessops.switched/1"):
        assert check_document(told[schema], known) is None
    for schema in ("wirelessops.record/1", "wirelessops.checkpoint-envelope/1"):
        assert open_envelope(orjson.dumps(told[schema])).verify(known) is None
    record = orjson.loads(open_envelope(orjson.dumps(told["wirelessops.record/1"])).payload)
    assert verify(record) == []
    assert (record["action"], told["wirelessops.decision/1"]["action"]) == ("APPLY", "APPLY")
    checkpoint = orjson.loads(open_envelope(orjson.dumps(told["wirelessops.checkpoint-envelope/1"])).payload)
    jsonschema.Draft202012Validator(schemas()["wirelessops.checkpoint/1"]).validate(checkpoint)
