"""The files that a run leaves, and the columns of its tables (docs/study.md, "What a run leaves")."""

from __future__ import annotations

from typing import Final, Literal

from simulators.closedloop.validator.design import ACTIONS, COMPONENTS, HISTOGRAM

Kind = Literal["integer", "count or empty", "number", "number or empty", "text"]
Layout = tuple[tuple[str, Kind], ...]

_UNIT: Final[Layout] = (("regime", "integer"), ("component", "integer"))
_ARM: Final[Layout] = (*_UNIT, ("family", "text"), ("target", "number"))
_TRACE: Final[Layout] = (
    ("partition", "integer"),
    ("visits", "integer"),
    *((action, "integer") for action in HISTOGRAM),
)
_SIGNAL: Final[Layout] = (("partition", "integer"), ("joint", "integer"), ("z", "number or empty"))

TABLES: Final[dict[str, Layout]] = {
    "schedule.csv": (("case", "integer"), *_ARM, ("direction", "text")),
    "seeds.csv": (("block", "text"), ("partition", "integer"), ("first", "integer"), ("count", "integer")),
    "occupancy.csv": (("regime", "integer"), ("cell", "integer"), ("visits", "integer")),
    "cells.csv": (
        *_UNIT,
        ("family", "text"),
        ("place", "integer"),
        ("cell", "integer"),
        ("outward", "integer"),
        ("inward", "integer"),
    ),
    "masks.csv": (
        *_ARM,
        ("selected", "integer"),
        ("changeable", "integer"),
        ("tau_outward", "number"),
        ("tau_inward", "number"),
        ("tau", "number"),
        ("fraction", "number"),
        ("digest", "text"),
    ),
    "reference.csv": (*_UNIT, *_TRACE),
    "null.csv": (*_UNIT, *_TRACE),
    "current.csv": (("case", "integer"), *_TRACE),
    "drift_features.csv": (
        ("regime", "integer"),
        ("demand", "integer"),
        ("block", "text"),
        ("partition", "integer"),
        *((f"share_{component}", "number") for component in range(COMPONENTS)),
        *((f"action_{action}", "number") for action in range(ACTIONS)),
        *((f"credit_{quarter}", "number") for quarter in range(4)),
        ("unmet", "number"),
    ),
    "units.csv": (
        *_UNIT,
        ("reference_partitions", "integer"),
        ("runtime_partitions", "count or empty"),
        ("state", "text"),
    ),
    "signals.csv": (("case", "integer"), *_SIGNAL),
    "arms.csv": (*_ARM, ("stable_outward", "integer"), ("stable_inward", "integer"), ("state", "text")),
    "null_signals.csv": (*_UNIT, *_SIGNAL),
}
DOCUMENTS: Final = ("protocol.json", "calibration.json", "analysis.json", "leakage.json", "drift.json", "manifest.json")
LEDGER: Final = "ledger.jsonl"
MANIFEST: Final = "manifest.json"
FILES: Final = (*TABLES, *DOCUMENTS, LEDGER)
