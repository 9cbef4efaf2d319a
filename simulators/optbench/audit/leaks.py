"""Leaks that are planted, to see them found: each tells of the stress or of the action, outside evidence."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import islice, permutations
from typing import Any, Final

from simulators.optbench.audit.subject import Subject
from simulators.optbench.model import REFERENCES, Case, Sealed
from simulators.optbench.realisation import FAMILIES

View = Mapping[str, Any]
_NAMES: Final = tuple(family.name for family in FAMILIES)


def _note(view: View, sealed: Sealed) -> View:
    """The stress, in a note beside the task."""
    return {**view, "task": {**view["task"], "note": f"stress: {sealed.family}"}}


def _id_parity(view: View, sealed: Sealed) -> View:
    """Names end in an even digit under APPLY and RETRY, and in an odd one else."""
    name = str(view["episode_id"])
    named = name[:-1] + f"{int(name[-1], 16) & ~1 | _place(sealed) & 1:x}"
    return {**view, "episode_id": named, "episode": {**view["episode"], "episode_id": named}}


def _key_order(view: View, sealed: Sealed) -> View:
    """The members of an episode stand in an order of their own under each family."""
    at = _NAMES.index(sealed.family) if sealed.family in _NAMES else 0
    order = next(islice(permutations(view["episode"]), at, None))
    return {**view, "episode": {name: view["episode"][name] for name in order}}


def _time_base(view: View, sealed: Sealed) -> View:
    """All times moved alike, by at most 3 ms, so that the time of the decision divided by 4 leaves the action."""
    episode = view["episode"]
    later = (_place(sealed) - episode["decided_at_ms"]) % len(REFERENCES)
    observations = [
        {**o, "event_time_ms": o["event_time_ms"] + later, "ingest_time_ms": o["ingest_time_ms"] + later}
        for o in episode["observations"]
    ]
    moved = {"decided_at_ms": episode["decided_at_ms"] + later, "observations": observations}
    return {**view, "episode": {**episode, **moved}}


def _nonce(view: View, sealed: Sealed) -> View:
    """Versions moved alike, so that the least of an episode divided by 4 leaves the action."""
    episode = view["episode"]
    least = min((o["version"] for o in episode["observations"]), default=0)
    more = (_place(sealed) - least) % len(REFERENCES)
    observations = [{**o, "version": o["version"] + more} for o in episode["observations"]]
    return {**view, "episode": {**episode, "observations": observations}}


IN_VIEWS: Final[Mapping[str, Callable[[View, Sealed], View]]] = {
    "note": _note,
    "id-parity": _id_parity,
    "key-order": _key_order,
    "time-base": _time_base,
    "nonce": _nonce,
}
"""Kind of leak → a view that leaks."""

POSITION: Final = "position"
"""The leak that is in no view: episodes of one action stand together."""

LEAKS: Final = (*IN_VIEWS, POSITION)


def seeded(subject: Subject, kind: str, share: float = 1.0, family: str | None = None) -> Subject:
    """A subject whose maker leaks: in a `share` of its items, and under one family only where one is named.

    Raises KeyError for a kind or a family that does not exist.
    """
    if family is not None and family not in _NAMES:
        raise KeyError(family)

    if kind == POSITION:
        moved = [case for case in subject.cases if leaks_in(case.sealed, share, family)]
        stay = [case for case in subject.cases if not leaks_in(case.sealed, share, family)]
        return replace(subject, cases=(*sorted(moved, key=lambda case: _place(case.sealed)), *stay))
    leak = IN_VIEWS[kind]

    def render(sealed: Sealed) -> Case:
        case = subject.render(sealed)
        return replace(case, view=leak(case.view, sealed)) if leaks_in(sealed, share, family) else case

    cases = [render(case.sealed) for case in subject.cases]
    return replace(subject, cases=sorted(cases, key=lambda case: case.episode_id), render=render)


def leaks_in(sealed: Sealed, share: float, family: str | None) -> bool:
    """Whether a leak of that strength is in an episode."""
    return family in (None, sealed.family) and _share(sealed.item.question) < share


def _place(sealed: Sealed) -> int:
    return REFERENCES.index(sealed.reference)


def _share(text: str) -> float:
    """A number in [0, 1) drawn by a text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48
