"""Freshness and order: values that were right once, reports that come late, twice, or in the wrong order."""

from __future__ import annotations

from typing import Final

from simulators.optbench.model import Change, Facts
from simulators.optbench.realisation.family import Family
from simulators.optbench.realisation.scene import PLANES, PRIMARY, SECONDARY, Scene


def stale_primary(scene: Scene) -> Facts | None:
    """The primary of a critical field tells an older state; its secondary is current."""
    name = scene.pick(scene.critical())
    if name is None or not scene.cover(name):
        return None
    scene.change(name, [PRIMARY], Change("aged", scene.old(name)), *scene.older_state(name))
    return scene.facts()


def late_arrival(scene: Scene) -> Facts | None:
    """A report of a critical field arrives after one that was measured later, and is superseded already."""
    found = _older_report(scene, "overtaken")
    return scene.facts() if found else None


def stale_optional(scene: Scene) -> Facts | None:
    """All that tell a non-critical field tell an old value."""
    name = scene.pick(scene.optional())
    if name is None:
        return None
    for plane in PLANES:
        scene.change(name, [plane], Change("aged", scene.old(name)))
    return scene.facts()


def all_stale(scene: Scene) -> Facts | None:
    """All that tell a critical field tell an old value."""
    name = scene.pick(scene.critical())
    if name is None:
        return None
    for plane in PLANES:
        scene.change(name, [plane], Change("aged", scene.old(name)), *scene.older_state(name))
    return scene.facts()


def stale_parent(scene: Scene) -> Facts | None:
    """A value computed a moment ago, in every plane, from an input that is too old for it."""
    name = scene.pick(scene.with_children(scene.critical()))
    if name is None:
        return None
    limit = min(scene.limit_ms(child) for child in scene.descendants(name))
    scene.change(name, PLANES, Change("aged", scene.old(name, limit)))
    return scene.facts()


def repeated_report(scene: Scene) -> Facts | None:
    """The only source of a critical field sends its old report once more, as if it were new."""
    name = scene.pick(scene.measured(scene.critical()))
    if name is None:
        return None
    scene.withhold(name, SECONDARY)
    scene.change(name, [PRIMARY], Change("repeated", scene.old(name)), *scene.older_state(name))
    return scene.facts()


def overwritten_by_older(scene: Scene) -> Facts | None:
    """A source numbers an older, different measurement of a critical field above its newer one."""
    found = _older_report(scene, "overwritten")
    return scene.facts() if found else None


def _older_report(scene: Scene, kind: str) -> bool:
    """Let the primary of a measured field send an older report, still inside the limit, after its newest."""
    options = [(n, c) for n in scene.numeric(scene.measured(scene.critical())) if (c := scene.material_difference(n))]
    picked = scene.pick(options)
    if picked is None:
        return False
    name, difference = picked
    room = scene.limit_ms(name) - scene.age_ms(name, PRIMARY)
    age_ms = scene.rng.randint(room // 8, room * 3 // 4)
    change = Change("overtaken" if kind == "overtaken" else "overwritten", difference.amount, age_ms=age_ms)
    scene.change(name, [PRIMARY], change)
    return True


FAMILIES: Final[tuple[Family, ...]] = (
    Family("stale_primary", "freshness_order", "oran-sc-ric 12: asked for 100 ms reports, got one every 10 to 20 s",
           stale_primary),
    Family("late_arrival", "freshness_order", "NIST FlexRIC KPM: a latency of its own for each indication, so that "
           "reports overtake one another", late_arrival),
    Family("stale_optional", "freshness_order", "SCOPE CSV: real gaps over 500 ms",
           stale_optional),
    Family("all_stale", "freshness_order", "oran-sc-ric 12: no source reports as often as was asked", all_stale),
    Family("stale_parent", "freshness_order", "ColO-RAN xApp logs: 9.6 % of control messages were computed from "
           "re-used, stale input", stale_parent),
    Family("repeated_report", "freshness_order", "ColO-RAN xApp logs: the same input is used again for the next "
           "control", repeated_report),
    Family("overwritten_by_older", "freshness_order", "O-RAN SC ranpm: an epoch that starts after it ends; an older "
           "period written over a newer", overwritten_by_older),
)  # fmt: skip
