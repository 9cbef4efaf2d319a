"""The evidence graph (section 2): observation → field → derived field → constraint → action, as its record tells it.

Built with networkx where it is looked at or exported; a timed decision uses the contract's compiled order instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import networkx as nx


def evidence_graph(document: Mapping[str, Any]) -> nx.DiGraph:
    """The graph of a decision with its full record. Node attribute `kind`: observation, field, constraint, action.

    Edges point from what supports to what is supported; parents are in it, where the ledger holds them.
    Raises KeyError where the document has no full record.
    """
    record = document["record"]
    observations = {o["id"]: o for o in record["episode"]["observations"]}
    contract = record["episode"]["contract"] or {"fields": {}, "constraints": []}
    constraints = {c["id"] for c in contract.get("constraints", [])}
    graph = nx.DiGraph()
    for name in contract["fields"]:
        graph.add_node(("field", name), kind="field", label=name)
    for source, target in record["support_graph"] or []:
        start = ("observation", source) if source in observations else _place(source, contract, constraints)
        end = _place(target, contract, constraints)
        for node in (start, end):
            graph.add_node(node, kind=node[0], label=node[1])
        graph.add_edge(start, end)
    waiting = [node[1] for node in graph.nodes if node[0] == "observation"]
    while waiting:
        child = waiting.pop()
        for parent in observations[child]["parents"]:
            if parent in observations and not graph.has_edge(("observation", parent), ("observation", child)):
                graph.add_node(("observation", parent), kind="observation", label=parent)
                graph.add_edge(("observation", parent), ("observation", child))
                waiting.append(parent)
    return graph


def _place(name: str, contract: Mapping[str, Any], constraints: set[str]) -> tuple[str, str]:
    if name == "action":
        return ("action", name)
    return ("field", name) if name in contract["fields"] and name not in constraints else ("constraint", name)
