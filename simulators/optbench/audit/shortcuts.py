"""Shortcuts: whether anything that is no evidence predicts action or family better than chance (a permutation test).

It finds what strip equality cannot see, a base item that suits some stress better than another, and only where it is
strong: it supplements strip equality, and never replaces it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import orjson

from simulators.optbench.audit.strip import first_versions, strip
from simulators.optbench.audit.subject import Check, Subject
from simulators.optbench.model import Case, Sealed

PERMUTATIONS: Final = 999
LEVEL: Final = 0.001
"""Of the whole check: the chance that a suite without a shortcut fails it, over both targets and all features."""
CONFIRMING: Final = 4_999
SUSPECT: Final = 0.02
"""A target of which a p-value is below this is tested again, with `CONFIRMING` permutations, and these count."""

_SEED: Final = 20_260
_GROUPS: Final = 5
"""A feature of more values than this is grouped at quantiles, within each task."""
_RIDGE: Final = 1.0
_CLASSIFIER: Final = "all features together"

_Ints = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]


def _digits(case: Case) -> str:
    return case.episode_id.rpartition("-")[2]


def _last_digit(case: Case) -> int:
    return ord(_digits(case)[-1:] or "0")


def _time(case: Case) -> int:
    return int(case.view["episode"]["decided_at_ms"])


def _least_version(case: Case) -> int:
    return min((version for _, version in first_versions(case.view["episode"]["observations"])), default=0)


def _keys(value: Any) -> list[Any]:
    """The names of all members, in order, at every depth but that of evidence."""
    if isinstance(value, Mapping):
        return [[name, _keys(one)] for name, one in value.items()]
    return []


def _key_order(case: Case) -> str:
    stripped = orjson.loads(strip(case.view))
    episode = {name: one for name, one in stripped["episode"].items() if name != "contract"}
    return orjson.dumps(_keys({**stripped, "episode": episode})).decode()


def _end(text: str) -> str:
    """How a text begins and ends: its last sign, and the blanks around it."""
    return f"{text[: len(text) - len(text.lstrip())]!r} {text.rstrip()[-1:]!r} {text[len(text.rstrip()) :]!r}"


def _openly(case: Case) -> bytes:
    """What an episode says besides evidence and names."""
    return orjson.dumps((case.view["task"], case.view["episode"]["contract"]))


def _length(value: Any) -> int:
    return len(orjson.dumps(value))


FEATURES: Final[Mapping[str, Callable[[Case, int], float | str]]] = {
    "parity of the name": lambda case, _: int(f"0{_digits(case)[-1:]}", 16) % 2 if _is_hex(case) else 0,
    "last digit of the name": lambda case, _: _last_digit(case),
    "first digits of the name": lambda case, _: int(_digits(case)[:4], 16) if _is_hex(case) else 0,
    "letters in the name": lambda case, _: sum(one.isalpha() for one in case.episode_id),
    "length of the name": lambda case, _: len(case.episode_id),
    "order of members": lambda case, _: _key_order(case),
    "length of the question": lambda case, _: len(case.view["task"]["question"]),
    "parity of the question's length": lambda case, _: len(case.view["task"]["question"]) % 2,
    "end of the question": lambda case, _: _end(case.view["task"]["question"]),
    "blanks in a row in the question": lambda case, _: len(re.findall(r"\s\s+", case.view["task"]["question"])),
    "characters of the question beyond ASCII": lambda case, _: sum(c > "\x7f" for c in case.view["task"]["question"]),
    "numbers written with .0": lambda case, _: len(re.findall(rb"\d\.0\b", _openly(case))),
    "members of task and contract": lambda case, _: _openly(case).count(b'":'),
    "length of the task": lambda case, _: _length(case.view["task"]),
    "length of the contract": lambda case, _: _length(case.view["episode"]["contract"]),
    "length without evidence": lambda case, _: len(strip(case.view)),
    "time base": lambda case, _: _time(case),
    "time base modulo 2": lambda case, _: _time(case) % 2,
    "time base modulo 4": lambda case, _: _time(case) % 4,
    "time base modulo 1000": lambda case, _: _time(case) % 1000,
    "least first version": lambda case, _: _least_version(case),
    "least first version modulo 4": lambda case, _: _least_version(case) % 4,
    "place in the suite": lambda _, place: place,
    "parity of the place": lambda _, place: place % 2,
}
"""Name → the feature of an episode and its place: a number or a text, of nothing that is evidence."""

TARGETS: Final[Mapping[str, Callable[[Sealed], str]]] = {
    "action": lambda sealed: sealed.reference,
    "family": lambda sealed: sealed.family,
}


def shortcuts(subject: Subject) -> Check:
    """p-values of every feature, and of a classifier on all, for each target; what is below its share of `LEVEL` fails.

    A p-value that fails is one of `CONFIRMING` permutations; that it is only drawn where one of `PERMUTATIONS` is below
    `SUSPECT` makes it no likelier. Labels are permuted within tasks from a fixed seed, all features at once; p = (1 +
    how many permutations do at least as well) / (1 + their number), which is exact for a test that draws its
    permutations (Phipson and Smyth 2010). Statistics are standardised by their permutations, and the greatest of each
    permutation is what all are held against (Westfall and Young, single step), so that many features make no find more
    likely. Features are tested by Pearson's chi-squared; the classifier, a ridge regression on the grouped features, by
    how often it is right on an episode that it was not fitted to.
    """
    tasks = _numbered([case.sealed.item.task for case in subject.cases])
    grouped = {name: _grouped(_values(subject.cases, of), tasks) for name, of in FEATURES.items()}
    telling = {name: groups for name, groups in grouped.items() if groups.max(initial=0) > 0}
    failures: list[str] = []
    counts: dict[str, int | float] = {"features": len(FEATURES), "permutations": PERMUTATIONS}
    least: list[str] = []
    level = LEVEL / len(TARGETS)
    for target, of in TARGETS.items():
        labels = _numbered([of(case.sealed) for case in subject.cases])
        found = corrected(telling, labels, tasks)
        if min(found.values()) < SUSPECT:
            found = corrected(telling, labels, tasks, CONFIRMING)
        name, p = min(found.items(), key=lambda pair: pair[1])
        counts[f"least_p_{target}"] = p
        counts[f"classifier_p_{target}"] = found[_CLASSIFIER]
        least.append(f"{target} {p:.3f} ({name})")
        failures += [f"{name} predicts the {target}: p = {p:.4f}" for name, p in found.items() if p < level]
    return Check(
        "shortcuts",
        f"shortcuts: {len(FEATURES)} features without evidence and a classifier on all, {PERMUTATIONS} permutations; "
        f"least corrected p: {', '.join(least)}; {len(failures)} below {level}",
        counts,
        tuple(failures),
    )


def corrected(
    features: Mapping[str, _Ints], labels: _Ints, strata: _Ints, permutations: int = PERMUTATIONS
) -> dict[str, float]:
    """Feature → its p-value, corrected for all of them; the classifier is one more.

    `features`: groups of the episodes, numbered from 0. `labels`, `strata`: numbered from 0; labels are permuted within
    strata alone.
    """
    rng = np.random.default_rng(_SEED)
    classes = int(labels.max(initial=0)) + 1
    classifier = _Classifier(list(features.values()), strata)
    tables = _Tables(list(features.values()), classes)
    places = [np.flatnonzero(strata == stratum) for stratum in range(int(strata.max(initial=0)) + 1)]
    found = np.empty((permutations + 1, len(features) + 1))
    for row in range(permutations + 1):
        drawn = labels.copy()
        if row:  # the first are the labels as they are
            for own in places:
                drawn[own] = labels[rng.permutation(own)]
        found[row, :-1] = tables.chi_squared(drawn)
        found[row, -1] = classifier.accuracy(drawn, classes)
    spread = found.std(axis=0)
    standard = np.where(spread > 0, (found - found.mean(axis=0)) / np.where(spread > 0, spread, 1), 0.0)
    greatest = standard.max(axis=1) + 1e-9
    atleast = (greatest[1:, None] >= standard[0][None, :]).sum(axis=0)
    return dict(zip((*features, _CLASSIFIER), ((1 + atleast) / (1 + permutations)).tolist(), strict=True))


class _Tables:
    """Contingency tables of features and classes, one below the other."""

    def __init__(self, features: Sequence[_Ints], classes: int) -> None:
        sizes = [int(groups.max(initial=0)) + 1 for groups in features]
        self._begins = np.cumsum([0, *sizes])[:-1]
        placed = zip(features, self._begins, strict=True)
        self._groups = np.array([groups + begin for groups, begin in placed], dtype=np.int64)
        self._classes, self._rows = classes, sum(sizes)
        self._held = np.bincount(self._groups.ravel(), minlength=self._rows)

    def chi_squared(self, labels: _Ints) -> _Floats:
        """Pearson's, of each feature."""
        if not len(self._groups):
            return np.empty(0)
        cells = (self._groups * self._classes + labels).ravel()
        held = np.bincount(cells, minlength=self._rows * self._classes).reshape(-1, self._classes)
        expected = np.outer(self._held, np.bincount(labels, minlength=self._classes)) / len(labels)
        rows = (np.square(held - expected) / np.where(expected > 0, expected, 1)).sum(axis=1)
        return np.add.reduceat(rows, self._begins)


