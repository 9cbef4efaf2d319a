"""Mixed evidence: two things wrong at once, of one cause or of two."""

from __future__ import annotations

from itertools import permutations
from typing import Final

from simulators.optbench.model import Facts
from simulators.optbench.realisation.family import Family
from simulators.optbench.realisation.scene import PLANES, PRIMARY, SECONDARY, Scene


def stale_and_renewed_at_one_source(scene: Scene) -> Facts | None:
    """One source tells a critical field late and another in a form that is not known.

    Where no source has two such fields: an input is late, and what is computed from it comes in an unknown form.
    """
    critical = scene.critical()
    pairs = [
        (late, renewed)
        for late, renewed in permutations(critical, 2)
        if scene.source(late, PRIMARY) == scene.source(renewed, PRIMARY)
        and scene.descendants(late) == scene.descendants(renewed)
    ]
    pairs = pairs or [(late, renewed) for late in critical for renewed in scene.descendants(late)]
    return _late_and_renewed(scene, pairs)


def outage_and_stale_at_one_source(scene: Scene) -> Facts | None:
    """A source is out: of one critical field nothing arrives, of another an old value is still handed out.

    Where no source has two such fields: nothing arrives from the primary, and the secondary's value is old.
    """
    fallible = scene.fallible(scene.critical())
    out = [n for n in scene.critical() if scene.source(n, PRIMARY) in fallible]
    pairs = [(a, b) for a, b in permutations(out, 2) if scene.source(a, PRIMARY) == scene.source(b, PRIMARY)]
    if picked := scene.pick(pairs):
        silent, late = picked
        source = scene.source(late, PRIMARY)
        scene.withhold(silent, SECONDARY)
        scene.withhold(late, SECONDARY)
        scene.leave_only(source, late)
        scene.make_late(late, PRIMARY)
        return scene.facts(scene.outage(source))
    name = scene.pick(scene.measured(out))
    if name is None or not scene.cover(name):
        return None
    source = scene.source(name, PRIMARY)
    scene.silence(source)
    for child in scene.descendants(name):
        scene.withhold(child, SECONDARY)
    scene.make_late(name, SECONDARY)
    return scene.facts(scene.outage(source))


def stale_here_renewed_there(scene: Scene) -> Facts | None:
    """One critical field is late, and another, of another source and lineage, comes in a form that is not known."""
    pairs = [(a, b) for a, b in _unrelated(scene) if scene.source(a, PRIMARY) != scene.source(b, PRIMARY)]
    return _late_and_renewed(scene, pairs)


def outage_here_fault_there(scene: Scene) -> Facts | None:
    """The only source of a critical field is out, and another field, of sources that are up, is late or not known."""
    fallible = scene.fallible(scene.critical())
    pairs = [
        (out, b)
        for out, b in _unrelated(scene)
        if scene.source(out, PRIMARY) in fallible
        and scene.source(out, PRIMARY) not in _sources(scene, b, *scene.ancestors(b))
    ]
    picked = scene.pick(pairs)
    if picked is None:
        return None
    out, faulty = picked
    source = scene.source(out, PRIMARY)
    scene.withhold(out, SECONDARY)
    scene.withhold(faulty, SECONDARY)
    scene.silence(source)
    if scene.rng.random() < 0.5:
        scene.make_late(faulty, PRIMARY)
    else:
        scene.change(faulty, [PRIMARY], scene.schema_fault(faulty))
    return scene.facts(scene.outage(source))


def conflict_beside_outage(scene: Scene) -> Facts | None:
    """The sources of a critical field disagree, or leave its unit open, while the only source of another is out."""
    fallible = scene.fallible(scene.critical())
    pairs = [
        (doubtful, out)
        for doubtful, out in permutations(scene.critical(), 2)
        if out not in scene.ancestors(doubtful)
        and scene.source(out, PRIMARY) in fallible
        and scene.source(out, PRIMARY) not in _sources(scene, doubtful, *scene.ancestors(doubtful))
    ]
    picked = scene.pick(pairs)
    if picked is None:
        return None
    doubtful, out = picked
    unclear = scene.ambiguous_unit(doubtful)
    difference = scene.material_difference(doubtful)
    change = scene.pick([c for c in (unclear, difference) if c is not None])
    if change is None or not scene.cover(doubtful):
        return None
    source = scene.source(out, PRIMARY)
    scene.withhold(out, SECONDARY)
    scene.silence(source)
    scene.change(doubtful, [SECONDARY] if change.kind == "differs" else PLANES, change)
    return scene.facts(scene.outage(source))


def _late_and_renewed(scene: Scene, pairs: list[tuple[str, str]]) -> Facts | None:
    """Of a pair, the first field is late and the second comes in a form that is not known; nothing covers either."""
    picked = scene.pick(pairs)
    if picked is None:
        return None
    late, renewed = picked
    scene.withhold(late, SECONDARY)
    scene.withhold(renewed, SECONDARY)
    scene.make_late(late, PRIMARY)
    scene.change(renewed, [PRIMARY], scene.schema_fault(renewed))
    return scene.facts()


def _unrelated(scene: Scene) -> list[tuple[str, str]]:
    """Pairs of critical fields, neither of which descends from the other, or from what the other descends from."""
    lineage = {n: {n, *scene.ancestors(n)} for n in scene.critical()}
    return [(a, b) for a, b in permutations(lineage, 2) if not lineage[a] & lineage[b]]


def _sources(scene: Scene, *names: str) -> set[str]:
    return {scene.source(name, plane) for name in names for plane in PLANES}


FAMILIES: Final[tuple[Family, ...]] = (
    Family("stale_and_renewed_at_one_source", "mixed_evidence", "srsRAN_Project 1313 and oran-sc-ric 12: an upgraded "
           "node changes its form and reports late", stale_and_renewed_at_one_source),
    Family("outage_and_stale_at_one_source", "mixed_evidence", "srsRAN_Project 1421: a subscription of which nothing "
           "arrives, beside one that went quiet", outage_and_stale_at_one_source),
    Family("stale_here_renewed_there", "mixed_evidence", "oran-sc-ric 12 and 49: late reports of one node, a new "
           "header of another", stale_here_renewed_there),
    Family("outage_here_fault_there", "mixed_evidence", "srsRAN_Project 1421 and 1313: nothing from one producer, an "
           "upgrade at another", outage_here_fault_there),
    Family("conflict_beside_outage", "mixed_evidence", "srsRAN_Project 1228 and 1421: counters that contradict each "
           "other, while a third source is silent", conflict_beside_outage),
)  # fmt: skip
