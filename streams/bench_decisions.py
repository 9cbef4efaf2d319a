"""How fast one decision is, in process: one part of `make bench`."""

from __future__ import annotations

from time import perf_counter, process_time
from typing import Final

from xapp.authorization import decision_json
from xapp.contracts import shipped
from xapp.engine import assure
from xapp.episode import read_proposal
from xapp.leases import ControlBook
from xapp.model import AppliedControl, Episode, Observation

NOW_MS: Final = 1_790_000_000_000
REPORTS: Final = 8
"""Reports of the radio fields in the episode, 100 ms apart: with the rest, 20 observations."""

FEW_HELD: Final = 10
MANY_HELD: Final = 2000
"""Controls held of one key, of which none is acknowledged."""


def episode() -> Episode:
    """A single-user slicing proposal over 20 observations of two sources, which gets APPLY."""
    contract = shipped()["slicing/1"]
    bindings = {"cell": "1", "ue": "7", "slice": "1"}
    cell, ue = "cell:1/slice:1", "cell:1/ue:7"
    observations = [
        _seen(f"{source}/{n}", "sinr", 15.0, "dB", f"{source}:gnb-du-1", 50 + 100 * n, ue)
        for source in ("e2", "o1")
        for n in range(REPORTS)
    ]
    observations += [
        _seen("q", "cqi", 10, None, "e2:gnb-du-1", 50, ue),
        _seen("c", "capacity", 30.0, "MHz", "e2:gnb-du-1", 500, cell),
        _seen("u", "users", 5, None, "e2:gnb-du-1", 500, cell),
        _seen("r", "min_rate", 5.0, "Mbit/s", "a1:policy", 500, cell),
    ]
    raw = {
        "proposal_id": "p",
        "proposer": "xapp:bench",
        "created_at_ms": NOW_MS - 10,
        "deadline_ms": NOW_MS + 500,
        "contract_ref": "slicing/1",
        "bindings": bindings,
        "control_key": "cell:1/slice:1/ue:7/prb",
        "plan": {"bandwidth": {"value": 1.317, "unit": "MHz"}},
    }
    return Episode("bench", NOW_MS, contract, tuple(observations), read_proposal(raw, contract, NOW_MS), raw)


def _seen(id_: str, name: str, value: float, unit: str | None, source: str, age_ms: int, subject: str) -> Observation:
    return Observation(id_, name, value, unit, source, NOW_MS - age_ms, NOW_MS - age_ms + 5, subject=subject)


def measure_decisions(count: int = 5000) -> dict[str, float]:
    """p50 and p99 in ms from an episode to the bytes of its decision, record and digest included; decisions/s."""
    one = episode()
    assert len(one.observations) == 20
    assert assure(one).action == "APPLY"
    assert not assure(one).repairs
    times = []
    started = perf_counter()
    for _ in range(count):
        before = perf_counter()
        decision_json(assure(one))
        times.append(perf_counter() - before)
    elapsed = perf_counter() - started
    times.sort()
    return {
        "decision_p50_ms": 1000 * times[count // 2],
        "decision_p99_ms": 1000 * times[count * 99 // 100],
        "decisions_per_s": count / elapsed,
    }


def measure_one_key(count: int = 200) -> dict[str, float]:
    """`held_ratio`: CPU of the controls of one decision on a key of which many are held, over that with few held;
    `held_us`: the former, in µs.
    """
    few, many = (_held(held, count) for held in (FEW_HELD, MANY_HELD))
    return {"held_ratio": many / few, "held_us": 1e6 * many}


def _held(held: int, count: int) -> float:
    """CPU seconds to look up what a decision depends on, and to enter what it grants; the least of some rounds."""
    times = []
    for _ in range(5):
        book = ControlBook(history_ms=0)
        for i in range(held):
            book.grant(_control(i))
        started = process_time()
        for i in range(held, held + count):
            book.controls_for("key", None, NOW_MS + i)
            book.snapshot()
            book.grant(_control(i))
        times.append((process_time() - started) / count)
    return min(times)


def _control(number: int) -> AppliedControl:
    values = {"bandwidth": {"value": float(number % 3), "unit": "MHz"}}
    return AppliedControl("key", f"d-{number:06}", f"p-{number}", values, NOW_MS + number)
