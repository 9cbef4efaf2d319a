"""The dossier of one decision: what the page shows of it when it is opened (docs/operator-page.md). Pure.

All of it is read from the decision's full record, or decided again from it; nothing else is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from streams.escalations import Dispute, disputes
from streams.web.evidence_drawing import drawing
from xapp.contract import Contract, normalise
from xapp.engine import considered
from xapp.episode import episode_from
from xapp.governor import Considered
from xapp.integrity.operator import VERDICT
from xapp.model import Episode, Malformed
from xapp.plan import plan_values

_DISPUTED = ("id", "source", "name", "value", "unit", "event_time_ms", "subject")


def dossier(record: Mapping[str, Any], summary: Mapping[str, Any], answered: Mapping[str, str]) -> dict[str, Any]:
    """What stands in `docs/operator-page.md` under "A dossier".

    `record`: the decision document with its full record, as `records` holds it inside its envelope; `summary`: of the
    same decision, handed on as it is; `answered`: id of an answer → the proposal that it answers, where that is known.
    Raises KeyError where the document has no full record, and `xapp.episode.EpisodeError` where its episode cannot be
    read.
    """
    full = record["record"]
    episode = episode_from(full["episode"], {}, recorded=True)
    rows = considered(episode)
    chosen = next(i for i, row in enumerate(rows) if row.applies)
    following = next((row for row in rows[chosen + 1 :] if row.applies), None)
    return {
        "summary": dict(summary),
        "proposal": full["episode"]["proposal"],
        "decided_at_ms": episode.decided_at_ms,
        "record_digest": full["digest"],
        "fields": list(_fields(record, episode)),
        "plan": list(_plan(record, episode)),
        "violations": record["violations"],
        "repairs": record["repairs"],
        "policy": [_row(row, i == chosen) for i, row in enumerate(rows)],
        "why": {
            "chosen": _because(rows, chosen),
            "next": None if following is None else {"action": following.action, "because": following.because},
        },
        "graph": drawing(record),
        "disputes": [_dispute(one) for one in disputes(record)],
        "constraints": list(_constraints(record, episode)),
        "control": full["control"],
        "support": _support(record, episode),
        "answers": list(_answers(record, episode, answered)),
    }


def _because(rows: Sequence[Considered], chosen: int) -> str:
    """Of the last row, which is what remains, what kept the action from APPLY is the reason."""
    ready = next(row for row in rows if row.action == "APPLY")
    told = rows[chosen].because
    return f"{told}: {ready.because}" if chosen == len(rows) - 1 and not ready.applies else told


def _row(row: Considered, chosen: bool) -> dict[str, Any]:
    return {"action": row.action, "name": row.name, "applies": row.applies, "chosen": chosen, "because": row.because}


def _fields(record: Mapping[str, Any], episode: Episode) -> Iterator[dict[str, Any]]:
    """Each observed field, once for each of its members; `after` is `unjudged` where the proposal was malformed."""
    view = record["record"]["normalised"]
    if episode.contract is None:
        return
    if view is None:
        yield from _unjudged(episode.contract)
        return
    for name, entry in view.items():
        for member, one in entry["members"].items() if "members" in entry else [(None, entry)]:
            held = one["observation"]
            yield {
                "field": name,
                "member": member,
                "kind": "observed",
                **{key: one[key] for key in _ADMITTED},
                "before": one["violations"],
                "after": "supported" if held is not None else "blocked" if one["critical"] else "unsupported",
                "repairs": [
                    r["operator"] for r in record["repairs"] if r["field"] == name and held in r["support"]
                ],
            }  # fmt: skip


_ADMITTED = ("critical", "subject", "value", "unit", "source", "observation", "age_ms", "limit_ms")


def _unjudged(contract: Contract) -> Iterator[dict[str, Any]]:
    for name, f in contract.fields.items():
        if f.kind == "observed":
            admitted = dict.fromkeys(_ADMITTED) | {
                "critical": f.critical, "subject": f.subject, "unit": f.unit, "limit_ms": f.freshness_ms,
            }  # fmt: skip
            row = {"field": name, "member": None, "kind": "observed", **admitted}
            yield {**row, "before": [], "after": "unjudged", "repairs": []}


def _plan(record: Mapping[str, Any], episode: Episode) -> Iterator[dict[str, Any]]:
    """Each planned and derived field, and each observed one that the plan restates: as written, and as rebuilt.

    A field over many members has a mapping from member to value, in one row.
    """
    if episode.contract is None:
        return
    written, candidate = _written(episode, episode.contract), record["record"]["candidate"] or {}
    for name, f in episode.contract.fields.items():
        entry = written.get(name)
        if f.kind == "observed" and entry is None:
            continue
        rebuilt = candidate.get(name, {}).get("value")
        yield {
            "field": name,
            "kind": f.kind,
            "written": None if entry is None else entry.get("value"),
            "written_unit": None if entry is None else entry.get("unit"),
            "value": _supported(record["record"]["normalised"], name) if f.kind == "observed" else rebuilt,
            "unit": f.unit,
            "repairs": [
                r["operator"]
                for r in record["repairs"]
                if r["field"] == name and not (f.kind == "observed" and r["support"])
            ],
        }  # fmt: skip


def _written(episode: Episode, contract: Contract) -> dict[str, Mapping[str, Any]]:
    """Field → what the plan says of it. Of a malformed proposal: as far as it can be told."""
    if not isinstance(episode.proposal, Malformed):
        resolution = contract.resolve(episode.proposal.bindings)
        return {name: said.written for name, said in plan_values(contract, resolution, episode.proposal.plan).items()}
    plan = episode.proposal_raw.get("plan")
    return {
        field: entry if isinstance(entry, dict) else {"value": entry}
        for name, entry in (plan.items() if isinstance(plan, dict) else ())
        for field in contract.by_name.get(normalise(name), ())
    }


def _supported(view: Mapping[str, Any] | None, name: str) -> Any:
    if view is None:
        return None
    entry = view[name]
    return {key: one["value"] for key, one in entry["members"].items()} if "members" in entry else entry["value"]


def _dispute(dispute: Dispute) -> dict[str, Any]:
    observations = [{key: o[key] for key in _DISPUTED} for o in dispute.observations]
    return {"field": dispute.field, "subject": dispute.subject, "name": dispute.name, "observations": observations}


def _constraints(record: Mapping[str, Any], episode: Episode) -> Iterator[dict[str, Any]]:
    """Each constraint: whether it holds, or null where it was not judged."""
    if episode.contract is None:
        return
    against: dict[str, list[str]] = {}
    for violation in record["violations"]:
        if violation["constraint"] is not None and violation["blocking"]:
            against.setdefault(violation["constraint"], []).append(violation["detail"])
    view, candidate = record["record"]["normalised"], record["record"]["candidate"] or {}
    known = candidate.keys() | record["used"].keys()
    for constraint in episode.contract.constraints:
        failed, names = against.get(constraint.id), constraint.expr.names
        lacking = [name for name in names if name not in known]
        if failed is not None:
            holds, detail = False, "; ".join(failed)
        elif lacking:
            holds, detail = None, "not judged: no value of " + ", ".join(lacking)
        else:
            shown = {n: candidate[n]["value"] if n in candidate else _supported(view, n) for n in names}
            holds, detail = True, ", ".join(f"{name} = {value}" for name, value in shown.items())
        yield {"id": constraint.id, "expr": constraint.expr.text, "holds": holds, "detail": detail}


def _support(record: Mapping[str, Any], episode: Episode) -> dict[str, Any] | None:
    """What the support gate said, and how long its map counts, how far the network has drifted from it; None without a
    gate.
    """
    said = record.get("support")
    if said is None or episode.support is None:
        return None
    held, drift = episode.support.map, episode.support.drift
    return {
        **said,
        "expires_at_ms": None if held is None else held.expires_at_ms,
        "drift": None if drift is None else asdict(drift),
        "drift_partitions": episode.support.terms.drift_partitions,
    }


def _answers(
    record: Mapping[str, Any], episode: Episode, answered: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """What operators had said by then that has to do with this decision: what it names is held, or it was to this
    proposal. `here`: whether it counted.
    """
    used = {i for ids in record["used"].values() for i in ids}
    for o in record["record"]["episode"]["observations"]:
        if o["origin"] != "operator" or o["ingest_time_ms"] > episode.decided_at_ms:
            continue
        denial = normalise(o["name"]) == VERDICT and o["subject"] == f"proposal:{record['proposal_id']}"
        to = record["proposal_id"] if denial else answered.get(_answer_id(o["id"]))
        counted = o["id"] in used
        if counted or denial or o["parents"] or to == record["proposal_id"]:
            said = {key: o[key] for key in ("id", "source", "name", "subject", "value", "unit")}
            here = "denied" if denial else "settled" if counted else "expired" if _expired(o, episode) else "not used"
            yield {**said, "at_ms": o["event_time_ms"], "settles": o["parents"], "proposal_id": to, "here": here}


def _answer_id(observation_id: str) -> str:
    """Of `answer/ID#N`, as an answer is held."""
    return observation_id.removeprefix("answer/").rpartition("#")[0]


def _expired(answer: Mapping[str, Any], episode: Episode) -> bool:
    """Whether it is older than any field of its name allows."""
    if episode.contract is None:
        return False
    names = episode.contract.by_name.get(normalise(answer["name"]), ())
    age_ms = episode.decided_at_ms - answer["event_time_ms"]
    return all(age_ms > episode.contract.fields[name].freshness_ms for name in names)
