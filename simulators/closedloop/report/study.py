"""A finished study as its report reads it: documents and tables, nothing computed anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from simulators.closedloop.tables import read, read_document

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Study:
    """The documents of a study by name, its claims, and the rows of `units.csv`, `arms.csv` and `masks.csv`."""

    protocol: Mapping[str, Any]
    calibration: Mapping[str, Any]
    analysis: Mapping[str, Any]
    drift: Mapping[str, Any]
    leakage: Mapping[str, Any]
    claims: Sequence[Mapping[str, Any]]
    units: Sequence[Row]
    arms: Sequence[Row]
    masks: Sequence[Row]


def study(files: Mapping[str, bytes]) -> Study:
    """From the files of a run, by name. Raises FileFault for one that the study would not write so."""
    protocol, calibration, analysis, drift, leakage = (
        read_document(name, files[name])
        for name in ("protocol.json", "calibration.json", "analysis.json", "drift.json", "leakage.json")
    )
    return Study(
        protocol,
        calibration,
        analysis,
        drift,
        leakage,
        tuple(map(orjson.loads, files["ledger.jsonl"].splitlines())),
        read("units.csv", files["units.csv"]),
        read("arms.csv", files["arms.csv"]),
        read("masks.csv", files["masks.csv"]),
    )
