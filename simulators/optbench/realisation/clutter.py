"""Clutter: what is irregular in a scene beside its family's own disturbance, and changes no verdict.

Live networks are never tidy elsewhere. Without clutter the mere presence of a kind of irregularity would give the label
away; with it every kind comes with every outcome, and only what an irregularity does to a critical field decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from simulators.optbench.model import Change, Facts
from simulators.optbench.realisation.scene import PLANES, PRIMARY, Scene

_ON_OPTIONAL: Final = 0.4
_ON_CRITICAL: Final = 0.3
_RECOLLECTION: Final = 0.2
_HOW_MANY: Final = (1, 1, 2, 3)
"""Faults on a non-critical field, each as likely; two of one aspect are one."""


def cluttered(scene: Scene, facts: Facts) -> Facts:
    """`facts` of a scene, and its clutter. Values that differ while fresh are never clutter: they show a conflict.

    A fault of a field that nothing may read; an alias, a compatible unit, an old value or a late report at the primary
    of a critical field that is clean; a memory that cannot be recalled. Each comes or not.
    """
    if scene.rng.random() < _ON_OPTIONAL:
        _spoil_optional(scene)
    if scene.rng.random() < _ON_CRITICAL:
        _touch_critical(scene)
    if scene.rng.random() < _RECOLLECTION:
        _recall_in_vain(scene)
    return scene.facts(*facts.outages)


def _spoil_optional(scene: Scene) -> None:
    name = scene.pick([n for n in scene.optional() if scene.is_clean(n)])
    if name is None:
        return
    told = scene.planes_of(name)
    planes = scene.rng.choice([told, *((plane,) for plane in told)])
    kinds = scene.rng.sample(list(_FAULTS), scene.rng.choice(_HOW_MANY))
    if "withheld" in kinds:
        scene.withhold(name, *planes)
        return
    if not _may_be_renamed(scene, name, planes):
        kinds = [kind for kind in kinds if kind != "foreign_name"]
    changes: dict[str, tuple[Change, ...]] = {}
    for kind in kinds:
        aspect, draw = _FAULTS[kind]
        changes.setdefault(aspect, draw(scene, name))
    done = [change for drawn in changes.values() for change in drawn]
    if "presence" in changes:  # nothing differs where there is no value
        done = [change for change in done if change.kind != "differs"]
    scene.change(name, planes, *done)


_Draw = Callable[[Scene, str], tuple[Change, ...]]
_FAULTS: Final[Mapping[str, tuple[str, _Draw]]] = {
    "alias": ("name", lambda scene, name: (Change("alias", text=scene.other_name(name)),)),
    "foreign_name": ("name", lambda scene, name: (Change("foreign_name", text=scene.unknown_name(name)),)),
    "no_unit": ("unit", lambda scene, name: (Change("no_unit"),)),
    "foreign_unit": ("unit", lambda scene, name: (
        Change("foreign_unit", text=scene.rng.choice(scene.foreign_units(name))),
    )),
    "unheard_unit": ("unit", lambda scene, name: (scene.unheard_unit(),)),
    "schema": ("schema", lambda scene, name: (scene.unaccepted_schema(name),)),
    "stale": ("time", lambda scene, name: scene.stale_report(name)),
    "no_value": ("presence", lambda scene, name: (Change("no_value"),)),
    "lost_parent": ("lineage", lambda scene, name: (Change("lost_parent"),)),
    "withheld": ("all", lambda scene, name: ()),
}  # fmt: skip
"""Kind of fault of a non-critical field → the aspect of its reports that it touches, and how it is drawn."""


def _may_be_renamed(scene: Scene, name: str, planes: Iterable[int]) -> bool:
    """Whether the sources of `planes` may send a name that no field knows, and leave other fields filed as they are.

    Such a name says something of every critical field of the same source of which nothing else is told (rules,
    section 3, `unknown_schema`).
    """
    sources = {scene.source(name, plane) for plane in planes}
    critical = (*scene.critical(), *scene.item.series)
    return all(scene.is_named(n) or not sources & {scene.source(n, plane) for plane in PLANES} for n in critical)


def _touch_critical(scene: Scene) -> None:
    clean = [n for n in scene.critical() if scene.is_clean(n) and scene.tells(n, PRIMARY)]
    fit = {
        "alias": [n for n in clean if scene.names_of(n)],
        "unit": [n for n in scene.with_unit(clean) if scene.other_units(n)],
        "stale": [n for n in clean if scene.stands_alone(n)],
        "late": scene.numeric(scene.measured(clean)),
    }
    kind = scene.pick([kind for kind, names in fit.items() if names])
    if kind is None:
        return
    name = scene.rng.choice(fit[kind])
    if kind == "alias":
        changes: tuple[Change, ...] = (Change("alias", text=scene.other_name(name)),)
    elif kind == "unit":
        changes = (Change("prefixed_unit", text=scene.pick(scene.other_units(name))),)
    elif kind == "late":
        changes = (scene.harmless_late_report(name),)
    else:
        scene.cover(name)
        changes = scene.stale_report(name)
    scene.change(name, [PRIMARY], *changes)


def _recall_in_vain(scene: Scene) -> None:
    """A memory beyond its limit, or, of a field that is supported, behind what is told live."""
    name = scene.pick([n for n in (*scene.critical(), *scene.optional()) if not scene.recalled(n)])
    if name is None:
        return
    age_ms = scene.old(name)
    if scene.is_clean(name) and scene.rng.random() < 0.5:
        newest = min(scene.age_ms(name, plane) for plane in scene.planes_of(name))
        age_ms = scene.rng.randint(newest + 1, scene.limit_ms(name))
    scene.remember(name, scene.rng.choice(PLANES), age_ms, *scene.older_state(name))
