"""What this software fixes of the study: constants, formulas, thresholds, schema. Other protocols are refused."""

from __future__ import annotations

from typing import Any, Final

from simulators.closedloop import alarm, analysis, calibration, cutoff, gates, loop, policy, signal
from simulators.closedloop.tables import TABLES
from xapp import address

FORMULAS: Final = {
    "served": "min(demand, cap, b); then b <- b - served",
    "reward": "v_m * served^0.6 - 0.10 * unmet - 0.10 * cap",
    "demand": "Poisson(regime * load), by inversion; load = exp(0.35 * level) / mean, equiprobable, latent",
    "policy": "backward induction on the mixture of the loads; Q rounded to 9 decimals, the lowest index of the best",
    "component": "(quarter * 2 + half) * 3 + third; none at credit 0",
    "randomness": "Philox keyed by (master seed, episode seed); the same numbers for all regimes and faults",
    "fault": "selected cells: action + 1 outward, action - 1 inward, where that action exists",
    "tau_d": "clean visits of selected cells that change in direction d / clean visits of the component; 0 without any",
    "tau": "(tau_outward + tau_inward) / 2",
    "fraction": "selected / changeable cells",
    "mask": "the prefix of the ordered changeable cells, at least one, whose tau is nearest to the target; the shortest"
    " of equally near ones",
    "order": "uniform: random; flow_weighted: drawn without replacement, weighted by clean visits",
    "reference_gate": "visits >= 12 in at least 14 of 15 clean partitions",
    "runtime_gate": "visits >= 12 in reference and current in the same partition, at least 14 of 15, every case of the"
    " unit",
    "z": "max(L1 distance of the action histograms as shares / 0.20, |gap of the mean action index| / 0.35)",
    "detected": "z >= cutoff in at least 14 of 15 joint partitions, in both directions",
    "calibration": "one-sided exact 95 % (Clopper-Pearson) upper bound of stable false admissions over the represented"
    " physical components, at most 0.20",
    "models": "logistic, of detection on log tau and on log fraction; NLL a row in nats; component-cluster bootstrap",
    "power": "confirmed where the detections of a family do not fall from a target to the next",
    "traffic_over_fraction": "confirmed where the 95 % component-cluster interval of the NLL of fraction less that of"
    " traffic lies above 0",
    "family_sufficiency": "confirmed where the upper end of the 95 % component-cluster interval of the gain from mask"
    " family and its interaction with log tau is at most 0.01 nat",
    "alarm": "largest |z| of the features over the split-conformal limit: asks for a refresh, is never a fault",
}  # fmt: skip
"""Name → what is computed, in words; docs/study.md has them at length."""


def constants() -> dict[str, Any]:
    """The loop and the grid."""
    return {
        "horizon": loop.HORIZON, "credit": loop.CREDIT, "channels": loop.CHANNELS, "caps": list(loop.CAPS),
        "regimes": list(loop.REGIMES), "values": list(loop.VALUES), "exponent": loop.EXPONENT,
        "unmet_cost": loop.UNMET_COST, "cap_cost": loop.CAP_COST, "stay": loop.STAY, "load_spread": loop.LOAD_SPREAD,
        "load_levels": list(loop.LOAD_LEVELS), "policy_decimals": policy.DECIMALS, "quarters": loop.QUARTERS,
        "halves": loop.HALVES, "thirds": loop.THIRDS, "families": list(loop.FAMILIES), "targets": list(loop.TARGETS),
        "directions": list(loop.DIRECTIONS), "partitions": loop.PARTITIONS, "episodes": loop.EPISODES,
    }  # fmt: skip


def thresholds() -> dict[str, Any]:
    """What verdicts hang on, but the cutoff."""
    return {
        "min_visits": gates.RULE.min_visits,
        "min_partitions": gates.RULE.min_partitions,
        "partitions": gates.RULE.partitions,
        "distance_unit": float(signal.DISTANCE_UNIT),
        "gap_unit": float(signal.GAP_UNIT),
        "false_admission_bound": calibration.THRESHOLD,
        "confidence": calibration.CONFIDENCE,
        "family_gain": analysis.FAMILY_RULE,
        "bootstrap_draws": analysis.DRAWS,
        "bootstrap_seed": analysis.SEED,
        "bootstrap_percentiles": list(analysis.PERCENTILES),
        "drift_alpha": alarm.ALPHA,
    }


def cutoff_rule() -> dict[str, Any]:
    """The grid of the cutoff, and the rule that chooses from it."""
    return {"grid": list(cutoff.GRID), "rule": cutoff.CUTOFF_RULE}


def schema_digest() -> str:
    """`sha256:` and the hash of a line `file: header` for each table, by file name."""
    lines = (f"{name}: {','.join(column.name for column in columns)}\n" for name, columns in sorted(TABLES.items()))
    return address.digest("".join(lines).encode())
