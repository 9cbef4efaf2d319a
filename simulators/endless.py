"""A run that does not end: the faults of one chapter after another, and cells that a planning agent has to itself.

The agent plans the single users of two cells, one every ten seconds, without a deadline. There no short fault strikes;
instead the second source of one user after the other reads too much for five minutes at a time, so that a guard has
something to ask a person.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from simulators.faults.base import Fault, FaultLine, Scope
from simulators.faults.conflict import Disagree
from simulators.faults.schedule import Schedule, draw_schedule
from simulators.proposers.handover import HandoverXapp
from simulators.proposers.slicing import Loop, SliceXapp
from simulators.ran.layout import Layout, draw_layout
from simulators.ran.network import Network
from simulators.ran.reports import cell_id, source
from simulators.ran.world import World
from simulators.scenario import CELLS, Scenario, loops_of
from simulators.tally import Tally
from xapp.actuation import ActuatorCheck

AGENT: Final = "agent:planner"
AGENT_CELLS: Final = frozenset({"6", "7"})
AGENT_PERIOD_MS: Final = 10_000
CHAPTER_MS: Final = 60_000
DISPUTE_MS: Final = 300_000
DISPUTE_DB: Final = 8.0
_LULL_MS: Final = 8_000
"""At the end of a chapter: the last blockage of one must have gone before the first of the next one comes."""
_AHEAD_MS: Final = 1_000
_FIRST_PLAN_MS: Final = 2_000
_SINR_OF_O1: Final = ("L1M.RS-SINR",)


class EndlessRun:
    """A scenario whose faults go on. Call `advance_to` before each tick of its network; memory stays bounded.

    Equal seeds, starts (Unix ms) and instants give equal runs.
    """

    def __init__(self, seed: int, start_ms: int, check: ActuatorCheck) -> None:
        layout = draw_layout(seed, CELLS)
        loops = loops_of(layout)
        of_agent = [loop for loop in loops if loop.single and loop.cell in AGENT_CELLS]
        of_xapp = [loop for loop in loops if loop not in of_agent]
        self._layout = layout
        self._seed = seed
        self._disputed = of_agent
        self._chapter = 0
        self._next_chapter_ms = start_ms
        self._dispute = 0
        self._next_dispute_ms = start_ms
        line = FaultLine()
        self._line = line
        period_ms = AGENT_PERIOD_MS * len(of_agent)
        self.scenario = Scenario(
            # Report numbers begin at the time: those of a node that was restarted are no repeats of earlier ones
            network=Network(World(layout, start_ms), line, check, first_report=start_ms),
            line=line,
            proposers=(
                SliceXapp(of_xapp, start_ms),
                HandoverXapp(),
                SliceXapp(of_agent, start_ms + _FIRST_PLAN_MS, period_ms, AGENT, deadline_ms=None),
            ),
            tally=Tally(),
        )
        self.advance_to(start_ms)

    def advance_to(self, now_ms: int) -> None:
        """Bring the faults that are due within a second."""
        while self._next_chapter_ms <= now_ms + _AHEAD_MS:
            schedule = chapter(self._layout, self._next_chapter_ms, self._seed + self._chapter)
            self._line.add(schedule.faults, now_ms)
            self.scenario.network.world.block(schedule.blockages)
            self._chapter += 1
            self._next_chapter_ms += CHAPTER_MS
        while self._next_dispute_ms <= now_ms + _AHEAD_MS:
            self._line.add(self._disputes(self._next_dispute_ms), now_ms)
            self._dispute += 1
            self._next_dispute_ms += DISPUTE_MS

    def _disputes(self, start_ms: int) -> Sequence[Fault]:
        """Of every other user of the agent, in turn."""
        return [dispute(loop, start_ms) for loop in self._disputed[self._dispute % 2 :: 2]]


def chapter(layout: Layout, start_ms: int, seed: int) -> Schedule:
    """The faults of one chapter, none of them on what the agent plans with."""
    drawn = draw_schedule(layout, start_ms, (CHAPTER_MS - _LULL_MS) / 1000, seed)
    return Schedule(
        faults=tuple(
            fault
            for fault in drawn.faults
            if fault.scope.cell not in AGENT_CELLS or fault.scope.services == {"mobility"}
        ),
        blockages=tuple(one for one in drawn.blockages if cell_id(one.cell) not in AGENT_CELLS),
    )


def dispute(loop: Loop, start_ms: int) -> Fault:
    """The trace collector reads more SINR of a user than there is, for `DISPUTE_MS`."""
    scope = Scope(
        loop.cell,
        frozenset({"kpm"}),
        start_ms,
        start_ms + DISPUTE_MS,
        sources=frozenset({source("o1", "kpm", loop.cell)}),
        users=frozenset(loop.users),
    )
    return Disagree(scope, harmful=True, names=_SINR_OF_O1, offset=DISPUTE_DB)
