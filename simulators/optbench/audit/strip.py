"""Strip equality: what is left of an episode without its evidence is the same, byte for byte, under every stress."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import orjson

from simulators.optbench.audit.subject import Check, Subject
from simulators.optbench.candidates import scene_of
from simulators.optbench.model import BaseItem, Case, Exposure, Sealed
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

_USUAL: Final = {name: "o1" if name == "id" else None for name in MEMBERS}
_TERMS: Final = ("status", "retryable", "retry_after_ms", "retries_left")



def strip(view: Mapping[str, Any]) -> bytes:
    """A view with its evidence canonicalised, in the order of its members.

    How many observations there are, and which sources are out on what terms, is evidence: of the list is left which
    shapes occur in it (members in order, those of `EVIDENCE` null, `id` marked where it is the place), of `sources`
    whether they are listed in order, and the order of members of their terms. Where there are none, the usual ones.
    """
    episode = view["episode"]
    shapes = {
        orjson.dumps({name: _canonical(name, value, place) for name, value in told.items()})
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
    """(what it is of, value) of each arbitrary value that stands inside evidence.

    Those are a source's first version, and of a live report to which nothing was done: the unit as spelled, the schema
    of those that are accepted, and of one that was computed from nothing, how long it took to arrive.
    """
    episode, untouched = case.view["episode"], _untouched(case.sealed)
    yield from first_versions(episode["observations"])
    for told in episode["observations"]:
        source = told["source"]
        age = episode["decided_at_ms"] - told["event_time_ms"]
        exposure = untouched.get((told["name"], source, age))
        if exposure is None or told["origin"] != "live":
            continue
        yield f"the unit of '{exposure.field}' at {source}", told["unit"]
        yield f"the schema of '{exposure.field}' at {source}", told["schema"]
        if not exposure.parents:
            yield f"the delay of '{exposure.field}' at {source}", told["ingest_time_ms"] - told["event_time_ms"]


def first_versions(observations: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, int]]:
    """Versions count a source's event times; one that is numbered above them all says nothing of where they begin."""
    for source in {told["source"] for told in observations}:
        own = [told for told in observations if told["source"] == source]
        events = sorted({told["event_time_ms"] for told in own})
        begins = min(told["version"] - events.index(told["event_time_ms"]) for told in own)
        yield f"the first version of {source}", begins


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
        found: defaultdict[str, set[object]] = defaultdict(set)
        for what, value in (pair for one in views for pair in nonces(one)):
            found[what].add(value)
            compared += 1
        differing = sorted(what for what, values in found.items() if len(values) > 1)
        failures += [f"{case.episode_id}: {what} differs with the stress" for what in differing]
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


def _untouched(sealed: Sealed) -> dict[tuple[str, str, int], Exposure]:
    """(name, source, age in ms) → the live exposure of a report to which nothing was done."""
    return {
        (one.field, one.source, one.age_ms): one
        for one in sealed.facts.exposures
        if not one.changes and not one.memory
    }
