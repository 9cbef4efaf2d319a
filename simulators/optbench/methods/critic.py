"""Proposal, critique with tools, revision (the CRITIC style baseline): at most three rounds.

Each claim is held against what a tool gives: the plan against the calculator on the newest read-out of the ledger, the
evidence cited against the ledger itself. The critique names what it disputes and says why; the proposer revises. The
last proposal stands, whatever the critique still finds in it: this workflow persuades, it does not authorise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from simulators.optbench.agents import Backbone, Bundle, RawProposal
from simulators.optbench.methods.asking import Reply, ask
from simulators.optbench.methods.claims import as_proposed
from simulators.optbench.methods.plans import written_plan
from simulators.optbench.prompts import propose, revise
from simulators.optbench.tools import Observed, Working, work_out
from xapp.contract import Contract, Field
from xapp.integrity.conflict import differ
from xapp.plan import of_type

ROUNDS: Final = 3

Critique = tuple[str, str]
"""What is disputed (as `Prompt.disputed` names it), and the sentence that says why."""

# what a faulty piece of evidence asks for, by the action semantics that every prompt states; the first found counts
_INSTEAD: Final = ("ESCALATE", "RETRY", "HOLD")


@dataclass(slots=True)
class Critic:
    """Proposes, criticises, revises."""

    name: str
    backbone: Backbone

    def decide(self, view: Mapping[str, Any]) -> Bundle:
        """The proposal after its revisions. One that cannot be read ends them, and the proposal before it stands."""
        first = standing = reply = ask(self.backbone, propose(view, "critic"))
        for round_ in range(1, ROUNDS + 1):
            found = () if reply.proposal is None else tuple(criticise(reply.proposal, view))
            if not found:
                break
            reply = ask(self.backbone, revise(view, standing.text, found, round_), reply)
            standing = reply if reply.proposal is not None else _counted(standing, reply)
        return replace(as_proposed(view, standing), proposed=first.proposal)


def _counted(standing: Reply, last: Reply) -> Reply:
    """What stands, with everything that was spent."""
    return Reply(
        standing.text,
        standing.proposal,
        standing.fault,
        last.calls,
        last.tokens_in,
        last.tokens_out,
        last.cost_usd,
    )


def criticise(proposal: RawProposal, view: Mapping[str, Any]) -> Iterator[Critique]:
    """What tools find against the claims of a proposal: on its plan, its evidence, then its action."""
    episode = view["episode"]
    work = work_out(view)
    yield from _on_plan(proposal, work)
    faults = tuple(_on_evidence(proposal, work.contract, episode))
    yield from ((f"fields:{name}", why) for name, _, why in faults)
    asked = {instead for _, instead, _ in faults}
    if proposal.action == "APPLY" and asked:
        instead = next(action for action in _INSTEAD if action in asked)
        yield f"action:{instead}", f"evidence that the action rests on asks for {instead}"


def _on_plan(proposal: RawProposal, work: Working) -> Iterator[Critique]:
    written = written_plan(proposal.plan, work.contract)
    for name, f in work.contract.fields.items():
        if f.kind == "observed":
            continue
        said, expected = written.get(name), work.values.get(name)
        told = "" if expected is None else f"; the calculator gives {expected} {f.unit}"
        if said is None:
            if f.kind == "planned":
                yield f"plan:{name}", f"it is not in the plan{told}"
        elif said.value is None:
            yield f"plan:{name}", f"it {said.detail}{told}"
        elif expected is not None and of_type(expected, f.type) and differ(said.value, expected, f, of_expr=True):
            yield f"plan:{name}", f"it says {said.value} {f.unit}{told}"


def _on_evidence(
    proposal: RawProposal, contract: Contract, episode: Mapping[str, Any]
) -> Iterator[tuple[str, str, str]]:
    """(field, the action that its evidence asks for, why), for every critical field that is claimed as supported."""
    held: dict[str, Observed] = {o["id"]: o for o in episode["observations"]}
    for name, f in contract.fields.items():
        if f.kind != "observed" or not f.critical:
            continue
        claim = proposal.fields.get(name)
        if claim is None:
            yield name, "HOLD", "nothing is cited for it"
        elif claim["state"] == "supported":
            fault = _fault(held.get(claim["observation"]), claim["observation"], f, episode)
            if fault is not None:
                yield name, *fault


def _fault(
    cited: Observed | None, observation_id: str | None, field: Field, episode: Mapping[str, Any]
) -> tuple[str, str] | None:
    """What a look at the cited observation shows: (the action it asks for, why)."""
    if cited is None:
        return "HOLD", f"the ledger holds no observation {observation_id}"
    name, source = cited["id"], cited["source"]
    age_ms = episode["decided_at_ms"] - cited["event_time_ms"]
    if episode.get("sources", {}).get(source, {}).get("status") == "outage":
        return "RETRY", f"{source}, which sent {name}, is in outage"
    if age_ms > field.freshness_ms:
        return "HOLD", f"{name} is {age_ms} ms old, the limit is {field.freshness_ms} ms"
    if cited["value"] is None or cited.get("quality", "good") != "good":
        return "HOLD", f"{name} has no value"
    if not cited.get("unit") and field.unit != "1":
        return "ESCALATE", f"{name} has no unit, {field.unit} is needed"
    return None
