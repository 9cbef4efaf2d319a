"""The xApp descriptor says what the guard is: valid for its schema and the onboarder's, the same as the settings."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from guard_rig import guarded
from jsonschema import Draft7Validator, ValidationError
from prometheus_client.parser import text_string_to_metric_families

from streams.descriptor import CONTROLS, controls_schema, read_controls, read_descriptor
from streams.metrics import PREFIX, render

ROOT = Path(__file__).parent.parent
FILE = ROOT / "deploy/xapp/config-file.json"
DESCRIPTOR: dict[str, Any] = json.loads(FILE.read_text())
SCHEMA: dict[str, Any] = json.loads((ROOT / "deploy/xapp/schema.json").read_text())

SEMVER = r"^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$"
PROBE = {
    "properties": {
        "httpGet": {"required": ["path", "port"], "properties": {"port": {"type": "integer"}}},
        "initialDelaySeconds": {"type": "integer"},
        "periodSeconds": {"type": "integer"},
    },
    "required": ["httpGet", "initialDelaySeconds", "periodSeconds"],
}
ONBOARDER = {
    "type": "object",
    "required": ["xapp_name", "version"],
    "properties": {
        "xapp_name": {"type": "string"},
        "version": {"type": "string", "pattern": SEMVER},
        "containers": {
            "type": "array",
            "items": {
                "required": ["name", "image"],
                "properties": {
                    "image": {
                        "required": ["registry", "name", "tag"],
                        "properties": {"registry": {"pattern": r"^[A-Za-z0-9.-]+\.[A-Za-z]+(:\d+)?$"}},
                    },
                    "command": {"type": "array"},
                    "args": {"type": "array"},
                },
            },
        },
        "livenessProbe": PROBE,
        "readinessProbe": PROBE,
        "messaging": {
            "required": ["ports"],
            "properties": {
                "ports": {
                    "type": "array",
                    "items": {
                        "required": ["name", "container", "port"],
                        "dependencies": {
                            "txMessages": ["rxMessages", "policies"],
                            "rxMessages": ["txMessages", "policies"],
                            "policies": ["rxMessages", "txMessages"],
                        },
                    },
                }
            },
        },
        "metrics": {
            "type": "array",
            "items": {
                "required": ["objectName", "objectInstance", "name", "type", "description"],
                "additionalProperties": {"type": "string"},
            },
        },
        "controls": SCHEMA,
    },
}
"""What xapp_onboarder asks of a descriptor (ric-plt-appmgr, helm_controller/xapp_schema.py); `controls`: our schema."""


def test_the_schema_is_the_one_that_the_settings_make() -> None:
    assert controls_schema() == SCHEMA, "write streams.descriptor.controls_schema() to deploy/xapp/schema.json again"


def test_the_descriptor_is_valid_for_its_schema_and_for_the_onboarder() -> None:
    Draft7Validator.check_schema(SCHEMA)
    Draft7Validator(SCHEMA).validate(DESCRIPTOR["controls"])
    Draft7Validator(ONBOARDER).validate(DESCRIPTOR)


def test_the_guard_reads_it() -> None:
    read = read_descriptor(FILE.read_bytes(), FILE)
    assert read.name == "wirelessops"
    assert read.controls == DESCRIPTOR["controls"]


@pytest.mark.parametrize("name", CONTROLS)
def test_schema_and_guard_agree_on_what_a_control_may_be(name: str) -> None:
    schema = SCHEMA["properties"][name]
    candidates: list[Any] = [None, True, False, -1, 0, 1, 2, 1.5, 10**7, 10**9, [], ["x"], {}]
    candidates += ["", "x", "a b", "http://h:1/a", "http://", "ftp://h", "x" * 300]
    for branch in schema.get("anyOf", [schema]):
        bounds = [bound for key, bound in branch.items() if key.endswith(("inimum", "aximum"))]
        candidates += [bound + step for bound in bounds for step in (-1, 0, 1)]
        candidates += branch.get("enum", [])
    candidates.append(schema.get("default", "kafka:9092"))
    for value in candidates:
        _, faults = read_controls({name: value}, Path("/"), "$")
        try:
            Draft7Validator(SCHEMA).validate({name: value})
        except ValidationError:
            assert faults, f"the guard takes {name} = {value!r}, and the schema does not"
        else:
            assert not faults, f"the schema takes {name} = {value!r}: {faults}"


def test_the_ports_of_probes_and_of_messaging_are_the_one_that_the_guard_listens_on() -> None:
    port = DESCRIPTOR["controls"]["web_port"]
    assert DESCRIPTOR["controls"]["web_host"] == "0.0.0.0"
    assert [(p["name"], p["port"]) for p in DESCRIPTOR["messaging"]["ports"]] == [("http", port)]
    for probe, path in (("livenessProbe", "ric/v1/health/alive"), ("readinessProbe", "ric/v1/health/ready")):
        assert DESCRIPTOR[probe]["httpGet"] == {"path": path, "port": port}


def test_its_version_is_that_of_the_distribution() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert (DESCRIPTOR["version"], DESCRIPTOR["containers"][0]["image"]["tag"]) == (version, version)


async def test_its_metrics_are_those_that_a_guard_exposes() -> None:
    async with guarded() as (_, guard):
        families = list(text_string_to_metric_families(render(guard)[0].decode()))
    exposed = [
        {
            "objectName": "wirelessops",
            "objectInstance": family.name.removeprefix(PREFIX),
            "name": family.name + ("_total" if family.type == "counter" else ""),
            "type": family.type,
            "description": family.documentation,
        }
        for family in families
        if family.name.startswith(PREFIX)
    ]
    assert DESCRIPTOR["metrics"] == exposed
