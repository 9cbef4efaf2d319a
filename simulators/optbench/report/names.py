"""How methods, domains and metrics are headed in tables and figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from simulators.optbench.model import Domain

METHOD: Final[Mapping[str, str]] = {
    "direct": "Direct",
    "wirelessagent-contract": "WirelessAgent++ + contract",
    "critic": "CRITIC style",
    "wirelessopsagent": "WirelessOpsAgent",
}
"""Methods as the paper heads them; others are headed by their own name."""

DOMAIN: Final[Mapping[Domain, str]] = {
    "schema_unit": "Schema/unit",
    "freshness_order": "Freshness/order",
    "availability_brownout": "Availability/brownout",
    "conflict_provenance": "Conflict/provenance",
    "mixed_evidence": "Mixed evidence",
}
SHORT_DOMAIN: Final[Mapping[Domain, str]] = {
    "schema_unit": "S/U",
    "freshness_order": "F/O",
    "availability_brownout": "A/B",
    "conflict_provenance": "C/P",
    "mixed_evidence": "Mixed",
}

METRIC: Final[Mapping[str, str]] = {
    "task_score": "Task ↑",
    "ops": "OPS ↑",
    "exact": "Exact ↑",
    "safe_apply_recall": "Safe recall ↑",
    "unsafe_apply_rate": "Unsafe ↓",
    "safe_apply_utility": "Safe utility ↑",
    "macro_f1": "Macro F1 ↑",
}
AS_PERCENT: Final = frozenset({"safe_apply_recall", "unsafe_apply_rate"})
"""What table III prints as a percentage."""
LOWER_IS_BETTER: Final = frozenset({"unsafe_apply_rate"})


def method_name(method: str) -> str:
    """A method's heading."""
    return METHOD.get(method, method)
