"""W3C PROV export of a decision's record, as PROV-JSON (W3C Member Submission, 24 April 2013)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xapp.evidence.graph import evidence_graph

NAMESPACE = "urn:wirelessops:"


def prov_json(document: Mapping[str, Any]) -> dict[str, Any]:
    """The PROV-JSON document of a decision with its full record.

    Entities: observations that support something, fields with a value, constraints, the proposal, the decision, and the
    reference map of the support gate, where there is one.
    Activities: the deciding, and each repair. Agents: the sources, the proposer, the engine.
    Raises KeyError where the document has no full record.
    """
    record, decision = document["record"], f"w:decision/{document['decision_id']}"
    observations = {o["id"]: o for o in record["episode"]["observations"]}
    proposal = record["episode"]["proposal"]
    graph = evidence_graph(document)
    deciding = f"w:deciding/{document['decision_id']}"
    engine, asked = "w:agent/assure", f"w:proposal/{document['proposal_id']}"
    entity: dict[str, Any] = {
        decision: {"prov:type": "w:Decision", "w:action": document["action"], "w:explanation": document["explanation"]},
        asked: {"prov:type": "w:Proposal", "w:created_at_ms": proposal.get("created_at_ms")},
    }
    agent: dict[str, Any] = {engine: {"prov:type": "prov:SoftwareAgent"}}
    derived: dict[str, Any] = {}
    attributed: dict[str, Any] = {}
    used: dict[str, Any] = {"_:u0": {"prov:activity": deciding, "prov:entity": asked}}
    for kind, name in graph.nodes:
        if kind == "action":
            continue
        node = f"w:{kind}/{name}"
        entity[node] = {"prov:type": f"w:{kind.capitalize()}"}
        if kind == "observation":
            o = observations[name]
            source = f"w:source/{o['source']}"
            entity[node] |= {f"w:{k}": o[k] for k in ("name", "value", "unit", "event_time_ms", "ingest_time_ms")}
            agent[source] = {"prov:type": "w:Source"}
            attributed[f"_:a{len(attributed)}"] = {"prov:entity": node, "prov:agent": source}
            used[f"_:u{len(used)}"] = {"prov:activity": deciding, "prov:entity": node}
    for start, end in graph.edges:
        target = decision if end[0] == "action" else f"w:{end[0]}/{end[1]}"
        derived[f"_:d{len(derived)}"] = {"prov:generatedEntity": target, "prov:usedEntity": f"w:{start[0]}/{start[1]}"}
    activity: dict[str, Any] = {deciding: {"prov:type": "w:Deciding", "w:t_ms": record["episode"]["decided_at_ms"]}}
    generated = {"_:g0": {"prov:entity": decision, "prov:activity": deciding}}
    informed: dict[str, Any] = {}
    for i, repair in enumerate(document["repairs"]):
        name = f"{deciding}/repair/{i}"
        activity[name] = {"prov:type": "w:Repair", "w:operator": repair["operator"], "w:field": repair["field"]}
        generated[f"_:g{len(generated)}"] = {"prov:entity": f"w:field/{repair['field']}", "prov:activity": name}
        informed[f"_:i{i}"] = {"prov:informed": deciding, "prov:informant": name}
        for observation in repair["support"]:
            used[f"_:u{len(used)}"] = {"prov:activity": name, "prov:entity": f"w:observation/{observation}"}
    reference = (document.get("support") or {}).get("map")
    if reference is not None:
        node = f"w:support-map/{reference['map_id']}/{reference['version']}"
        entity[node] = {"prov:type": "w:SupportMap", "w:digest": reference["digest"]}
        used[f"_:u{len(used)}"] = {"prov:activity": deciding, "prov:entity": node}
    proposer = proposal.get("proposer")
    if isinstance(proposer, str):
        agent[f"w:proposer/{proposer}"] = {"prov:type": "prov:SoftwareAgent"}
        attributed[f"_:a{len(attributed)}"] = {"prov:entity": asked, "prov:agent": f"w:proposer/{proposer}"}
    return {
        "prefix": {"w": NAMESPACE, "prov": "http://www.w3.org/ns/prov#"},
        "entity": entity,
        "activity": activity,
        "agent": agent,
        "used": used,
        "wasGeneratedBy": generated,
        "wasDerivedFrom": derived,
        "wasAttributedTo": attributed,
        "wasAssociatedWith": {"_:w0": {"prov:activity": deciding, "prov:agent": engine}},
        "wasInformedBy": informed,
    }
