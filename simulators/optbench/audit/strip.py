"""Strip equality: what is left of an episode without its evidence is the same, byte for byte, under every stress."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import orjson

from simulators.optbench.audit.subject import Check, Subject
from simulators.optbench.candidates import scene_of
from simulators.optbench.model import BaseItem, Case, ChangeKind, Exposure, Sealed
from simulators.optbench.oracle import judge
from simulators.optbench.realisation import FAMILIES
from simulators.optbench.realisation.rendering import MEMBERS

EVIDENCE: Final[Mapping[str, str]] = {
    "name": "a field is told under an alias, a name of another field, or one that nobody knows",
    "value": "what is told",
    "unit": "in what it is told, if in anything",
    "source": "who tells it",
    "event_time_ms": "how old it is",
    "ingest_time_ms": "what arrived after what",
    "version": "what replaces what; the first number of a source is no evidence, see `nonces`",
    "quality": "whether there is a value",
    "schema": "in which form it is told",
    "parents": "what it was computed from",
    "origin": "whether it is a memory",
}
"""Member of an observation → why it is evidence. All other members must be the same under every stress."""

_TOUCHED: Final[Mapping[ChangeKind, tuple[str, ...]]] = {
    "alias": ("name",),
    "foreign_name": ("name",),
    "shared_name": ("name",),
    "prefixed_unit": ("unit", "value"),
    "no_unit": ("unit",),
    "foreign_unit": ("unit",),
    "unheard_unit": ("unit",),
    "schema": ("schema",),
    "aged": (),
    "repeated": ("report",),
    "differs": ("value",),
    "contradicted": ("report",),
    "overtaken": (),
    "overwritten": (),
    "no_value": ("value", "quality"),
    "lost_parent": (),
}
"""Change → members of the report which it may change; `report`: which of two it is, is not told."""

_SPELLED: Final = ("value", "unit", "quality", "schema")
_Report = tuple[str, str, int, str]
_USUAL: Final = {name: "o1" if name == "id" else None for name in MEMBERS}
_USUAL_SHAPE: Final = orjson.dumps({name: "its place" if name == "id" else None for name in MEMBERS})
_TERMS: Final = ("status", "retryable", "retry_after_ms", "retries_left")


def strip(view: Mapping[str, Any]) -> bytes:
    """A view with its evidence canonicalised, in the order of its members.

    How many observations there are, and which sources are out on what terms, is evidence: of the list is left which
    shapes occur in it (members in order, those of `EVIDENCE` null, `id` marked where it is the place), of `sources`
    whether they are listed in order, and the order of members of their terms. Where there are none, the usual ones.
    """
    episode = view["episode"]
    shapes = {
        _USUAL_SHAPE
        if told["id"] == f"o{place}" and tuple(told) == MEMBERS
        else orjson.dumps({name: _canonical(name, value, place) for name, value in told.items()})
        for place, told in enumerate(episode["observations"] or [_USUAL], 1)
    }
    sources = episode["sources"]
    left = {
        **episode,
        "sources": {
            "in order": list(sources) == sorted(sources),
            "members": sorted({tuple(terms) for terms in sources.values()} or {_TERMS}),
        },
        "observations": sorted(shape.decode() for shape in shapes),
    }
    return orjson.dumps({**view, "episode": left})


def nonces(case: Case) -> Iterator[tuple[str, object]]:
    """(what it is of, value) of each value that stands inside evidence, and that nothing was done to.

    Those are a source's first version, and of the report that tells an exposure each member that its changes do not
    touch (`_TOUCHED`): the value as it is written, the unit as spelled, the schema, the quality, and of one that was
    computed from nothing, how long it took to arrive.
    """
    episode = case.view["episode"]
    yield from first_versions(episode["observations"])
    reports = {_told(one, episode["decided_at_ms"]): one for one in episode["observations"]}
    for exposure in case.sealed.facts.exposures:
        touched = {member for change in exposure.changes for member in _TOUCHED[change.kind]}
        told = None if "report" in touched else reports.get(_expected(exposure))
        if told is None:
            continue
        where = f"'{exposure.field}' at {exposure.source}{', recalled' if exposure.memory else ''}"
        for member in _SPELLED:
            if member not in touched:
                yield f"the {member} of {where}", repr(told[member])
        if not exposure.parents:
            yield f"the delay of {where}", told["ingest_time_ms"] - told["event_time_ms"]


def unaccounted(case: Case) -> Iterator[str]:
    """What the observations hold that the facts do not tell of: each exposure is one report, under its name, source
    and age, and one more for each change that sends another; a windowed field has its samples; and that is all.
    """
    episode, item = case.view["episode"], case.sealed.item
    told = Counter(_told(one, episode["decided_at_ms"]) for one in episode["observations"])
    more = 0
    for exposure in case.sealed.facts.exposures:
        kinds = {change.kind for change in exposure.changes}
        at_once = 2 if kinds & {"repeated", "contradicted"} else 1
        if told[_expected(exposure)] != at_once:
            times = f"{told[_expected(exposure)]} times as it should be, and not {at_once}"
            yield f"'{exposure.field}' at {exposure.source} is told {times}"
        more += at_once + len(kinds & {"overtaken", "overwritten"})
        if not exposure.memory and exposure.source == item.contract["fields"][exposure.field]["sources"][0]:
            more += len(item.series.get(exposure.field, ()))
    if more != len(episode["observations"]):
        yield f"{len(episode['observations'])} observations, where its facts tell of {more}"


def first_versions(observations: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, int]]:
    """Versions count a source's event times; one that is numbered above them all says nothing of where they begin."""
    told: dict[str, dict[int, int]] = {}
    for one in observations:
        least = told.setdefault(one["source"], {})
        event = one["event_time_ms"]
        least[event] = min(least.get(event, one["version"]), one["version"])
    for source, least in told.items():
        yield f"the first version of {source}", min(least[event] - n for n, event in enumerate(sorted(least)))


