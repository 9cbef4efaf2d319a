"""Why an episode has its label: what was done to its evidence, what the judges found, and what the guard decides.

It reads the sealed part: it is for people, and for no method.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from simulators.optbench.agents import Bundle
from simulators.optbench.certificate import certify
from simulators.optbench.model import Case, Change, ChangeKind, Exposure
from simulators.optbench.realisation import FAMILIES
from simulators.optbench.scoring.answers import Scorer
from simulators.optbench.scoring.outcome import Evaluator, judge
from simulators.optbench.tools import contract_of
from xapp.engine import assure
from xapp.episode import parse_episode

_NAMING: Final = ("alias", "foreign_name", "shared_name")
_DONE: Final[Mapping[ChangeKind, str]] = {
    "alias": "told under a known alias",
    "foreign_name": "told under a name that no field knows",
    "shared_name": "told under a name that {other} has, too",
    "prefixed_unit": "told in {text}, of the same dimension",
    "no_unit": "told without a unit",
    "foreign_unit": "told in {text}, of another dimension",
    "unheard_unit": "told in {text}, a unit that no registry knows",
    "schema": "told under the schema {text}, which is not accepted",
    "aged": "measured {amount:.0f} ms before t",
    "repeated": "measured {amount:.0f} ms before t, and sent again as if new",
    "differs": "its value is moved: {moved}",
    "contradicted": "its source tells a second value at the same time, {amount:+.6g} away",
    "overtaken": "an older report, {amount:+.6g} away, arrives after the newer one",
    "overwritten": "an older report, {amount:+.6g} away, arrives later and with a higher version",
    "no_value": "told with no value",
    "lost_parent": "names a parent that the ledger does not hold",
}


def account(case: Case) -> dict[str, Any]:
    """The episode, its ledger, and its label with all that it follows from, as a JSON document.

    `ledger`: the observations in their order, each with `age_ms` and `limit_ms` (None where it is told of no field),
    `field` (None: nobody knows) and `done`: what the sealed facts say was done to it. `guard`: the engine's decision on
    the reference plan.
    """
    sealed, episode, task = case.sealed, case.view["episode"], case.view["task"]
    verdict = certify(case.view)
    symptoms = {family.name: family.symptom for family in FAMILIES}
    return {
        "episode_id": case.episode_id,
        **task,
        "family": sealed.family,
        "domain": sealed.domain,
        "symptom": symptoms.get(sealed.family),
        "reference": sealed.reference,
        "predicate": verdict.predicate,
        "blocked": {name: list(verdict.cites.get(name, ())) for name in sorted(sealed.blocked)},
        "ledger": [_told(case, observation) for observation in episode["observations"]],
        "outages": [{"source": name, **status} for name, status in sorted(episode["sources"].items())],
        "answer": sealed.item.answer,
        "plan": _reference_plan(case),
        "guard": _guard(case),
    }


def verdict_on(case: Case, bundle: Bundle, evaluator: Evaluator, scorer: Scorer) -> dict[str, Any]:
    """What became of a bundle: its action, whether that is right and safe and what is unsafe, and the parts of OPS.

    `ops` is the mean of `decision`, `utility`, `state` and `record`, and 0 where something is unsafe.
    """
    found = judge(case, bundle, evaluator, scorer)
    return {
        "action": bundle.action,
        "invalid": bundle.invalid,
        "exact": found.exact,
        "safe": found.safe,
        "unsafe": list(found.blockers),
        "ops": found.ops,
        "decision": float(found.exact),
        "utility": found.score,
        "state": float(found.state),
        "record": float(found.faithful),
        "unfaithful": list(found.failing),
        "answer": bundle.answer,
        "plan": bundle.plan,
    }


def _told(case: Case, observation: Mapping[str, Any]) -> dict[str, Any]:
    episode = case.view["episode"]
    exposure = next((e for e in case.sealed.facts.exposures if _tells(e, observation)), None)
    field = None if exposure is None else exposure.field
    limit = None if field is None else episode["contract"]["fields"][field].get("freshness_ms")
    return {
        **{name: observation.get(name) for name in ("id", "name", "value", "unit", "source", "origin", "parents")},
        "field": field,
        "age_ms": episode["decided_at_ms"] - observation["event_time_ms"],
        "limit_ms": limit,
        "done": [] if exposure is None else [_done(change) for change in exposure.changes],
    }


def _tells(exposure: Exposure, observation: Mapping[str, Any]) -> bool:
    """Whether an observation is one of those that an exposure gave."""
    name = next((change.text for change in exposure.changes if change.kind in _NAMING), exposure.field)
    memory = observation.get("origin") == "memory"
    return (name, exposure.source, exposure.memory) == (observation["name"], observation["source"], memory)


def _done(change: Change) -> str:
    moved = f"{change.amount:+.6g}" if change.text is None else change.text
    return _DONE[change.kind].format(text=change.text, other=change.other, amount=change.amount, moved=moved)


def _reference_plan(case: Case) -> dict[str, Any]:
    fields = contract_of(case.view["episode"]).fields
    return {name: {"value": value, "unit": fields[name].unit} for name, value in case.sealed.item.plan.items()}


def _guard(case: Case) -> dict[str, Any]:
    episode = case.view["episode"]
    proposal = {
        "proposal_id": f"{case.episode_id}/reference",
        "proposer": "reference",
        "created_at_ms": episode["decided_at_ms"],
        "control_key": contract_of(episode).contract_id,
        "plan": _reference_plan(case),
    }
    decision = assure(parse_episode(orjson.dumps({**episode, "proposal": proposal}), {}))
    return {
        "action": decision.action,
        "explanation": decision.explanation,
        "violations": [
            {
                "code": v.code,
                "field": v.field,
                "constraint": v.constraint,
                "observations": list(v.observations),
                "blocking": v.blocking,
                "resolved": v.resolved,
                "detail": v.detail,
            }
            for v in decision.violations
        ],
    }
