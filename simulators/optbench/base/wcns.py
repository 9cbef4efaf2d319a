"""WCNS, 5G network slicing: a new user joins; which slice, how much of it, and at what rate."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, Final, Literal

from simulators.optbench.base.channel import cell_load, draw_line_of_sight, ray_tracing
from simulators.optbench.base.rules import SLICES, bandwidth_mhz, throughput_mbit_s
from simulators.optbench.base.services import SERVICES
from simulators.optbench.contracts import wcns_contract
from simulators.optbench.model import BaseItem

REGIONS: Final = ("Harbour", "Old_Town", "Campus")
REACH_M: Final = 200.0
"""How far from the base station users are, along each axis."""
MOST_USERS: Final[dict[str, int]] = {"eMBB": 12, "URLLC": 10}

_QUESTION: Final = """\
A new user joins a 5G cell with two slices. Decide what it gets.

State of the network:
- eMBB slice: {embb_users} active users, capacity 90 MHz, 6 to 20 MHz per user
- URLLC slice: {urllc_users} active users, capacity 30 MHz, 1 to 5 MHz per user

The user:
- stands at ({user_x}, {user_y}) m in region {region}
- says: "I want to {service_request}"

The CQI is not given: call ray_tracing(user_x={user_x}, user_y={user_y}, region="{region}").

Work out, in this order:
1. CQI: what the tool returns
2. Slice: eMBB (much data) or URLLC (little delay)
3. Bandwidth B: capacity of the slice / (its users + 1), kept in the range of the slice, two decimals, in MHz
4. Throughput: 10 · B · log10(1 + 10^(CQI/10)), two decimals, in Mbit/s"""


def slicing_state(
    item_id: str, item_input: Mapping[str, Any], slice_type: str, cqi: int, x_m: float, y_m: float
) -> dict[str, float | int | str]:
    """The observed fields that WCNS and WCMSA share. `item_input`: WirelessBench's `input`."""
    return {
        "service_class": slice_type,
        "embb_users": item_input["embb_users"],
        "urllc_users": item_input["urllc_users"],
        "embb_capacity": SLICES["eMBB"].capacity_mhz,
        "urllc_capacity": SLICES["URLLC"].capacity_mhz,
        "x": x_m,
        "y": y_m,
        "cqi": cqi,
        "load": cell_load(item_id),
    }


def slicing_plan(item_input: Mapping[str, Any], slice_type: str, cqi: int) -> dict[str, float | str]:
    """The reference values of the plan that WCNS and WCMSA share (MHz, Mbit/s)."""
    bandwidth = bandwidth_mhz(slice_type, item_input["embb_users" if slice_type == "eMBB" else "urllc_users"])
    return {"slice_type": slice_type, "bandwidth": bandwidth, "throughput": throughput_mbit_s(bandwidth, cqi)}


def wcns_item(
    item_id: str,
    origin: Literal["file", "generated"],
    question: str,
    item_input: Mapping[str, Any],
    slice_type: str,
    cqi: int,
) -> BaseItem:
    """The item whose user asks for a service of `slice_type` and hears the cell with `cqi`; answered by the rules.

    `item_input`: WirelessBench's `input` of a WCNS item. Raises KeyError for a slice that does not exist.
    """
    plan = slicing_plan(item_input, slice_type, cqi)
    return BaseItem(
        task="WCNS",
        item_id=item_id,
        origin=origin,
        question=question,
        input=item_input,
        contract=wcns_contract(),
        observed=slicing_state(item_id, item_input, slice_type, cqi, item_input["user_x"], item_input["user_y"]),
        lineage={"cqi": ("x", "y")},
        plan=plan,
        answer={
            "slice_type": slice_type,
            "cqi": cqi,
            "bandwidth": plan["bandwidth"],
            "throughput": plan["throughput"],
        },
    )


def generate_wcns(rng: random.Random, number: int) -> BaseItem:
    """A drawn item, named `generated-NUMBER`."""
    service = rng.choice(SERVICES)
    x_m, y_m = (round(rng.uniform(-REACH_M, REACH_M), 2) for _ in range(2))
    item_input = {
        "embb_users": rng.randint(2, MOST_USERS["eMBB"]),
        "urllc_users": rng.randint(2, MOST_USERS["URLLC"]),
        "user_x": x_m,
        "user_y": y_m,
        "region": rng.choice(REGIONS),
        "service_request": service.request,
    }
    cqi = ray_tracing(x_m, y_m, draw_line_of_sight(rng, x_m, y_m)).cqi
    question = _QUESTION.format_map(item_input)
    return wcns_item(f"generated-{number}", "generated", question, item_input, service.slice_type, cqi)
