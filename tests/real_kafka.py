"""Fixtures of a real Apache Kafka: in a container where Docker answers and has the image, else from Maven's jars.

`tests/conftest.py` offers them to every test. Where neither way is open, tests skip and say why;
`WIRELESSOPS_TEST_KAFKA` of `docker` or `jars` allows one way only, `none` neither.
"""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from streams.kafka_cluster import KafkaCluster, KafkaUnavailable

IMAGE = "wirelessops-kafka:4.3.1"
"""What `deploy/kafka/build-image.sh` builds."""

_NUMBERS = itertools.count(1)
_WAYS = {"": ("docker", "jars"), "docker": ("docker",), "jars": ("jars",), "none": ()}


@dataclass(frozen=True)
class RealKafka:
    """A broker that other tests use too: all that a test makes there begins with its own `prefix`."""

    bootstrap_servers: str
    prefix: str

    def create_topic(self, name: str, partitions: int = 1, **config: str | int) -> str:
        """The full name of a new topic; `config` with `_` for `.`."""
        return create_topic(self.bootstrap_servers, self.prefix + name, partitions, **config)


def create_topic(
    bootstrap_servers: str, name: str, partitions: int = 1, replication: int = -1, **config: str | int
) -> str:
    from confluent_kafka.admin import AdminClient, NewTopic

    settings = {option.replace("_", "."): str(value) for option, value in config.items()}
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    admin.create_topics([NewTopic(name, partitions, replication, config=settings)])[name].result(20)
    return name


@pytest.fixture(scope="session")
def kafka_address() -> Iterator[str]:
    """`bootstrap_servers` of one broker for the whole session."""
    refusals = []
    for way in _ways():
        try:
            with {"docker": in_container, "jars": from_jars}[way]() as address:
                yield address
                return
        except KafkaUnavailable as error:
            refusals.append(str(error))
    pytest.skip("no real Kafka: " + ("; ".join(refusals) or "switched off by WIRELESSOPS_TEST_KAFKA"))


@pytest.fixture
def kafka(kafka_address: str) -> RealKafka:
    """The session's one broker."""
    return RealKafka(kafka_address, f"t{next(_NUMBERS)}.")


@pytest.fixture(scope="module")
def kafka3() -> Iterator[KafkaCluster]:
    """Three brokers of the module's own, to kill and pause; a test leaves all three running and in sync."""
    if not jars_allowed():
        pytest.skip("no real Kafka of three brokers: WIRELESSOPS_TEST_KAFKA forbids starting one from jars")
    try:
        with KafkaCluster(3) as cluster:
            yield cluster
    except KafkaUnavailable as error:
        pytest.skip(f"no real Kafka: {error}")


def jars_allowed() -> bool:
    """Whether a test may start a Kafka of its own from jars."""
    return "jars" in _ways()


def _ways() -> tuple[str, ...]:
    return _WAYS[os.environ.get("WIRELESSOPS_TEST_KAFKA", "")]


@contextmanager
def from_jars() -> Iterator[str]:
    with KafkaCluster() as cluster:
        yield cluster.bootstrap_servers


@contextmanager
def in_container() -> Iterator[str]:
    """A broker in a container, by its image. Raises KafkaUnavailable."""
    try:
        asked = subprocess.run(["docker", "image", "inspect", IMAGE], capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise KafkaUnavailable(f"no Docker: {error}") from error
    if asked.returncode != 0:
        said = asked.stderr.decode(errors="replace").strip().splitlines()
        raise KafkaUnavailable(f"Docker: {said[-1] if said else 'no answer'}")
    # The reaper is an image from a registry, which a machine like CI's does not reach; we remove what we start
    os.environ["TESTCONTAINERS_RYUK_DISABLED"] = "true"
    from testcontainers.core.container import DockerContainer

    port = KafkaCluster.free_port()
    container = DockerContainer(IMAGE).with_envs(**_broker_at(port)).with_bind_ports(port, port)
    try:
        container.start()
        address = f"127.0.0.1:{port}"
        if not _answers(address):
            out, err = container.get_logs()
            raise KafkaUnavailable(
                f"Kafka in a container did not come up: {(out + err).decode(errors='replace')[-800:]}"
            )
        yield address
    finally:
        container.stop(force=True, delete_volume=True)


def _broker_at(port: int) -> dict[str, str]:
    """Variables of Kafka's official image: one broker at 127.0.0.1:`port`, as its clients see it."""
    return {
        "CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw",
        "KAFKA_NODE_ID": "1",
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@127.0.0.1:9093",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_LISTENERS": f"CLIENT://0.0.0.0:{port},CONTROLLER://127.0.0.1:9093",
        "KAFKA_ADVERTISED_LISTENERS": f"CLIENT://127.0.0.1:{port}",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "KAFKA_INTER_BROKER_LISTENER_NAME": "CLIENT",
        "KAFKA_LOG_DIRS": "/var/lib/kafka/data/log",
        "KAFKA_NUM_PARTITIONS": "4",
        "KAFKA_AUTO_CREATE_TOPICS_ENABLE": "false",
        "KAFKA_MESSAGE_MAX_BYTES": "20000000",
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS": "4",
        "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
        "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
        "KAFKA_TRANSACTION_STATE_LOG_NUM_PARTITIONS": "4",
        "KAFKA_SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR": "1",
        "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
        "KAFKA_GROUP_MIN_SESSION_TIMEOUT_MS": "500",
        "KAFKA_LOG_CLEANER_DEDUPE_BUFFER_SIZE": "4194304",
    }


def _answers(address: str, timeout_s: float = 60.0) -> bool:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": address, "log_level": 0, "reconnect.backoff.max.ms": 200})
    try:
        return bool(admin.list_topics(timeout=timeout_s).brokers)
    except KafkaException:
        return False
