"""The execution contract of each task (docs/optbench.md, "Fields of the contracts"), as contract documents.

Every observed field lists a primary and a secondary source, an alias of its own, the schema identifiers that it
accepts, and a tolerance that leaves room for an immaterial disagreement. Pairs of fields share one more alias, so that
a report under that name is ambiguous. The count of users is an average over the report's period (3GPP TS 28.552,
5.1.1.23), so two sources may differ by a fraction: half a user is immaterial. No parent may be older than its child may
be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import cycle
from typing import Any, Final

from simulators.optbench.base.formula import Formula

Document = dict[str, Any]

FAST_MS: Final = 1000
SLOW_MS: Final = 5000
SKEW_MS: Final = 100
A3_OFFSET_DB: Final = 3
A3_WINDOW_MS: Final = 480
A3_GAP_MS: Final = 200
"""Longest silence between two samples: one sample in 120 ms may not be missed, two may not be lost."""

_CELL: Final = ("e2:gnb-1", "o1:gnb-1")
_INVENTORY: Final = ("smo:inventory", "o1:gnb-1")
_LOCATION: Final = ("gnss:ue", "core:lmf")
_POLICY: Final = ("a1:policy", "smo:catalogue")
_RADIO: Final = ("rrc:ue", "e2:gnb-1")
_RAY_TRACING: Final = ("tool:ray-tracing", "tool:ray-tracing-2")
_CALCULATOR: Final = ("tool:calculator", "tool:calculator-2")
_PARAMETER_SOURCES: Final = (("smo:inventory", "smo:catalogue"), _CELL, ("core:nwdaf", "core:oam"))

_KPM: Final = ("e2sm-kpm/3", "e2sm-kpm/2")
# limits that no sane value of a WCHW field reaches, by unit; others: 0 to 1e15
_LIMITS: Final[Mapping[str, tuple[float, float]]] = {
    "dB": (-400.0, 400.0), "dBm": (-400.0, 400.0), "deg": (-360.0, 360.0), "1": (-1e15, 1e15),
}  # fmt: skip
_RESULT_LIMITS: Final = (-1e18, 1e18)
# where a share of the value leaves no room at 0, by unit
_ROOM: Final[Mapping[str, Mapping[str, float]]] = {
    "dB": {"tolerance": 0.2}, "dBm": {"tolerance": 0.2}, "deg": {"tolerance": 1.0},
}  # fmt: skip
_SHARE: Final[Mapping[str, float]] = {"rel_tolerance": 0.02}


def _observed(
    unit: str,
    limits: tuple[float, float],
    sources: Iterable[str],
    schemas: Iterable[str],
    aliases: Iterable[str],
    room: Mapping[str, float],
    freshness_ms: int = FAST_MS,
) -> Document:
    return {
        "kind": "observed", "unit": unit, "min": limits[0], "max": limits[1], "aliases": list(aliases),
        "freshness_ms": freshness_ms, "sources": list(sources), "schemas": list(schemas), **room,
    }  # fmt: skip


def _load() -> Document:
    """For the operator's eyes: nothing reads it, nothing wrong with it blocks."""
    return {**_observed("%", (0, 100), _CELL, _KPM, ["RRU.PrbTotDl"], _SHARE), "critical": False}


def _position(aliases: Iterable[str]) -> Document:
    return _observed("m", (-5000, 5000), _LOCATION, ["lpp/17", "lpp/16"], aliases, {"tolerance": 1.0})


def _slicing_observed() -> Document:
    users, half = (0, 1000), {"tolerance": 0.5}
    return {
        "service_class": {
            "kind": "observed", "type": "string", "aliases": ["slice_service_type"], "freshness_ms": SLOW_MS,
            "sources": list(_POLICY), "schemas": ["a1-policy/2"],
        },
        "embb_users": _observed("1", users, _CELL, _KPM, ["DRB.MeanActiveUeDl.eMBB", "users"], half),
        "urllc_users": _observed("1", users, _CELL, _KPM, ["DRB.MeanActiveUeDl.URLLC", "users"], half),
        "embb_capacity": _observed(
            "MHz", (0, 1000), _INVENTORY, ["o1-nrm/18"], ["embb_bandwidth_total", "capacity"], _SHARE, SLOW_MS
        ),
        "urllc_capacity": _observed(
            "MHz", (0, 1000), _INVENTORY, ["o1-nrm/18"], ["urllc_bandwidth_total", "capacity"], _SHARE, SLOW_MS
        ),
        "x": _position(["ue_x", "position"]),
        "y": _position(["ue_y", "position"]),
        "cqi": _observed("1", (0, 15), _RAY_TRACING, ["ray-tracing/1"], ["wideband_cqi"], {"tolerance": 1}),
        "load": _load(),
    }  # fmt: skip


