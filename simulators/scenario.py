"""One run, put together: network, faults, proposers, and the truth about each proposal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from simulators.faults.base import FaultLine, Kind
from simulators.faults.schedule import draw_schedule
from simulators.proposers.base import Draft, Proposer
from simulators.proposers.handover import HandoverXapp
from simulators.proposers.slicing import Loop, SliceXapp
from simulators.ran.actuator import Order, Outcome, read_order
from simulators.ran.layout import MOBILE, SINGLE, SLICES, Layout, draw_layout
from simulators.ran.network import Network
from simulators.ran.reports import cell_id, user_id
from simulators.ran.world import World
from simulators.tally import Tally
from simulators.truth import is_safe
from xapp.actuation import ActuatorCheck
from xapp.signing import KnownKeys

CELLS: Final = 7
UNSIGNED: Final = ActuatorCheck(KnownKeys(), allow_unsigned=True)
"""The check of a network whose guard signs nothing: a rehearsal, without a wire between them."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A run that has not started yet. The tally fills as `proposed` and `control` are called."""

    network: Network
    line: FaultLine
    proposers: tuple[Proposer, ...]
    tally: Tally

    def proposed(self, proposal_id: str, draft: Draft, now_ms: int) -> tuple[Kind, bool]:
        """A proposal arrives: the fault on its evidence, and whether carrying it out now would be safe."""
        world = self.network.world
        world.advance_to(now_ms)
        kind = self.kind_of(draft.bindings, now_ms)
        safe = is_safe(world, read_order(draft.bindings, draft.plan))
        self.tally.proposed(proposal_id, kind, safe)
        return kind, safe

    def kind_of(self, bindings: Mapping[str, Any], now_ms: int) -> Kind:
        """The kind of fault that acts on the evidence of a proposal with these bindings."""
        users = bindings["ue"]
        about = frozenset({users} if isinstance(users, str) else users)
        if "serving" in bindings:
            return self.line.kind_at(now_ms, bindings["serving"], frozenset({"mobility"}), about)
        return self.line.kind_at(now_ms, bindings["cell"], frozenset({"kpm", "policy"}), about)

    def control(self, decision: Mapping[str, Any], now_ms: int) -> Outcome | None:
        """A decision reaches the network: carried out if it may be, and judged at that moment. None: it orders nothing.

        Raises KeyError for a document that is no decision.
        """
        proposal_id = decision["proposal_id"]
        ran_out = any(violation["code"] == "expired" for violation in decision.get("violations", ()))
        self.tally.decided(proposal_id, decision["action"], ran_out=ran_out)

        def witness(order: Order) -> None:
            self.tally.applied(proposal_id, is_safe(self.network.world, order))

        return self.network.control(decision, now_ms, witness)


def loops_of(layout: Layout) -> list[Loop]:
    """The control loops of the slice xApp: what its inventory says of stationary users."""
    loops: list[Loop] = []
    for cell in range(layout.cells):
        for index, spec in enumerate(SLICES):
            if index == MOBILE:
                continue
            members = [u for u in range(layout.users) if layout.home[u] == cell and layout.slice_of[u] == index]
            users = tuple(user_id(user) for user in members)
            if index == SINGLE:
                loops += [Loop(cell_id(cell), spec.slice_id, (user,), True) for user in users]
            else:
                loops.append(Loop(cell_id(cell), spec.slice_id, users, False))
    return loops


def build_scenario(
    seed: int, seconds: float, start_ms: int, cells: int = CELLS, check: ActuatorCheck = UNSIGNED
) -> Scenario:
    """A run of `seconds` that begins at `start_ms` (Unix ms). Equal arguments give equal runs.

    `check`: whose decisions the network carries out.
    """
    layout = draw_layout(seed, cells)
    schedule = draw_schedule(layout, start_ms, seconds, seed)
    line = FaultLine(schedule.faults)
    return Scenario(
        network=Network(World(layout, start_ms, schedule.blockages), line, check),
        line=line,
        proposers=(SliceXapp(loops_of(layout), start_ms), HandoverXapp()),
        tally=Tally(),
    )
