"""What the paper published, to be shown beside what was measured: tables III to VI, figures 4 and 7, section V-D.

Shares are fractions; gains are percentage points. None: the paper prints a dash.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from simulators.optbench.model import DOMAINS, Domain, Task

BACKBONES: Final = ("GPT-5.4-mini", "Qwen3-8B", "Claude Sonnet 4.6")

TABLE_III_COLUMNS: Final = ("task_score", "ops", "exact", "safe_apply_recall", "unsafe_apply_rate")
_TABLE_III: Final[Mapping[str, Mapping[str, tuple[float, ...]]]] = {
    "GPT-5.4-mini": {
        "direct": (0.539, 0.355, 0.538, 0.255, 0.490),
        "wirelessagent-contract": (0.424, 0.351, 0.517, 0.145, 0.490),
        "critic": (0.324, 0.555, 0.560, 0.185, 0.187),
        "wirelessopsagent": (0.802, 0.912, 0.972, 0.725, 0.078),
    },
    "Qwen3-8B": {
        "direct": (0.315, 0.386, 0.675, 0.220, 0.475),
        "wirelessagent-contract": (0.300, 0.452, 0.707, 0.170, 0.363),
        "critic": (0.236, 0.489, 0.632, 0.190, 0.300),
        "wirelessopsagent": (0.389, 0.815, 0.983, 0.480, 0.172),
    },
    "Claude Sonnet 4.6": {
        "direct": (0.508, 0.076, 0.370, 0.170, 0.887),
        "wirelessagent-contract": (0.468, 0.122, 0.407, 0.120, 0.822),
        "critic": (0.483, 0.076, 0.363, 0.165, 0.885),
        "wirelessopsagent": (0.520, 0.878, 0.975, 0.660, 0.103),
    },
}
TABLE_III: Final = {
    backbone: {method: dict(zip(TABLE_III_COLUMNS, row, strict=True)) for method, row in rows.items()}
    for backbone, rows in _TABLE_III.items()
}
"""backbone → method → metric."""

TABLE_IV: Final[Mapping[str, Mapping[str, Mapping[str, int]]]] = {
    "GPT-5.4-mini": {
        "before_repair": {"tp": 187, "fp": 369, "fn": 13, "tn": 31},
        "after_repair": {"tp": 192, "fp": 0, "fn": 8, "tn": 400},
    },
    "Qwen3-8B": {
        "before_repair": {"tp": 198, "fp": 342, "fn": 2, "tn": 58},
        "after_repair": {"tp": 199, "fp": 0, "fn": 1, "tn": 400},
    },
    "Claude Sonnet 4.6": {
        "before_repair": {"tp": 194, "fp": 357, "fn": 6, "tn": 43},
        "after_repair": {"tp": 194, "fp": 0, "fn": 6, "tn": 400},
    },
}
"""backbone → stage → counts of APPLY over 600 episodes, APPLY as the positive class."""

TABLE_V_COLUMNS: Final = ("exact", "safe_apply_utility", "safe_apply_recall", "unsafe_apply_rate")
_TABLE_V: Final[Mapping[Domain, tuple[float | None, ...]]] = {
    "schema_unit": (0.967, 0.752, 0.850, 0.067),
    "freshness_order": (0.917, 0.917, 0.975, 0.0),
    "availability_brownout": (0.983, 0.776, 0.950, 0.0),
    "conflict_provenance": (0.992, 0.0, 0.0, 0.325),
    "mixed_evidence": (1.0, None, None, 0.0),
}
TABLE_V: Final = {domain: dict(zip(TABLE_V_COLUMNS, row, strict=True)) for domain, row in _TABLE_V.items()}
"""WirelessOpsAgent with GPT-5.4-mini: domain → metric, by the frozen evaluator."""

TABLE_VI_COLUMNS: Final = ("macro_f1", "safe_apply_utility", "safe_apply_recall", "unsafe_apply_rate")
_TABLE_VI: Final[Mapping[str, tuple[float, ...]]] = {
    "full": (0.972, 0.639, 0.725, 0.078),
    "monitor-only": (0.983, 0.224, 0.250, 0.250),
    "no-integrity-monitor": (0.216, 0.632, 0.715, 0.688),
    "no-action-governor": (0.219, 0.639, 0.725, 0.693),
    "no-utility-repair": (0.964, 0.224, 0.245, 0.230),
    "no-normalizer": (0.889, 0.639, 0.725, 0.157),
    "no-conflict-freshness": (0.514, 0.639, 0.725, 0.355),
}
TABLE_VI: Final = {variant: dict(zip(TABLE_VI_COLUMNS, row, strict=True)) for variant, row in _TABLE_VI.items()}
"""Variant → metric, GPT-5.4-mini. `no-memory` is named in section IV-D and not printed."""

FIGURE_4_SURVIVAL: Final[Mapping[str, float]] = {"GPT-5.4-mini": 0.908, "Qwen3-8B": 0.818, "Claude Sonnet 4.6": 0.865}
"""Share of episodes of WirelessOpsAgent with an OPS of at least 0.8; every baseline's is 0."""

_FIGURE_7: Final[Mapping[str, Mapping[Task, tuple[int, ...]]]] = {
    "GPT-5.4-mini": {"WCHW": (28, 35, 12, 0, 82), "WCNS": (30, 35, 15, 5, 75), "WCMSA": (38, 48, 20, 10, 78)},
    "Qwen3-8B": {"WCHW": (20, 43, 7, 0, 30), "WCNS": (15, 48, 3, 0, 40), "WCMSA": (18, 43, 10, 0, 52)},
    "Claude Sonnet 4.6": {"WCHW": (32, 58, 0, 20, 88), "WCNS": (32, 60, 65, 68, 100), "WCMSA": (35, 60, 60, 65, 100)},
}
FIGURE_7: Final = {
    backbone: {task: dict(zip(DOMAINS, row, strict=True)) for task, row in rows.items()}
    for backbone, rows in _FIGURE_7.items()
}
"""backbone → task → domain → gain of exact action accuracy over the strongest baseline, in percentage points."""

FIGURE_5: Final[Mapping[Domain, tuple[str, str]]] = {
    "freshness_order": ("HOLD", "57"),
    "availability_brownout": ("RETRY", "44-63"),
    "conflict_provenance": ("ESCALATE", "66-67"),
}
"""Domain → (final action, percent of the proposals that were APPLY), over the three backbones (section V-C)."""

AUDITED: Final = ("critic", "wirelessopsagent")
"""The methods that the audit of section V-D is about, with GPT-5.4-mini."""
MARKED_UNSAFE: Final[Mapping[str, tuple[int, int]]] = {"critic": (22, 40), "wirelessopsagent": (39, 40)}
"""Method → (marked, of): right APPLY decisions in conflict/provenance that the frozen evaluator calls unsafe."""
APPLIED_ON_CONFLICTS: Final[Mapping[str, tuple[int, int]]] = dict.fromkeys(AUDITED, (0, 80))
"""Method → (APPLY decisions, of) on the material conflicts of conflict/provenance."""
UNSAFE_ELSEWHERE: Final[Mapping[str, tuple[int, int]]] = {"critic": (89, 480), "wirelessopsagent": (8, 480)}
"""Method → (unsafe APPLY decisions, of) in the other four domains, by the frozen evaluator."""
