"""Topic names, and the partition a region belongs to.

One prefix for all topics of one deployment; `docs/architecture.md` ("Topics") says what each carries.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final

DEFAULT_PREFIX: Final = "wirelessops."
MAX_REGION_LENGTH: Final = 249
"""Longest region name: the bound Kafka sets on names of its own."""

PREFIX_PATTERN: Final = r"^[A-Za-z0-9._-]{0,200}$"
"""Of a prefix: what a Kafka topic may begin with."""
_MURMUR_M: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF


class NoRegion(ValueError):
    """A message whose key does not name a region."""


@dataclass(frozen=True, slots=True)
class Topics:
    """Full topic names. Built by `topics()`."""

    telemetry: str
    proposals: str
    control: str
    records: str
    requests: str
    outcomes: str
    answers: str
    checkpoints: str
    controls: str
    dead_letters: str
    queries: str
    views: str
    status: str

    def names(self) -> tuple[str, ...]:
        """Every name, in the order of the fields."""
        return tuple(str(getattr(self, f.name)) for f in fields(self))

    def keyed_by_region(self) -> tuple[str, ...]:
        """The topics that must have equally many partitions."""
        return tuple(name for name in self.names() if name != self.dead_letters)


def topics(prefix: str = DEFAULT_PREFIX) -> Topics:
    """The topics of a deployment. Raises ValueError for a prefix that no Kafka topic may start with."""
    if not re.fullmatch(PREFIX_PATTERN, prefix):
        raise ValueError(f"prefix {prefix!r}: only letters, digits, '.', '_' and '-', at most 200")
    return Topics(**{f.name: prefix + f.name.replace("_", "-") for f in fields(Topics)})


def region_of(key: bytes | None) -> str:
    """The region a message key names. Raises NoRegion for no key, or one that is no short UTF-8 text."""
    if not key:
        raise NoRegion("no region: the key of a message, or the parameter region, must name it")
    try:
        region = key.decode()
    except UnicodeDecodeError as error:
        raise NoRegion("the message key, a region, is not UTF-8") from error
    if len(region) > MAX_REGION_LENGTH or not region.isprintable():
        raise NoRegion(f"the message key, a region, must be at most {MAX_REGION_LENGTH} printable characters")
    return region


def partition_of(region: str, partitions: Sequence[int]) -> int:
    """The partition of a region: the same choice as the Java client's and aiokafka's default partitioner.

    `partitions`: the ids of all partitions of the topic, at least one.
    """
    ordered = sorted(partitions)
    return ordered[(_murmur2(region.encode()) & 0x7FFFFFFF) % len(ordered)]


def _murmur2(data: bytes) -> int:
    """MurmurHash2 with Kafka's seed (`org.apache.kafka.common.utils.Utils.murmur2`), as an unsigned 32-bit value."""
    length = len(data)
    h = 0x9747B28C ^ length
    whole = length & ~3
    for i in range(0, whole, 4):
        k = int.from_bytes(data[i : i + 4], "little") * _MURMUR_M & _MASK
        k ^= k >> 24
        h = (h * _MURMUR_M & _MASK) ^ (k * _MURMUR_M & _MASK)
    if length > whole:
        h ^= int.from_bytes(data[whole:], "little")
        h = h * _MURMUR_M & _MASK
    h ^= h >> 13
    h = h * _MURMUR_M & _MASK
    return h ^ (h >> 15)
