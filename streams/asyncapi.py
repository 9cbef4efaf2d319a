"""The AsyncAPI 3.0 document of all topics: who sends what to which, in which form, with an example of each message.

Generated from the table of access (`kafka_acls`), the wire models and `message_examples`; `docs/asyncapi.json` is what
it gives. Specification: https://www.asyncapi.com/docs/reference/specification/v3.0.0
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from importlib.metadata import version
from typing import Any, Final

from streams.guard_kafka import topic_config
from streams.kafka_acls import EVERYTHING, READS, WRITES
from streams.message_examples import Example, examples
from streams.messages import schemas
from streams.settings import GuardSettings
from streams.topics import DEFAULT_PREFIX, Topics

REGION_KEY: Final = "the region: a group of nodes whose evidence and controls belong together"

KEYS: Final[Mapping[str, str]] = {
    "controls": 'JSON text: `[region, control_key]` of a control, `{"switch": region or null}` of a switch',
    "answers": REGION_KEY + "; none for a switch that is for all regions, which is written to every partition",
    "status": "the partition's number, as text",
    "checkpoints": "none: the partition is that of the records",
    "dead_letters": "none",
}
"""Topic → what the key of its messages is, where it is not the region."""

PURPOSE: Final[Mapping[str, str]] = {
    "telemetry": "Reports of sources, and what sources say of themselves.",
    "proposals": "Control actions that automation asks for.",
    "control": "Decisions, signed. Read with isolation.level=read_committed.",
    "records": "The full record of every decision, in an envelope; written before the decision is released.",
    "requests": "Requests for telemetry, on RETRY.",
    "outcomes": "What became of controls that were released.",
    "answers": "Operators' answers to escalations, and their switches: the audit log of what people did.",
    "checkpoints": "How far the chain of records of each partition goes.",
    "controls": "The newest control of each key, and the switches in force.",
    "dead_letters": "Messages that could not be used, why, and their bytes.",
    "queries": "Questions to the evidence store.",
    "views": "The answers to queries.",
    "status": "What the owner of each partition says of it, once a second.",
}

_SCHEMAS: Final = "#/components/schemas/"
_CONTENT: Final = "application/json"
_SERVER: Final = "localhost:9092"
_SETTINGS: Final = GuardSettings(bootstrap_servers=_SERVER)


def document() -> dict[str, Any]:
    """The document, as JSON. Raises KeyError where a topic has no purpose or no message here."""
    told = examples()
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "WirelessOps",
            "version": version("wirelessops"),
            "description": "A guard between automation and the radio network, on Kafka. Values are JSON; CloudEvents "
            "1.0 attributes travel as headers (binary content mode). Times are Unix ms, UTC.",
            "license": {"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
        },
        "defaultContentType": _CONTENT,
        "servers": {
            "kafka": {
                "host": _SERVER,
                "protocol": "kafka",
                "description": "Any Kafka 3 or newer; with TLS and SASL as docs/kafka.md says.",
            }
        },
        "channels": {channel_of(f.name): _channel(f.name, told) for f in fields(Topics)},
        "operations": dict(_operations(told)),
        "components": {
            "messages": {_name(example.schema): _message(example) for example in told},
            "schemas": dict(sorted(_schemas().items())),
        },
    }


def channel_of(topic: str) -> str:
    """The name of a topic without its prefix, by its field in `Topics`."""
    return topic.replace("_", "-")


def _channel(topic: str, told: tuple[Example, ...]) -> dict[str, Any]:
    carried = [_name(example.schema) for example in told if example.topic == topic]
    if not carried:
        raise KeyError(f"no message goes over {topic}")
    kafka: dict[str, Any] = {"bindingVersion": "0.5.0"}
    created = topic_config(_SETTINGS, getattr(_SETTINGS.topics, topic))
    if "cleanup.policy" in created:
        kafka["topicConfiguration"] = {"cleanup.policy": [created["cleanup.policy"]]}
    return {
        "address": "{prefix}" + channel_of(topic),
        "description": PURPOSE[topic],
        "parameters": {"prefix": {"default": DEFAULT_PREFIX, "description": "of one deployment (--prefix)"}},
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in carried},
        "bindings": {"kafka": kafka},
    }


def _operations(told: tuple[Example, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
    """What each role may do, as Kafka is told to let it (docs/kafka.md)."""
    every = tuple(f.name for f in fields(Topics))
    for action, table in (("send", WRITES), ("receive", READS)):
        for role, topics in table.items():
            for topic in every if topics == EVERYTHING else topics:
                channel = channel_of(topic)
                yield (
                    f"{role}-{action}-{channel}",
                    {
                        "action": action,
                        "channel": {"$ref": f"#/channels/{channel}"},
                        "summary": f"{role} {action}s {channel}",
                        "tags": [{"name": role}],
                    },
                )


def _message(example: Example) -> dict[str, Any]:
    headers = {f"ce_{name}": value for name, value in example.attributes.items()} | {"content-type": _CONTENT}
    key = KEYS.get(example.topic, REGION_KEY)
    return {
        "name": example.schema,
        "contentType": _CONTENT,
        "headers": _headers(example),
        "payload": {"$ref": _SCHEMAS + _name(example.schema)},
        "bindings": {"kafka": {"key": {"type": "string", "description": key}, "bindingVersion": "0.5.0"}},
        "examples": [{"name": _name(example.schema), "headers": headers, "payload": example.value}],
    }


def _headers(example: Example) -> dict[str, Any]:
    constant = {"ce_specversion": "1.0", "ce_type": example.attributes["type"], "content-type": _CONTENT}
    free = {name: {"type": "string"} for name in ("ce_id", "ce_source")}
    return {
        "type": "object",
        "properties": {
            **{name: {"type": "string", "const": value} for name, value in constant.items()},
            **free,
            "ce_time": {"type": "string", "format": "date-time"},
        },
    }


def _name(schema: str) -> str:
    """A schema's name as a key of components: `wirelessops.decision/1` gives `decision.v1`."""
    return schema.removeprefix("wirelessops.").replace("/", ".v")


def _schemas() -> dict[str, Any]:
    """Every schema, and what they share, by name; references lead to the components of this document."""
    found: dict[str, Any] = {}
    for name, schema in schemas().items():
        own = {key: value for key, value in schema.items() if key != "$defs"}
        for key, part in {**schema.get("$defs", {}), _name(name): own}.items():
            moved = _moved(part)
            if found.setdefault(key, moved) != moved:
                raise ValueError(f"two schemas have the name {key}")
    return found


def _moved(part: Any) -> Any:
    """A schema with its references moved; a `discriminator` is OpenAPI's, and says nothing that `oneOf` does not."""
    if isinstance(part, list):
        return [_moved(item) for item in part]
    if not isinstance(part, dict):
        return part
    return {
        key: value.replace("#/$defs/", _SCHEMAS) if key == "$ref" and isinstance(value, str) else _moved(value)
        for key, value in part.items()
        if key != "discriminator" or not isinstance(value, dict) or "propertyName" not in value
    }
