"""A real Apache Kafka of this process's own: one broker or three, started from jars, gone with whoever started it.

For the tests, the benchmark and the chaos command: brokers can be killed, restarted and paused. Each node is broker and
KRaft controller at once, so that of three any one may die. Listens on loopback only; data lie in a temporary folder.
"""

from __future__ import annotations

import base64
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from streams.kafka_distribution import KafkaUnavailable, java, kafka_jars

__all__ = ["ClusterSecurity", "KafkaCluster", "KafkaUnavailable"]

_START_S: Final = 60.0
_STOP_S: Final = 10.0
_POLL_S: Final = 0.05
_PORTS: Final = range(20_000, 32_000)
"""Below the ports that the kernel lends to outgoing connections: a dead broker's port stays free for it."""

_JVM: Final = (
    "-Xms96m",
    "-Xmx320m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",  # up in 3 s instead of 5; the second compiler pays only over many minutes
    "-Xshare:auto",
)

_LOG4J: Final = """\
status = error
appender.console.type = Console
appender.console.name = STDOUT
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss.SSS} %p %c{1}: %m%n
rootLogger.level = warn
rootLogger.appenderRef.console.ref = STDOUT
"""

_SETTINGS: Final[Mapping[str, str | int]] = {
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "CLIENT",
    "auto.create.topics.enable": "false",
    "unclean.leader.election.enable": "false",
    "message.max.bytes": 20_000_000,
    "replica.fetch.max.bytes": 20_000_000,
    "log.retention.ms": -1,
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.num.partitions": 4,
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 500,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
    # A dead or paused broker is given up after 3 s, as a test can wait for
    "broker.heartbeat.interval.ms": 500,
    "broker.session.timeout.ms": 3_000,
    "replica.lag.time.max.ms": 5_000,
    # Small machines
    "num.network.threads": 2,
    "num.io.threads": 4,
    "background.threads": 2,
    "log.cleaner.dedupe.buffer.size": 4_194_304,
    "share.coordinator.state.topic.num.partitions": 1,
}

# Kills the nodes and removes their folder once the starter closes the pipe or dies, however it dies.
_KEEPER: Final = """\
trap '' INT TERM HUP
cat >/dev/null
for node in "$1"/node-*/pid; do
  [ -f "$node" ] && kill -KILL "$(cat "$node")" 2>/dev/null
done
rm -rf "$1"
"""


@dataclass(frozen=True, slots=True)
class ClusterSecurity:
    """SASL_SSL with SCRAM for clients and among the nodes, and Kafka's own authorizer: who is not allowed is refused.

    `keystore`: PEM of a private key (PKCS #8) and the certificate chain, good for 127.0.0.1; `ca`: PEM that both the
    nodes and their clients trust; `admin` may do everything; `users`: name → password of all others.
    """

    keystore: Path
    ca: Path
    admin_password: str = field(repr=False)
    users: Mapping[str, str] = field(repr=False)
    admin: str = "admin"
    mechanism: str = "SCRAM-SHA-512"

    def client_options(self) -> dict[str, Any]:
        """librdkafka options of the admin."""
        return {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.ca),
            "sasl.mechanism": self.mechanism,
            "sasl.username": self.admin,
            "sasl.password": self.admin_password,
        }

    def node_settings(self) -> dict[str, str | int]:
        """Of every node. Controllers know no SCRAM, so nodes show one another certificates or the admin's password."""
        scram = f"org.apache.kafka.common.security.scram.ScramLoginModule required username={_jaas(self.admin)}"
        plain = f"org.apache.kafka.common.security.plain.PlainLoginModule required username={_jaas(self.admin)}"
        password = _jaas(self.admin_password)
        return {
            "listener.security.protocol.map": "CLIENT:SASL_SSL,CONTROLLER:SASL_SSL",
            "sasl.enabled.mechanisms": self.mechanism,
            "sasl.mechanism.inter.broker.protocol": self.mechanism,
            "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.client." + self.mechanism.lower() + ".sasl.jaas.config": f"{scram} password={password};",
            "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.controller.plain.sasl.jaas.config": (
                f"{plain} password={password} user_{self.admin}={password};"
            ),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.keystore),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.ca),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:{self.admin}",
            "allow.everyone.if.no.acl.found": "false",
        }

    def format_arguments(self) -> list[str]:
        """What writes the users into a new cluster."""
        everyone = {**self.users, self.admin: self.admin_password}
        return [
            word
            for name, password in everyone.items()
            for word in ("--add-scram", f"{self.mechanism}=[name={name},password={password}]")
        ]


