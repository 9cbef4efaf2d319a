"""Freshness and order: values that were right once, reports that come late, twice, or in the wrong order."""

from __future__ import annotations

from typing import Final

from simulators.optbench.model import Change, Facts
from simulators.optbench.realisation.family import Family
from simulators.optbench.realisation.scene import PLANES, PRIMARY, SECONDARY, Scene


def stale_primary(scene: Scene) -> Facts | None:
    """The primary of a critical field tells an older state, once or twice; its secondary is current."""
    name = scene.pick(scene.critical())
    if name is None or not scene.cover(name):
        return None
    scene.change(name, [PRIMARY], *scene.stale_report(name))
    return scene.facts()


def late_arrival(scene: Scene) -> Facts | None:
    """A report of a critical field arrives after one that was measured later: superseded, or telling the same."""
    name = scene.pick(scene.numeric(scene.measured(scene.critical())))
    if name is None:
        return None
    scene.change(name, [PRIMARY], scene.harmless_late_report(name))
    return scene.facts()


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
        scene.make_late(name, plane)
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
    names = scene.numeric(scene.measured(scene.critical()))
    picked = scene.pick([(n, c.amount) for n in names if (c := scene.material_difference(n))])
    if picked is None:
        return None
    name, amount = picked
    scene.change(name, [PRIMARY], scene.late_report(name, "overwritten", amount))
    return scene.facts()


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
    Family("overwritten_by_older", "freshness_order", "guards against a producer's own numbering; of its clocks, O-RAN "
           "SC ranpm: epochs that start after they end", overwritten_by_older),
)  # fmt: skip
