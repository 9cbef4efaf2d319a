"""The load: telemetry of all regions each period, and proposals at a rate, from one thread with one producer."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from streams.chaos import kafka_io, world
from streams.chaos.board import Board, Sent, now_ms
from streams.topics import Topics, partition_of

_TICK_S: Final = 0.01
_TRIES: Final = 4
"""A proposal of which nobody knows whether it was written is sent again, with the same bytes, so often at most."""
_REPEATED: Final = 0.02
"""Share of the proposals that are sent twice though the first was acknowledged, as a careless client does."""
_FLUSH_S: Final = 30.0


class Load:
    """`start()`, change `rate` at will, `stop_proposals()`, `stop()`. What it knows stands on the board."""

    def __init__(
        self,
        bootstrap_servers: str,
        topics: Topics,
        regions: Sequence[world.Region],
        board: Board,
        *,
        partitions: int,
        rate: float,
        seed: int,
        period_s: float = 0.1,
    ) -> None:
        self.rate = rate
        self._topics = topics
        self._regions = regions
        self._board = board
        self._partitions = partitions
        self._seed = seed
        self._period_s = period_s
        self._chance = random.Random(f"{seed}/load")
        self._again: deque[str] = deque()
        self._number = 0
        self._run = f"{seed}-{now_ms():x}"
        self._stopping = threading.Event()
        self._producer = kafka_io.producer(bootstrap_servers)
        self._thread = threading.Thread(target=self._play, name="load", daemon=True)

    def start(self) -> None:
        """Begin to report and to propose."""
        self._thread.start()

    def stop_proposals(self) -> None:
        """Propose nothing more; telemetry goes on."""
        self.rate = 0.0

    @property
    def running(self) -> bool:
        """Whether it was started and not stopped."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """End; what is not acknowledged within a bound stays unknown."""
        self._stopping.set()
        self._thread.join(_FLUSH_S)
        self._producer.flush(_FLUSH_S)

    def _play(self) -> None:
        started = time.monotonic()
        reported = [started + self._period_s * n / len(self._regions) for n in range(len(self._regions))]
        numbers = [0] * len(self._regions)
        owed, last = 0.0, started
        while not self._stopping.is_set():
            now = time.monotonic()
            for index, region in enumerate(self._regions):
                if now >= reported[index]:
                    reported[index] = max(reported[index] + self._period_s, now - self._period_s)
                    numbers[index] += 1
                    self._report(region, numbers[index])
            owed = min(owed + (now - last) * self.rate, self.rate)
            last = now
            while owed >= 1:
                owed -= 1
                self._propose()
            while self._again:
                self._send(self._again.popleft())
            self._producer.poll(_TICK_S)

    def _report(self, region: world.Region, number: int) -> None:
        for value in region.reports(number, now_ms()):
            self._produce(self._topics.telemetry, value, region.name)

    def _propose(self) -> None:
        number, self._number = self._number, self._number + 1
        region = self._regions[number % len(self._regions)]
        proposal_id = f"p-{self._run}-{number}"
        at_ms = now_ms()
        value = world.proposal(proposal_id, number, self._seed, at_ms)
        partition = partition_of(region.name, range(self._partitions))
        self._board.sent[proposal_id] = Sent(number, region.name, partition, at_ms, value)
        self._send(proposal_id)

    def _send(self, proposal_id: str) -> None:
        sent = self._board.sent[proposal_id]
        sent.times += 1

        def told(error: Any, message: Any) -> None:
            if error is None:
                sent.status = "ok"
                sent.partition = message.partition()
                if sent.times == 1 and self._chance.random() < _REPEATED:
                    self._again.append(proposal_id)
                else:
                    sent.value = None
            elif sent.status != "ok":
                sent.status = "unknown"
                if sent.times < _TRIES and not self._stopping.is_set():
                    self._again.append(proposal_id)

        if not self._produce(self._topics.proposals, sent.value, sent.region, told) and sent.status is None:
            sent.status = "fail"

    def _produce(self, topic: str, value: bytes | None, region: str, told: Any = None) -> bool:
        try:
            self._producer.produce(topic, value, key=region.encode(), on_delivery=told)
        except BufferError:
            return False
        return True
