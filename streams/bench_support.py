"""What a support gate costs where telemetry is taken in, with and without one in turns; a part of `make bench`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import process_time

from streams.bench_store import METRICS, PERIOD_MS, START_MS, UES, gate, messages
from streams.deciding import RegionState
from xapp.contract import Contract
from xapp.support.terms import Terms


def measure_support(observations: int = 60_000, rounds: int = 5) -> dict[str, float]:
    """`gated_ingest_ratio`: what one region takes in per CPU second under a gate, as part of that without one: every
    observation counts for the gate, which is the most that it can cost (the best of `rounds` of each).
    """
    contract, terms = gate()
    values = messages(observations // (UES * len(METRICS)))
    contracts, gated = {contract.contract_id: contract}, {contract.contract_id: terms}
    without, under = [], []
    for _ in range(rounds):
        without.append(_round(values, contracts, {}))
        under.append(_round(values, contracts, gated))
    return {"gated_ingest_ratio": min(without) / min(under)}


def _round(values: Sequence[bytes], contracts: Mapping[str, Contract], terms: Mapping[str, Terms]) -> float:
    """CPU seconds."""
    state = RegionState("bench", contracts, terms=terms)
    started = process_time()
    for number, value in enumerate(values):
        state.ingest(value, START_MS + number * PERIOD_MS + 5)
    return process_time() - started
