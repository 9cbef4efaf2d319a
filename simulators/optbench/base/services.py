"""What users ask for: requests of both slices, in our own words, with the rate and latency that each needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Service:
    """A request as a user words it. `min_rate` in Mbit/s; `latency`: critical, moderate or tolerant."""

    request: str
    slice_type: str
    min_rate: int
    latency: str


SERVICES: Final[tuple[Service, ...]] = (
    Service("watch the football final in ultra high definition", "eMBB", 25, "tolerant"),
    Service("upload the holiday videos to the cloud", "eMBB", 30, "tolerant"),
    Service("hold a video call with the whole family", "eMBB", 15, "moderate"),
    Service("walk through a museum with a virtual reality headset", "eMBB", 40, "moderate"),
    Service("install the new release of a large game", "eMBB", 35, "tolerant"),
    Service("look at satellite pictures of the whole campus", "eMBB", 20, "tolerant"),
    Service("broadcast a concert in 8K", "eMBB", 60, "moderate"),
    Service("back up a laptop overnight", "eMBB", 20, "tolerant"),
    Service("stream a series on the train", "eMBB", 10, "tolerant"),
    Service("work on a desktop that runs in the data centre", "eMBB", 15, "moderate"),
    Service("steer a crane from the control room", "URLLC", 5, "critical"),
    Service("keep the arms of a welding line in step", "URLLC", 6, "critical"),
    Service("trip a breaker when the power line fails", "URLLC", 2, "critical"),
    Service("guide the surgeon's instruments from another hospital", "URLLC", 8, "critical"),
    Service("warn the cars behind of an emergency braking", "URLLC", 4, "critical"),
    Service("fly an inspection drone between the pylons", "URLLC", 8, "critical"),
    Service("stop the press when a hand comes near", "URLLC", 3, "critical"),
    Service("watch over a patient's heart beat by beat", "URLLC", 4, "critical"),
    Service("couple the trucks of a platoon", "URLLC", 5, "critical"),
    Service("close the control loop of a chemical reactor", "URLLC", 2, "critical"),
)
