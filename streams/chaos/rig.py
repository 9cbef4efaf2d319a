"""One phase on a Kafka: its own topics, workers, load and actuator; then the history it left."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from streams.chaos import kafka_io, world
from streams.chaos.actuator import Actuator
from streams.chaos.board import Board
from streams.chaos.history import Fault, Message, PartitionHistory
from streams.chaos.load import Load
from streams.chaos.workers import WorkerFailed, Workers
from streams.topics import topics

_POLL_S: Final = 0.05
_CRASHES: Final = 50
"""Workers that may end by themselves in a phase, before it is no longer waited for."""


class NotRecovered(RuntimeError):
    """Deciding did not go on within the bound after a fault."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How a phase is set up. `session_timeout_ms`: of the workers' group; `options`: more of `wirelessops run`."""

    bootstrap_servers: str
    prefix: str
    workers: int = 2
    partitions: int = 8
    replication: int = 1
    regions: int = 16
    rate: float = 100.0
    seed: int = 1
    lease_ms: int | None = None
    session_timeout_ms: int = 3000
    recover_s: float = 60.0
    drain_s: float = 60.0
    options: Sequence[str] = ()


class Rig:
    """See the module. A context manager: inside, everything runs and all partitions decide."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.topics = topics(plan.prefix)
        self.contracts = world.contracts(plan.lease_ms)
        self.board = Board(plan.partitions)
        self.faults: list[Fault] = []
        self.stuck: list[str] = []
        """Faults after which deciding did not go on."""
        self._folder = tempfile.TemporaryDirectory(prefix="wirelessops-chaos-")
        folder = Path(self._folder.name)
        for number, document in enumerate(self.contracts.values()):
            (folder / f"{number}.json").write_text(json.dumps(document))
        options = ["--bootstrap-servers", plan.bootstrap_servers, "--prefix", plan.prefix]
        options += ["--contracts", str(folder), "--history-ms", "10000", *plan.options]
        options += ["--session-timeout-ms", str(plan.session_timeout_ms)]
        kafka_io.make_topics(plan.bootstrap_servers, self.topics.names(), plan.partitions, plan.replication)
        (folder / "said").mkdir()
        self.workers = Workers(options, folder / "said")
        regions = [world.Region(name, plan.seed) for name in world.region_names(plan.regions, plan.partitions)]
        common: tuple[Any, ...] = (plan.bootstrap_servers, self.topics, regions, self.board)
        self.actuator = Actuator(*common, partitions=plan.partitions, seed=plan.seed)
        self.load = Load(*common, partitions=plan.partitions, rate=plan.rate, seed=plan.seed)

    def __enter__(self) -> Self:
        try:
            for _ in range(self.plan.workers):
                self.workers.start()
            self.workers.wait_ready()
            self.actuator.start()
            self.load.start()
            self.wait_until(lambda: self.board.decides_again(1), self.plan.recover_s, "the first decisions")
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Stop whatever still runs; later calls do nothing."""
        if self.load.running:
            self.load.stop()
        self.workers.stop()
        if self.actuator.running:
            self.actuator.stop()
        self._folder.cleanup()

    def wait_until(self, done: Callable[[], bool], timeout_s: float, what: str) -> None:
        """Wait, with workers that end by themselves replaced. Raises NotRecovered."""
        ends_at = time.monotonic() + timeout_s
        while not done():
            if time.monotonic() > ends_at:
                raise NotRecovered(f"{what}: not within {timeout_s:g} s")
            self.workers.look()
            if len(self.workers.unexpected) > _CRASHES:
                raise NotRecovered(f"{what}: workers end by themselves, last {self.workers.unexpected[-1]}")
            time.sleep(_POLL_S)

    def note(self, fault: Fault) -> None:
        """Keep a fault, and wait until every partition decides again; that it does not is kept too."""
        self.faults.append(fault)
        try:
            self.wait_until(lambda: self.board.decides_again(fault.from_ms), self.plan.recover_s, fault.kind)
        except NotRecovered as error:
            self.stuck.append(f"{fault.whom}: {error}")

    def wait_ready(self) -> None:
        """Wait until every worker says that it decides; that one does not is kept."""
        try:
            self.workers.wait_ready()
        except WorkerFailed as error:
            self.stuck.append(str(error))

    def drain(self) -> None:
        """Propose no more, wait for what is open, and stop all. What stays open is the checker's to find."""
        self.load.stop_proposals()
        try:
            self.wait_until(lambda: not self.board.open(), self.plan.drain_s, "final decisions")
        except NotRecovered as error:
            self.board.errors.append(str(error))
        self.load.stop()
        self.workers.stop()
        self.actuator.stop()

    def histories(self) -> Iterator[PartitionHistory]:
        """What the topics hold, partition by partition. Raises TimeoutError where one cannot be read."""
        ops = self.board.ops()
        foreign = self.board.foreign
        for partition in range(self.plan.partitions):
            short = ("proposals", "telemetry", "control", "outcomes")
            read = {name: list(self._read(getattr(self.topics, name), partition)) for name in short}
            yield PartitionHistory(
                partition,
                [op for op in ops if op.partition == partition],
                records=self._read(self.topics.records, partition),
                foreign={(t.removeprefix(self.plan.prefix), o) for t, p, o in foreign if p == partition},
                **read,
            )

    def _read(self, topic: str, partition: int) -> Iterator[Message]:
        return kafka_io.read_partition(self.plan.bootstrap_servers, topic, partition)
