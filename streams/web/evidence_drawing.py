"""The evidence graph of one decision, laid out in layers for the page to draw. Pure.

Layers from left to right: ancestors of observations, observations, observed fields, derived and planned fields,
constraints, the action. Every edge leads to a layer further right. The result is bounded, however large the graph is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

import networkx as nx

from xapp.evidence.graph import evidence_graph

MAX_ROWS: Final = 40
"""Nodes that are drawn in one layer; the others are folded into one more, which says how many."""

MAX_GENERATIONS: Final = 3
"""How far back ancestors are drawn one by one; those beyond, and those of a cycle, are folded."""

_SWEEPS: Final = 4
_RANK: Final = {"blocked": 0, "supports": 1, "neutral": 2}  # what is kept first where a layer is folded

Node = tuple[str, str]
"""Kind and label, as `evidence_graph` names a node."""


def drawing(document: Mapping[str, Any]) -> dict[str, Any]:
    """`{"nodes": [{"id", "kind", "label", "detail", "layer", "row", "state"}], "edges": [[from, to]]}` of a decision
    with its full record.

    `kind` is observation, field, constraint, action, or folded; `state` is supports, blocked or neutral; edges hold
    indices of `nodes`. Besides what supports, it shows what violations name. Raises KeyError without a full record.
    """
    graph, held = evidence_graph(document), _held(document)
    graph.add_node(_ACTION, kind="action", label="action")
    support = frozenset(graph.nodes)
    _add_faults(graph, document, held)
    states = _states(graph, document, support)
    layers = _layers(graph)
    shown, stands_for = _fold(layers, states)
    edges = _edges(graph, layers, stands_for)
    order = _ordered([row for row in shown if row], edges)
    folded = Counter(stands_for.values())
    nodes: list[dict[str, Any]] = []
    index: dict[Node, int] = {}
    for number, row in enumerate(order):
        for place, node in enumerate(row):
            index[node] = len(nodes)
            nodes.append(
                {
                    **_told(node, document, held, folded[node]),
                    "layer": number,
                    "row": place,
                    "state": states.get(node, "neutral"),
                }
            )
    return {"nodes": nodes, "edges": sorted([index[a], index[b]] for a, b in edges)}


_ACTION: Final[Node] = ("action", "action")


def _held(document: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {o["id"]: o for o in document["record"]["episode"]["observations"]}


def _add_faults(graph: nx.DiGraph, document: Mapping[str, Any], held: Mapping[str, Mapping[str, Any]]) -> None:
    """The observations that violations name, their parents, and what they speak against."""
    for violation in document["violations"]:
        named = [("observation", i) for i in violation["observations"] if i in held]
        for node in named:
            graph.add_node(node, kind="observation", label=node[1])
        _add_parents(graph, named, held)
        kinds = (("field", violation["field"]), ("constraint", violation["constraint"]))
        targets = [node for node in kinds if node in graph] or [_ACTION]
        above = {node for node in named if any(child in named for child in graph.successors(node))}
        for node in [node for node in named if node not in above] or named:
            graph.add_edges_from((node, target) for target in targets)


def _add_parents(graph: nx.DiGraph, nodes: Iterable[Node], held: Mapping[str, Mapping[str, Any]]) -> None:
    waiting = list(nodes)
    while waiting:
        child = waiting.pop()
        if held[child[1]]["origin"] == "operator":
            continue  # its parents are what it settled, not what it was computed from
        for parent in held[child[1]]["parents"]:
            node = ("observation", parent)
            if parent in held and not graph.has_edge(node, child):
                graph.add_node(node, kind="observation", label=parent)
                graph.add_edge(node, child)
                waiting.append(node)


def _states(graph: nx.DiGraph, document: Mapping[str, Any], support: frozenset[Node]) -> dict[Node, str]:
    blocking = [v for v in document["violations"] if v["blocking"]]
    at_fault = {("observation", i) for i in document["blocked"]}
    at_fault |= {("observation", i) for v in blocking for i in v["observations"]}
    at_fault |= {("field", v["field"]) for v in blocking} | {("constraint", v["constraint"]) for v in blocking}
    candidate = document["record"]["candidate"] or {}
    valued = candidate.keys() | document["used"].keys()
    found = {}
    for node in graph.nodes:
        kind, label = node
        if kind == "action":
            found[node] = "supports" if document["action"] == "APPLY" else "blocked"
        elif node in at_fault:
            found[node] = "blocked"
        elif kind == "observation":
            found[node] = "supports" if node in support else "neutral"
        elif kind == "field":
            found[node] = "supports" if label in valued else "neutral"
        else:
            judged = all(name in valued for inner, name in graph.predecessors(node) if inner == "field")
            found[node] = "supports" if judged else "neutral"
    return found


def _layers(graph: nx.DiGraph) -> dict[Node, int]:
    """Node → layer: ancestors by how far they lie back, fields by how much they are derived from."""
    generation = _generations(graph)
    first = max(generation.values(), default=0)
    found = {node: first - back for node, back in generation.items()}
    order = {node: place for place, node in enumerate(graph.nodes)}  # a view of some nodes has them in none
    fields = graph.subgraph([node for node in graph.nodes if node[0] == "field"])
    last = first
    for depth, names in enumerate(nx.topological_generations(fields)):
        last = first + 1 + depth
        found.update(dict.fromkeys(sorted(names, key=order.__getitem__), last))
    constraints = [node for node in graph.nodes if node[0] == "constraint"]
    found.update(dict.fromkeys(constraints, last + 1))
    found[_ACTION] = last + (2 if constraints else 1)
    return found


def _generations(graph: nx.DiGraph) -> dict[Node, int]:
    """Observation → how far it lies behind those that stand for themselves, by the longest way, at most one too far."""
    observations = [node for node in graph.nodes if node[0] == "observation"]
    found = dict.fromkeys(observations, 0)
    for _ in range(MAX_GENERATIONS + 1):
        for node in observations:
            behind = [found[child] + 1 for child in graph.successors(node) if child[0] == "observation"]
            found[node] = min(max(behind, default=0), MAX_GENERATIONS + 1)
    return found


def _fold(layers: Mapping[Node, int], states: Mapping[Node, str]) -> tuple[list[list[Node]], dict[Node, Node]]:
    """The nodes that are drawn, by layer; and of those that are not, which one stands for them."""
    found: list[list[Node]] = [[] for _ in range(max(layers.values()) + 1)]
    for node, layer in layers.items():
        found[layer].append(node)
    own = min((layer for node, layer in layers.items() if node[0] == "field"), default=None)
    stands_for: dict[Node, Node] = {}
    for number, nodes in enumerate(found):
        beyond = own is not None and own - 1 - number > MAX_GENERATIONS
        if beyond or len(nodes) > MAX_ROWS:
            kept = [] if beyond else sorted(nodes, key=lambda node: _RANK[states[node]])[:MAX_ROWS]
            fold = ("folded", str(number))
            stands_for.update(dict.fromkeys(set(nodes) - set(kept), fold))
            found[number] = [*(node for node in nodes if node in set(kept)), fold]
    return found, stands_for


def _edges(graph: nx.DiGraph, layers: Mapping[Node, int], stands_for: Mapping[Node, Node]) -> list[tuple[Node, Node]]:
    """Each edge once, between nodes that are drawn; those of a cycle lie within what is folded."""
    forward = ((a, b) for a, b in graph.edges if layers[a] < layers[b])
    return list(dict.fromkeys((stands_for.get(a, a), stands_for.get(b, b)) for a, b in forward))


def _ordered(layers: list[list[Node]], edges: Iterable[tuple[Node, Node]]) -> list[list[Node]]:
    """Rows within each layer, so that edges cross little: each node at the mean height of its neighbours, in sweeps to
    the right and back (the barycentre method of Sugiyama et al., 1981). What is folded comes last.
    """
    before: dict[Node, list[Node]] = {}
    after: dict[Node, list[Node]] = {}
    for a, b in edges:
        after.setdefault(a, []).append(b)
        before.setdefault(b, []).append(a)
    found = [list(nodes) for nodes in layers]
    height: dict[Node, float] = {}
    for nodes in found:
        _place(nodes, height)
    for sweep in range(_SWEEPS):
        neighbours, way = (before, found) if sweep % 2 == 0 else (after, found[::-1])
        for nodes in way:
            wanted = {
                node: sum(height[n] for n in near) / len(near) if (near := neighbours.get(node)) else height[node]
                for node in nodes
            }
            nodes.sort(key=lambda node: (node[0] == "folded", wanted[node]))
            _place(nodes, height)
    return found


def _place(nodes: list[Node], height: dict[Node, float]) -> None:
    """The height of each row, between 0 and 1: layers are drawn centred."""
    height.update({node: (row + 1) / (len(nodes) + 1) for row, node in enumerate(nodes)})


def _told(
    node: Node, document: Mapping[str, Any], held: Mapping[str, Mapping[str, Any]], folded: int
) -> dict[str, Any]:
    kind, label = node
    detail = ""
    if kind == "folded":
        label, detail = f"and {folded} more", f"{folded} that are not drawn one by one"
    elif kind == "action":
        label, detail = document["action"], document["explanation"]
    elif kind == "observation":
        o = held[label]
        age = document["record"]["episode"]["decided_at_ms"] - o["event_time_ms"]
        label = f"{o['name']} {_quantity(o)}"
        detail = f"{o['id']} from {o['source']}, measured {age} ms before the decision"
    elif kind == "field":
        detail = _field_told(label, document)
    else:
        constraints = document["record"]["episode"]["contract"]["constraints"]
        detail = next(c["expr"] for c in constraints if c["id"] == label)
    name = "action" if kind == "action" else f"{kind}:{node[1]}"
    return {"id": name, "kind": kind, "label": label, "detail": detail}


def _field_told(name: str, document: Mapping[str, Any]) -> str:
    record = document["record"]
    entry = (record["candidate"] or {}).get(name) or (record["normalised"] or {}).get(name)
    if entry is None:
        return "no value"
    return f"{len(entry['members'])} members" if "members" in entry else _quantity(entry)


def _quantity(entry: Mapping[str, Any]) -> str:
    value, unit = entry["value"], entry["unit"]
    if value is None:
        return "no value"
    shown = f"{len(value)} members" if isinstance(value, dict) else str(value)
    return shown if unit in (None, "1") else f"{shown} {unit}"