class KafkaCluster:
    """Brokers of this process. Use as a context manager, or `start()` and `stop()`; not safe for concurrent calls.

    `brokers`: 1, or 3 (replication 3, two of which must have what is acknowledged); `partitions`: of topics that are
    made without a number; `settings`: more of Kafka's own, for every node; `folder`: where it keeps all while it runs.
    `start()` raises KafkaUnavailable where this machine can run no Kafka, RuntimeError with the end of the logs where
    Kafka does not come up. The methods block: call them by `asyncio.to_thread` where a loop runs.
    """

    def __init__(
        self,
        brokers: int = 1,
        *,
        partitions: int = 4,
        security: ClusterSecurity | None = None,
        settings: Mapping[str, str | int] | None = None,
        jvm: Sequence[str] = _JVM,
    ) -> None:
        if brokers not in (1, 3):
            raise ValueError(f"brokers {brokers}: 1 or 3")
        self.brokers = brokers
        self.security = security
        self._jvm = tuple(jvm)
        self._settings = _replication(brokers) | {"num.partitions": partitions} | dict(settings or {})
        self.folder = Path()
        self._ports: list[tuple[int, int]] = []
        self._nodes: dict[int, subprocess.Popen[bytes]] = {}
        self._keeper: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap_servers(self) -> str:
        """Addresses of all brokers, those that are down too."""
        return ",".join(f"127.0.0.1:{port}" for port, _ in self._ports)

    def start(self) -> Self:
        """Start all brokers and wait until each serves."""
        if self._keeper is not None:
            raise RuntimeError("the cluster is running")
        try:
            self._start(java(), kafka_jars())
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Kill all brokers and remove what they held. Later calls do nothing."""
        for index in list(self._nodes):
            self.kill(index)
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            assert keeper.stdin is not None
            keeper.stdin.close()
            keeper.wait(_STOP_S)

    def kill(self, broker: int) -> None:
        """SIGKILL, as a machine that loses power (what it had written stays); a broker that is down stays down."""
        node = self._nodes.pop(self._checked(broker), None)
        if node is not None:
            node.kill()
            node.wait(_STOP_S)
            (self._home(broker) / "pid").unlink(missing_ok=True)

    def restart(self, broker: int) -> None:
        """Start a broker again, killing it where it runs, and wait until it is in sync on all that it replicates."""
        self.kill(broker)
        self._launch(broker)
        self._wait_for_broker(broker)
        self._wait(f"broker {broker} to be in sync", lambda: self._in_sync(broker))

    def pause(self, broker: int) -> None:
        """SIGSTOP: connections stay open, and nothing answers."""
        self._running(broker).send_signal(signal.SIGSTOP)

    def resume(self, broker: int) -> None:
        """SIGCONT; returns at once, when the broker may not be back in sync."""
        self._running(broker).send_signal(signal.SIGCONT)

    def runs(self, broker: int) -> bool:
        """Whether the broker's process lives; a paused one does."""
        node = self._nodes.get(self._checked(broker))
        return node is not None and node.poll() is None

    def pid(self, broker: int) -> int:
        """The process of a broker that runs."""
        return self._running(broker).pid

    def logs_tail(self, lines: int = 30) -> str:
        """The last lines of each node's log; only warnings and errors are logged."""
        found = []
        for index in range(len(self._ports)):
            log = self._home(index) / "log"
            if log.is_file():
                end = log.read_text(errors="replace").splitlines()[-lines:]
                found.append("\n".join((f"--- broker {index}", *end)))
        return "\n".join(found)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()

    @staticmethod
    def free_port() -> int:
        """A port of loopback that is free now, and not lent to anybody by the kernel."""
        return _free_ports(1)[0][0]

    def _start(self, java_path: str, jars: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="wirelessops-kafka-"))
        self._keeper = subprocess.Popen(
            ["/bin/sh", "-c", _KEEPER, "keeper", str(self.folder)], stdin=subprocess.PIPE, start_new_session=True
        )
        self._command = [java_path, *self._jvm, f"-Dlog4j2.configurationFile={self.folder}/log4j2.properties"]
        self._command += ["-cp", f"{jars}/*"]
        (self.folder / "log4j2.properties").write_text(_LOG4J)
        self._ports = _free_ports(self.brokers)
        for index in range(self.brokers):
            self._home(index).mkdir()
            (self._home(index) / "server.properties").write_text(self._properties(index))
        self._format()
        for index in range(self.brokers):
            self._launch(index)
        for index in range(self.brokers):
            self._wait_for_broker(index)

    def _home(self, broker: int) -> Path:
        return self.folder / f"node-{broker}"

    def _checked(self, broker: int) -> int:
        if not 0 <= broker < self.brokers:
            raise ValueError(f"broker {broker}: 0 to {self.brokers - 1}")
        return broker

    def _running(self, broker: int) -> subprocess.Popen[bytes]:
        node = self._nodes.get(self._checked(broker))
        if node is None:
            raise RuntimeError(f"broker {broker} is down")
        return node

    def _properties(self, index: int) -> str:
        client, controller = self._ports[index]
        settings: dict[str, str | int] = {
            **_SETTINGS,
            "node.id": index,
            "controller.quorum.voters": ",".join(f"{i}@127.0.0.1:{port}" for i, (_, port) in enumerate(self._ports)),
            "listeners": f"CLIENT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"CLIENT://127.0.0.1:{client}",
            "listener.security.protocol.map": "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(self._home(index) / "data"),
            **(self.security.node_settings() if self.security else {}),
            **self._settings,
        }
        return "".join(f"{name}={_escaped(value)}\n" for name, value in settings.items())

    def _format(self) -> None:
        """Format the first node's folder, and give the others the same but for their own names."""
        cluster = _kafka_id()
        command = [*self._command, "kafka.tools.StorageTool", "format", "-t", cluster]
        command += ["-c", str(self._home(0) / "server.properties")]
        command += self.security.format_arguments() if self.security else []
        ran = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=_START_S, check=False)
        if ran.returncode != 0:
            said = (ran.stderr or ran.stdout).decode(errors="replace")[-2000:]
            raise RuntimeError(f"Kafka's storage could not be formatted: {said}")
        for index in range(1, self.brokers):
            data = self._home(index) / "data"
            shutil.copytree(self._home(0) / "data", data)
            names = f"version=1\ncluster.id={cluster}\nnode.id={index}\ndirectory.id={_kafka_id()}\n"
            (data / "meta.properties").write_text(names)

    def _launch(self, broker: int) -> None:
        home = self._home(broker)
        # The node itself notes its process before it is a JVM, so that the keeper misses none
        command = ["/bin/sh", "-c", 'echo $$ >"$0/pid"; exec "$@"', str(home)]
        command += [*self._command, "kafka.Kafka", str(home / "server.properties")]
        with (home / "log").open("ab") as log:
            self._nodes[broker] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    def _wait_for_broker(self, broker: int) -> None:
        self._wait(f"broker {broker} to serve", lambda: self._serves(broker))

    def _wait(self, what: str, met: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _START_S
        while not met():
            for index, node in self._nodes.items():
                if node.poll() is not None:
                    raise RuntimeError(f"broker {index} died (exit {node.returncode})\n{self.logs_tail()}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"waited {_START_S:g} s for {what}\n{self.logs_tail()}")
            time.sleep(_POLL_S)

    def _serves(self, broker: int) -> bool:
        """Whether the broker itself answers, and knows every broker that runs to be up."""
        metadata = self._metadata(broker)
        return metadata is not None and set(self._nodes) <= set(metadata.brokers)

    def _in_sync(self, broker: int) -> bool:
        metadata = self._metadata(broker)
        return metadata is not None and all(
            broker in partition.isrs and partition.leader >= 0
            for topic in metadata.topics.values()
            for partition in topic.partitions.values()
            if broker in partition.replicas
        )

    def _metadata(self, broker: int) -> Any:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        port, _ = self._ports[broker]
        try:
            socket.create_connection(("127.0.0.1", port), 1.0).close()
        except OSError:
            return None
        security = self.security.client_options() if self.security else {}
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0, **security})
        try:
            return admin.list_topics(timeout=2.0)
        except KafkaException:
            return None


def _replication(brokers: int) -> dict[str, str | int]:
    copies, needed = (1, 1) if brokers == 1 else (3, 2)
    return {
        "default.replication.factor": copies,
        "min.insync.replicas": needed,
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": needed,
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": needed,
    }


def _free_ports(nodes: int) -> list[tuple[int, int]]:
    """A port for clients and one for controllers, per node: all free now, and not lent to anybody by the kernel."""
    held: list[socket.socket] = []
    try:
        for port in random.sample(_PORTS, len(_PORTS)):
            if len(held) == 2 * nodes:
                break
            probe = socket.socket()
            held.append(probe)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                held.pop().close()
        ports = [probe.getsockname()[1] for probe in held]
    finally:
        for probe in held:
            probe.close()
    if len(ports) < 2 * nodes:
        raise RuntimeError("no free ports for a Kafka")
    return list(zip(ports[::2], ports[1::2], strict=True))


def _kafka_id() -> str:
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A")


def _escaped(value: str | int) -> str:
    return str(value).replace("\\", "\\\\")


def _jaas(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
