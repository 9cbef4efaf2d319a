"""Plays recorded reports to the guard's own decision path, on the recorded clock and on no other.

Proposals come at a cadence, for each thing that reports have shown; where reports stop they go on, at intervals that
double (an xApp that backs off, and a gap of months that costs a few dozen proposals), so that stale evidence meets
proposals too. A proposal made at c is decided at c + `THINK_MS`: what arrives in between counts, what was seen before
may be gone.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import orjson

from streams.deciding import Outcome, Read, RegionState, Stamp, read_proposal_bytes
from streams.replay.formats import Format
from streams.replay.proposers import Sight
from streams.replay.recorded import Arrival
from streams.support_folder import NO_SUPPORT, SupportFolder

THINK_MS: Final = 136
"""Median from input to control of published ColO-RAN xApps."""
DEADLINE_MS: Final = 1_000
"""A proposal's life: the upper end of the near-RT loop (O-RAN: 10 ms to 1 s)."""
TAIL: Final = 4
"""Proposals for each thing after the recording's last report, at doubling intervals."""

REGION: Final = "replay"


@dataclass(slots=True)
class _Thing:
    """One thing to control: what was last seen of it, and when it is proposed on next."""

    sight: Sight
    next_ms: int
    interval_ms: int
    seen_since: bool = True
    number: int = 0


class Player:
    """One run over one recording, gated by the newest maps of `support`. `play` may be called once."""

    def __init__(self, form: Format, support: SupportFolder = NO_SUPPORT) -> None:
        self.state = RegionState(REGION, form.load_contracts(), terms=support.terms)
        self._maps = support.newest
        self._form = form
        self._things: dict[str, _Thing] = {}
        self._ticks: list[tuple[int, str]] = []
        self._pending: deque[tuple[int, bytes]] = deque()
        self._reports = 0
        self._decisions = 0
        self.proposals = 0

    def play(self, arrivals: Iterable[Arrival]) -> Iterator[Outcome]:
        """The decision on each proposal, in the order they were decided. `arrivals` in order of arrival."""
        last_ms = 0
        for arrival in arrivals:
            last_ms = arrival.ingest_time_ms
            yield from self._until(last_ms)
            self.state.take_report(arrival.report, last_ms)
            self._reports += 1
            for sight in self._form.see(arrival.report):
                self._see(sight, last_ms)
        end_ms = last_ms + self._form.cadence_ms * (2**TAIL - 1)
        yield from self._until(end_ms + THINK_MS + 1, last_tick_ms=end_ms)

    def _see(self, sight: Sight, now_ms: int) -> None:
        thing = self._things.get(sight.key)
        if thing is None:
            thing = self._things[sight.key] = _Thing(sight, now_ms, self._form.cadence_ms)
            heapq.heappush(self._ticks, (now_ms, sight.key))
            return
        thing.sight, thing.seen_since = sight, True
        if thing.next_ms > now_ms + self._form.cadence_ms:
            thing.next_ms = now_ms + self._form.cadence_ms
            heapq.heappush(self._ticks, (thing.next_ms, sight.key))

    def _until(self, end_ms: int, last_tick_ms: int | None = None) -> Iterator[Outcome]:
        """All proposals made, and all decided, before `end_ms`."""
        bound = end_ms - 1 if last_tick_ms is None else last_tick_ms
        while True:
            tick_ms = self._ticks[0][0] if self._ticks and self._ticks[0][0] <= bound else end_ms
            decide_ms = self._pending[0][0] if self._pending else end_ms
            if min(tick_ms, decide_ms) >= end_ms:
                return
            if decide_ms <= tick_ms:
                yield self._decide(*self._pending.popleft())
            else:
                self._tick(*heapq.heappop(self._ticks))

    def _tick(self, now_ms: int, key: str) -> None:
        thing = self._things[key]
        if thing.next_ms != now_ms:
            return  # an appointment that a new report brought forward
        self._pending.append((now_ms + THINK_MS, self._proposal(thing, now_ms)))
        thing.interval_ms = self._form.cadence_ms if thing.seen_since else thing.interval_ms * 2
        thing.seen_since = False
        thing.next_ms = now_ms + thing.interval_ms
        heapq.heappush(self._ticks, (thing.next_ms, key))

    def _proposal(self, thing: _Thing, now_ms: int) -> bytes:
        wish = self._form.wish(thing.sight)
        thing.number += 1
        self.proposals += 1
        return orjson.dumps(
            {
                "proposal_id": f"{thing.sight.key}/{thing.number}",
                "proposer": f"replay:{self._form.name}",
                "created_at_ms": now_ms,
                "deadline_ms": now_ms + DEADLINE_MS,
                "contract_ref": wish.contract_id,
                "bindings": thing.sight.bindings,
                "control_key": wish.control_key,
                "plan": wish.plan,
            }
        )

    def _decide(self, t_ms: int, proposal: bytes) -> Outcome:
        read = Read(self._reports, 0, 0)
        stamp = Stamp(guard="replay", sequence=self._decisions, topic="recording", partition=0, read=read)
        self._decisions += 1
        document = read_proposal_bytes(proposal)
        return self.state.outcome(self.state.decide(document, t_ms, maps=self._maps), document, t_ms, stamp)
