"""The contract: reference gate, runtime gate, signal, in this order; what one does not let through no later one sees.

Sections 5.1 to 5.3. The rule of support is the engine's own, `xapp.support.rule`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from simulators.closedloop.loop import COMPONENTS, DIRECTIONS, FAMILIES, PARTITIONS, REGIMES, TARGETS
from simulators.closedloop.rows import Floats, Ints
from simulators.closedloop.signal import z
from xapp.support.rule import Rule

UnitState = Literal["REFERENCE_ABSTAIN", "RUNTIME_ABSTAIN", "SIGNAL_ELIGIBLE"]
ArmState = Literal["REFERENCE_ABSTAIN", "RUNTIME_ABSTAIN", "DETECTED", "NOT_DETECTED"]

RULE: Final = Rule(min_visits=12, min_partitions=14, partitions=PARTITIONS)

GRID: Final = (len(REGIMES), COMPONENTS, len(FAMILIES), len(TARGETS), len(DIRECTIONS))
"""The shape of the 1,440 cases, which are in this order."""

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A stream held against the reference: bool[..., 15] whether both have enough visits, float64[..., 15] z where so
    (not-a-number elsewhere).
    """

    joint: Flags
    z: Floats

    def stable(self, cutoff: float) -> Flags:
        """bool[...]: z at or above the cutoff in enough of the partitions that are joint."""
        found: Flags = self.signalling(cutoff) >= RULE.min_partitions
        return found

    def signalling(self, cutoff: float) -> Ints:
        """int64[...]: how many partitions are joint and have z at or above the cutoff."""
        found: Ints = ((self.z >= cutoff) & self.joint).sum(axis=-1)
        return found

    def supported(self) -> Flags:
        """bool[...]: enough partitions are joint."""
        found: Flags = self.joint.sum(axis=-1) >= RULE.min_partitions
        return found


def compare(reference: Ints, current: Ints) -> Comparison:
    """Partition by partition, int64[..., 15, actions] each, of shapes that broadcast; the same partition of both."""
    reference, current = np.broadcast_arrays(reference, current)
    joint = np.apply_along_axis(_joint, -1, np.concatenate([reference.sum(axis=-1), current.sum(axis=-1)], axis=-1))
    return Comparison(joint, np.where(joint, z(reference, current), np.nan))


def _joint(visits: Ints) -> Flags:
    counts = visits.tolist()
    return np.array(RULE.joint(counts[:PARTITIONS], counts[PARTITIONS:]))


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What the contract says of the formal grid.

    `reference_partitions`: int64[3, 24], partitions of the reference with enough visits; `cases`: comparison of shape
    [3, 24, families, targets, directions]; `runtime_partitions`: int64[3, 24], the least joint count over a unit's
    cases; `admitted`: bool[3, 24] past the reference gate, `eligible` past both; `stable`: bool, shape of `cases`;
    `detected`: bool[3, 24, families, targets], of eligible units, stable in both directions.
    """

    reference_partitions: Ints
    cases: Comparison
    runtime_partitions: Ints
    admitted: Flags
    eligible: Flags
    stable: Flags
    detected: Flags

    def unit(self, regime: int, component: int) -> UnitState:
        """The state of a unit; `regime` is its place in `REGIMES`."""
        if not self.admitted[regime, component]:
            return "REFERENCE_ABSTAIN"
        return "SIGNAL_ELIGIBLE" if self.eligible[regime, component] else "RUNTIME_ABSTAIN"

    def arm(self, regime: int, component: int, family: int, target: int) -> ArmState:
        """The state of an arm, each axis by its place: its unit's where that abstains."""
        state = self.unit(regime, component)
        if state != "SIGNAL_ELIGIBLE":
            return state
        return "DETECTED" if self.detected[regime, component, family, target] else "NOT_DETECTED"


def judge(reference: Ints, current: Ints, cutoff: float) -> Verdicts:
    """Reference, int64[3, 24, 15, 8], and the cases in the order of the schedule, int64[1440, 15, 8].

    A unit is past the runtime gate where every one of its cases is, both directions of every arm: the same units then
    stand behind every count of detections, and none enters it by the arm that happens to be well visited.
    """
    adequate = np.apply_along_axis(lambda visits: np.array(RULE.adequate(visits.tolist())), -1, reference.sum(axis=-1))
    cases = compare(reference[:, :, None, None, None], current.reshape(*GRID, PARTITIONS, -1))
    reference_partitions = adequate.sum(axis=-1)
    runtime_partitions = cases.joint.sum(axis=-1).min(axis=(2, 3, 4))
    admitted = reference_partitions >= RULE.min_partitions
    eligible = admitted & (runtime_partitions >= RULE.min_partitions)
    stable = cases.stable(cutoff)
    detected = stable.all(axis=-1) & eligible[:, :, None, None]
    return Verdicts(reference_partitions, cases, runtime_partitions, admitted, eligible, stable, detected)
