"""The xApp descriptor `config-file.json`, as O-RAN SC's onboarder takes it and mounts it at `/opt/ric/config`.

Its member `controls` holds settings of the guard by name; the other members are for the platform. What it may hold is
`deploy/xapp/schema.json`, which `controls_schema()` writes: the onboarder checks `controls` against that file
(ric-plt-appmgr, xapp_onboarder/api/onboard.py).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from streams.settings import GuardSettings
from streams.settings_errors import SettingsError
from xapp.contract_loading import document_errors

XAPP_NAME: Final = "wirelessops"
"""What the xApp is called where no descriptor names it."""

KAFKA_CONFIG: Final = "kafka_config"
"""The one control that is no setting: the file that says how to reach Kafka (docs/kafka.md)."""

NO_CONTROLS: Final = frozenset({"security", "alone"})
"""Settings that no descriptor holds: secrets (they come from the file of `kafka_config`); the embedded broker's."""

PLATFORM_MEMBERS: Final = (
    "name", "xapp_name", "version", "vendor", "containers", "livenessProbe", "readinessProbe", "messaging", "rmr",
    "metrics",
)  # fmt: skip
"""Members that the platform knows; others are read by nobody, and are shown to nobody."""


def _fields() -> dict[str, FieldInfo]:
    return {name: field for name, field in GuardSettings.model_fields.items() if name not in NO_CONTROLS}


_ADAPTERS: Final[Mapping[str, TypeAdapter[Any]]] = {
    **{name: TypeAdapter(field.rebuild_annotation()) for name, field in _fields().items()},
    KAFKA_CONFIG: TypeAdapter(Path | None),
}
_PATHS: Final = frozenset({"contracts_dir", "support_dir", "signing_key", "operator_tokens", KAFKA_CONFIG})

CONTROLS: Final = tuple(_ADAPTERS)
"""Names of all controls."""


@dataclass(frozen=True, slots=True)
class Descriptor:
    """What was read of one: `controls`, valid values of settings by name; `platform`, the members for the platform."""

    name: str
    controls: Mapping[str, Any]
    platform: Mapping[str, Any]


def read_descriptor(data: bytes, path: Path) -> Descriptor:
    """Read `config-file.json`. Relative paths in its controls begin at its folder.

    Raises SettingsError, one line a fault: file, JSON path, reason. Never what was given, which may be a password.
    """
    try:
        document = json.loads(data, object_pairs_hook=_each_once, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{path}: $: no JSON: {error}") from None
    if not isinstance(document, dict):
        raise SettingsError(f"{path}: $: an object is required")
    faults: list[tuple[str, str]] = []
    name: Any = document.get("xapp_name", document.get("name", XAPP_NAME))
    if not isinstance(name, str) or not name:
        faults.append(("$.xapp_name", "a text is required"))
    controls: dict[str, Any] = {}
    given = document.get("controls", {})
    if isinstance(given, dict):
        controls, found = read_controls(given, path.parent, "$.controls")
        faults += found
    else:
        faults.append(("$.controls", "an object is required"))
    if faults:
        raise SettingsError("\n".join(f"{path}: {where}: {why}" for where, why in faults))
    return Descriptor(name, controls, {member: document[member] for member in PLATFORM_MEMBERS if member in document})


def read_controls(
    given: Mapping[str, Any], folder: Path, place: str
) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Values of settings by name, and the faults: JSON path and reason. A number in quotes is no number.

    Relative paths begin at `folder`; `place` is the JSON path of what is given.
    """
    controls: dict[str, Any] = {}
    faults: list[tuple[str, str]] = []
    for name, value in given.items():
        where = f"{place}.{name}"
        if name not in _ADAPTERS:
            faults.append((where, f"there is no such control{_meant(name)}"))
            continue
        try:
            read = _ADAPTERS[name].validate_json(json.dumps(value), strict=True)
        except ValidationError as error:
            faults += [(where + path.removeprefix("$"), reason) for path, reason in document_errors(error)]
        else:
            controls[name] = _resolved(name, read, folder)
    return controls, faults


def controls_schema() -> dict[str, Any]:
    """The JSON Schema, draft-07, of `controls`: made of the settings themselves, so that neither says what the other
    does not.
    """
    model = GuardSettings.model_json_schema()
    properties = {name: dict(model["properties"][name]) for name in _fields()}
    properties[KAFKA_CONFIG] = TypeAdapter(Path | None).json_schema() | {"default": None}
    for schema in properties.values():
        schema.pop("title", None)
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": "#/controls",
        "title": "Controls of WirelessOps: settings of `wirelessops run` by name",
        "type": "object",
        "additionalProperties": False,
        "properties": dict(sorted(properties.items())),
    }


def _meant(name: str) -> str:
    """What may be meant by a name that no control has; the option `--contracts` is `contracts_dir` here."""
    near = get_close_matches(name.lstrip("-").replace("-", "_").lower(), CONTROLS, n=1)
    return f"; is {near[0]} meant?" if near else ""


def _resolved(name: str, value: Any, folder: Path) -> Any:
    if name == "trusted_keys":
        return tuple(folder / path for path in value)
    return folder / value if name in _PATHS and value is not None else value


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} stands there twice")
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
