"""Units of recorded metrics: a unit belongs to (producer, service-model version, metric), never to a name alone.

A unit that the column itself declares (`DRB.UEThpDl (kbps)`) is taken as declared, also where it differs from this
table: the table is for what the recording does not say. A metric found in neither has no unit, and a contract field
whose unit is not `1` then refuses it as `ambiguous_unit`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final


@dataclass(frozen=True, slots=True)
class Producer:
    """Who wrote a recording: the software, and the version of what it reports."""

    name: str
    version: str


SCOPE: Final = Producer("scope", "srslte-20.04-metrics-31")
"""SCOPE and ColO-RAN (srsLTE 20.04 base): the per-UE metrics CSV of 31 named columns."""
NIST_FLEXRIC: Final = Producer("nist-flexric", "kpm-v3")
"""NIST's KPI collector on FlexRIC, E2SM-KPM v3: the KPI CSV with an indication latency."""
RANPM: Final = Producer("o-ran-sc-ranpm", "perf3gpp-1.0")
"""VES `perf3gpp` as the O-RAN SC `ranpm` project files it: 3GPP TS 28.532 and TS 32.432."""

TABLE: Final[Mapping[Producer, Mapping[str, str]]] = {
    SCOPE: {
        # srsLTE `metrics_stdout`/`metrics_csv` and SCOPE's additions; bytes, Mbps and % stand in the column names.
        "num_ues": "1",
        "slicing_enabled": "1",
        "slice_id": "1",
        "slice_prb": "PRB",
        "power_multiplier": "1",
        "scheduling_policy": "1",
        "dl_mcs": "1",
        "dl_n_samples": "1",
        "tx_pkts downlink": "1",
        "dl_cqi": "1",
        "ul_mcs": "1",
        "ul_n_samples": "1",
        "rx_pkts uplink": "1",
        "ul_rssi": "dBm",
        "ul_sinr": "dB",
        "phr": "dB",
        "sum_requested_prbs": "PRB",
        "sum_granted_prbs": "PRB",
        "dl_pmi": "1",
        "dl_ri": "1",
        "ul_n": "1",
        "ul_turbo_iters": "1",
    },
    NIST_FLEXRIC: {
        # NIST says % where FlexRIC itself counts PRBs; its columns say so, and nothing is assumed of those that do not.
    },
    RANPM: {
        # Cumulative counters of 3GPP TS 52.402 (annex B), as the project's own sample names them: plain counts.
        "attTCHSeizures": "1",
        "succTCHSeizures": "1",
        "attImmediateAssignProcs": "1",
        "succImmediateAssignProcs": "1",
    },
}

# The same unit under other spellings; all else stands as it was declared.
_SPELLINGS: Final = {"bytes": "byte"}
_DECLARED: Final = re.compile(r"(?P<name>.*?)\s*[\[(](?P<unit>[^\])]*)[\])]\Z")


@lru_cache(maxsize=4096)
def metric(producer: Producer, column: str) -> tuple[str, str | None]:
    """(name, unit) of a column: the declared unit, else the table's, else none."""
    declared = _DECLARED.match(column)
    if declared is not None:
        unit = declared["unit"].strip()
        return declared["name"], _SPELLINGS.get(unit, unit) or None
    return column, TABLE[producer].get(column)
