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
    contract = record["episode"]["contract"] or {"fields": {}}
    graph = nx.DiGraph()
    for name in contract["fields"]:
        graph.add_node(("field", name), kind="field", label=name)
    for source, target in record["support_graph"] or []:
        for kind, label in (_node(source), _node(target)):
            graph.add_node((kind, label), kind=kind, label=label)
        graph.add_edge(_node(source), _node(target))
    waiting = [node[1] for node in graph.nodes if node[0] == "observation"]
    while waiting:
        child = waiting.pop()
        if observations[child]["origin"] == "operator":
            continue  # its parents are what it settled, not what it was computed from
        for parent in observations[child]["parents"]:
            if parent in observations and not graph.has_edge(("observation", parent), ("observation", child)):
                graph.add_node(("observation", parent), kind="observation", label=parent)
                graph.add_edge(("observation", parent), ("observation", child))
                waiting.append(parent)
    return graph


def _node(name: str) -> tuple[str, str]:
    """`kind:label` as the record writes it; the action is a node of its own."""
    kind, _, label = name.partition(":")
    return kind, label or kind
