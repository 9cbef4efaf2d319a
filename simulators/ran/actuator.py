"""The RAN's own check before it carries out a decision, and the carrying out.

An actuator trusts the guard, but not the network between them: a decision may come late, twice, out of order, from a
stranger (`xapp.actuation` judges that), or for a user that has left. What it refuses changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from simulators.ran.reports import cell_id, index_of
from simulators.ran.world import World
from xapp.actuation import ActuatorCheck, ActuatorState
from xapp.radio.rate import rate_mbps

_EFFECT_AFTER_MS: Final = 200

Kind = Literal["applied", "refused", "effect", "no_effect"]


@dataclass(frozen=True, slots=True)
class Order:
    """What a decision asks of the network, read: quotas in MHz per user index, or one user's new cell."""

    cell: int
    quotas: Mapping[int, float]
    handover: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a decision at `at_ms`: carried out or not, and later whether the network shows it."""

    decision_id: str
    proposal_id: str
    kind: Kind
    reason: str
    at_ms: int


def read_order(bindings: Mapping[str, Any], values: Mapping[str, Any]) -> Order:
    """The order in bindings and plan values (field → `{"value", "unit"}`, MHz).

    Raises ValueError, KeyError, TypeError or AttributeError where it cannot be read.
    """
    if "target" in bindings:
        user, target = index_of(bindings["ue"]), index_of(bindings["target"])
        return Order(index_of(bindings["serving"]), {}, (user, target))
    entry = values["bandwidth"]
    if entry["unit"] != "MHz":
        raise ValueError(f"bandwidth in {entry['unit']!r}: MHz is needed")
    users = bindings["ue"]
    shares = {users: entry["value"]} if isinstance(users, str) else {user: entry["value"][user] for user in users}
    return Order(index_of(bindings["cell"]), {index_of(user): float(mhz) for user, mhz in shares.items()})


class Actuator:
    """Carries out decisions in one world. Deterministic; the caller brings the world to the present first.

    `check` knows the guards whose decisions count.
    """

    def __init__(self, world: World, check: ActuatorCheck) -> None:
        self._world = world
        self._check = check
        self._state = ActuatorState()
        self._watched: list[tuple[int, Outcome, Order]] = []

    def receive(self, decision: Mapping[str, Any], witness: Callable[[Order], None] | None = None) -> Outcome | None:
        """Take one decision from the control topic; None where it orders nothing.

        A decision of a stranger orders nothing, and is answered with nothing: an outcome under its id would be believed
        of the decision whose id it borrowed. `witness` is told of an order about to be carried out. Raises KeyError for
        a document that is no decision.
        """
        applies = decision["action"] == "APPLY"
        now = self._world.now_ms
        verdict, self._state = self._check.check(decision, now, self._state)
        if not applies or not verdict.believed:
            return None
        order, reason = self._read(decision) if verdict.permitted else (None, verdict.detail)
        outcome = Outcome(
            decision_id=decision["decision_id"],
            proposal_id=decision["proposal_id"],
            kind="refused" if order is None else "applied",
            reason=reason,
            at_ms=now,
        )
        if order is not None:
            if witness is not None:
                witness(order)
            self._carry_out(order)
            self._watched.append((now + _EFFECT_AFTER_MS, outcome, order))
        return outcome

    def effects(self) -> list[Outcome]:
        """What the orders carried out 200 ms ago or earlier have come to; each is told once."""
        now = self._world.now_ms
        ripe = [watched for watched in self._watched if watched[0] <= now]
        self._watched = [watched for watched in self._watched if watched[0] > now]
        return [self._effect(outcome, order) for _, outcome, order in ripe]

    def _read(self, decision: Mapping[str, Any]) -> tuple[Order | None, str]:
        """The order, if this network can carry it out; else why not."""
        try:
            order = read_order(decision["bindings"], decision["released"])
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            return None, f"the order cannot be read: {error!r}"
        reason = self._misfit(order)
        return (None, reason) if reason else (order, "")

    def _misfit(self, order: Order) -> str:
        world = self._world
        if order.handover is not None:
            user, target = order.handover
            if not 0 <= user < world.layout.users or not 0 <= target < world.layout.cells:
                return "no such user or cell"
            return "" if world.serving[user] == order.cell else f"cell {cell_id(order.cell)} does not serve this user"
        if not all(0 <= user < world.layout.users for user in order.quotas):
            return "no such user"
        return ""

    def _carry_out(self, order: Order) -> None:
        if order.handover is not None:
            self._world.hand_over(*order.handover)
        for user, mhz in order.quotas.items():
            if self._world.serving[user] == order.cell:
                self._world.set_quota(user, mhz)

    def _effect(self, outcome: Outcome, order: Order) -> Outcome:
        world = self._world
        if order.handover is not None:
            user, target = order.handover
            seen = bool(world.serving[user] == target)
        else:
            users = [user for user in order.quotas if world.serving[user] == order.cell]
            rates = rate_mbps(world.allocated_mhz[users], world.sinr_db[users])
            seen = bool((rates >= world.min_rate_mbps[users] * 0.999).all())
        return Outcome(
            decision_id=outcome.decision_id,
            proposal_id=outcome.proposal_id,
            kind="effect" if seen else "no_effect",
            reason="" if seen else "acknowledged, but not to be seen in the network",
            at_ms=world.now_ms,
        )
