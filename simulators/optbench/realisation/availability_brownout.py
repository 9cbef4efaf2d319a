"""Availability and brownout: sources that are out, and what they leave behind."""

from __future__ import annotations

from typing import Final

from simulators.optbench.model import Change, Facts
from simulators.optbench.realisation.family import Family
from simulators.optbench.realisation.scene import PRIMARY, SECONDARY, Scene


def covered_outage(scene: Scene) -> Facts | None:
    """The primary of a critical field tells nothing of use; secondaries tell all that it would have told.

    It is out, and silent, without a value, or known by an old one that a cache hands out; without a value it need not
    be said to be out.
    """
    source = scene.pick(scene.fallible(scene.critical()))
    if source is None or not all(scene.cover(name) for name in scene.primary_of(source)):
        return None
    leaves = scene.rng.choice(("nothing", "no value", "an old value"))
    if leaves == "nothing":
        scene.silence(source)
    elif leaves == "no value":
        scene.blank(source)
    else:
        name = scene.rng.choice([n for n in scene.critical() if scene.source(n, PRIMARY) == source])
        scene.leave_only(source, name)
        scene.make_late(name, PRIMARY)
    if not scene.complete():
        return None
    unannounced = leaves == "no value" and scene.rng.random() < 0.5
    return scene.facts() if unannounced else scene.facts(scene.outage(source))


def outage_with_fresh_value(scene: Scene) -> Facts | None:
    """The primary of a critical field is out, and its last value of it is still inside the limit, or just on it."""
    source = scene.pick(scene.fallible(scene.critical()))
    if source is None:
        return None
    for name in scene.primary_of(source):
        heirs = (name, *scene.descendants(name))
        limit = min(scene.limit_ms(heir) for heir in heirs)
        age_ms = limit if scene.rng.random() < 0.2 else scene.rng.randint(limit // 2, limit * 9 // 10)
        scene.change(name, [PRIMARY], Change("aged", age_ms))
    return scene.facts(scene.outage(source))


def brownout_without_value(scene: Scene) -> Facts | None:
    """The only source of a critical field is out, and reports that it has no value."""
    picked = _only_source_out(scene)
    if picked is None:
        return None
    source, _ = picked
    scene.blank(source)
    return scene.facts(scene.outage(source))


def silent_brownout(scene: Scene) -> Facts | None:
    """The only source of a critical field is out, and nothing arrives from it."""
    picked = _only_source_out(scene)
    if picked is None:
        return None
    source, _ = picked
    scene.silence(source)
    return scene.facts(scene.outage(source))


def brownout_with_stale_cache(scene: Scene) -> Facts | None:
    """The only source of a critical field is out, and a cache still hands out its last value, which is too old."""
    picked = _only_source_out(scene)
    if picked is None:
        return None
    source, name = picked
    scene.leave_only(source, name)
    scene.make_late(name, PRIMARY)
    return scene.facts(scene.outage(source))


def brownout_with_stale_memory(scene: Scene) -> Facts | None:
    """The only source of a critical field is out and silent; an agent recalls a value that is too old."""
    picked = _only_source_out(scene)
    if picked is None:
        return None
    source, name = picked
    scene.silence(source)
    scene.remember(name, PRIMARY, scene.old(name), *scene.older_state(name))
    return scene.facts(scene.outage(source))


def _only_source_out(scene: Scene) -> tuple[str, str] | None:
    """(source, critical field): a primary that can be out, and a field that no other source tells now."""
    fallible = scene.fallible(scene.critical())
    name = scene.pick([n for n in scene.critical() if scene.source(n, PRIMARY) in fallible])
    if name is None:
        return None
    scene.withhold(name, SECONDARY)
    return scene.source(name, PRIMARY), name


FAMILIES: Final[tuple[Family, ...]] = (
    Family("covered_outage", "availability_brownout", "srsRAN_Project 1421: nothing arrives over E2; ranpm brings "
           "counters over Kafka", covered_outage),
    Family("outage_with_fresh_value", "availability_brownout", "SCOPE CSV: real gaps over 500 ms, shorter than "
           "the limit", outage_with_fresh_value),
    Family("brownout_without_value", "availability_brownout", "SCOPE CSV: dl_n_samples = 0 rows whose zeros are no "
           "measurements; FlexRIC's incomplete_flag", brownout_without_value),
    Family("silent_brownout", "availability_brownout", "srsRAN_Project 1421: subscription succeeds, nothing ever "
           "arrives", silent_brownout),
    Family("brownout_with_stale_cache", "availability_brownout", "oran-sc-ric 12: one report every 10 to 20 s; guards "
           "against the last of them taken for the state of now", brownout_with_stale_cache),
    Family("brownout_with_stale_memory", "availability_brownout", "ColO-RAN xApp logs: control computed from re-used, "
           "stale input", brownout_with_stale_memory),
)  # fmt: skip
