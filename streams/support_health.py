"""Whether the reference maps in force are due for a refresh (docs/support-gate.md, "Drift"); never a fault of the net.

A map is due where it is missing, is for another contract or other terms, has expired or soon will, or where the network
has drifted from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import Final

from streams.deciding import RegionState
from streams.support_watch import MapsInForce
from xapp.contract import Contract
from xapp.support.building import ALPHA
from xapp.support.gate import MAP_FAULTS, map_faults
from xapp.support.reference_map import ReferenceMap
from xapp.support.terms import Terms

WHY: Final[tuple[str, ...]] = ("missing", *MAP_FAULTS, "expiring", "drifted")
"""Why a map may be due."""
_SOON: Final = 10
"""It expires soon where less than a tenth of its life is left."""


@dataclass(frozen=True, slots=True)
class MapHealth:
    """How the map of one contract stands. `drifted`: partitions of the window that lie beyond its limit, in the region
    where most do; `due`: why it is due (`WHY`) → what a person is told; `forgotten`: how often a book of visits of our
    regions held too much and began anew.
    """

    contract_id: str
    map: ReferenceMap | None
    drifted: int
    due: Mapping[str, str]
    forgotten: int


class SupportHealth:
    """Looks at the maps in force. `states`: of the regions that are ours; `clock` gives Unix ms."""

    def __init__(
        self,
        maps: MapsInForce,
        contracts: Mapping[str, Contract],
        states: Callable[[], Iterable[RegionState]],
        clock: Callable[[], int],
    ) -> None:
        self._maps = maps
        self._contracts = contracts
        self._states = states
        self._clock = clock
        self._drift: dict[tuple[str, str], tuple[int, str, int]] = {}  # (contract, region) → partition, map, drifted

    def look(self) -> Sequence[MapHealth]:
        """How each stands now, by contract id. A region's drift is looked at once a partition."""
        now_ms = self._clock()
        states = list(self._states()) if self._maps.terms else []
        return [self._of(contract_id, states, now_ms) for contract_id in self._maps.terms]

    def _of(self, contract_id: str, states: Sequence[RegionState], now_ms: int) -> MapHealth:
        terms, found = self._maps.terms[contract_id], self._maps.now[contract_id]
        forgotten = sum(state.gated[contract_id].book.overflows for state in states)
        if found is None:
            return MapHealth(contract_id, None, 0, {"missing": "there is no reference map"}, forgotten)
        drifted = [(self._drifted(state, terms, found, now_ms), state.region) for state in states]
        most, region = max(drifted, default=(0, ""))
        due = dict(_due(found, terms, self._contracts[contract_id], now_ms))
        if most >= alarming(terms, len(drifted)):
            due["drifted"] = (
                f"{most} of the last {terms.rule.partitions} partitions of region {region} lie beyond its drift limit"
            )
        return MapHealth(contract_id, found, most, due, forgotten)

    def _drifted(self, state: RegionState, terms: Terms, found: ReferenceMap, now_ms: int) -> int:
        key, index = (terms.contract_id, state.region), now_ms // terms.partition_ms
        held = self._drift.get(key)
        if held is None or held[:2] != (index, found.digest):
            held = self._drift[key] = (index, found.digest, state.drifted(found, now_ms))
        return held[2]


def alarming(terms: Terms, regions: int) -> int:
    """So many partitions of a window must lie beyond the limit before it is told: fewer do so by chance, in some of
    so many regions, more often than in `ALPHA` of the windows: the level of the limit is the alarm's, too. Never more
    than make the map drifted.
    """
    window = terms.rule.partitions
    chance = [comb(window, k) * ALPHA**k * (1 - ALPHA) ** (window - k) for k in range(window + 1)]
    enough = (k for k in range(1, window + 1) if max(1, regions) * sum(chance[k:]) <= ALPHA)
    return min(next(enough, window), terms.drift_partitions)


def _due(found: ReferenceMap, terms: Terms, contract: Contract, now_ms: int) -> Iterable[tuple[str, str]]:
    left_ms = found.expires_at_ms - now_ms
    yield from map_faults(found.claim, terms, contract, now_ms)
    if 0 <= left_ms * _SOON < found.expires_at_ms - found.built_at_ms:
        yield "expiring", f"its reference map expires in {left_ms / 3_600_000:.1f} h"
