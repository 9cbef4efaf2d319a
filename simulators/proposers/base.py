"""What a proposer is, what it needs of a guard, and how one is driven."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from xapp.model import Report

DEADLINE_MS: Final = 1500
"""How long a plan is of use to its proposer: a near-real-time loop and a half."""
ANSWER_TIMEOUT_S: Final = 4.0
PATIENCE_S: Final = 900.0
"""How long a proposer without a deadline awaits an answer: longer than a guard waits for a person."""
_MAX_OPEN: Final = 500


@dataclass(frozen=True, slots=True)
class Draft:
    """A proposal before it has an id: contract, bindings, control key and plan as they go on the wire."""

    contract_ref: str
    bindings: Mapping[str, str | tuple[str, ...]]
    control_key: str
    plan: Mapping[str, Any]


class Proposer(Protocol):
    """An xApp: it sees reports as they arrive, and has drafts when its control loops come round."""

    name: str
    deadline_ms: int | None
    """How long after its proposal a plan is of use; None: it has no deadline, and may wait for a person."""

    def see(self, report: Report, now_ms: int) -> None:
        """Take in one report, whatever its event time."""

    def due(self, now_ms: int) -> list[Draft]:
        """What it proposes now. Called every 100 ms or more often."""


class Guard(Protocol):
    """The part of a guard's client that a proposer needs."""

    async def propose(
        self,
        *,
        contract_ref: str,
        control_key: str,
        plan: Mapping[str, Any],
        bindings: Mapping[str, str | tuple[str, ...]],
        deadline_ms: int | None,
        timeout_s: float,
    ) -> Mapping[str, Any]:
        """Propose and await the final decision. Raises TimeoutError where none comes in time."""


async def drive(
    proposer: Proposer,
    guard: Guard,
    clock: Callable[[], int],
    tick_s: float,
    stop: asyncio.Event,
) -> None:
    """Let a proposer propose until `stop` is set, each proposal awaited on its own; then await the answers still open.

    A proposal without an answer is given up: nothing may be carried out then. Other errors of the guard end the drive.
    """

    async def ask(draft: Draft, now_ms: int) -> None:
        try:
            await guard.propose(
                contract_ref=draft.contract_ref,
                control_key=draft.control_key,
                plan=draft.plan,
                bindings=draft.bindings,
                deadline_ms=None if proposer.deadline_ms is None else now_ms + proposer.deadline_ms,
                timeout_s=PATIENCE_S if proposer.deadline_ms is None else ANSWER_TIMEOUT_S,
            )
        except TimeoutError:
            return

    places = asyncio.Semaphore(_MAX_OPEN)

    async def ask_in_turn(draft: Draft, now_ms: int) -> None:
        async with places:
            await ask(draft, now_ms)

    async with asyncio.TaskGroup() as asked:
        while not stop.is_set():
            now_ms = clock()
            for draft in proposer.due(now_ms):
                asked.create_task(ask_in_turn(draft, now_ms))
            try:
                await asyncio.wait_for(stop.wait(), tick_s)
            except TimeoutError:
                continue
