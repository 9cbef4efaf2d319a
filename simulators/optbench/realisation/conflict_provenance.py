"""Conflict and provenance: sources that differ, one that contradicts itself, and values that come from nowhere."""

from __future__ import annotations

from typing import Final

from simulators.optbench.model import Change, Facts
from simulators.optbench.realisation.family import Family
from simulators.optbench.realisation.scene import PLANES, PRIMARY, SECONDARY, Scene


def immaterial_disagreement(scene: Scene) -> Facts | None:
    """Fresh reports of a critical field differ by less than the tolerance: of two sources, or of the primary.

    The primary tells two values of one instant, or numbers an older one above its newest. Elsewhere in the scene a
    lineage may be lost of a value that the secondary tells too.
    """
    options = [(n, d) for n in scene.numeric(scene.critical()) if (d := scene.harmless_difference(n)) is not None]
    picked = scene.pick(options)
    if picked is None:
        return None
    name, amount = picked
    _lose_lineage_beside(scene, name)
    ways = ["two sources", "one instant", *(["out of order"] if scene.measured([name]) else [])]
    way = scene.rng.choice(ways)
    if way == "one instant":
        scene.change(name, [PRIMARY], Change("contradicted", amount))
    elif way == "out of order":
        scene.change(name, [PRIMARY], scene.late_report(name, "overwritten", amount))
    elif scene.cover(name):
        scene.change(name, [SECONDARY], Change("differs", amount))
    else:
        return None
    return scene.facts()


def disagreement_on_optional(scene: Scene) -> Facts | None:
    """The sources of a non-critical field differ by more than any tolerance.

    Elsewhere in the scene a lineage may be lost of a value that the secondary tells too.
    """
    for name in scene.optional():
        _lose_lineage_beside(scene, name)
    return _disagree(scene, scene.optional())


def material_conflict(scene: Scene) -> Facts | None:
    """The sources of a critical field differ by more than the tolerance, and nothing says which is right."""
    return _disagree(scene, scene.critical())


def self_contradiction(scene: Scene) -> Facts | None:
    """The primary of a critical field tells two values of one instant, under one version."""
    options = [(n, c) for n in scene.numeric(scene.critical()) if (c := scene.material_difference(n))]
    picked = scene.pick(options)
    if picked is None:
        return None
    scene.change(picked[0], [PRIMARY], Change("contradicted", picked[1].amount))
    return scene.facts()


def lost_lineage(scene: Scene) -> Facts | None:
    """All that tell a critical field name a parent that the ledger does not hold."""
    name = scene.pick(scene.critical())
    if name is None:
        return None
    scene.change(name, PLANES, Change("lost_parent"))
    return scene.facts()


def _lose_lineage_beside(scene: Scene, name: str) -> None:
    """By coin, lose the lineage of a critical field that is not related to `name`, and let its secondary tell it too.

    Comes before what is done to `name`, of which a secondary may have to tell a clean value too.
    """
    mine = {name, *scene.ancestors(name)}
    other = scene.pick([n for n in scene.critical() if not mine & {n, *scene.ancestors(n)}])
    if other is not None and scene.rng.random() < 0.5 and scene.cover(other):
        scene.change(other, [PRIMARY], Change("lost_parent"))


def _disagree(scene: Scene, names: tuple[str, ...]) -> Facts | None:
    options = [(n, c) for n in names if (c := scene.material_difference(n))]
    picked = scene.pick(options)
    if picked is None or not scene.cover(picked[0]):
        return None
    scene.change(picked[0], [SECONDARY], picked[1])
    return scene.facts()


FAMILIES: Final[tuple[Family, ...]] = (
    Family("immaterial_disagreement", "conflict_provenance", "NIST FlexRIC reports every 1 s, SCOPE every 250 ms: "
           "two averages of one quantity", immaterial_disagreement),
    Family("disagreement_on_optional", "conflict_provenance", "RRU.PrbTotDl: % from one producer, a count from "
           "another, on a dashboard that nothing acts on", disagreement_on_optional),
    Family("material_conflict", "conflict_provenance", "srsRAN_Project 1228: KPM says 0.0 while traffic flows",
           material_conflict),
    Family("self_contradiction", "conflict_provenance", "oran-sc-ric 63: several UEs merged under id 0, two values "
           "for one instant", self_contradiction),
    Family("lost_lineage", "conflict_provenance", "oran-sc-ric: value type and labels are lost on the way; guards "
           "against a value whose inputs are lost likewise", lost_lineage),
)  # fmt: skip
