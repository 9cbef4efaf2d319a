"""The handover margin (eq. 4, event A3 of 3GPP TS 38.331, 5.5.4.4)."""

from __future__ import annotations


def a3_margin_db(target_dbm: float, serving_dbm: float) -> float:
    """RSRP of the target less RSRP of the serving cell, dB."""
    return target_dbm - serving_dbm