def _slicing_plan() -> Document:
    """Planned and derived fields of both slicing tasks: the published rules (`base.rules`) as expressions."""
    embb = "min(max(round(embb_capacity/(embb_users+1), 2), 6), 20)"
    urllc = "min(max(round(urllc_capacity/(urllc_users+1), 2), 1), 5)"
    return {
        "slice_type": {"kind": "planned", "type": "string", "repairable": True, "expr": "service_class"},
        "bandwidth": {
            "kind": "planned", "unit": "MHz", "min": 0, "max": 100, "repairable": True, "rel_tolerance": 0.01,
            "expr": f'if(slice_type == "eMBB", {embb}, {urllc})',
        },
        "throughput": {
            "kind": "derived", "unit": "Mbit/s", "min": 0, "max": 10000, "rel_tolerance": 0.01,
            "expr": "round(10*bandwidth*log10(1+10**(cqi/10)), 2)",
        },
    }  # fmt: skip


def _slicing_constraints() -> list[Document]:
    return [
        {"id": "capacity", "expr": 'bandwidth <= if(slice_type == "eMBB", embb_capacity, urllc_capacity)'},
        {"id": "range", "expr": 'if(slice_type == "eMBB", 6 <= bandwidth <= 20, 1 <= bandwidth <= 5)'},
    ]


def _contract(contract_id: str, fields: Document, constraints: list[Document]) -> Document:
    return {
        "contract_id": contract_id, "fields": fields, "constraints": constraints, "max_clock_skew_ms": SKEW_MS,
        "override_intent": True,
    }  # fmt: skip


def wcns_contract() -> Document:
    """The contract of every WCNS item. A document of its own at each call."""
    return _contract("optbench-wcns/1", {**_slicing_observed(), **_slicing_plan()}, _slicing_constraints())


def wcmsa_contract() -> Document:
    """The contract of every WCMSA item: WCNS's, with the next position, the rate needed, and event A3 as of eq. (4)."""
    rsrp = (-156, -31)  # what TS 38.133, table 10.1.6.1-1, can report
    observed = {
        **_slicing_observed(),
        "x_previous": _position(["ue_x_previous", "previous_position"]),
        "y_previous": _position(["ue_y_previous", "previous_position"]),
        "min_rate": _observed(
            "Mbit/s", (0, 10000), _POLICY, ["a1-policy/2"], ["guaranteed_bit_rate"], _SHARE, SLOW_MS
        ),
        "rsrp_serving": _observed("dBm", rsrp, _RADIO, ["rrc/17", "rrc/16"], ["ss_rsrp", "rsrp"], {"tolerance": 1.0}),
        "rsrp_target": _observed(
            "dBm", rsrp, _RADIO, ["rrc/17", "rrc/16"], ["ss_rsrp_neighbour", "rsrp"], {"tolerance": 1.0}
        ),
    }
    position = {"kind": "planned", "unit": "m", "min": -10000, "max": 10000, "repairable": True, "tolerance": 0.01}
    planned = {
        **_slicing_plan(),
        "position_x": {**position, "expr": "round(2*x - x_previous, 2)"},
        "position_y": {**position, "expr": "round(2*y - y_previous, 2)"},
    }
    constraints = [
        *_slicing_constraints(),
        {"id": "qos", "expr": "throughput >= min_rate"},
        {
            "id": "a3", "expr": f"rsrp_target - rsrp_serving >= {A3_OFFSET_DB}", "window_ms": A3_WINDOW_MS,
            "max_gap_ms": A3_GAP_MS,
        },
    ]  # fmt: skip
    return _contract("optbench-wcmsa/1", {**observed, **planned}, constraints)


def wchw_contract(formula: Formula) -> Document:
    """The contract of the WCHW items of one formula: its parameters, the calculator's result, and the answer.

    The first two of parameters and result share the alias `reading`.
    """
    fields: Document = {}
    for parameter, sources in zip(formula.parameters, cycle(_PARAMETER_SOURCES), strict=False):
        aliases = [f"{formula.name}_{parameter.name}", *(["reading"] if len(fields) < 2 else [])]
        limits = _LIMITS.get(parameter.unit, (0.0, 1e15))
        room = _ROOM.get(parameter.unit, _SHARE)
        fields[parameter.name] = _observed(parameter.unit, limits, sources, ["o1-nrm/18", "o1-nrm/17"], aliases, room)
    aliases = [f"{formula.name}_value", *(["reading"] if len(fields) < 2 else [])]
    fields["result"] = _observed(formula.unit, _RESULT_LIMITS, _CALCULATOR, ["formula/1"], aliases, _SHARE)
    fields["load"] = _load()
    fields["answer"] = {
        "kind": "planned", "unit": formula.unit, "min": _RESULT_LIMITS[0], "max": _RESULT_LIMITS[1],
        "repairable": True, "rel_tolerance": 0.005, "expr": "result",
    }  # fmt: skip
    return _contract(f"optbench-wchw-{formula.name}/1", fields, [])
