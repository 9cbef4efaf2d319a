"""A gated contract for the tests: one cell-bound slicing contract, its terms, and a network that is measured steadily.

The window is 5 partitions of 10 s, 2 visits in 4 of them are enough. T lies two hours into a quarter of the day.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from xapp.contract import Contract
from xapp.contract_loading import load_contract
from xapp.model import Measurement, Report
from xapp.support.book import SupportBook
from xapp.support.building import build
from xapp.support.carried import Support, SupportVerdict, support_document
from xapp.support.component import QUARTER_MS, Component
from xapp.support.gate import SupportGate
from xapp.support.reference_map import ReferenceMap, digest_of, map_json
from xapp.support.terms import Terms, load_terms

T = 1_800_000_000_000  # 08:00:00 UTC
PARTITION = 10_000
NOW = T // PARTITION  # the partition that has just begun
BINDINGS = {"cell": "1", "ue": "7", "slice": "embb"}
SINR, CAPACITY = ("sinr", "cell:1/ue:7"), ("capacity", "cell:1/slice:embb")

CONTRACT: dict[str, Any] = {
    "contract_id": "gated/1",
    "fields": {
        "sinr": {"kind": "observed", "unit": "dB", "min": -20, "max": 40, "aliases": ["ue_sinr"],
                 "subject": "cell:{cell}/ue:{ue}", "freshness_ms": 1000, "sources": ["e2:{cell}", "o1:{cell}"],
                 "schemas": ["kpm/3"]},
        "capacity": {"kind": "observed", "unit": "MHz", "min": 0, "subject": "cell:{cell}/slice:{slice}",
                     "freshness_ms": 12_000, "sources": ["e2:{cell}"]},
        "note": {"kind": "observed", "critical": False, "subject": "cell:{cell}/ue:{ue}", "freshness_ms": 1000,
                 "sources": ["e2:{cell}"]},
        "bandwidth": {"kind": "planned", "unit": "MHz", "min": 1, "max": 20},
        "rate": {"kind": "derived", "unit": "Mbit/s", "expr": "bandwidth * log2(1 + 10 ** (sinr / 10))"},
        "index": {"kind": "derived", "expr": "capacity * 10 ** (sinr / 10)"},
    },
    "constraints": [{"id": "capacity", "expr": "bandwidth <= capacity"}],
    "max_clock_skew_ms": 50,
}  # fmt: skip

TERMS: dict[str, Any] = {
    "format": "wirelessops.support-terms/1",
    "contract_id": "gated/1",
    "partition_ms": PARTITION,
    "rule": {"min_visits": 2, "min_partitions": 4, "partitions": 5},
    "axes": {
        "load": {"names": ["RRU.PrbUsedDl"], "unit": "%", "splits": [50], "freshness_ms": 12_000},
        "cqi": {"names": ["wb_cqi", "cqi"], "splits": [5, 10], "freshness_ms": 12_000},
    },
    "expires_after_ms": 86_400_000,
    "drift_partitions": 3,
}


def contract(**changes: Any) -> Contract:
    return load_contract(copy.deepcopy(CONTRACT) | changes)


def terms(**changes: Any) -> Terms:
    return load_terms(copy.deepcopy(TERMS) | changes)


GATED, TERMED = contract(), terms()
RESOLVED = GATED.resolve(BINDINGS)
HERE = Component("cell:1", 1, "low", "high")
SLICE = Component("cell:1/slice:embb", 1, "low", "any")


def report(event_ms: int, *measurements: Measurement, source: str = "e2:1", name: str = "", **more: Any) -> Report:
    return Report(name or f"{source}@{event_ms}", source, event_ms, measurements, schema="kpm/3", **more)


def sinr(value: Any = 15.0, *, ue: str = "7", **more: Any) -> Measurement:
    return replace(Measurement("sinr", value, "dB", f"cell:1/ue:{ue}"), **more)


def capacity(value: Any = 20.0, **more: Any) -> Measurement:
    return replace(Measurement("capacity", value, "MHz", "cell:1/slice:embb"), **more)


def measured(event_ms: int, *, load: float = 30, cqi: float = 12) -> Report:
    """A whole report of the cell: what the axes are read from, and both observed fields."""
    axes = (Measurement("RRU.PrbUsedDl", load, "%", "cell:1"), Measurement("wb_cqi", cqi, None, "cell:1/ue:7"))
    return report(event_ms, *axes, sinr(), capacity())


Arrival = tuple[Report, int]


def steady(partitions: Iterable[int], visits: int = 3, **axes: float) -> Iterator[Arrival]:
    """So many reports in each of the partitions, each 20 ms on its way."""
    for index in partitions:
        for i in range(visits):
            event = index * PARTITION + i * (PARTITION // visits) + 1
            yield measured(event, **axes), event + 20


def counted(arrivals: Iterable[Arrival], **options: Any) -> SupportBook:
    book = SupportBook(GATED, TERMED, **options)
    for one, ingest_ms in arrivals:
        book.observe(one, ingest_ms)
    return book


def recorded(partitions: int = 30) -> list[Arrival]:
    """An hour ago: `partitions` whole ones of steady measuring, varying a little, and a part of one at each end."""
    first = NOW - 360
    return [
        arrival
        for index in range(first, first + partitions + 2)
        for arrival in steady([index], visits=3 + index % 3, load=28.0 + index % 5)
    ]


def built(arrivals: Iterable[Arrival], **changes: Any) -> ReferenceMap:
    said: dict[str, Any] = {"map_id": "north", "version": 1, "built_at_ms": T - 60_000, "recordings": ("sha256:a",)}
    return build(GATED, TERMED, arrivals, **(said | changes))


def sealed(reference: ReferenceMap, **changes: Any) -> ReferenceMap:
    """A map with something else in it, and the digest that it then has."""
    changed = replace(reference, **changes)
    return replace(changed, digest=digest_of(changed))


def map_of(visits: dict[tuple[str, Component], Sequence[int]]) -> ReferenceMap:
    """A map with these visits, in the order of the window at T."""
    start = (NOW - 5) % 5
    by_slot = {key: tuple(counts[(slot - start) % 5] for slot in range(5)) for key, counts in visits.items()}
    return sealed(built([]), visits=by_slot)


FULL = map_of({("sinr", HERE): [9] * 5, ("capacity", SLICE): [9] * 5})


def carried(book: SupportBook, reference: ReferenceMap | None, t_ms: int = T) -> Support:
    gate = SupportGate(TERMED)
    return gate.carried(GATED, reference, book.window(RESOLVED.members, t_ms), RESOLVED, t_ms)


def verdict(book: SupportBook, reference: ReferenceMap | None, t_ms: int = T) -> SupportVerdict:
    return SupportGate(TERMED).evaluate(GATED, reference, book.window(RESOLVED.members, t_ms), RESOLVED, t_ms)


def gated_episode(support: Support | None) -> dict[str, Any]:
    """An episode of the contract that gets APPLY without a gate, with what the gate decided on."""
    observed = [("o1", "sinr", 15.0, "dB", "cell:1/ue:7"), ("o2", "capacity", 20.0, "MHz", "cell:1/slice:embb")]
    document: dict[str, Any] = {
        "format": "wirelessops.episode/1",
        "episode_id": "gated",
        "decided_at_ms": T,
        "contract": copy.deepcopy(CONTRACT),
        "observations": [
            {"id": i, "name": n, "value": v, "unit": u, "subject": s, "source": "e2:1", "schema": "kpm/3",
             "event_time_ms": T - 100, "ingest_time_ms": T - 80}
            for i, n, v, u, s in observed
        ],
        "proposal": {
            "proposal_id": "p-1", "proposer": "xapp:slicer", "created_at_ms": T - 50, "control_key": "cell:1/prb",
            "plan": {"bandwidth": {"value": 10, "unit": "MHz"}}, "bindings": BINDINGS,
        },
    }  # fmt: skip
    if support is not None:
        document["support"] = orjson.loads(orjson.dumps(support_document(support)))
    return document


def gate_in(folder: Path, gated: Contract, measured: Callable[[int], Report], now_ms: int) -> Path:
    """A folder of terms and a map for a guard on the clock of the machine, an hour after the network was measured
    steadily; no partition ends while a test runs, and it is mid-quarter.
    """
    partition_ms, began_ms = 60_000, now_ms // 60_000 * 60_000 - 3_600_000
    under = terms(
        contract_id=gated.contract_id, partition_ms=partition_ms, axes={},
        utc_offset_min=(QUARTER_MS // 2 - now_ms % QUARTER_MS) // 60_000,
    )  # fmt: skip
    steadily = [(measured(at_ms), at_ms + 20) for at_ms in range(began_ms, began_ms + 8 * partition_ms, 10_000)]
    found = build(
        gated, under, steadily, map_id="north", version=1, built_at_ms=now_ms - 60_000, recordings=("sha256:a",)
    )
    folder.mkdir()
    (folder / "terms.json").write_bytes(under.document)
    (folder / "north-1.json").write_bytes(map_json(found))
    return folder
