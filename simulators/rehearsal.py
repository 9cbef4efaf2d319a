"""A run in simulated time with the engine called directly: no broker, no waiting, the same counts every time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, Final

from simulators.proposers.base import DEADLINE_MS, Draft
from simulators.ran.emission import Emission, SourceNote
from simulators.scenario import Scenario
from xapp.authorization import FORMAT
from xapp.contract import Contract
from xapp.engine import assure
from xapp.episode import read_proposal
from xapp.evidence.store import EvidenceStore
from xapp.model import Decision, Episode, Malformed, Report

TICK_MS: Final = 50
WIRE_MS: Final = 4
"""From a node to the guard and the proposers."""
_REGION: Final = "rehearsal"


@dataclass(frozen=True, slots=True)
class Lag:
    """How slow the machine is: the guard decides, and the network acts, so much later than they could, in ms."""

    decide_ms: int = 5
    apply_ms: int = 5


class Rehearsal:
    """One scenario, `seconds` long from `start_ms`. `decisions` holds what the guard said, in order."""

    def __init__(self, scenario: Scenario, contracts: Mapping[str, Contract], start_ms: int, lag: Lag = Lag()) -> None:
        self.decisions: list[Decision] = []
        self._scenario = scenario
        self._contracts = contracts
        self._now = start_ms
        self._lag = lag
        names = {name for contract in contracts.values() for f in contract.fields.values() for name in f.names}
        self._store = EvidenceStore(history_ms=10_000, history_count=256, known_names=names)
        self._agenda: list[tuple[int, int, Any]] = []
        self._count = 0
        self._put_count = 0

    def run(self, seconds: float) -> None:
        """Let it happen. Answers that are still open at the end are waited for."""
        end = self._now + int(seconds * 1000)
        for tick in range(self._now, end + DEADLINE_MS, TICK_MS):
            self._until(tick)
            arrived = self._scenario.network.tick(tick)
            self._now = tick + WIRE_MS
            self._until(self._now)
            for emission in arrived:
                self._arrive(emission)
            if tick < end:
                for proposer in self._scenario.proposers:
                    for draft in proposer.due(self._now):
                        self._propose(proposer.name, draft)

    def document(self) -> dict[str, Any]:
        """The counts so far (`simulators.tally.Tally.document`)."""
        return self._scenario.tally.document()

    def _arrive(self, emission: Emission) -> None:
        message = emission.message
        if isinstance(message, SourceNote):
            self._store.set_source(message.source, message.state, message.event_time_ms, self._now)
            return
        assert isinstance(message, Report)
        self._store.append(message, self._now)
        for proposer in self._scenario.proposers:
            proposer.see(message, self._now)

    def _propose(self, proposer: str, draft: Draft) -> None:
        self._count += 1
        proposal_id = f"p-{self._count}"
        document = {
            "proposal_id": proposal_id,
            "proposer": proposer,
            "contract_ref": draft.contract_ref,
            "created_at_ms": self._now,
            "control_key": draft.control_key,
            "deadline_ms": self._now + DEADLINE_MS,
            "bindings": {name: to if isinstance(to, str) else list(to) for name, to in draft.bindings.items()},
            "plan": draft.plan,
        }
        self._scenario.proposed(proposal_id, draft, self._now)
        self._put(self._now + self._lag.decide_ms, (document, True))

    def _put(self, at_ms: int, what: Any) -> None:
        heappush(self._agenda, (at_ms, self._put_count, what))
        self._put_count += 1

    def _until(self, now_ms: int) -> None:
        """Whatever was due by now, in order of time."""
        while self._agenda and self._agenda[0][0] <= now_ms:
            at_ms, _, what = heappop(self._agenda)
            if isinstance(what, dict):
                self._scenario.control(what, at_ms)
            else:
                document, may_retry = what
                self._decide(document, may_retry, at_ms)

    def _decide(self, document: dict[str, Any], may_retry: bool, now_ms: int) -> None:
        contract = self._contracts[document["contract_ref"]]
        proposal = read_proposal(document, contract, now_ms)
        assert not isinstance(proposal, Malformed), proposal
        resolution = contract.resolve(proposal.bindings)
        concerned = {source for member in resolution.members for source in member.sources}
        down = {source: state for source, state in self._store.sources(now_ms).items() if source in concerned}
        decision = assure(
            Episode(
                episode_id=f"{_REGION}/{proposal.proposal_id}",
                decided_at_ms=now_ms,
                contract=contract,
                observations=self._store.episode_observations(resolution, now_ms),
                proposal=proposal,
                proposal_raw=document,
                sources=down,
            )
        )
        if decision.retry is not None and may_retry:
            self._put(now_ms + decision.retry.after_ms, (document, False))
            return
        self.decisions.append(decision)
        answer = {
            "format": FORMAT,
            "decision_id": decision.decision_id,
            "proposal_id": decision.proposal_id,
            "control_key": decision.control_key,
            "bindings": decision.bindings,
            "action": decision.action,
            "released": decision.released,
            "valid_until_ms": decision.valid_until_ms,
            "attempt": 1,
            "final": True,
            "sequence": len(self.decisions),
            "region": _REGION,
            "evidence": {"topic": "telemetry", "partition": 0, "offset": 0},
        }
        self._put(now_ms + self._lag.apply_ms, answer)
