"""How fast telemetry becomes evidence, and what it weighs: one part of `make bench`."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Sequence
from time import perf_counter
from typing import Final

import orjson

from streams.telemetry import Decoder, SourceStatus, encode_report
from xapp.contract import Contract
from xapp.contract_loading import load_contract
from xapp.evidence.store import EvidenceStore
from xapp.model import Measurement, Report
from xapp.support.book import SupportBook
from xapp.support.terms import Terms, load_terms

UES: Final = 30
METRICS: Final = (("DRB.UEThpDl", "kbit/s"), ("CQI", "1"))
PERIOD_MS: Final = 100
START_MS: Final = 1_790_000_000_000


def messages(count: int) -> list[bytes]:
    """Reports of 60 observations each: 2 metrics of 30 UEs, every 100 ms."""
    return [
        encode_report(
            Report(
                report_id=f"e2:gnb-1/{n}",
                source="e2:gnb-1",
                event_time_ms=START_MS + n * PERIOD_MS,
                version=n,
                schema="kpm/3",
                period_ms=PERIOD_MS,
                measurements=tuple(
                    Measurement(name, round((n * 7919 + ue * 104729 + k) % 100_000 / 7, 3), unit, f"cell:1/ue:{ue}")
                    for ue in range(UES)
                    for k, (name, unit) in enumerate(METRICS)
                ),
            )
        )
        for n in range(count)
    ]


def fill(store: EvidenceStore, decoder: Decoder, values: Sequence[bytes], book: SupportBook | None = None) -> int:
    """Bytes to stored observations; how many. Each arrives 5 ms after it was measured, and is noted in the book."""
    stored = 0
    for value in values:
        report = decoder.decode(value).message
        assert not isinstance(report, SourceStatus)
        stored += store.append(report, report.event_time_ms + 5).stored
        if book is not None:
            book.observe(report, report.event_time_ms + 5)
    return stored


def gate() -> tuple[Contract, Terms]:
    """A contract and its terms of support, for which each of the observations is of matter: one metric is a field of
    the contract, the other an axis and a field.
    """
    throughput, cqi = (name for name, _ in METRICS)
    of_user = {"kind": "observed", "subject": "cell:{cell}/ue:{ue}", "sources": ["e2:gnb-{cell}"], "freshness_ms": 1000}
    fields = {"rate": of_user | {"unit": "kbit/s", "aliases": [throughput]}, "cqi": of_user}
    contract = load_contract({"contract_id": "bench/1", "fields": fields})
    terms = load_terms(
        {
            "format": "wirelessops.support-terms/1",
            "contract_id": contract.contract_id,
            "partition_ms": 10_000,
            "rule": {"min_visits": 12, "min_partitions": 14, "partitions": 15},
            "axes": {"cqi": {"names": [cqi], "splits": [5, 10], "freshness_ms": 1000}},
            "expires_after_ms": 86_400_000,
        }
    )
    return contract, terms


def measure_book(observations: int = 180_000, rounds: int = 3) -> dict[str, float]:
    """Observations/s of decoding, storing and noting in a book of visits (`gate`), the best of `rounds`."""
    contract, terms = gate()
    values = messages(observations // (UES * len(METRICS)))
    rate = 0.0
    for _ in range(rounds):
        store, book = EvidenceStore(history_count=len(values)), SupportBook(contract, terms)
        started = perf_counter()
        rate = max(rate, _rate(fill(store, Decoder(), values, book), started))
    return {"book_observations_per_s": rate}


def _rate(work: int, started: float) -> float:
    return work / (perf_counter() - started)


def measure_store(observations: int = 300_000, rounds: int = 3) -> dict[str, float]:
    """Observations/s of decoding and storing (half of the time with a full history, so that old ones go), of
    `orjson.loads` alone on the same bytes (both the best of `rounds`), and bytes per observation held.
    """
    per_report = UES * len(METRICS)
    values = messages(observations // per_report)
    history_ms = len(values) * PERIOD_MS // 2
    store_rate = decode_rate = 0.0
    for _ in range(rounds):
        started = perf_counter()
        for value in values:
            orjson.loads(value)
        decode_rate = max(decode_rate, _rate(len(values) * per_report, started))
        store, decoder = EvidenceStore(history_ms=history_ms, history_count=len(values)), Decoder()
        started = perf_counter()
        store_rate = max(store_rate, _rate(fill(store, decoder, values), started))
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    store, decoder = EvidenceStore(history_ms=2 * history_ms, history_count=len(values)), Decoder()
    held = fill(store, decoder, values)
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return {
        "store_observations_per_s": store_rate,
        "decode_only_observations_per_s": decode_rate,
        "bytes_per_observation": (after - before) / held,
    }
