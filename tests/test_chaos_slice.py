"""A short slice of `make chaos` on a real Kafka of three brokers: a kill of each sort, some fuzz on every topic."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from streams.chaos import nemesis, phases
from streams.chaos.campaign import Campaign, Result, judge
from streams.chaos.report import figures
from streams.chaos.rig import Plan, Rig
from streams.kafka_cluster import KafkaCluster

FUZZ = 150


@dataclass
class Slice:
    """What a slice showed. `fuzz_verdict`: of the fuzz alone."""

    result: Result
    fuzz_verdict: str


@pytest.fixture(scope="module")
def shown(kafka3: KafkaCluster) -> Slice:
    chance = random.Random(7)
    plan = Plan(kafka3.bootstrap_servers, "slice.", partitions=4, replication=3, regions=8, rate=40.0, seed=7)
    with Rig(plan) as rig:
        nemesis.kill_worker(rig, chance)
        nemesis.pause_worker(rig, chance)
        nemesis.kill_broker(rig, kafka3, chance, kafka3.brokers, 1.0)
        phases.send_fuzz(rig, FUZZ, phases.FUZZED)
        rig.drain()
        result = judge("slice", rig)
        fuzzed = phases.check_fuzz(rig, phases.FUZZED)
    return Slice(result, fuzzed.verdict())


def test_every_law_holds_over_killed_and_paused_workers_and_a_killed_broker(shown: Slice) -> None:
    findings = shown.result.findings
    assert findings.verdict() == "holds", (findings.examples, findings.unjudged, shown.result.workers_ended)
    assert findings.counts["final_decisions"] == findings.counts["proposals"] > 0
    assert findings.counts["final_APPLY"] > 0


def test_every_fault_was_recovered_from(shown: Slice) -> None:
    kinds = {"worker killed", "worker paused", "broker killed", "all workers replaced"}
    assert kinds <= {kind for kind, _ in shown.result.recoveries}


def test_no_fuzzed_message_vanished_and_none_ended_a_worker(shown: Slice) -> None:
    assert shown.fuzz_verdict == "holds"


def test_the_figures_carry_what_is_promised(shown: Slice) -> None:
    document = figures(Campaign(), [shown.result])
    promised = {
        "proposals",
        "final_decisions",
        "lost",
        "duplicates_released",
        "late_apply",
        "stale_apply",
        "recovery_p50_ms",
        "recovery_max_ms",
        "catch_up_per_s",
    }
    assert promised <= document.keys()
    assert document["verdict"] == "holds"
    assert document["recovery_p50_ms"] > 0
