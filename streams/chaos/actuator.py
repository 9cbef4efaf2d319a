"""The network's side: releases acknowledged on `outcomes`, requests answered, final decisions put on the board."""

from __future__ import annotations

import heapq
import random
import threading
from collections.abc import Sequence
from typing import Any, Final

import orjson

from streams.chaos import kafka_io, world
from streams.chaos.board import Board, now_ms
from streams.chaos.history import read_object
from streams.topics import Topics

_POLL_S: Final = 0.02
_BACK_MS: Final = 1500
"""How long a source stays up that a request brought back."""
_SILENT: Final = 0.05
_REFUSED: Final = 0.05


class Actuator:
    """Reads what is committed, in one thread. Some releases it does not acknowledge, some it refuses, by the seed."""

    def __init__(
        self,
        bootstrap_servers: str,
        topics: Topics,
        regions: Sequence[world.Region],
        board: Board,
        *,
        partitions: int,
        seed: int,
    ) -> None:
        self._topics = topics
        self._regions = {region.name: region for region in regions}
        self._board = board
        self._partitions = partitions
        self._chance = random.Random(f"{seed}/actuator")
        self._later: list[tuple[int, str]] = []
        self._stopping = threading.Event()
        self._producer = kafka_io.producer(bootstrap_servers)
        self._consumer = kafka_io.consumer(bootstrap_servers)
        self._thread = threading.Thread(target=self._run, name="actuator", daemon=True)

    def start(self) -> None:
        """Begin to read, from the beginning of the topics."""
        from confluent_kafka import TopicPartition

        names = (self._topics.control, self._topics.requests)
        self._consumer.assign([TopicPartition(name, p, 0) for name in names for p in range(self._partitions)])
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether it was started and not stopped."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """End."""
        self._stopping.set()
        self._thread.join(10)
        self._producer.flush(10)
        self._consumer.close()

    def _run(self) -> None:
        while not self._stopping.is_set():
            for message in self._consumer.consume(200, _POLL_S):
                if message.error() is not None:
                    continue
                document = read_object(message.value())
                if document is None:
                    continue
                try:
                    if message.topic() == self._topics.requests:
                        self._requested(message, document)
                    else:
                        self._decided(message, document)
                except (KeyError, TypeError):
                    continue  # of a foreign writer
            self._answer()
            self._producer.poll(0)

    def _decided(self, message: Any, decision: dict[str, Any]) -> None:
        if (self._topics.control, message.partition(), message.offset()) in self._board.foreign:
            return
        if decision["final"]:
            self._board.decided(decision["proposal_id"], message.partition(), decision["action"])
        if decision["action"] != "APPLY":
            return
        at_ms = now_ms()
        chance = self._chance.random()
        if chance < _SILENT:
            return
        refused = at_ms > decision["valid_until_ms"] or chance < _SILENT + _REFUSED
        outcome = {
            "format": "wirelessops.outcome/1",
            "decision_id": decision["decision_id"],
            "proposal_id": decision["proposal_id"],
            "outcome": "refused" if refused else "applied",
            "at_ms": at_ms,
        }
        self._send(self._topics.outcomes, orjson.dumps(outcome), message.key())

    def _requested(self, message: Any, request: dict[str, Any]) -> None:
        heapq.heappush(self._later, (now_ms() + request["after_ms"], message.key().decode()))

    def _answer(self) -> None:
        while self._later and self._later[0][0] <= now_ms():
            _, name = heapq.heappop(self._later)
            if (region := self._regions.get(name)) is not None:
                region.back_until_ms = now_ms() + _BACK_MS

    def _send(self, topic: str, value: bytes, key: bytes | None) -> None:
        try:
            self._producer.produce(topic, value, key=key)
        except BufferError:
            self._board.errors.append(f"{topic}: not sent, the queue is full")
