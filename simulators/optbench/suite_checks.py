"""What a suite that is read from files must be, before anything is run on it: shapes, composition, and the labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

from simulators.optbench.certificate import certify
from simulators.optbench.model import DOMAINS, REFERENCES, TASKS, Case
from simulators.optbench.oracle import judge
from simulators.optbench.selection import QUOTAS
from xapp.episode import episode_from

WHOLE: Final = sum(n for actions in QUOTAS.values() for n in actions.values())
"""Episodes of a whole suite."""

_SPLITS: Final = ("final", "development")
_MANIFEST: Final = frozenset(
    {"format", "split", "seed", "base", "excluded", "generator", "count", "digest", "episodes"}
)
_EXCLUDED: Final = frozenset({"task", "item_id", "reason"})
_PINNED: Final = frozenset({"id", "view", "sealed"})


def manifest_faults(manifest: Any, format: str) -> Iterator[str]:
    """What is wrong with the document of a manifest, the gravest first; nothing of it need have the right type."""
    if not isinstance(manifest, dict) or manifest.get("format") != format:
        yield f"it is no manifest of format {format}"
        return
    if manifest.keys() != _MANIFEST:
        yield f"its members are not {', '.join(sorted(_MANIFEST))}"
        return
    if manifest["split"] not in _SPLITS:
        yield f"its split is neither {' nor '.join(_SPLITS)}"
    elif not _counts_of_base(manifest["base"], manifest["split"]):
        yield "its base is no count of items by task, split and origin"
    if not _count(manifest["seed"]):
        yield "its seed is no integer from 0"
    if not isinstance(manifest["generator"], str) or not isinstance(manifest["digest"], str):
        yield "its generator or its digest is no text"
    if not _texts(manifest["excluded"], _EXCLUDED):
        yield f"its excluded are no list of {', '.join(sorted(_EXCLUDED))}"
    if not _texts(manifest["episodes"], _PINNED):
        yield f"its episodes are no list of {', '.join(sorted(_PINNED))}"
    elif not manifest["episodes"] or manifest["count"] != len(manifest["episodes"]):
        yield f"it lists {len(manifest['episodes'])} episodes, and counts {manifest['count']}"
    elif len({one["id"] for one in manifest["episodes"]}) < len(manifest["episodes"]):
        yield "an episode is there twice"


def case_faults(case: Case) -> Iterator[str]:
    """What of a case has not the type that every method and metric relies on. Raises EpisodeError for its episode."""
    view, item = case.view, case.sealed.item
    if view.keys() != {"episode_id", "task", "episode"} or view["task"].keys() != {"task", "question", "input"}:
        yield "its view has other members than an id, a task and an episode"
        return
    episode_from(orjson.loads(orjson.dumps(view["episode"])), {}, needs_proposal=False)
    if view["episode"]["episode_id"] != view["episode_id"]:
        yield "its episode has another id"
    if (view["task"]["task"], view["task"]["question"]) != (item.task, item.question):
        yield "its task is not that of its item"
    if item.task not in TASKS or case.sealed.domain not in DOMAINS or case.sealed.reference not in REFERENCES:
        yield "its task, domain or reference is none of those that there are"
    if not all(isinstance(one, str) for one in (item.item_id, item.question, case.sealed.family, *case.sealed.blocked)):
        yield "its item, question, family or blocked fields are no texts"
    mappings = (item.input, item.contract, item.observed, item.lineage, item.plan, item.answer, item.series)
    if not all(isinstance(one, Mapping) for one in mappings):
        yield "a part of its item is no object"
    elif not all(isinstance(one, str | int | float) for one in (*item.observed.values(), *item.plan.values())):
        yield "a value of its item is neither a number nor a text nor true or false"


def label_fault(case: Case) -> str | None:
    """How the label of a case differs from what both judges say of it; None: they bear it out."""
    sealed = case.sealed
    for name, verdict in (("oracle", judge(sealed.item, sealed.facts)), ("certificate checker", certify(case.view))):
        if (verdict.action, verdict.blocked) != (sealed.reference, sealed.blocked):
            return f"its label is {sealed.reference}; the {name} says {verdict.action}"
    return None


def composition_fault(cases: Sequence[Case]) -> str | None:
    """How the cases of a whole suite differ from the published composition; None: they are it."""
    sealed = [case.sealed for case in cases]
    wanted = {(domain, action): n for domain, row in QUOTAS.items() for action, n in row.items()}
    if Counter((one.domain, one.reference) for one in sealed) != wanted:
        return "its labels are not composed as the rules say"
    each = WHOLE // (len(TASKS) * len(DOMAINS))
    even = {(task, domain): each for task in TASKS for domain in DOMAINS}
    if Counter((one.item.task, one.domain) for one in sealed) != even:
        return f"it does not hold {each} episodes of each task and domain"
    if len({(one.item.task, one.item.item_id) for one in sealed}) < len(sealed):
        return "a base item is there twice"
    return None


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _counts_of_base(base: Any, split: str) -> bool:
    if not isinstance(base, dict) or base.keys() != set(TASKS):
        return False
    for splits in base.values():
        if not isinstance(splits, dict) or split not in splits or not splits.keys() <= set(_SPLITS):
            return False
        for counts in splits.values():
            if not isinstance(counts, dict) or counts.keys() != {"file", "generated"}:
                return False
            if not all(map(_count, counts.values())):
                return False
    return True


def _texts(rows: Any, members: frozenset[str]) -> bool:
    """Whether `rows` is a list of objects with these members, each a text."""
    return isinstance(rows, list) and all(
        isinstance(row, dict) and row.keys() == members and all(isinstance(one, str) for one in row.values())
        for row in rows
    )
