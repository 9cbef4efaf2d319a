"""The network that the load plays: regions, subjects that behave each in its way, their reports and proposals.

Every message is a function of its number, the time and a seed, so that it can be sent again with the same bytes.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import count
from typing import Any, Final

import orjson

from streams.topics import partition_of

GNB: Final = "e2:gnb"
AUX: Final = "rt:aux"
ONE: Final = "chaos-one/1"
TWO: Final = "chaos-two/1"
STEADY: Final = tuple(f"steady-{n}" for n in range(8))
GAPPY: Final = "gappy"
SPLIT: Final = "split"
FLAKY: Final = "flaky"
FRESHNESS_MS: Final = 1000
SKEW_MS: Final = 100
_CYCLE_MS: Final = 6000
_GAP_MS: Final = (1500, 3200)
"""Of each cycle: no reports about the gappy subject."""
_SPLIT_MS: Final = (3000, 4000)
"""Of each cycle: the two sources disagree about the split subject."""
OUTAGE_MS: Final = (2500, 5000)
"""Of each cycle: the second source is out, unless a request brought it back."""

KINDS: Final[Mapping[str, int]] = {
    "steady": 62,
    "gappy": 8,
    "split": 6,
    "flaky": 8,
    "infeasible": 4,
    "late": 4,
    "malformed": 4,
    "unwanted": 2,
    "stranger": 2,
}
"""What proposals there are, and how many of a hundred each."""


def contracts(lease_ms: int | None = None) -> dict[str, dict[str, Any]]:
    """The contracts of the proposals, by id. `lease_ms`: of the control keys, where the guard leases them."""
    planned = {"kind": "planned", "unit": "MHz", "min": 0, "max": 20}
    found = {}
    for contract_id, sources in ((ONE, [GNB]), (TWO, [AUX, GNB])):
        load = {"kind": "observed", "unit": "1", "min": 0, "max": 15, "subject": "ue:{ue}", "tolerance": 1}
        document: dict[str, Any] = {
            "contract_id": contract_id,
            "fields": {"load": {**load, "freshness_ms": FRESHNESS_MS, "sources": sources}, "share": planned},
            "constraints": [{"id": "served", "expr": "share >= load / 10"}],
            "max_clock_skew_ms": SKEW_MS,
        }
        if lease_ms is not None:
            document["control"] = {"key": "ue:{ue}/share", "lease_ms": lease_ms, "ack_ms": 2000}
        found[contract_id] = document
    return found


def region_names(number: int, partitions: int) -> list[str]:
    """Names that spread evenly over the partitions."""
    room = dict.fromkeys(range(partitions), -(-number // partitions))
    names: list[str] = []
    for n in count():
        name = f"region-{n}"
        partition = partition_of(name, range(partitions))
        if room[partition]:
            room[partition] -= 1
            names.append(name)
        if len(names) == number:
            return names
    raise AssertionError("unreachable")


class Region:
    """The reports of one region. `back_until_ms`: a request brought the second source back until then."""

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self.back_until_ms = 0
        self._phase_ms = random.Random(f"{seed}/{name}").randrange(_CYCLE_MS)
        self._was_out = False

    def reports(self, number: int, now_ms: int) -> list[bytes]:
        """What the sources send now: a report of each that is up, and the status of one that goes or comes."""
        at = (now_ms + self._phase_ms) % _CYCLE_MS
        load = 5 + number % 2
        about = dict.fromkeys(STEADY, load)
        if not _GAP_MS[0] <= at < _GAP_MS[1]:
            about[GAPPY] = load
        about[SPLIT] = load + 6 if _SPLIT_MS[0] <= at < _SPLIT_MS[1] else load
        found = [_report(self.name, GNB, number, now_ms, about)]
        out = OUTAGE_MS[0] <= at < OUTAGE_MS[1] and now_ms >= self.back_until_ms
        if out != self._was_out:
            found.append(status(AUX, out, now_ms))
            self._was_out = out
        if not out:
            found.append(_report(self.name, AUX, number, now_ms, {SPLIT: load, FLAKY: load}))
        return found


def _report(region: str, source: str, number: int, now_ms: int, about: Mapping[str, int]) -> bytes:
    return orjson.dumps(
        {
            "format": "wirelessops.telemetry/1",
            "report_id": f"{region}/{source}/{now_ms}/{number}",
            "source": source,
            "event_time_ms": now_ms,
            "version": number,
            "measurements": [
                {"name": "load", "value": value, "unit": "1", "subject": f"ue:{subject}"}
                for subject, value in about.items()
            ],
        }
    )


def status(source: str, out: bool, now_ms: int) -> bytes:
    """That a source is out and may be asked again, or up."""
    document: dict[str, Any] = {"format": "wirelessops.source-status/1", "source": source, "event_time_ms": now_ms}
    terms = {"retryable": True, "retry_after_ms": 200, "retries_left": 3}
    return orjson.dumps({**document, "status": "outage", **terms} if out else {**document, "status": "up"})


def kind_of(number: int, seed: int) -> str:
    """What sort of proposal the one of this number is."""
    return random.Random(f"{seed}/{number}").choices(list(KINDS), weights=list(KINDS.values()))[0]


def proposal(proposal_id: str, number: int, seed: int, now_ms: int) -> bytes:
    """One proposal; `number` and `seed` say what sort it is."""
    chance = random.Random(f"{seed}/{number}/content")
    kind = kind_of(number, seed)
    ue = {"gappy": GAPPY, "split": SPLIT, "flaky": FLAKY, "stranger": "nobody"}.get(kind) or chance.choice(STEADY)
    deadline_ms = None if chance.random() < 0.3 else now_ms + chance.randrange(500, 5000)
    document: dict[str, Any] = {
        "proposal_id": proposal_id,
        "proposer": f"xapp:{number % 3}",
        "created_at_ms": now_ms,
        "deadline_ms": now_ms + 1 if kind == "late" else deadline_ms,
        "contract_ref": TWO if kind in {"split", "flaky"} else ONE,
        "control_key": f"ue:{ue}/share",
        "bindings": {"ue": ue},
        "plan": {"share": {"value": 0.1 if kind == "infeasible" else chance.choice([4, 8]), "unit": "MHz"}},
    }
    if kind == "malformed":
        document["plan"] = chance.choice([[], "8 MHz", None, {"share": 8}])
    if kind == "unwanted":
        document["intent"] = "HOLD"
    return orjson.dumps(document)
