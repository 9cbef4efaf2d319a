"""Proposal, critique with tools, revision (the CRITIC style baseline): at most three rounds.

Each claim is held against what a tool gives: the plan against the calculator on the newest read-out of the ledger, the
evidence cited against the ledger itself: its name, source, schema, unit and age, and what else the ledger tells of the
field. What an observation was computed from is not followed. The critique names what it disputes and says why; the
proposer revises. The last proposal stands, whatever the critique still finds in it: this workflow persuades, it does
not authorise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from simulators.optbench.agents import Backbone, Bundle, RawProposal
from simulators.optbench.methods.asking import Reply, ask
from simulators.optbench.methods.claims import as_proposed
from simulators.optbench.methods.plans import written_plan
from simulators.optbench.prompts import propose, revise
from simulators.optbench.tools import Observed, Working, consult, observed_by, value_of, work_out
from xapp.contract import Contract, Field
from xapp.integrity.conflict import differ
from xapp.plan import of_type, unit_fault

ROUNDS: Final = 3

Critique = tuple[str, str]
"""What is disputed (as `Prompt.disputed` names it), and the sentence that says why."""

Fault = tuple[str, str]
"""The action that a faulty piece of evidence asks for, and why."""

# what a faulty piece of evidence asks for, by the action semantics that every prompt states; the first found counts
_INSTEAD: Final = ("ESCALATE", "RETRY", "HOLD")


@dataclass(slots=True)
class Critic:
    """Proposes, criticises, revises."""

    name: str
    backbone: Backbone

    def decide(self, view: Mapping[str, Any]) -> Bundle:
        """The proposal after its revisions. One that cannot be read ends them, and the proposal before it stands."""
        told = consult(view)
        first = standing = reply = ask(self.backbone, propose(view, "critic", extra_observations=told))
        for round_ in range(1, ROUNDS + 1):
            found = () if reply.proposal is None else tuple(criticise(reply.proposal, view, told))
            if not found:
                break
            asked = revise(view, standing.text, found, round_, extra_observations=told)
            reply = ask(self.backbone, asked, reply)
            standing = reply if reply.proposal is not None else _counted(standing, reply)
        return replace(as_proposed(view, standing, told=told), proposed=first.proposal)


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


def criticise(proposal: RawProposal, view: Mapping[str, Any], told: Sequence[Observed] = ()) -> Iterator[Critique]:
    """What tools find against the claims of a proposal: on its plan, its evidence, then its action.

    `told`: observations of tools that the proposer was shown beside the ledger.
    """
    episode = view["episode"]
    work = work_out(view)
    yield from _on_plan(proposal, work)
    faults = tuple(_on_evidence(proposal, work, episode, frozenset(o["id"] for o in told)))
    yield from ((f"fields:{name}", why) for name, _, why in faults)
    asked = {instead for _, instead, _ in faults if instead is not None}
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
    proposal: RawProposal, work: Working, episode: Mapping[str, Any], tools: frozenset[str]
) -> Iterator[tuple[str, str | None, str]]:
    """(field, the action that its evidence asks for, why), for every critical field whose evidence does not support it.

    A field that an APPLY says is blocked is looked at by what the read-out has of it. `tools`: ids of what tools told,
    which is no evidence; it asks for a citation, and for no action.
    """
    contract = work.contract
    held: dict[str, Observed] = {o["id"]: o for o in episode["observations"]}
    for name, f in contract.fields.items():
        if f.kind != "observed" or not f.critical:
            continue
        claim = proposal.fields.get(name)
        if claim is None:
            yield name, "HOLD", "nothing is cited for it"
        elif claim["state"] == "supported" and claim["observation"] in tools:
            yield name, None, f"{claim['observation']} is what a tool gave; an observation of the ledger is wanted"
        elif claim["state"] == "supported":
            cited = held.get(claim["observation"])
            missing = "HOLD", f"the ledger holds no observation {claim['observation']}"
            fault = missing if cited is None else _fault(cited, f, contract, episode)
            if fault is not None:
                yield name, *fault
        elif proposal.action == "APPLY":
            read = work.read.get(name)
            fault = None if read is None else _fault(read, f, contract, episode)
            yield name, *(fault or ("HOLD", "it is said to be blocked, and APPLY needs it"))


def _fault(cited: Observed, field: Field, contract: Contract, episode: Mapping[str, Any]) -> Fault | None:
    """What the ledger shows of an observation cited for a field."""
    own = _on_name(cited, field, contract) or _on_source(cited, episode) or _on_itself(cited, field, episode)
    return own or _on_others(cited, field, contract, episode)


def _on_name(cited: Observed, field: Field, contract: Contract) -> Fault | None:
    name, bound = cited["id"], observed_by(contract, cited["name"])
    if field.name not in bound:
        return "HOLD", f"{name} is told of {cited['name']}, which is no name of {field.name}"
    if len(bound) > 1:
        return "ESCALATE", f"{name} is told of {cited['name']}, which is a name of {' and of '.join(bound)}"
    if cited["source"] not in field.sources:
        return "ESCALATE", f"{cited['source']}, which sent {name}, is no source of {field.name}"
    return None


def _on_source(cited: Observed, episode: Mapping[str, Any]) -> Fault | None:
    source = cited["source"]
    if episode.get("sources", {}).get(source, {}).get("status") == "outage":
        return "RETRY", f"{source}, which sent {cited['id']}, is in outage"
    return None


def _on_itself(cited: Observed, field: Field, episode: Mapping[str, Any]) -> Fault | None:
    name, schema = cited["id"], cited.get("schema")
    age_ms = episode["decided_at_ms"] - cited["event_time_ms"]
    if schema is not None and field.schemas is not None and schema not in field.schemas:
        return "HOLD", f"{name} is under the schema {schema}, which {field.name} does not accept"
    if age_ms > field.freshness_ms:
        return "HOLD", f"{name} is {age_ms} ms old, the limit is {field.freshness_ms} ms"
    if cited["value"] is None or cited.get("quality", "good") != "good":
        return "HOLD", f"{name} has no value"
    code, why = unit_fault(cited.get("unit") or None, field.unit) if field.type == "number" else (None, "")
    if code is not None:
        return "HOLD" if code == "unknown_unit" else "ESCALATE", f"{name} {why}"
    return None


def _on_others(cited: Observed, field: Field, contract: Contract, episode: Mapping[str, Any]) -> Fault | None:
    """What else the ledger tells of the field, live, fresh and in terms that compare, where it differs materially.

    The newest of another source; of its own source what was measured at the same time, or has its versions reversed.
    """
    live = [
        o for o in episode["observations"]
        if o.get("origin", "live") == "live" and _on_name(o, field, contract) is None
    ]  # fmt: skip
    newest = {source: max(o["event_time_ms"] for o in live if o["source"] == source) for source in field.sources
              if any(o["source"] == source for o in live)}  # fmt: skip
    value = value_of(cited, field)
    for other in live:
        told = value_of(other, field)
        if _on_itself(other, field, episode) is not None or not _materially(value, told, field):
            continue
        same_source = other["source"] == cited["source"]
        at = cited["event_time_ms"] if same_source else newest[other["source"]]
        if other["event_time_ms"] == at:
            return "ESCALATE", f"{cited['id']} says {value} {field.unit}, {other['id']} says {told} {field.unit}"
        older, newer = sorted((cited, other), key=lambda o: o["event_time_ms"])
        if same_source and (older.get("version") or 0) > (newer.get("version") or 0):
            return "ESCALATE", f"{older['id']} is older than {newer['id']} and overwrites it by a higher version"
    return None


def _materially(one: Any, other: Any, field: Field) -> bool:
    return of_type(one, field.type) and of_type(other, field.type) and differ(one, other, field)
