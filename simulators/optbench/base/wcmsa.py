"""WCMSA, mobility service assurance: where a moving user will be, and whether the cell can serve it there.

Published items hold no handover. The RSRP of both cells is added here, so that eq. (4) holds over the whole window with
room to spare: the target is at least 5 dB above the serving cell at every sample, where 3 dB are needed.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import Any, Final, Literal

from simulators.optbench.base.channel import draw_line_of_sight, ray_tracing, rsrp_dbm
from simulators.optbench.base.rules import predicted_m, qos_satisfied
from simulators.optbench.base.services import SERVICES
from simulators.optbench.base.wcns import MOST_USERS, REACH_M, REGIONS, slicing_plan, slicing_state
from simulators.optbench.contracts import wcmsa_contract
from simulators.optbench.model import BaseItem

POSITIONS: Final = 6
SAMPLE_AGES_MS: Final = (640, 520, 400, 280, 160)
"""Ages at t of the samples before the newest, which must be younger: 120 ms apart, the first two before the window."""

_QUESTION: Final = """\
A user moves through a 5G cell with two slices. Provide for where it will be next.

The user:
- was at {trail}, and is now at ({x}, {y}) m, in region {region}
- says: "I want to {service_request}"
- needs at least {min_rate} Mbit/s; latency: {latency_requirement}

State of the network:
- eMBB slice: {embb_users} active users, capacity 90 MHz, 6 to 20 MHz per user
- URLLC slice: {urllc_users} active users, capacity 30 MHz, 1 to 5 MHz per user

The CQI is not given: once the next position is known, call ray_tracing(user_x, user_y, region="{region}") with it.

Work out, in this order:
1. Next position: the last step repeated, two decimals, in m
2. CQI: what the tool returns for that position
3. Slice: eMBB (much data) or URLLC (little delay)
4. Bandwidth B: capacity of the slice / (its users + 1), kept in the range of the slice, two decimals, in MHz
5. Throughput: 10 · B · log10(1 + 10^(CQI/10)), two decimals, in Mbit/s
6. QoS: whether the throughput reaches the rate that the user needs"""


def wcmsa_item(
    item_id: str,
    origin: Literal["file", "generated"],
    question: str,
    item_input: Mapping[str, Any],
    slice_type: str,
    cqi: int,
    rx_power_dbm: float,
) -> BaseItem:
    """The item whose user asks for a service of `slice_type`, and will hear the cell with `cqi` and `rx_power_dbm`.

    `item_input`: WirelessBench's `input` of a WCMSA item, with at least two positions; answered by the rules, also
    where the answer is that the rate cannot be reached. Raises KeyError for a slice that does not exist.
    """
    previous, current = item_input["trajectory"][-2:]
    plan = slicing_plan(item_input, slice_type, cqi)
    position = {axis: predicted_m(previous[axis], current[axis]) for axis in ("x", "y")}
    serving, target = _rsrp_samples(random.Random(f"rsrp:{item_id}"), rsrp_dbm(rx_power_dbm))
    return BaseItem(
        task="WCMSA",
        item_id=item_id,
        origin=origin,
        question=question,
        input=item_input,
        contract=wcmsa_contract(),
        observed={
            **slicing_state(item_id, item_input, slice_type, cqi, current["x"], current["y"]),
            "x_previous": previous["x"],
            "y_previous": previous["y"],
            "min_rate": item_input["min_rate"],
            "rsrp_serving": serving[-1],
            "rsrp_target": target[-1],
        },
        lineage={"cqi": ("x", "y", "x_previous", "y_previous")},
        plan={
            "slice_type": plan["slice_type"],
            "bandwidth": plan["bandwidth"],
            "position_x": position["x"],
            "position_y": position["y"],
            "throughput": plan["throughput"],
        },
        answer={
            "predicted_position": position,
            "predicted_cqi": cqi,
            "slice_type": slice_type,
            "bandwidth": plan["bandwidth"],
            "throughput": plan["throughput"],
            "qos_satisfied": qos_satisfied(float(plan["throughput"]), item_input["min_rate"]),
            "min_rate_required": item_input["min_rate"],
        },
        series={
            "rsrp_serving": tuple(zip(SAMPLE_AGES_MS, serving[:-1], strict=True)),
            "rsrp_target": tuple(zip(SAMPLE_AGES_MS, target[:-1], strict=True)),
        },
    )


def _rsrp_samples(rng: random.Random, level_dbm: float) -> tuple[list[float], list[float]]:
    """Samples of both cells, oldest first, the newest last: the serving cell sinks, the target rises."""
    margin_db, slope_db = rng.uniform(5.5, 9.0), rng.uniform(0.0, 0.3)
    serving: list[float] = []
    target: list[float] = []
    for i in range(len(SAMPLE_AGES_MS) + 1):
        at = level_dbm - slope_db * i + rng.uniform(-0.2, 0.2)
        serving.append(round(at, 1))
        target.append(round(at + margin_db + 2.0 * slope_db * i + rng.uniform(-0.2, 0.2), 1))
    return serving, target


def generate_wcmsa(rng: random.Random, number: int) -> BaseItem:
    """A drawn item, named `generated-NUMBER`, whose rate can be reached: services are drawn until one fits."""
    while True:
        item = _draw(rng, number)
        if item.answer["qos_satisfied"]:
            return item


def _draw(rng: random.Random, number: int) -> BaseItem:
    service = rng.choice(SERVICES)
    trajectory = _trajectory(rng)
    current = trajectory[-1]
    next_x, next_y = (predicted_m(trajectory[-2][axis], current[axis]) for axis in ("x", "y"))
    item_input = {
        "trajectory": trajectory,
        "current_position": current,
        "region": rng.choice(REGIONS),
        "service_request": service.request,
        "min_rate": service.min_rate,
        "latency_requirement": service.latency,
        "embb_users": rng.randint(2, MOST_USERS["eMBB"]),
        "urllc_users": rng.randint(2, MOST_USERS["URLLC"]),
    }
    traced = ray_tracing(next_x, next_y, draw_line_of_sight(rng, next_x, next_y))
    trail = ", ".join(f"({p['x']}, {p['y']})" for p in trajectory[:-1])
    question = _QUESTION.format_map({**item_input, **current, "trail": trail})
    name = f"generated-{number}"
    return wcmsa_item(name, "generated", question, item_input, service.slice_type, traced.cqi, traced.rx_power_dbm)


def _trajectory(rng: random.Random) -> list[dict[str, float]]:
    """A smooth walk: a speed that hardly changes, a heading that drifts (m; one step a second)."""
    x, y = (rng.uniform(-REACH_M, REACH_M) for _ in range(2))
    heading, step = rng.uniform(0.0, 2.0 * math.pi), rng.uniform(0.8, 3.0)
    found: list[dict[str, float]] = []
    for _ in range(POSITIONS):
        found.append({"x": round(x, 2), "y": round(y, 2)})
        heading += rng.gauss(0.0, 0.1)
        length = step * rng.uniform(0.9, 1.1)
        x, y = x + length * math.cos(heading), y + length * math.sin(heading)
    return found
