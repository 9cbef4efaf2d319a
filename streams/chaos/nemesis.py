"""What is broken on purpose. Each function breaks one thing, makes it whole again and waits until all decide again.

Clocks are not stepped: all processes share the clock of one host.
"""

from __future__ import annotations

import random
import time
from typing import Any, Final, Protocol

from streams.chaos import kafka_io
from streams.chaos.board import now_ms
from streams.chaos.history import Fault
from streams.chaos.rig import Rig
from streams.chaos.workers import Worker

_OVER_S: Final = 2.0
"""How much longer than its session a worker is paused."""
_HASTE: Final = 0.15
"""Share of the kills after which the next comes before the new worker is up."""


class Brokers(Protocol):
    """A cluster whose brokers can be killed, such as `streams.kafka_cluster.KafkaCluster`."""

    @property
    def bootstrap_servers(self) -> str:
        """Where it answers."""

    def kill(self, index: int) -> Any:
        """SIGKILL a broker."""

    def restart(self, index: int) -> Any:
        """Start it again, and wait until it serves."""


def kill_worker(rig: Rig, chance: random.Random) -> None:
    """SIGKILL a worker; another starts at once."""
    victim = _victim(rig, chance)
    at_ms = now_ms()
    rig.workers.lose(victim)
    rig.workers.start()
    rig.note(Fault("worker killed", victim.name, at_ms, now_ms()))
    if chance.random() > _HASTE:
        rig.wait_ready()


def pause_worker(rig: Rig, chance: random.Random) -> None:
    """SIGSTOP a worker for longer than its session, SIGCONT the zombie, let it be, kill it; another starts."""
    victim = _victim(rig, chance)
    at_ms = now_ms()
    victim.pause()
    time.sleep(rig.plan.session_timeout_ms / 1000 + _OVER_S)
    victim.resume()
    rig.note(Fault("worker paused", victim.name, at_ms, now_ms()))
    if victim not in rig.workers.running:
        return  # it ended by itself, and another was started
    at_ms = now_ms()
    rig.workers.lose(victim)
    rig.workers.start()
    rig.note(Fault("zombie killed", victim.name, at_ms, now_ms()))


def kill_all_workers(rig: Rig, dead_s: float, surge: float) -> None:
    """SIGKILL all workers, let proposals pile up at a higher rate for a while (none: start at once), start as many."""
    names = [worker.name for worker in rig.workers.running]
    rate = rig.load.rate
    at_ms = now_ms()
    for worker in list(rig.workers.running):
        rig.workers.lose(worker)
    rig.load.rate = rate * surge
    time.sleep(dead_s)
    rig.load.rate = rate
    for _ in names:
        rig.workers.start()
    rig.note(Fault("all workers killed" if dead_s else "all workers replaced", ",".join(names), at_ms, now_ms()))


def rescale(rig: Rig, workers: int) -> None:
    """More workers, or fewer: those too many are told to stop."""
    at_ms = now_ms()
    before = len(rig.workers.running)
    while len(rig.workers.running) > workers:
        leaving = rig.workers.running.pop(0)
        if (code := leaving.stop()) != 0:
            rig.workers.unexpected.append(f"{leaving.name}: told to stop, ended with {code}")
    while len(rig.workers.running) < workers:
        rig.workers.start()
    rig.wait_ready()
    rig.note(Fault("rebalance", f"{before} to {workers}", at_ms, now_ms()))


def kill_broker(rig: Rig, brokers: Brokers, chance: random.Random, number: int, dead_s: float) -> None:
    """SIGKILL a broker, start it again after a while, and wait until all its replicas are in sync."""
    index = chance.randrange(number)
    at_ms = now_ms()
    brokers.kill(index)
    time.sleep(dead_s)
    brokers.restart(index)
    rig.note(Fault("broker killed", str(index), at_ms, now_ms()))
    servers, replication = rig.plan.bootstrap_servers, rig.plan.replication
    rig.wait_until(lambda: kafka_io.under_replicated(servers, replication) == 0, rig.plan.recover_s, "replicas in sync")


def _victim(rig: Rig, chance: random.Random) -> Worker:
    rig.workers.look()
    return chance.choice(rig.workers.running)
