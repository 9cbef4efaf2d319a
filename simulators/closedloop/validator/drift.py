"""Drift: scores, limits and alarms of drift.json, computed again from the features of the clean partitions.

The features that the traces hold as well, shares of visits in the reference and null blocks, are held against them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from simulators.closedloop.validator.check import Fault
from simulators.closedloop.validator.design import ACTIONS, COMPONENTS, CREDITS, EPISODES, PARTITIONS, REGIMES, STEPS
from simulators.closedloop.validator.keys import cube
from simulators.closedloop.validator.layout import TABLES
from simulators.closedloop.validator.reading import Document, Floats, Saved, apart

FILE: Final = "drift.json"
ROWS: Final = "drift_features.csv"
ALPHA: Final = 0.05
FITTED: Final = 11
"""Of the 15 pilot partitions; the other 4 and the 15 of the reference calibrate."""
CALIBRATED: Final = 19
"""So the limit is the largest of their scores: the ⌈20 · 0.95⌉-th smallest."""
FLOOR: Final = 1e-3
TOLERANCE: Final = 1e-8
CLEAN: Final = {"reference": "reference.csv", "null": "null.csv"}
_BUFFER: Final = "the pilot and reference partitions that the limit already came from"
_FEATURES: Final = tuple(column for column, _ in TABLES[ROWS][4:])

Stream = tuple[int, int, str]
"""Regime of the policy, regime of the demand, block."""


def streams() -> list[Stream]:
    """Those of a study, in their order."""
    found: list[Stream] = []
    for regime in REGIMES:
        found += [(regime, regime, block) for block in ("reference", "pilot", "null")]
        found += [(regime, demand, "current") for demand in REGIMES]
    return found


def faults(saved: Saved) -> Iterator[Fault]:
    """What is wrong with the features, and with what drift.json says of them."""
    table = saved.tables[ROWS]
    keys = list(
        zip(table.ints["regime"].tolist(), table.ints["demand"].tolist(), table.texts["block"],
            table.ints["partition"].tolist(), strict=True)
    )  # fmt: skip
    wanted = [(*stream, partition) for stream in streams() for partition in range(PARTITIONS)]
    if keys != wanted:
        line = next((n for n, (a, b) in enumerate(zip(keys, wanted, strict=False)) if a != b), min(len(keys), 270))
        yield Fault(ROWS, f"line {line + 2}", f"its rows are not the {len(wanted)} of the streams of a study, in order")
        return
    by_place = np.column_stack([table.floats[name] for name in _FEATURES]).reshape(-1, PARTITIONS, len(_FEATURES))
    features = dict(zip(streams(), by_place, strict=True))
    yield from _shares(saved, features)
    yield from _demand(features)
    for place, said, value in apart(saved.documents[FILE], document(features), TOLERANCE):
        yield Fault(FILE, place, f"is {said!r}; by {ROWS} {value!r}")


def _shares(saved: Saved, features: dict[Stream, Floats]) -> Iterator[Fault]:
    """Visits and actions of a partition are those of its traces; at credit 0, which no trace has, the rest."""
    steps = EPISODES * STEPS
    seen: dict[tuple[int, bytes], str] = {}
    for (regime, demand, block), found in features.items():
        actions = found[:, COMPONENTS : COMPONENTS + ACTIONS]
        wrong = np.abs(actions.sum(axis=1) - 1.0) > TOLERANCE
        if block in CLEAN:
            traces = cube(saved, CLEAN[block])
            shape = len(REGIMES), COMPONENTS, PARTITIONS
            visits = traces.ints["visits"].reshape(shape)[REGIMES.index(regime)].T / steps
            taken = [traces.ints[f"a{action}"].reshape(shape)[REGIMES.index(regime)].sum(axis=0) for action in range(8)]
            wrong |= (np.abs(found[:, :COMPONENTS] - visits) > TOLERANCE).any(axis=1)
            wrong |= (actions < np.stack(taken, axis=1) / steps - TOLERANCE).any(axis=1)
        for partition in range(PARTITIONS):
            place = f"{block} of regime {regime} under demand {demand}, partition {partition}"
            if wrong[partition]:
                yield Fault(ROWS, place, "its shares of visits and actions are not those of its steps")
            if before := seen.get(key := (regime, found[partition].tobytes())):
                yield Fault(ROWS, place, f"has the very features of {before}")
            seen[key] = place


def _demand(features: dict[Stream, Floats]) -> Iterator[Fault]:
    """Whatever the policy, the same seeds demand the same: what was served, of 110 PRB what is not left, and unmet."""
    served_and_unmet = {
        stream: (CREDITS - 1 - found[:, -2]) / STEPS + found[:, -1] for stream, found in features.items()
    }
    for (regime, demand, block), found in served_and_unmet.items():
        wrong = np.abs(found - served_and_unmet[REGIMES[0], demand, "current"]) > TOLERANCE
        if block == "current" and wrong.any():
            place = f"{block} of regime {regime} under demand {demand}, partition {int(wrong.argmax())}"
            yield Fault(ROWS, place, f"meets another demand than under the policy of regime {REGIMES[0]}")


def document(features: dict[Stream, Floats]) -> Document:
    """What drift.json must say."""
    policies = [_policy(regime, features) for regime in REGIMES]
    asked = sum(
        any(stream["alarms"] for stream in policy["streams"] if stream["demand"] != policy["regime"])
        for policy in policies
    )
    return {
        "features": list(_FEATURES),
        "alpha": ALPHA,
        "fitted_to": FITTED,
        "calibrated_on": CALIBRATED,
        "floor": FLOOR,
        "policies": policies,
        "refresh": {"label": "SMOKE_TEST", "buffer": _BUFFER, "asked": asked, "limit_unchanged": asked},
    }


def _policy(regime: int, features: dict[Stream, Floats]) -> dict[str, Any]:
    pilot = features[regime, regime, "pilot"]
    fitted = pilot[:FITTED]
    centre = fitted.sum(axis=0) / FITTED
    spread = np.maximum(np.sqrt(((fitted - centre) ** 2).sum(axis=0) / (FITTED - 1)), FLOOR)

    def scores(of: Floats) -> Floats:
        found: Floats = (np.abs(of - centre) / spread).max(axis=1)
        return found

    limit = max(*scores(pilot[FITTED:]).tolist(), *scores(features[regime, regime, "reference"]).tolist())
    return {
        "regime": regime,
        "limit": limit,
        "streams": [
            {
                "demand": demand,
                "block": block,
                "scores": (found := scores(of)).tolist(),
                "alarms": int((found > limit).sum()),
            }
            for (its_regime, demand, block), of in features.items()
            if its_regime == regime and block in ("null", "current")
        ],
        "refreshed_limit": limit,
    }
