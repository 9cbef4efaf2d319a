"""A whole run: each phase on topics of its own, judged when it is over; then all of them together."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from streams.chaos import kafka_io, phases
from streams.chaos.checker import check_partition
from streams.chaos.nemesis import Brokers
from streams.chaos.recovery import Times
from streams.chaos.rig import Plan, Rig
from streams.chaos.verdict import Findings

STUCK: Final = "not_recovered"


@dataclass(frozen=True, slots=True)
class Campaign:
    """What is to be broken, and how often.

    `stay_s`: how long each number of workers stays; `fuzz_topics`: names without prefix.
    """

    kills: int = 100
    broker_kills: int = 20
    fuzz: int = 100_000
    seed: int = 1
    workers: int = 2
    brokers: int = 3
    partitions: int = 8
    rate: float = 100.0
    stay_s: float = 10.0
    lease_ms: int | None = 300
    rescale: bool = True
    fuzz_topics: Sequence[str] = phases.FUZZED
    session_timeout_ms: int = 3000
    options: Sequence[str] = ()


@dataclass(slots=True)
class Result:
    """What one phase showed. `recoveries`: (kind of fault, ms); `backlogs`: (proposals, ms)."""

    name: str
    findings: Findings
    recoveries: list[tuple[str, int]] = field(default_factory=list)
    backlogs: list[tuple[int, int]] = field(default_factory=list)
    workers_ended: list[str] = field(default_factory=list)
    seconds: float = 0.0


def run_campaign(campaign: Campaign, cluster: Brokers) -> list[Result]:
    """All phases that the campaign asks for, one after the other."""
    chance = random.Random(campaign.seed)
    results = []

    def phase(name: str, act: Callable[[Rig], None], check: Callable[[Rig], Findings] | None = None) -> None:
        phases.say(f"phase {name}")
        plan = Plan(
            bootstrap_servers=cluster.bootstrap_servers,
            prefix=f"chaos-{name}.",
            workers=campaign.workers,
            partitions=campaign.partitions,
            replication=min(3, campaign.brokers),
            rate=campaign.rate,
            seed=campaign.seed,
            lease_ms=campaign.lease_ms,
            session_timeout_ms=campaign.session_timeout_ms,
            options=campaign.options,
        )
        results.append(run_phase(name, plan, act, check))

    if campaign.kills:
        phase("workers", lambda rig: phases.kill_workers(rig, campaign.kills, chance))
    if campaign.rescale and campaign.workers > 1:
        phase("rebalance", lambda rig: phases.rebalance(rig, campaign.stay_s))
    if campaign.broker_kills and campaign.brokers > 1:
        number = campaign.brokers
        phase("brokers", lambda rig: phases.kill_brokers(rig, cluster, number, campaign.broker_kills, chance))
    if campaign.fuzz:
        topics = campaign.fuzz_topics
        phase(
            "fuzz",
            lambda rig: phases.send_fuzz(rig, campaign.fuzz, topics),
            lambda rig: phases.check_fuzz(rig, topics),
        )
    return results


def run_phase(
    name: str, plan: Plan, act: Callable[[Rig], None], check: Callable[[Rig], Findings] | None = None
) -> Result:
    """Load, `act`, drain, judge; `check` adds findings of its own."""
    started = time.monotonic()
    with Rig(plan) as rig:
        act(rig)
        rig.drain()
        result = judge(name, rig)
        if check is not None:
            result.findings.add(check(rig))
    result.seconds = round(time.monotonic() - started, 1)
    return result


def judge(name: str, rig: Rig) -> Result:
    """The laws on all partitions of a phase that is over, and its times."""
    result = Result(name, Findings((STUCK,)), workers_ended=list(rig.workers.unexpected))
    times = Times()
    try:
        for history in rig.histories():
            result.findings.add(check_partition(history, rig.contracts))
            times.take(history)
    except TimeoutError as error:
        result.findings.unknown(str(error))
    names = (rig.topics.control, rig.topics.records)
    for hidden in kafka_io.hidden(rig.plan.bootstrap_servers, names, rig.plan.partitions):
        result.findings.unknown(f"{hidden}: an open transaction hides its end")
    for stuck in rig.stuck:
        result.findings.broken(STUCK, stuck)
    for fault in rig.faults:
        recovery_ms = times.recovery_ms(fault)
        if recovery_ms is None:
            result.findings.broken(STUCK, f"{fault.kind} {fault.whom}: a partition decided nothing that came after")
        else:
            result.recoveries.append((fault.kind, recovery_ms))
        if fault.kind == "all workers killed" and (backlog := times.catch_up(fault)) is not None:
            result.backlogs.append(backlog)
    return result
