"""Tools first, then the action contract (the WirelessAgent++ + contract baseline).

What the tools return is shown to the model, as in the published workflow; it replaces nothing that the model writes.
The contract is then checked on the proposal's own fields: is the plan complete, has every value a unit of the right
dimension, does it keep its limits, do the constraints hold for the values that the proposer claims? A proposal that
fails is not executed: an APPLY becomes HOLD, for there is no operator in this workflow and nothing to ask again. Any
other action stands. Whether the evidence cited is any good is not asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from simulators.optbench.agents import Backbone, Bundle, RawProposal
from simulators.optbench.methods.asking import ask
from simulators.optbench.methods.claims import as_proposed
from simulators.optbench.methods.plans import written_plan
from simulators.optbench.prompts import propose
from simulators.optbench.tools import Observed, calculate, consult, contract_of, value_of
from xapp.contract import Contract
from xapp.expression import NoValue
from xapp.integrity.domain import check_domain


@dataclass(slots=True)
class WirelessAgentContract:
    """Tools, proposal, contract check."""

    name: str
    backbone: Backbone

    def decide(self, view: Mapping[str, Any]) -> Bundle:
        """The proposal, its APPLY turned into HOLD where its own fields break the contract."""
        told = consult(view)
        reply = ask(self.backbone, propose(view, "tools", extra_observations=told))
        proposal = reply.proposal
        if proposal is None or proposal.action != "APPLY":
            return as_proposed(view, reply, told=told)
        episode = view["episode"]
        broken = breaches(proposal, contract_of(episode), (*episode["observations"], *told))
        return as_proposed(view, reply, action="HOLD" if broken else None, told=told)


def breaches(proposal: RawProposal, contract: Contract, observations: tuple[Observed, ...]) -> tuple[str, ...]:
    """Names of the planned and derived fields, and ids of the constraints, that a proposal breaks by its own fields.

    A derived field may be left out; a constraint whose inputs the proposal claims no values for is not judged.
    """
    written = written_plan(proposal.plan, contract)
    values: dict[str, Any] = {}
    found: list[str] = []
    held = {o["id"]: o for o in observations}
    for name, f in contract.fields.items():
        if f.kind == "observed":
            cited = held.get(proposal.fields.get(name, {}).get("observation"))
            if cited is not None and cited["value"] is not None:
                values[name] = value_of(cited, f)
            continue
        said = written.get(name)
        if said is None and f.kind == "derived":
            continue
        if said is None or said.value is None or check_domain(said.value, f) is not None:
            found.append(name)
        else:
            values[name] = said.value
    values = calculate(contract, values)
    for constraint in contract.constraints:
        if all(name in values for name in constraint.expr.names):
            try:
                holds = constraint.expr.evaluate(values) is True
            except NoValue:
                holds = False
            if not holds:
                found.append(constraint.id)
    return tuple(found)