def strip_equality(subject: Subject) -> Check:
    """The item of every episode under all families: stripped views and nonces agree, and so do the episode's own.

    And the suite stands in the order of its names, which tell nothing: so no place does.
    """
    failures = [*_misplaced(subject.cases)]
    stressed = compared = 0
    for case in subject.cases:
        views = [case, *_under_all(case.sealed.item, subject)]
        stressed += len(views) - 1
        if len({strip(one.view) for one in views}) > 1:
            failures.append(f"{case.episode_id}: without its evidence it still differs with the stress")
        found: dict[str, object] = {}
        differing: set[str] = set()
        for one in views:
            for what, value in nonces(one):
                compared += 1
                if found.setdefault(what, value) != value:
                    differing.add(what)
        failures += [f"{case.episode_id}: {what} differs with the stress" for what in sorted(differing)]
        more = dict.fromkeys(fault for one in views for fault in unaccounted(one))
        failures += [f"{case.episode_id}: {fault}" for fault in more]
    return Check(
        "strip-equality",
        f"strip equality: {len(subject.cases)} items under {len(FAMILIES)} families, {stressed} episodes and "
        f"{compared} nonces, of which {len(failures)} differ by more than evidence",
        {
            "items": len(subject.cases), "episodes": stressed, "nonces": compared,
            "unsuited": len(subject.cases) * len(FAMILIES) - stressed, "differing": len(failures),
        },
        tuple(failures),
    )  # fmt: skip


def _under_all(item: BaseItem, subject: Subject) -> Iterator[Case]:
    """The item under every family that finds a field for what it does, labelled and rendered."""
    for family in FAMILIES:
        facts = family.realise(scene_of(item, family, subject.seed))
        if facts is not None:
            verdict = judge(item, facts)
            yield subject.render(Sealed(item, family.name, family.domain, facts, verdict.action, verdict.blocked))


def _misplaced(cases: Sequence[Case]) -> Iterator[str]:
    for one, other in pairwise(cases):
        if one.episode_id > other.episode_id:
            yield f"{other.episode_id}: it stands behind {one.episode_id}, out of the order of names"


def _canonical(name: str, value: Any, place: int) -> Any:
    if name in EVIDENCE:
        return None
    return "its place" if (name, value) == ("id", f"o{place}") else value


def _told(observation: Mapping[str, Any], now_ms: int) -> _Report:
    age_ms = now_ms - observation["event_time_ms"]
    return observation["name"], observation["source"], age_ms, observation["origin"]


def _expected(exposure: Exposure) -> _Report:
    """The report that tells an exposure: (name, source, age in ms, origin)."""
    name, age_ms = exposure.field, exposure.age_ms
    for change in exposure.changes:
        if "name" in _TOUCHED[change.kind] and change.text is not None:
            name = change.text
        elif change.kind in ("aged", "repeated"):
            age_ms = round(change.amount)
    return name, exposure.source, age_ms, "memory" if exposure.memory else "live"
