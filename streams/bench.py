"""`make bench`: the figures of every stage on this machine, printed and written as JSON."""

from __future__ import annotations

import asyncio
import os
import platform
import sys
from pathlib import Path
from typing import Final

import orjson

from streams.bench_decisions import measure_decisions, measure_one_key
from streams.bench_exactness import exactness_where_possible
from streams.bench_kafka import measure_kafka
from streams.bench_observing import measure_observing
from streams.bench_optbench import measure_optbench
from streams.bench_store import measure_book, measure_store
from streams.bench_study import measure_study
from streams.bench_support import measure_support
from streams.logs import log_to_stderr

AIMS: Final = {
    "decision_p50_ms": "≤ 0.2",
    "decision_p99_ms": "≤ 1",
    "decisions_per_s": "≥ 5000",
    "store_observations_per_s": "≥ a tenth of decode only",
    "kafka_p50_ms": "≤ 10",
    "bytes_per_observation": "≤ 250",
    "held_ratio": "≤ 2",
    "observing_ratio": "≥ 0.9",
    "optbench_run_s": "≤ 60",
    "optbench_peak_mb": "≤ 1024",
    "study_run_cpu_s": "≤ 10",
}


def run_bench(out: Path) -> int:
    """Measure, print a table, write `out`. Exit code 0; 2 where `out` cannot be written."""
    log_to_stderr("warning")
    figures = measure_decisions() | measure_store() | measure_book() | asyncio.run(measure_kafka())
    figures |= exactness_where_possible() | measure_one_key() | measure_observing() | measure_optbench()
    figures |= measure_study() | measure_support()
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    print(f"{machine}\n\n| figure | measured | aim |\n|---|---|---|")
    for name, value in figures.items():
        print(f"| `{name}` | {value:,.3f} | {AIMS.get(name, '')} |" if value < 100 else _whole(name, value))
    ratio = figures["store_observations_per_s"] / figures["decode_only_observations_per_s"]
    print(f"\nstored, validated observations: {ratio:.2f} of what decoding alone gives")
    try:
        out.write_bytes(orjson.dumps(figures | {"machine": machine}, option=orjson.OPT_INDENT_2) + b"\n")
    except OSError as error:
        sys.stderr.write(f"{out}: {error.strerror or error}\n")
        return 2
    return 0


def _whole(name: str, value: float) -> str:
    return f"| `{name}` | {value:,.0f} | {AIMS.get(name, '')} |"
