"""Settings of the guard service, validated where they come in."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from streams.broker import EMBEDDED_FETCH_WAIT_MS, EMBEDDED_MESSAGE_BYTES
from streams.kafka_security import KafkaSecurity
from streams.settings_errors import SettingsError as SettingsError
from streams.topics import DEFAULT_PREFIX, PREFIX_PATTERN, Topics, topics
from xapp.contract import Contract, ContractError
from xapp.contract_loading import read_contract
from xapp.contracts import shipped

FETCH_WAIT_MS = 5
"""A real broker answers as soon as there is something; the embedded one lets every fetch wait so long."""

CARRIED_MESSAGE_BYTES = 16_000_000
"""Largest message we try to write: a value of 10 MB in base64, and its envelope."""

LogLevel = Literal["debug", "info", "warning", "error"]


class GuardSettings(BaseModel):
    """Everything the guard service is configured by.

    `fetch_wait_ms`: how long a fetch waits at the broker; `max_message_bytes`: the largest message written;
    `partitions`, `replication`: of topics that do not exist yet; `history_ms`, `history_count`: bounds of the
    evidence store; `connect_timeout_s`: bound on reaching the broker and
    reading what it holds of the past; `stop_timeout_s`: bound on stopping; `web_port` of None: no web.

    `security`: of every connection to Kafka; `alone`: this guard owns all partitions, without a group or transactions
    (the embedded broker has neither); `session_timeout_ms`: a worker not heard of for so long loses its partitions;
    `hold_ms`: how long a proposal without a deadline may wait for its final decision; `escalation_ms`: how long one
    that is an ESCALATE may wait for a person (longer than `hold_ms` only while at most half of `queue_limit` are open);
    `queue_limit`: proposals of one partition that may wait;
    `retry_budget_per_s`: requests that one source may get; `signing_key`: PEM of the Ed25519 key that signs decisions;
    `unsigned`: sign none; `trusted_keys`: public keys of all guards of the prefix, past ones too: decisions that none
    of them signed are not taken up (none: all that stand in the log are).

    `contracts_dir`: a folder of contracts; `shipped_contracts`: whether those that are shipped count beside them.
    `support_dir`: a folder of support terms and reference maps (docs/support-gate.md); None: no support gate.
    `operator_tokens`: file of the operators that may act by the web (None: nobody may); `alarm_url`: where alarms are
    posted, such as `http://service-ricplt-alarmmanager-http:8080/ric/v1/alarms` (None: nowhere); `log_level`: the least
    level that is logged.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    bootstrap_servers: Annotated[str, Field(min_length=1)]
    prefix: Annotated[str, Field(pattern=PREFIX_PATTERN)] = DEFAULT_PREFIX
    guard_name: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,100}$")] = "guard"
    contracts_dir: Path | None = None
    shipped_contracts: bool = True
    support_dir: Path | None = None
    web_host: str = "127.0.0.1"
    web_port: Annotated[int, Field(ge=1, le=65535)] | None = None
    history_ms: Annotated[int, Field(ge=1_000, le=86_400_000)] = 60_000
    history_count: Annotated[int, Field(ge=1, le=1_000_000)] = 4_096
    partitions: Annotated[int, Field(ge=1, le=1_000)] = 4
    replication: Annotated[int, Field(ge=1, le=100)] = 1
    fetch_wait_ms: Annotated[int, Field(ge=1, le=5_000)] = FETCH_WAIT_MS
    max_message_bytes: Annotated[int, Field(ge=10_000)] = CARRIED_MESSAGE_BYTES
    connect_timeout_s: Annotated[float, Field(gt=0, le=600)] = 15.0
    stop_timeout_s: Annotated[float, Field(gt=0, le=60)] = 5.0
    security: KafkaSecurity = KafkaSecurity()
    alone: bool = False
    session_timeout_ms: Annotated[int, Field(ge=1_000, le=300_000)] = 10_000
    hold_ms: Annotated[int, Field(ge=0, le=600_000)] = 2_000
    escalation_ms: Annotated[int, Field(ge=0, le=600_000)] = 600_000
    queue_limit: Annotated[int, Field(ge=1, le=1_000_000)] = 2_000
    retry_budget_per_s: Annotated[float, Field(gt=0, le=10_000, allow_inf_nan=False)] = 5.0
    signing_key: Path | None = None
    trusted_keys: tuple[Path, ...] = ()
    unsigned: bool = False
    operator_tokens: Path | None = None
    alarm_url: Annotated[str, Field(pattern=r"^https?://[^\s/?#]+(/\S*)?$")] | None = None
    log_level: LogLevel = "info"

    @model_validator(mode="after")
    def _signs_or_does_not(self) -> Self:
        if self.unsigned and self.signing_key is not None:
            raise ValueError("signing_key: not with unsigned")
        return self

    @classmethod
    def of(cls, **options: Any) -> Self:
        """Settings from options. Raises SettingsError naming each option at fault."""
        try:
            return cls(**options)
        except ValidationError as error:
            raise SettingsError.of(error) from None

    @classmethod
    def embedded(cls, bootstrap_servers: str, **options: Any) -> Self:
        """Settings that suit the embedded broker at the given address."""
        return cls.of(
            **{
                "bootstrap_servers": bootstrap_servers,
                "fetch_wait_ms": EMBEDDED_FETCH_WAIT_MS,
                "max_message_bytes": EMBEDDED_MESSAGE_BYTES,
                "alone": True,
                **options,
            }
        )

    @property
    def topics(self) -> Topics:
        """The topics of this deployment."""
        return topics(self.prefix)


def load_contracts(folder: Path | None, with_shipped: bool = True) -> Mapping[str, Contract]:
    """The contracts of a folder (`contract_files`), and those that are shipped unless they are left out, by id.

    Raises SettingsError naming file and place of every fault: a file that cannot be read, a bad contract, an id that
    two contracts share; and where there is no contract at all.
    """
    found = dict(shipped()) if with_shipped else {}
    faults: list[str] = []
    for path in [] if folder is None else contract_files(folder):
        try:
            contract = read_contract_file(path)
        except SettingsError as error:
            faults.append(str(error))
            continue
        if contract.contract_id in found:
            faults.append(f"{path}: $.contract_id: {contract.contract_id!r} is taken by another contract")
        found[contract.contract_id] = contract
    if faults:
        raise SettingsError("\n".join(faults))
    if not found:
        raise SettingsError(f"contracts: none: the shipped ones are left out, and {folder or 'no folder'} has others")
    return found


def contract_files(folder: Path) -> Sequence[Path]:
    """`*.json`, `*.yaml` and `*.yml` of a folder, by name. Raises SettingsError where there is no such folder."""
    if not folder.is_dir():
        raise SettingsError(f"{folder}: no such folder of contracts")
    return sorted(path for path in folder.iterdir() if path.suffix in {".json", ".yaml", ".yml"})


def read_contract_file(path: Path) -> Contract:
    """The contract of a file, JSON or YAML. Raises SettingsError, one line a fault: file, JSON path, reason."""
    try:
        return read_named_contract(path.read_bytes(), str(path))
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror or error}") from error


def read_named_contract(data: bytes, name: str) -> Contract:
    """The contract in these bytes. Raises SettingsError, one line a fault: `name`, JSON path, reason."""
    try:
        return read_contract(data)
    except ContractError as error:
        raise SettingsError("\n".join(f"{name}: {where}: {reason}" for where, reason in error.errors)) from error


def check_port(host: str, port: int) -> None:
    """Raises SettingsError where the address cannot be bound, before anything is started."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise SettingsError(f"web: cannot listen on {host}:{port}: {error.strerror or error}") from error
