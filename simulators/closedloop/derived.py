"""Everything that is concluded from the rows of a run, as the bytes of its files; no trajectory is generated here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final

import numpy as np

from simulators.closedloop import alarm, analysis, tables
from simulators.closedloop.calibration import CONFIDENCE, THRESHOLD, Calibration, calibrate
from simulators.closedloop.gates import RULE, Comparison, Flags, Verdicts, compare, judge
from simulators.closedloop.ledger import ledger
from simulators.closedloop.loop import COMPONENTS, DIRECTIONS, FAMILIES, PARTITIONS, REGIMES, TARGETS
from simulators.closedloop.rows import Rows, arms
from simulators.closedloop.tables import Value

DERIVED: Final = (
    "units.csv", "signals.csv", "arms.csv", "null_signals.csv", "calibration.json", "analysis.json", "drift.json",
    "ledger.jsonl",
)  # fmt: skip
"""The files that `derive` makes."""


def derive(rows: Rows, protocol: Mapping[str, Any], leakage: Mapping[str, Any]) -> dict[str, bytes]:
    """The files `DERIVED`. Read of the protocol is the frozen cutoff; `leakage`: the document of the audit.

    The audit plants faults of its own, so its document is an input here as rows are.
    """
    cutoff = float(protocol["cutoff"]["chosen"])
    verdicts = judge(rows.reference, rows.current, cutoff)
    null = compare(rows.reference, rows.null)
    calibration = _calibration(verdicts, null, cutoff)
    analysed = analysis.analyse(verdicts, rows.masks)
    drifted = alarm.alarms(rows.streams)
    documents = {
        "counts": _counts(rows, verdicts),
        "calibration": calibration,
        "analysis": analysed,
        "drift": drifted,
        "leakage": leakage,
    }
    return {
        "units.csv": tables.write("units.csv", _units(verdicts)),
        "signals.csv": tables.write("signals.csv", _signals([(case.case,) for case in rows.cases], verdicts.cases)),
        "arms.csv": tables.write("arms.csv", _arms(verdicts)),
        "null_signals.csv": tables.write(
            "null_signals.csv", _signals(list(product(REGIMES, range(COMPONENTS))), null)
        ),
        "calibration.json": tables.document(calibration),
        "analysis.json": tables.document(analysed),
        "drift.json": tables.document(drifted),
        "ledger.jsonl": ledger(documents),
    }  # fmt: skip


def _counts(rows: Rows, verdicts: Verdicts) -> dict[str, int]:
    return {
        "rows": rows.current.shape[0] * rows.current.shape[1],
        "scheduled_rows": len(rows.cases) * PARTITIONS,
        "units": verdicts.admitted.size,
        "admitted": int(verdicts.admitted.sum()),
        "eligible": int(verdicts.eligible.sum()),
    }


def _units(verdicts: Verdicts) -> Iterator[Sequence[Value]]:
    for (place, regime), component in product(enumerate(REGIMES), range(COMPONENTS)):
        asked = verdicts.admitted[place, component]
        yield (
            regime,
            component,
            int(verdicts.reference_partitions[place, component]),
            int(verdicts.runtime_partitions[place, component]) if asked else None,
            verdicts.unit(place, component),
        )


def _signals(keys: Iterable[tuple[int, ...]], found: Comparison) -> Iterator[Sequence[Value]]:
    """A row for each key and partition, in order."""
    joint = found.joint.reshape(-1, PARTITIONS).tolist()
    z = found.z.reshape(-1, PARTITIONS).tolist()
    for key, of_joint, of_z in zip(keys, joint, z, strict=True):
        for partition, (both, value) in enumerate(zip(of_joint, of_z, strict=True)):
            yield (*key, partition, int(both), value if both else None)


def _arms(verdicts: Verdicts) -> Iterator[Sequence[Value]]:
    places = product(range(len(REGIMES)), range(COMPONENTS), range(len(FAMILIES)), range(len(TARGETS)))
    stable = verdicts.stable.reshape(-1, len(DIRECTIONS)).astype(int).tolist()
    for arm, place, directions in zip(arms(), places, stable, strict=True):
        yield (*arm, *directions, verdicts.arm(*place))


def _calibration(verdicts: Verdicts, null: Comparison, cutoff: float) -> dict[str, Any]:
    """The document `calibration.json`: false admissions of reference-admitted units, counted by component.

    A component whose units all abstain in the null is represented, and cannot be falsely admitted: the sensitivity is
    over those with a unit that is past the runtime gate there.
    """
    stable: Flags = null.stable(cutoff) & verdicts.admitted
    signalling = null.signalling(cutoff)
    found = _told(calibrate(_any_regime(verdicts.admitted), _any_regime(stable)))
    answering = verdicts.admitted & null.supported()
    return {
        "unit": "physical component",
        "confidence": CONFIDENCE,
        **found,
        "sensitivity": _told(calibrate(_any_regime(answering), _any_regime(stable))),
        "by_component": [
            {
                "component": component,
                "admitted": _regimes(verdicts.admitted[:, component]),
                "runtime_admitted": _regimes(answering[:, component]),
                "stable": _regimes(stable[:, component]),
                "most_signalling": int(np.where(verdicts.admitted, signalling, 0)[:, component].max()),
            }
            for component in range(COMPONENTS)
            if verdicts.admitted[:, component].any()
        ],
        "stable_means": f"z at or above {cutoff} in at least {RULE.min_partitions} of {RULE.partitions} partitions",
    }


def _told(found: Calibration) -> dict[str, Any]:
    return {
        "represented": found.represented,
        "false_admissions": found.false_admissions,
        "bound": None if found.bound is None else round(found.bound, analysis.PLACES),
        "threshold": THRESHOLD,
        "status": found.status,
    }


def _any_regime(flags: Flags) -> list[bool]:
    """Of each component, from bool[3, 24]."""
    return [bool(flags[:, component].any()) for component in range(COMPONENTS)]


def _regimes(flags: Flags) -> list[int]:
    """The regimes, λ0, in which a flag is set."""
    return [regime for regime, flag in zip(REGIMES, flags.tolist(), strict=True) if flag]
