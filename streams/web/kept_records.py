"""Records that the page keeps by itself, where the embedded broker drops them within seconds.

The newest ones, compressed, up to a number of bytes; those of proposals that are still open outlast all others. On a
real Kafka nothing is kept: its topic holds every record for as long as its retention.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from streams.observing import Published

KEPT_BYTES: Final = 64_000_000
"""Of all that is kept, compressed."""
_ENTRY_BYTES: Final = 500
"""What an entry takes besides its bytes, about."""
_LEVEL: Final = 1
"""Of the compression: a fourth of the bytes for about 0.1 ms a record; more effort gains little."""

_Proposal = tuple[int, str, str]
"""A partition, its region, and the id of a proposal there."""
_Place = tuple[int, str]
"""A partition, and the CloudEvents id of a record there."""


class KeptRecords:
    """An observer of the guard that keeps the records of its decisions while `wanted` says so.

    `limit` in bytes holds for open and closed ones together; at it the oldest of the closed go first.
    """

    def __init__(self, wanted: Callable[[], bool], limit: int = KEPT_BYTES) -> None:
        self._wanted = wanted
        self._limit = limit
        self._open: OrderedDict[_Proposal, _Place] = OrderedDict()
        self._closed: OrderedDict[_Place, None] = OrderedDict()
        self._packed: dict[_Place, bytes] = {}
        self.size = 0
        """Bytes that are kept now, compressed."""

    @property
    def wanted(self) -> bool:
        """Whether the broker is one that drops records at once."""
        return self._wanted()

    def published(self, published: Published) -> None:
        """See `streams.observing.Observer`."""
        if not self._wanted():
            return
        place = (published.partition, published.event_id)
        proposal = (published.partition, published.region, published.decision.proposal_id)
        before = self._open.pop(proposal, None)
        if before is not None:
            self._closed[before] = None
        if place in self._packed:  # published once more by an owner that began anew
            self._drop(place)
        packed = zlib.compress(published.record, _LEVEL)
        self._packed[place] = packed
        self.size += len(packed) + _ENTRY_BYTES
        if published.final:
            self._closed[place] = None
        else:
            self._open[proposal] = place
        while self.size > self._limit:
            self._drop(next(iter(self._closed or self._open.values())))

    def find(self, partition: int, event_id: str) -> bytes | None:
        """The DSSE envelope of the record with that CloudEvents id in a partition, where it is kept."""
        packed = self._packed.get((partition, event_id))
        return None if packed is None else zlib.decompress(packed)

    def _drop(self, place: _Place) -> None:
        self.size -= len(self._packed.pop(place)) + _ENTRY_BYTES
        if place in self._closed:
            del self._closed[place]
        else:
            del self._open[next(proposal for proposal, held in self._open.items() if held == place)]
