"""Who may do what on Kafka, as a table, and how to give it to a cluster.

Each role is one or more principals (users of SASL, or subjects of certificates). What the table does not allow is
refused by a broker with an authorizer: above all, nobody but the guard writes decisions, records and checkpoints.
Reading and writing include asking what a topic is like (Kafka's DESCRIBE).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple

from streams.topics import DEFAULT_PREFIX, topics

Role = Literal["guard", "xapp", "ran", "operator", "auditor"]
Resource = Literal["topic", "group", "transactional_id"]
Operation = Literal["READ", "WRITE", "CREATE", "DESCRIBE", "DESCRIBE_CONFIGS"]

EVERYTHING: Final = ("*",)

READS: Final[Mapping[Role, tuple[str, ...]]] = {
    "guard": EVERYTHING,
    "xapp": ("control", "views"),
    "ran": ("control", "requests"),
    "operator": ("control", "records"),
    "auditor": EVERYTHING,
}
_BY_THE_GUARD: Final = (
    "control", "controls", "records", "checkpoints", "requests", "outcomes", "dead_letters", "views", "status",
    "answers",
)  # fmt: skip
WRITES: Final[Mapping[Role, tuple[str, ...]]] = {
    "guard": _BY_THE_GUARD,
    "xapp": ("proposals", "queries"),
    "ran": ("telemetry", "outcomes"),
    "operator": ("answers",),
    "auditor": (),
}
"""Topics by their field in `Topics`. The guard may write outcomes too, the effects that it watches for, and answers,
for an operator whose token it checked (docs/operator-page.md).
"""

_APPLY_S: Final = 30.0
_OPTIONS: Final = {"topic": "--topic", "group": "--group", "transactional_id": "--transactional-id"}


class Acl(NamedTuple):
    """The role may do this with the resource of that name, or (`prefixed`) with all whose names begin so."""

    role: Role
    resource: Resource
    name: str
    prefixed: bool
    operation: Operation


def acls(prefix: str = DEFAULT_PREFIX) -> tuple[Acl, ...]:
    """The table of one deployment."""
    return (*_of_topics(prefix), *_of_the_guard(prefix))


def _of_topics(prefix: str) -> Iterator[Acl]:
    names = topics(prefix)
    for role, fields in READS.items():
        for name in names.names() if fields == EVERYTHING else [getattr(names, field) for field in fields]:
            yield Acl(role, "topic", name, False, "READ")
    for role, fields in WRITES.items():
        for field in fields:
            yield Acl(role, "topic", getattr(names, field), False, "WRITE")


def _of_the_guard(prefix: str) -> Iterator[Acl]:
    """It makes the topics that are missing, joins groups, and is known to Kafka by one name a partition."""
    for name in topics(prefix).names():
        for operation in _MAKES:
            yield Acl("guard", "topic", name, False, operation)
    yield Acl("guard", "group", prefix or "*", bool(prefix), "READ")
    for operation in _TRANSACTS:
        yield Acl("guard", "transactional_id", f"{prefix}guard.", True, operation)


_MAKES: Final[tuple[Operation, ...]] = ("CREATE", "DESCRIBE_CONFIGS")
_TRANSACTS: Final[tuple[Operation, ...]] = ("WRITE", "DESCRIBE")


def apply_acls(
    librdkafka_options: Mapping[str, Any], principals: Mapping[Role, Iterable[str]], prefix: str = DEFAULT_PREFIX
) -> int:
    """Give the table to the cluster, for principals such as `User:guard`; how many rules. Blocks.

    `librdkafka_options`: of an administrator, `bootstrap.servers` among them. Rules that are there already stay, and
    so do those of anybody else. Raises `confluent_kafka.KafkaException`.
    """
    from confluent_kafka.admin import (
        AclBinding,
        AclOperation,
        AclPermissionType,
        AdminClient,
        ResourcePatternType,
        ResourceType,
    )

    bindings = [
        AclBinding(
            ResourceType[acl.resource.upper()],
            acl.name,
            ResourcePatternType.PREFIXED if acl.prefixed else ResourcePatternType.LITERAL,
            principal,
            "*",
            AclOperation[acl.operation],
            AclPermissionType.ALLOW,
        )
        for acl in acls(prefix)
        for principal in principals.get(acl.role, ())
    ]
    if bindings:
        admin = AdminClient(dict(librdkafka_options))  # must outlive its requests
        for future in admin.create_acls(bindings).values():
            future.result(_APPLY_S)
    return len(bindings)


def acl_commands(principals: Mapping[Role, Iterable[str]], prefix: str = DEFAULT_PREFIX) -> Iterator[str]:
    """The table as the arguments of Kafka's own `kafka-acls.sh`, one rule a line."""
    for acl in acls(prefix):
        for principal in principals.get(acl.role, ()):
            pattern = " --resource-pattern-type prefixed" if acl.prefixed else ""
            operation = acl.operation.title().replace("_", "")
            yield (
                f"--add --allow-principal '{principal}' --operation {operation} "
                f"{_OPTIONS[acl.resource]} '{acl.name}'{pattern}"
            )
