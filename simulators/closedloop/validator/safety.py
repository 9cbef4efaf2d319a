"""Safety: how often the clean stream is taken for a fault, counted and bounded again (section 5.3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from simulators.closedloop.validator.check import Check, Fault
from simulators.closedloop.validator.design import (
    ACTIONS,
    BLOCKS,
    BOUND_AT_MOST,
    COMPONENTS,
    CONFIDENCE,
    MIN_PARTITIONS,
    PARTITIONS,
    REGIMES,
    UNITS,
)
from simulators.closedloop.validator.keys import cube, histograms
from simulators.closedloop.validator.reading import Saved, at, foreign, same
from simulators.closedloop.validator.seeds import episodes
from simulators.closedloop.validator.signal import FROZEN, cutoff
from simulators.closedloop.validator.support import (
    Flags,
    compared_null,
    reaches,
    reference_partitions,
)

FILE: Final = "calibration.json"
TOLERANCE: Final = 1e-8
_COUNTED: Final = dict.fromkeys(("represented", "false_admissions", "bound", "threshold", "status"))
MEMBERS: Final = {
    **_COUNTED,
    **dict.fromkeys(("unit", "confidence", "by_component", "stable_means")),
    "sensitivity": _COUNTED,
}
"""Of calibration.json: member → those within it, None where it is a value."""


def _by_unit(saved: Saved) -> tuple[Flags, Flags, Flags]:
    """Admitted at the reference, and at runtime in the clean stream too: bool[3, 24]; its partitions that signal."""
    admitted = reference_partitions(saved) >= MIN_PARTITIONS
    null = compared_null(saved)
    both = admitted & (null.joint.reshape(UNITS, PARTITIONS).sum(axis=1) >= MIN_PARTITIONS)
    signalling = reaches(null, cutoff(saved) or FROZEN).reshape(UNITS, PARTITIONS).sum(axis=1)
    shape = len(REGIMES), COMPONENTS
    return admitted.reshape(shape), both.reshape(shape), signalling.reshape(shape)


def _counts(saved: Saved) -> dict[tuple[str, ...], tuple[int, int]]:
    """Where calibration.json says it → represented components, false admissions."""
    admitted, both, signalling = _by_unit(saved)
    stable = signalling >= MIN_PARTITIONS
    return {
        where: (int(units.any(axis=0).sum()), int((units & stable).any(axis=0).sum()))
        for where, units in (((), admitted), (("sensitivity",), both))
    }


def upper_bound(events: int, trials: int) -> float | None:
    """The rate at which `events` or fewer of `trials` have probability 5 %: sought by bisection of the binomial."""
    from scipy.optimize import brentq
    from scipy.special import bdtr

    if trials == 0:
        return None
    if events == trials:
        return 1.0
    return float(brentq(lambda rate: bdtr(events, trials, rate) - (1 - CONFIDENCE), 0.0, 1.0, xtol=1e-13))


def _apart(saved: Saved) -> Iterator[Fault]:
    null = episodes(saved, "null")
    for block in BLOCKS:
        if block != "null" and (shared := null & episodes(saved, block)):
            told = f"the clean null shares {len(shared)} episode seeds with {block}, the first {min(shared)}"
            yield Fault("seeds.csv", "", told)
    seen: dict[bytes, str] = {}
    for name in ("reference.csv", "null.csv"):
        traces = cube(saved, name)
        shape = len(REGIMES), COMPONENTS, PARTITIONS
        counts = histograms(traces).reshape(*shape, ACTIONS)
        for regime, partition in np.argwhere(traces.there.reshape(shape).all(axis=1)).tolist():
            here = f"partition {partition} of regime {REGIMES[regime]}"
            if before := seen.get(key := counts[regime, :, partition].tobytes()):
                yield Fault(name, here, f"has the very traces of {before}")
            seen[key] = f"{here} in {name}"


def _represented(saved: Saved) -> Iterator[Fault]:
    document = saved.documents[FILE]
    for where, counts in _counts(saved).items():
        for member, counted in zip(("represented", "false_admissions"), counts, strict=True):
            if not same(told := at(document, *where, member), counted):
                yield _told((*where, member), told, counted)
    means = f"z at or above {cutoff(saved)} in at least {MIN_PARTITIONS} of {PARTITIONS} partitions"
    for member, text in (("unit", "physical component"), ("stable_means", means)):
        if (said := document.get(member)) != text:
            yield _told((member,), said, text)
    for path in foreign(document, MEMBERS):
        yield Fault(FILE, " ".join(path), "is no member of a calibration")
    admitted, both, signalling = _by_unit(saved)
    stable = admitted & (signalling >= MIN_PARTITIONS)
    wanted = [
        {
            "component": component,
            "admitted": _regimes(admitted[:, component]),
            "runtime_admitted": _regimes(both[:, component]),
            "stable": _regimes(stable[:, component]),
            "most_signalling": int(np.where(admitted, signalling, 0)[:, component].max()),
        }
        for component in range(COMPONENTS)
        if admitted[:, component].any()
    ]
    listed = document.get("by_component")
    rows = listed if isinstance(listed, list) else []
    for number, (row, component) in enumerate(zip(rows, wanted, strict=False)):
        if not same(row, component):
            yield _told(("by_component", str(number)), row, component)
    if len(rows) != len(wanted):
        yield Fault(FILE, "by_component", f"has {len(rows)} components; {len(wanted)} are represented")


def _bound(saved: Saved) -> Iterator[Fault]:
    document = saved.documents[FILE]
    if not same(confidence := document.get("confidence"), CONFIDENCE):
        yield _told(("confidence",), confidence, CONFIDENCE)
    for where, (represented, events) in _counts(saved).items():
        bound = upper_bound(events, represented)
        said = at(document, *where, "bound")
        if not same(said, bound, TOLERANCE):
            yield _told((*where, "bound"), said, bound)
        status = "NOT_ESTIMABLE" if bound is None else "PASS" if bound <= BOUND_AT_MOST else "FAIL"
        for member, wanted in (("threshold", BOUND_AT_MOST), ("status", status)):
            if not same(other := at(document, *where, member), wanted):
                yield _told((*where, member), other, wanted)


def _regimes(flags: Flags) -> list[int]:
    return [regime for regime, flag in zip(REGIMES, flags.tolist(), strict=True) if flag]


def _told(where: tuple[str, ...], said: Any, counted: Any) -> Fault:
    return Fault(FILE, " ".join(where), f"is {said!r}; by the clean stream {counted!r}")


_TRACES: Final = ("protocol.json", "reference.csv", "null.csv")

CHECKS: Final = (
    Check("null_apart", "safety", "The clean null shares no seed with any other block, no partition another's traces.",
          ("seeds.csv", "null.csv", "reference.csv"), _apart,
          ("seeds/disjoint", "traces/totals", "signal/z", "ledger/claims")),
    Check("represented", "safety", "Represented components, and those falsely admitted, are as counted.",
          (FILE, *_TRACES), _represented, ("ledger/claims",)),
    Check("bound", "safety", "The bound is the exact one of these counts, and the status what the frozen rule says.",
          (FILE, *_TRACES), _bound, ("ledger/claims",)),
)  # fmt: skip
