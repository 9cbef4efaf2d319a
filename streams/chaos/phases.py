"""The phases of a run: what each does to its workers and brokers while the load goes on."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterable
from typing import Final

from streams.chaos import fuzz, kafka_io, nemesis
from streams.chaos.board import now_ms
from streams.chaos.fuzz_check import Written, check_fuzzed, dead_places, models
from streams.chaos.history import Message, read_decision, read_object
from streams.chaos.rig import NotRecovered, Rig
from streams.chaos.verdict import Findings

FUZZED: Final = (*fuzz.OWN, *fuzz.READ)
_PAUSE_S: Final = (0.2, 1.0)
"""Between two faults."""
_EVERY_PAUSED: Final = 10
"""Of so many worker kills one is of a paused worker that came back, where there are others to take over."""
_EVERY_ALL: Final = 25
"""Of so many worker kills one kills all of them."""
_DEAD_S: Final = 5.0
_SURGE: Final = 4.0
_SETTLED_S: Final = 3.0
_FUZZ_S: Final = (60.0, 0.005)
"""Bound on deciding again after fuzz: so long, and so much more for each message."""
_FLUSH_EVERY: Final = 5000


def say(text: str) -> None:
    """Progress, for who watches."""
    print(text, file=sys.stderr, flush=True)


def kill_workers(rig: Rig, kills: int, chance: random.Random) -> None:
    """Kill after kill, each once all partitions decide again."""
    for n in range(1, kills + 1):
        if n % _EVERY_ALL == min(_EVERY_ALL, kills) % _EVERY_ALL:
            nemesis.kill_all_workers(rig, _DEAD_S, _SURGE)
        elif n % _EVERY_PAUSED == 0 and rig.plan.workers > 1:
            nemesis.pause_worker(rig, chance)
        else:
            nemesis.kill_worker(rig, chance)
        say(f"{n}/{kills} {rig.faults[-1].kind}: {len(rig.board.final)} final decisions")
        time.sleep(chance.uniform(*_PAUSE_S))


def kill_brokers(rig: Rig, brokers: nemesis.Brokers, number: int, kills: int, chance: random.Random) -> None:
    """One broker after the other, each once the last is back in sync."""
    for n in range(1, kills + 1):
        nemesis.kill_broker(rig, brokers, chance, number, chance.uniform(1, 4))
        say(f"{n}/{kills} broker killed: {len(rig.board.final)} final decisions")
        time.sleep(chance.uniform(*_PAUSE_S))


def rebalance(rig: Rig, stay_s: float) -> None:
    """2 → 3 → 1 → 2 workers."""
    for workers in (2, 3, 1, 2):
        nemesis.rescale(rig, workers)
        say(f"{workers} workers: {len(rig.board.final)} final decisions")
        time.sleep(stay_s)


def send_fuzz(rig: Rig, number: int, topics: Iterable[str]) -> None:
    """Fuzz onto each topic in turn, with workers killed once so that they restore over it; all partitions decide on."""
    for name in topics:
        _send(rig, name, number)
        if name == fuzz.OWN[-1]:
            nemesis.kill_all_workers(rig, 0.0, 1.0)
        sent_ms = now_ms()
        try:
            bound_s = _FUZZ_S[0] + _FUZZ_S[1] * number
            rig.wait_until(lambda at=sent_ms: rig.board.decides_again(at), bound_s, f"fuzz on {name}")  # type: ignore[misc]
        except NotRecovered as error:
            rig.stuck.append(str(error))
        say(f"fuzz on {name}: {number} sent, {(now_ms() - sent_ms) / 1000:.1f} s until all partitions decide again")
    time.sleep(_SETTLED_S)


def _send(rig: Rig, name: str, number: int) -> None:
    topic = getattr(rig.topics, name)
    producer = kafka_io.producer(rig.plan.bootstrap_servers, **{"message.max.bytes": 2_000_000, "linger.ms": 20})
    foreign, errors = rig.board.foreign, rig.board.errors

    def told(error: object, message: object) -> None:
        if error is None:
            foreign.add((topic, message.partition(), message.offset()))  # type: ignore[attr-defined]
        else:
            errors.append(f"fuzz on {name} not written: {error}")

    for n, each in enumerate(fuzz.fuzz(name, number, rig.plan.seed, rig.plan.partitions, now_ms()), start=1):
        where = {} if each.partition is None else {"partition": each.partition}
        producer.produce(topic, each.value, key=each.key, headers=each.headers, on_delivery=told, **where)
        if n % _FLUSH_EVERY == 0:
            producer.flush()
        producer.poll(0)
    producer.flush()


def check_fuzz(rig: Rig, topics: Iterable[str]) -> Findings:
    """What became of what `send_fuzz` sent, once all is stopped."""
    servers, partitions = rig.plan.bootstrap_servers, range(rig.plan.partitions)

    def read(topic: str) -> Iterable[Message]:
        for partition in partitions:
            yield from kafka_io.read_partition(servers, topic, partition)

    answers = (read_object(message.value) or {} for message in read(rig.topics.views))
    decisions = (read_decision(message) for message in read(rig.topics.control))
    written = Written(
        dead_places(read(rig.topics.dead_letters)),
        {decision.key for decision in decisions if decision is not None},
        {str(answer.get("query_id")) for answer in answers},
    )
    found = Findings(("fuzz_crashes",))
    for crash in rig.workers.unexpected:
        found.broken("fuzz_crashes", crash)
    readers = models()
    for name in topics:
        if name not in fuzz.READ:
            continue
        topic = getattr(rig.topics, name)
        for partition in partitions:
            mine = (
                message
                for message in kafka_io.read_partition(servers, topic, partition)
                if (topic, partition, message.offset) in rig.board.foreign
            )
            found.add(check_fuzzed(name, topic, partition, len(partitions), mine, written, readers))
    return found
