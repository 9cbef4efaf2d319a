"""The operators' switches: which are in force (pure, a fold of the log), and writing one to every partition.

A switch without a region is for all regions of the partition that it stands in, so it is written to each. Of one scope
the newest in the log counts; of both scopes the stricter.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import orjson
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from pydantic import ValidationError

from streams.headers import cloud_event
from streams.messages import SWITCH_FORMAT, SWITCHED_FORMAT, SwitchedMessage, SwitchMessage
from streams.topics import Topics, partition_of
from xapp.contract_loading import document_errors
from xapp.model import SWITCH_MODES, Switch

WRITE_S: Final = 10.0
"""How long writing a switch may take, all partitions together."""


class BadSwitch(ValueError):
    """A message that is no switch for its key: the place and the reason."""


class Kept(NamedTuple):
    """A switch of one partition: its scope (None: all regions), its offset in `answers`, and what it says."""

    region: str | None
    offset: int
    message: SwitchMessage


def is_switch(document: Mapping[str, Any]) -> bool:
    """Whether a message on `answers` means to be a switch."""
    return document.get("format") == SWITCH_FORMAT


def read_switch(document: Mapping[str, Any], region: str | None) -> SwitchMessage:
    """Read a switch. `region`: what the message's key names, None without a key. Raises BadSwitch."""
    try:
        message = SwitchMessage.model_validate(document)
    except ValidationError as error:
        (path, reason), *_ = document_errors(error)
        raise BadSwitch(f"{path}: {reason}") from error
    if message.region is not None and message.region != region:
        said = "has no key" if region is None else f"has the key {region!r}"
        raise BadSwitch(f"$.region: {message.region!r}, but the message {said}")
    return message


def kept_document(kept: Kept, partition: int) -> bytes:
    """What `controls` keeps of a switch, unsigned (`SwitchedMessage`)."""
    region, offset, message = kept
    kept_as = SwitchedMessage(partition=partition, region=region, offset=offset, switch=message)
    return orjson.dumps(kept_as.model_dump(exclude={"signature"}))


def read_kept(document: Mapping[str, Any], partition: int) -> Kept | None:
    """A switch that `controls` keeps; None for what is none, or is another partition's."""
    if document.get("format") != SWITCHED_FORMAT:
        return None
    try:
        kept = SwitchedMessage.model_validate(document)
    except ValidationError:
        return None
    return Kept(kept.region, kept.offset, kept.switch) if kept.partition == partition else None


class Switches:
    """The switches of one partition. `kept`: those of its former owners, in the order of the log."""

    def __init__(self, kept: Iterable[Kept] = ()) -> None:
        self._held: dict[str | None, Kept] = {each.region: each for each in kept}
        self._changed: dict[str | None, Kept] = {}

    def take(self, kept: Kept) -> None:
        """One was read: of its scope it is the newest now."""
        self._held[kept.region] = self._changed[kept.region] = kept

    def changed(self) -> list[Kept]:
        """The newest of each scope of which one was taken since this was asked last."""
        found = list(self._changed.values())
        self._changed.clear()
        return found

    def in_force(self, region: str) -> Switch | None:
        """What counts for a region: the stricter of its own and that for all; None where both are live."""
        found = (_switch(self._held[scope].message) for scope in (None, region) if scope in self._held)
        return min(filter(None, found), key=lambda s: SWITCH_MODES.index(s.mode), default=None)

    def listed(self) -> list[tuple[str | None, Switch]]:
        """Every switch that is not live, with its scope: that for all regions first, then by region."""
        found = [(scope, _switch(kept.message)) for scope, kept in self._held.items()]
        named = [(scope, switch) for scope, switch in found if switch is not None]
        return sorted(named, key=lambda item: (item[0] is not None, item[0] or ""))


def _switch(message: SwitchMessage) -> Switch | None:
    if message.mode == "live":
        return None
    return Switch(message.mode, message.operator, message.reason, message.at_ms, message.switch_id)


@dataclass(frozen=True, slots=True)
class Written:
    """Where a switch was written, and where that is not known: not acknowledged in time, or refused (and why)."""

    partitions: tuple[int, ...]
    failed: tuple[int, ...]
    why: str | None = None


def partitions_for(region: str | None, partitions: Sequence[int]) -> tuple[int, ...]:
    """The partitions that a switch is to be written to. `partitions`: all there are."""
    return tuple(sorted(partitions)) if region is None else (partition_of(region, partitions),)


async def write_switch(
    producer: AIOKafkaProducer, topics: Topics, partitions: Sequence[int], message: SwitchMessage,
    timeout_s: float = WRITE_S,
) -> Written:  # fmt: skip
    """Write a switch to `answers`, to each partition that it is for, all at once, within `timeout_s`.

    `partitions`: all of the topic. What is told as failed may have been written all the same: write it again, a switch
    that is repeated says nothing new.
    """
    key = None if message.region is None else message.region.encode()
    value = orjson.dumps(message.model_dump())
    headers = cloud_event(
        event_id=message.switch_id, source=f"/wirelessops/operator/{message.operator}", kind=message.format,
        time_ms=message.at_ms,
    )  # fmt: skip
    to = partitions_for(message.region, partitions)

    async def write(partition: int) -> str | None:
        try:
            async with asyncio.timeout(timeout_s):
                await producer.send_and_wait(topics.answers, value, key=key, partition=partition, headers=headers)
        except (KafkaError, OSError, TimeoutError) as error:
            return str(error) or type(error).__name__
        return None

    faults = dict(zip(to, await asyncio.gather(*map(write, to)), strict=True))
    return Written(
        partitions=tuple(p for p in to if faults[p] is None),
        failed=tuple(p for p in to if faults[p] is not None),
        why=next(filter(None, faults.values()), None),
    )
