"""Episodes for the tests: one slicing contract, and a clean episode that each test bends in one place."""

from __future__ import annotations

import copy
from typing import Any

import orjson

from xapp.authorization import decision_json
from xapp.engine import assure
from xapp.episode import parse_episode

T = 1_800_000_000_000

CONTRACT: dict[str, Any] = {
    "contract_id": "test-slicing/1",
    "fields": {
        "cqi": {"kind": "observed", "min": 0, "max": 15, "aliases": ["wb_cqi"], "freshness_ms": 1000,
                "sources": ["rt", "e2"], "tolerance": 1},
        "users": {"kind": "observed", "min": 0, "freshness_ms": 5000, "sources": ["e2", "core"]},
        "capacity": {"kind": "observed", "unit": "MHz", "min": 0, "freshness_ms": 60_000, "sources": ["oam"]},
        "min_rate": {"kind": "observed", "unit": "Mbit/s", "min": 0, "freshness_ms": 60_000, "sources": ["a1"]},
        "note": {"kind": "observed", "critical": False, "freshness_ms": 1000, "sources": ["e2"]},
        "bandwidth": {"kind": "planned", "unit": "MHz", "min": 1, "max": 20, "repairable": True,
                      "rel_tolerance": 0.01, "expr": "min(max(capacity/(users+1), 6), 20)"},
        "rate": {"kind": "derived", "unit": "Mbit/s", "rel_tolerance": 0.01,
                 "expr": "bandwidth*log2(1+10**(cqi/10))"},
    },
    "constraints": [
        {"id": "capacity", "expr": "bandwidth <= capacity"},
        {"id": "qos", "expr": "rate >= min_rate"},
    ],
    "max_clock_skew_ms": 100,
}  # fmt: skip


def observation(id_: str, name: str, value: Any, source: str, age_ms: int = 100, **more: Any) -> dict[str, Any]:
    """One observation, `age_ms` before T, that arrived 5 ms after it was measured."""
    event = T - age_ms
    return {
        "id": id_, "name": name, "value": value, "source": source, "event_time_ms": event,
        "ingest_time_ms": min(event + 5, T), **more,
    }  # fmt: skip


def clean() -> dict[str, Any]:
    """An episode that gets APPLY, with nothing to repair: 60 MHz over 5 + 1 users is 10 MHz each."""
    return copy.deepcopy(
        {
            "format": "wirelessops.episode/1",
            "episode_id": "e-1",
            "decided_at_ms": T,
            "contract": CONTRACT,
            "sources": {},
            "observations": [
                observation("o1", "cqi", 10, "rt"),
                observation("o2", "users", 5, "e2"),
                observation("o3", "capacity", 60, "oam", unit="MHz"),
                observation("o4", "min_rate", 20, "a1", unit="Mbit/s"),
            ],
            "proposal": {
                "proposal_id": "p-1",
                "proposer": "xapp:slicer",
                "created_at_ms": T - 50,
                "deadline_ms": T + 2000,
                "control_key": "cell:1/slice:1/prb",
                "plan": {"bandwidth": {"value": 10, "unit": "MHz"}},
            },
        }
    )


def decide(episode: dict[str, Any]) -> dict[str, Any]:
    """The decision document of an episode document."""
    result: dict[str, Any] = orjson.loads(decide_bytes(episode))
    return result


def decide_bytes(episode: dict[str, Any]) -> bytes:
    return decision_json(assure(parse_episode(orjson.dumps(episode), {})))


def codes(decision: dict[str, Any], *, blocking: bool | None = None) -> list[str]:
    """Violation codes of a decision; only the blocking or the others, where asked."""
    return [v["code"] for v in decision["violations"] if blocking is None or v["blocking"] is blocking]


def operators(decision: dict[str, Any]) -> list[str]:
    return [repair["operator"] for repair in decision["repairs"]]
