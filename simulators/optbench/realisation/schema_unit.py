"""Schema and unit: the same quantity under another name, in another unit, or in a form that nobody agreed on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from simulators.optbench.model import Change, Facts
from simulators.optbench.realisation.family import Family
from simulators.optbench.realisation.scene import PLANES, PRIMARY, Scene


def known_alias(scene: Scene) -> Facts | None:
    """The primary tells a critical field under an alias, or under any known name of it in another spelling."""
    name = scene.pick([n for n in scene.critical() if scene.names_of(n)])
    if name is None:
        return None
    scene.change(name, [PRIMARY], Change("alias", text=scene.other_name(name)))
    return scene.facts()


def compatible_unit(scene: Scene) -> Facts | None:
    """The primary tells a critical field in another unit of its dimension: another prefix, % for 1, W for dBm."""
    fits = [n for n in scene.numeric(scene.critical()) if scene.other_units(n)]
    name = scene.pick([n for n in fits if scene.unit(n) != "1"] or fits)
    if name is None:
        return None
    scene.change(name, [PRIMARY], Change("prefixed_unit", text=scene.pick(scene.other_units(name))))
    return scene.facts()


def form_fault_covered(scene: Scene) -> Facts | None:
    """The primary tells a critical field in a form that cannot be used; its secondary tells it as agreed.

    The form: a schema identifier not accepted, a name that no field knows, a unit that is missing or of another
    dimension, or a name of two fields, of which the secondaries then tell both.
    """
    name = scene.pick(scene.critical())
    if name is None or not scene.cover(name):
        return None
    forms = [Change("foreign_name", text=scene.unknown_name(name))]
    if scene.document(name).get("schemas"):
        forms.append(scene.unaccepted_schema(name))
    if unit := scene.ambiguous_unit(name):
        forms.append(unit)
    if shared := scene.pick(_names_of_two(scene, name)):
        forms += [Change("shared_name", text=shared[0], other=shared[1])] * 2  # clutter brings none
    form = scene.rng.choice(forms)
    if form.other is None:
        scene.change(name, [PRIMARY], form)
    elif scene.cover(form.other):
        _share(scene, name, [PRIMARY], form)
    else:
        return None
    return scene.facts()


def unclear_unit_of_optional(scene: Scene) -> Facts | None:
    """All that tell a non-critical field tell it without a unit, or in one that no registry knows."""
    name = scene.pick(scene.with_unit(scene.optional()))
    if name is None:
        return None
    change = Change("no_unit") if scene.rng.random() < 0.5 else scene.unheard_unit()
    scene.change(name, PLANES, change)
    return scene.facts()


def unaccepted_schema(scene: Scene) -> Facts | None:
    """After an upgrade all that tell a critical field use a schema identifier that it does not accept."""
    name = scene.pick([n for n in scene.critical() if scene.document(n).get("schemas")])
    if name is None:
        return None
    scene.change(name, PLANES, scene.unaccepted_schema(name))
    return scene.facts()


def unknown_name(scene: Scene) -> Facts | None:
    """All that tell a critical field use a name that no field of the contract knows."""
    name = scene.pick(scene.critical())
    if name is None:
        return None
    scene.change(name, PLANES, Change("foreign_name", text=scene.unknown_name(name)))
    return scene.facts()


def missing_unit(scene: Scene) -> Facts | None:
    """All that tell a critical field whose unit is not 1 leave the unit out."""
    name = scene.pick(scene.with_unit(scene.critical()))
    if name is None:
        return None
    scene.change(name, PLANES, Change("no_unit"))
    return scene.facts()


def shared_name(scene: Scene) -> Facts | None:
    """All that tell a critical field use an alias that another field has too.

    Where a source tells the other field as well, this is its newest report under either.
    """
    picked = scene.pick([(n, *pair) for n in scene.critical() for pair in _names_of_two(scene, n)])
    if picked is None:
        return None
    name, alias, other = picked
    _share(scene, name, PLANES, Change("shared_name", text=alias, other=other))
    return scene.facts()


def foreign_unit(scene: Scene) -> Facts | None:
    """All that tell a critical field tell it in a unit of another dimension."""
    name = scene.pick([n for n in scene.numeric(scene.critical()) if scene.foreign_units(n)])
    if name is None:
        return None
    scene.change(name, PLANES, Change("foreign_unit", text=scene.pick(scene.foreign_units(name))))
    return scene.facts()


def _names_of_two(scene: Scene, name: str) -> list[tuple[str, str]]:
    """(alias, the other field that has it too) of a field, where that is critical."""
    critical = scene.critical()
    return [(alias, other) for alias, other in scene.shared_names(name) if other in critical]


def _share(scene: Scene, name: str, planes: Sequence[int], change: Change) -> None:
    """Tell a field under a name of two, and newer than the same sources tell the other."""
    other = change.other
    assert other is not None, "a shared name is of two"
    for plane in (p for p in planes if scene.tells(name, p)):
        source = scene.source(name, plane)
        others = [scene.age_ms(other, p) for p in scene.planes_of(other) if scene.source(other, p) == source]
        scene.age(name, plane, min([scene.age_ms(name, plane), *(age - 1 for age in others)]))
    scene.change(name, planes, change)


FAMILIES: Final[tuple[Family, ...]] = (
    Family("known_alias", "schema_unit", "oran-sc-ric and FlexRIC spell one header key differently; SCOPE CSV: names "
           "with blanks, such as `tx_brate downlink [Mbps]`", known_alias),
    Family("compatible_unit", "schema_unit", "DRB.UEThpDl is kbit/s in srsRAN and FlexRIC, bit/s in some ns-3 code",
           compatible_unit),
    Family("form_fault_covered", "schema_unit", "RRU.PrbTotDl is % in srsRAN and a count of PRBs in FlexRIC: one "
           "producer's form says nothing of another's", form_fault_covered),
    Family("unclear_unit_of_optional", "schema_unit", "RRU.PrbTotDl is % in srsRAN and a count of PRBs in FlexRIC; "
           "dashboards alert on either", unclear_unit_of_optional),
    Family("unaccepted_schema", "schema_unit", "oran-sc-ric 49: a timestamp grew from 4 to 8 octets; srsRAN_Project "
           "1313: throughput halved by an upgrade", unaccepted_schema),
    Family("unknown_name", "schema_unit", "O-RAN SC ranpm: many counters are anonymous", unknown_name),
    Family("missing_unit", "schema_unit", "oran-sc-ric 63: unit of UEThpDl unclear", missing_unit),
    Family("shared_name", "schema_unit", "guards against one name for two things; of identities, oran-sc-ric 63: "
           "several UEs merged under id 0", shared_name),
    Family("foreign_unit", "schema_unit", "srsRAN tells a PUSCH SNR in dB under the names RSRP, RSRQ and CQI",
           foreign_unit),
)  # fmt: skip
