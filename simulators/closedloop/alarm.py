"""The drift alarm over clean partitions: whether the world is still the one that the reference was taken in.

It asks for a refresh of the reference and is never a fault. Each policy has its own alarm, `xapp.support.drift`: the
standard is fitted to the first pilot partitions, the limit calibrated on the other pilot partitions and the reference
block, which the fit has not seen; 19 of them are the fewest for which α = .05 has a limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from simulators.closedloop.loop import PARTITIONS, REGIMES
from simulators.closedloop.rows import FEATURES, Block, Floats, Stream
from xapp.support import drift

ALPHA: Final = 0.05
CALIBRATED_ON: Final = 19
FITTED_TO: Final = 2 * PARTITIONS - CALIBRATED_ON
"""Of the 30 partitions of the pilot and the reference block; all of them pilot."""
FLOOR: Final = 1e-3
"""The least deviation of a feature: a share of a thousandth is four steps of a partition."""
SCORED: Final[tuple[Block, ...]] = ("null", "current")
PLACES: Final = 9


def alarms(streams: Sequence[Stream]) -> dict[str, Any]:
    """The document `drift.json`. Raises ValueError where the pilot or reference stream of a policy is missing."""
    policies = [_of_policy(regime, streams) for regime in REGIMES]
    return {
        "features": list(FEATURES),
        "alpha": ALPHA,
        "fitted_to": FITTED_TO,
        "calibrated_on": CALIBRATED_ON,
        "floor": FLOOR,
        "policies": policies,
        "refresh": _refresh(policies),
    }


def _of_policy(regime: int, streams: Sequence[Stream]) -> dict[str, Any]:
    pilot, reference = (_clean(regime, block, streams) for block in ("pilot", "reference"))
    limit, standard = _limit(pilot, reference)
    scored = [
        _scores(stream, standard, limit) for stream in streams if stream.regime == regime and stream.block in SCORED
    ]
    # The refresh: what an alarm asks for, here from the very buffer that the map came from.
    again, _ = _limit(pilot, reference)
    return {"regime": regime, "limit": round(limit, PLACES), "streams": scored, "refreshed_limit": round(again, PLACES)}


def _clean(regime: int, block: str, streams: Sequence[Stream]) -> Floats:
    for stream in streams:
        if (stream.regime, stream.demand, stream.block) == (regime, regime, block):
            return stream.features
    raise ValueError(f"no {block} stream of regime {regime} under its own demand")


def _limit(pilot: Floats, reference: Floats) -> tuple[float, drift.Standard]:
    standard = drift.fit(pilot[:FITTED_TO], FLOOR)
    unseen = np.concatenate([pilot[FITTED_TO:], reference])
    limit = drift.conformal_limit([standard.score(one) for one in unseen.tolist()], ALPHA)
    if limit is None:
        raise ValueError(f"{len(unseen)} partitions are too few to calibrate at {ALPHA}")
    return limit, standard


def _scores(stream: Stream, standard: drift.Standard, limit: float) -> dict[str, Any]:
    scores = [standard.score(one) for one in stream.features.tolist()]
    return {
        "demand": stream.demand,
        "block": stream.block,
        "scores": [round(score, PLACES) for score in scores],
        "alarms": sum(score > limit for score in scores),
    }


def _refresh(policies: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What a refresh from the same buffer shows: that the state machine goes round, and nothing of a stale map."""
    asked = [
        policy for policy in policies if any(s["alarms"] for s in policy["streams"] if s["demand"] != policy["regime"])
    ]
    return {
        "label": "SMOKE_TEST",
        "buffer": "the pilot and reference partitions that the limit already came from",
        "asked": len(asked),
        "limit_unchanged": sum(policy["limit"] == policy["refreshed_limit"] for policy in asked),
    }