class _Classifier:
    """Ridge regression of the classes on the groups of all features; what it is right on is left out in turn."""

    def __init__(self, features: Sequence[_Ints], strata: _Ints) -> None:
        columns = [np.eye(int(groups.max(initial=0)) + 1)[groups] for groups in (strata, *features)]
        inputs: _Floats = np.hstack(columns)
        self._inputs = inputs
        gram: _Floats = inputs.T @ inputs + _RIDGE * np.eye(inputs.shape[1])
        self._fit = np.linalg.solve(gram, inputs.T)
        self._own = np.einsum("ij,ji->i", inputs, self._fit)

    def accuracy(self, labels: _Ints, classes: int) -> float:
        """The share of episodes whose class is the one that all the others predict."""
        wanted = np.eye(classes)[labels]
        predicted = self._inputs @ (self._fit @ wanted)
        without = (predicted - self._own[:, None] * wanted) / (1 - self._own[:, None])
        return float((without.argmax(axis=1) == labels).mean())


def _values(cases: Sequence[Case], of: Callable[[Case, int], float | str]) -> _Floats:
    """A feature of all episodes; texts are numbered in their order."""
    values = [of(case, place) for place, case in enumerate(cases)]
    if any(isinstance(value, str) for value in values):
        return _numbered([str(value) for value in values]).astype(np.float64)
    return np.asarray(values, dtype=np.float64)


def _grouped(values: _Floats, strata: _Ints) -> _Ints:
    """Groups from 0 on, within strata: values as they are where they are few, else at quantiles."""
    groups = np.zeros(len(values), dtype=np.int64)
    for stratum in np.unique(strata):
        own = strata == stratum
        levels = np.unique(values[own])
        if len(levels) > _FEW:
            levels = np.unique(np.quantile(values[own], np.arange(1, _GROUPS) / _GROUPS))
            groups[own] = np.searchsorted(levels, values[own], side="right")
        else:
            groups[own] = np.searchsorted(levels, values[own])
    return groups


_FEW: Final = 32
"""As many values as there are families are kept apart."""


def _numbered(values: Sequence[str]) -> _Ints:
    return np.unique(np.asarray(values), return_inverse=True)[1].astype(np.int64).reshape(-1)


def _is_hex(case: Case) -> bool:
    digits = _digits(case)
    return bool(digits) and all(one in "0123456789abcdef" for one in digits)
