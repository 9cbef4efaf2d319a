"""The agent under test: normalised view in, proposal, diagnosis, scoped repair, governor, record.

The guard is the engine that decides live traffic. This module only puts a proposal into an episode, and a decision into
a bundle. An ablation is a configuration around the engine, never a switch in it.

A reply that holds no proposal, and a call that failed, is an invalid output, here as in every method: there is nothing
to assure, and a decision on nothing would earn a dead model a perfect row (section V-B: invalid responses and model
call failures remain in every relevant denominator).

What the engine vouches for (released, or a candidate's value with all its inputs supported) makes the answer. What it
could not rebuild, because inputs are blocked, is the nominal answer of the question, by the tools: a question keeps its
answer while the evidence under it is bad, and nothing of it is executed. Where the tools know nothing either, the
proposer's own word stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from simulators.optbench.ablations import FULL, Ablation
from simulators.optbench.agents import Backbone, Bundle, RawProposal
from simulators.optbench.methods.asking import Reply, ask
from simulators.optbench.methods.plans import normalised_plan, readable_plan
from simulators.optbench.prompts import propose
from simulators.optbench.tools import answer_of, contract_of, nominal, vouched
from xapp.contract import Contract
from xapp.engine import assure
from xapp.episode import episode_from, read_proposal
from xapp.evidence.view import normalised_view
from xapp.model import Decision, Episode

THOUGHT_MS: Final = 5
"""How long before t the proposal was made."""


@dataclass(slots=True)
class WirelessOpsAgent:
    """The whole loop, or what an ablation leaves of it."""

    name: str
    backbone: Backbone
    ablation: Ablation = FULL

    def decide(self, view: Mapping[str, Any]) -> Bundle:
        """The engine's decision on the backbone's proposal; invalid where there is none."""
        document = self.ablation.evidence(view["episode"])
        contract = contract_of(document)
        by_reference = {key: value for key, value in document.items() if key != "contract"}
        by_reference["contract_ref"] = contract.contract_id
        episode = episode_from(by_reference, {contract.contract_id: contract}, needs_proposal=False)
        admitted = normalised_view(episode)
        reply = ask(self.backbone, propose(view, "normalised", normalised=admitted))
        if reply.proposal is None:
            return reply.bundle(view, None)
        decision = assure(self._with_proposal(episode, contract, reply.proposal))
        return self._bundle(view, reply, reply.proposal, decision, admitted["fields"])

    def _with_proposal(self, episode: Episode, contract: Contract, proposal: RawProposal) -> Episode:
        key = None if contract.control is None else contract.control.key
        raw = {
            "proposal_id": f"{episode.episode_id}/1",
            "proposer": self.backbone.name,
            "created_at_ms": episode.decided_at_ms - THOUGHT_MS,
            "control_key": key or contract.contract_id,
            "intent": "APPLY" if proposal.action is None else proposal.action,
            "plan": readable_plan(self.ablation.plan(proposal.plan, contract), contract),
        }
        read = read_proposal(raw, contract, episode.decided_at_ms)
        return replace(episode, proposal=read, proposal_raw=raw)

    def _bundle(
        self,
        view: Mapping[str, Any],
        reply: Reply,
        proposal: RawProposal,
        decision: Decision,
        admitted: Mapping[str, Any],
    ) -> Bundle:
        released = self.ablation.released
        contract = contract_of(view["episode"])
        record = _record(decision, admitted)
        answer, plan = proposal.answer, proposal.plan
        if released == "rebuilt":
            plan = orjson.loads(decision.record)["candidate"]
            claimed = answer if isinstance(answer, Mapping) else {}
            answer = {**claimed, **_answer(view, contract, decision, admitted, plan)}
        elif released == "normalised":
            plan, done = normalised_plan(plan, contract)
            record["repairs"] += done
        else:
            record["repairs"] = []
        return reply.bundle(
            view,
            decision.action if self.ablation.governed else proposal.action,
            answer=answer,
            plan=plan,
            record=record,
            proposed=proposal,
        )


def _record(decision: Decision, admitted: Mapping[str, Any]) -> dict[str, Any]:
    """What a bundle says of a decision: per critical field what supports it, the blocked ids, the repairs."""
    fields = {
        name: {
            "state": "blocked" if entry["observation"] is None else "supported",
            "observation": entry["observation"],
            "value": entry["value"],
            "unit": entry["unit"],
        }
        for name, entry in admitted.items()
        if entry["critical"]
    }
    repairs = [
        {"operator": r.operator, "field": r.field, "from": r.before, "to": r.after, "support": list(r.support)}
        for r in decision.repairs
    ]
    return {"fields": fields, "blocked": list(decision.blocked), "repairs": repairs}


def _answer(
    view: Mapping[str, Any], contract: Contract, decision: Decision, admitted: Mapping[str, Any],
    candidate: Mapping[str, Any],
) -> dict[str, Any]:  # fmt: skip
    """The answer from what the engine vouches for, else from the task as it is asked."""
    supported = {name: entry["value"] for name, entry in admitted.items() if entry["observation"] is not None}
    unresolved = {v.field for v in decision.violations if not v.resolved}
    task = view["task"]["task"]
    unit = contract.fields["answer"].unit if task == "WCHW" else ""
    return answer_of(task, {**nominal(view), **vouched(contract, supported, candidate, unresolved)}, unit)
