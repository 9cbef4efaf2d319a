"""Rows to make recordings of, and where the real samples are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).parent.parent.parent / "shared" / "data"
T0 = 1_690_936_883_887

SCOPE_HEADER = (
    "Timestamp,num_ues,IMSI,RNTI,,slicing_enabled,slice_id,slice_prb,power_multiplier,scheduling_policy,,dl_mcs,"
    "dl_n_samples,dl_buffer [bytes],tx_brate downlink [Mbps],tx_pkts downlink,tx_errors downlink (%),dl_cqi,,ul_mcs,"
    "ul_n_samples,ul_buffer [bytes],rx_brate uplink [Mbps],rx_pkts uplink,rx_errors uplink (%),ul_rssi,ul_sinr,phr,,"
    "sum_requested_prbs,sum_granted_prbs,,dl_pmi,dl_ri,ul_n,ul_turbo_iters"
)
FLEXRIC_HEADER = (
    "Time (UNIX ms),Batch ID (Mapping Cell with UE),Reporting Time Offset (ms),Indication Latency (ms),E2 Node ID,"
    "UE ID,DRB.PdcpSduVolumeDL (Mb),DRB.PdcpSduVolumeUL (Mb),DRB.RlcSduDelayDl (μs),DRB.UEThpDl (kbps),"
    "DRB.UEThpUl (kbps),RRU.PrbTotDl (%),RRU.PrbTotUl (%),"
)


def sample(*parts: str) -> Path:
    """A real sample; the test is skipped where the samples are not laid beside the checkout."""
    path = DATA.joinpath(*parts)
    if not path.is_file():
        pytest.skip(f"no sample {'/'.join(parts)} beside this checkout")
    return path


def scope_row(
    time_ms: int | str,
    *,
    rnti: int = 70,
    imsi: str = "1010123456002",
    slicing: int = 1,
    samples: int = 20,
    cqi: float = 9,
    backlog: int = 0,
    requested: int = 30,
    granted: int = 20,
) -> str:
    return (
        f"{time_ms},1,{imsi},{rnti},,{slicing},2,14,1,1,,5,{samples},{backlog},0.5,9,0,{cqi},,11,30,0,0.1,12,0,0,35.9,31,,"
        f"{requested},{granted},,0,0,0,1"
    )


def flexric_row(
    time_ms: int | str, batch: int, *, ue: int = 1, latency: int = 0, delay: str = "9000.00", prb: str = "20"
) -> str:
    return f"{time_ms},{batch},0,{latency},gNB:3584,{ue},1,0,{delay},1071.62,4.96,{prb},1,"


def write(path: Path, header: str, rows: Iterable[str]) -> Path:
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def scope_file(path: Path, rows: Iterable[str]) -> Path:
    return write(path, SCOPE_HEADER, rows)


def flexric_file(path: Path, rows: Iterable[str]) -> Path:
    return write(path, FLEXRIC_HEADER, rows)


END = 1_700_000_100_000
GRANULARITY_S = 900
NAMES = ("attImmediateAssignProcs", "", "other")


def event(
    end: int,
    start: int | None = None,
    flag: Any = "false",
    value: str = "12",
    names: Sequence[str] = NAMES,
    more: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    start = end - GRANULARITY_S * 1000 if start is None else start
    return {
        "event": {
            "commonEventHeader": {"sourceName": "du-1", "startEpochMicrosec": start, "lastEpochMicrosec": end},
            "perf3gppFields": {
                "measDataCollection": {
                    "granularityPeriod": GRANULARITY_S,
                    "measInfoList": [
                        {
                            "measTypes": {"sMeasTypesList": list(names)},
                            "measValuesList": [
                                {
                                    "measObjInstId": "X=1,UtranCell=9",
                                    "suspectFlag": flag,
                                    "measResults": [{"p": 1, "sValue": value}, *more],
                                }
                            ],
                        }
                    ],
                }
            },
        }
    }
