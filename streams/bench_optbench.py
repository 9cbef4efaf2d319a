"""How long WirelessOptBench takes, and what it holds: one part of `make bench`.

The whole run with one synthetic proposer is a process of its own, as a user starts it: 7,680 candidates built and
judged, the four methods and two sanity rows over 600 episodes, scored.
"""

from __future__ import annotations

import os
import subprocess
import sys
from time import perf_counter, process_time
from typing import Final

from simulators.optbench.base.anchors import anchors
from simulators.optbench.candidates import candidates
from simulators.optbench.methods import build
from simulators.optbench.model import Case
from simulators.optbench.suite import build as build_suite
from simulators.optbench.synthetic import proposer

SEED: Final = 0
PROPOSER: Final = "synthetic-a"
_RUN: Final = ("optbench", "run", "--backbone", PROPOSER, "--json")


def measure_optbench() -> dict[str, float]:
    """Seconds and peak MB of the run; µs of CPU to realise and judge a candidate; ms of CPU that the guard's method

    takes per episode beyond what the plainest method (`direct`) takes for prompt and reply.
    """
    started = process_time()
    judged = sum(1 for _ in candidates(anchors(SEED, None).final, SEED))
    per_candidate = (process_time() - started) / judged
    cases = build_suite("final", SEED).cases
    plain, guarded = (_seconds_per_episode(name, cases) for name in ("direct", "wirelessopsagent"))
    seconds, peak_mb = _whole_run()
    return {
        "optbench_run_s": seconds,
        "optbench_peak_mb": peak_mb,
        "optbench_candidate_us": 1e6 * per_candidate,
        "optbench_guard_ms": 1e3 * (guarded - plain),
    }


def _seconds_per_episode(method: str, cases: tuple[Case, ...]) -> float:
    agent = build(method, proposer(PROPOSER, cases, SEED))
    started = process_time()
    for case in cases:
        agent.decide(case.view)
    return (process_time() - started) / len(cases)


def _whole_run() -> tuple[float, float]:
    """Wall seconds and peak resident MB of the command."""
    started = perf_counter()
    process = subprocess.Popen(  # noqa: S603 our own command, from a list of words
        [sys.executable, "-c", "from streams.cli import main; main()", *_RUN], stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"`wirelessops {' '.join(_RUN)}` ended with {process.returncode}")
    return perf_counter() - started, used.ru_maxrss / 1024
