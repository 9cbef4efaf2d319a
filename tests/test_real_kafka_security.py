"""Who may do what, asked of a real broker with TLS, SCRAM and Kafka's own authorizer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import faust
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaConnectionError, TopicAuthorizationFailedError
from confluent_kafka import KafkaError, KafkaException, Producer
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from guard_rig import REGION, contracts, report, running
from real_kafka import jars_allowed

from streams.client import GuardClient
from streams.guard import Guard
from streams.kafka_acls import Role, acl_commands, acls, apply_acls
from streams.kafka_cluster import ClusterSecurity, KafkaCluster, KafkaUnavailable
from streams.kafka_security import PASSWORD_VARIABLE, KafkaSecurity
from streams.settings import GuardSettings
from streams.topics import topics

PREFIX = "secure."
NAMES = topics(PREFIX)
WAIT_S = 20.0
PASSWORDS: dict[str, str] = {role: f'{role} "secret" \\ 1' for role in ("guard", "xapp", "ran", "operator", "auditor")}
PRINCIPALS: dict[Role, list[str]] = {
    "guard": ["User:guard"],
    "xapp": ["User:xapp"],
    "ran": ["User:ran"],
    "operator": ["User:operator"],
    "auditor": ["User:auditor"],
}
MAY_WRITE = {
    "xapp": {"proposals", "queries"},
    "ran": {"telemetry", "outcomes"},
    "operator": {"answers"},
    "auditor": set(),
    "guard": {
        "control", "controls", "records", "checkpoints", "requests", "outcomes", "dead_letters", "views", "status",
        "answers",
    },
}


def authority(folder: Path) -> tuple[Path, Path]:
    """PEM files: an authority of our own, and the key and certificate of a broker on 127.0.0.1 that it signed."""
    now = datetime.now(UTC)
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])

    def certificate(subject: x509.Name, public: Any, *extensions: tuple[Any, bool]) -> bytes:
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(ca_name).public_key(public)
        builder = builder.serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(days=1))
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical)
        return builder.sign(ca_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    ca = folder / "ca.pem"
    ca.write_bytes(certificate(ca_name, ca_key.public_key(), (x509.BasicConstraints(ca=True, path_length=0), True)))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    broker = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "broker")])
    address = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    keystore = folder / "broker.pem"
    keystore.touch(mode=0o600)
    keystore.write_bytes(private + certificate(broker, key.public_key(), (address, False)))
    return keystore, ca


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """One secured broker with the table of rights applied and all topics of the deployment."""
    if not jars_allowed():
        pytest.skip("no real Kafka with an authorizer: WIRELESSOPS_TEST_KAFKA forbids starting one from jars")
    keystore, ca = authority(tmp_path_factory.mktemp("pki"))
    security = ClusterSecurity(keystore=keystore, ca=ca, admin_password="of the admin", users=PASSWORDS)
    try:
        with KafkaCluster(security=security) as running:
            assert apply_acls(admin_options(running), PRINCIPALS, PREFIX) == len(acls(PREFIX))
            yield running
    except KafkaUnavailable as error:
        pytest.skip(f"no real Kafka: {error}")


@pytest.fixture(scope="module")
def with_topics(cluster: KafkaCluster) -> KafkaCluster:
    """The topics, as the guard makes them with its own rights."""
    from confluent_kafka.admin import AdminClient, NewTopic

    options = {"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0}
    guard = AdminClient({**options, **security_of(cluster, "guard").librdkafka_options()})
    for future in guard.create_topics([NewTopic(name, 1) for name in NAMES.names()]).values():
        future.result(WAIT_S)
    return cluster


def admin_options(cluster: KafkaCluster) -> dict[str, Any]:
    assert cluster.security is not None
    return {"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0, **cluster.security.client_options()}


def security_of(cluster: KafkaCluster, user: str, password: str | None = None) -> KafkaSecurity:
    assert cluster.security is not None
    return KafkaSecurity.of(
        security_protocol="SASL_SSL",
        ssl_cafile=cluster.security.ca,
        sasl_mechanism="SCRAM-SHA-512",
        sasl_username=user,
        environment={PASSWORD_VARIABLE: PASSWORDS[user] if password is None else password},
    )


@asynccontextmanager
async def producing(cluster: KafkaCluster, user: str, **options: Any) -> Any:
    producer = AIOKafkaProducer(
        bootstrap_servers=cluster.bootstrap_servers, **security_of(cluster, user).aiokafka_options(), **options
    )
    await producer.start()
    try:
        yield producer
    finally:
        await producer.stop()


async def read_one(cluster: KafkaCluster, user: str, topic: str) -> bytes:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=cluster.bootstrap_servers,
        auto_offset_reset="earliest",
        **security_of(cluster, user).aiokafka_options(),
    )
    await consumer.start()
    try:
        consumer.assign([TopicPartition(topic, 0)])
        async with asyncio.timeout(WAIT_S):
            value: bytes = (await consumer.getone()).value
            return value
    finally:
        await consumer.stop()


async def test_an_xapp_that_writes_to_control_is_refused_by_the_broker_and_may_read_it(
    with_topics: KafkaCluster,
) -> None:
    async with producing(with_topics, "guard", enable_idempotence=True) as guard:
        await guard.send_and_wait(NAMES.control, b"decision", partition=0)
    async with producing(with_topics, "xapp") as xapp:
        await xapp.send_and_wait(NAMES.proposals, b"proposal", partition=0)
        with pytest.raises(TopicAuthorizationFailedError):
            await xapp.send_and_wait(NAMES.control, b"forged", partition=0)
    assert await read_one(with_topics, "xapp", NAMES.control) == b"decision"


@pytest.mark.parametrize("role", sorted(MAY_WRITE))
async def test_each_role_writes_what_the_table_says_and_nothing_else(with_topics: KafkaCluster, role: str) -> None:
    options = {"bootstrap.servers": with_topics.bootstrap_servers, "log_level": 0}
    producer = Producer({**options, **security_of(with_topics, role).librdkafka_options()})
    told: dict[str, KafkaError | None] = {}
    for name in NAMES.names():
        producer.produce(name, b"{}", on_delivery=lambda error, message, name=name: told.update({name: error}))
    assert await asyncio.to_thread(producer.flush, WAIT_S) == 0
    refused = {error.code() for error in told.values() if error is not None}
    assert refused == {KafkaError.TOPIC_AUTHORIZATION_FAILED}
    written = {name for name, error in told.items() if error is None}
    assert written == {getattr(NAMES, field) for field in MAY_WRITE[role]}


async def test_nobody_but_the_guard_takes_a_transactional_name_of_the_guard(with_topics: KafkaCluster) -> None:
    options = {"bootstrap.servers": with_topics.bootstrap_servers, "log_level": 0}
    options["transactional.id"] = f"{PREFIX}guard.0"
    guard = Producer({**options, **security_of(with_topics, "guard").librdkafka_options()})
    await asyncio.to_thread(guard.init_transactions, WAIT_S)
    xapp = Producer({**options, **security_of(with_topics, "xapp").librdkafka_options()})
    with pytest.raises(KafkaException) as refused:
        await asyncio.to_thread(xapp.init_transactions, WAIT_S)
    assert refused.value.args[0].code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    guard.begin_transaction()
    guard.produce(NAMES.control, b"of the guard")
    await asyncio.to_thread(guard.commit_transaction, WAIT_S)


async def test_a_wrong_password_is_refused(cluster: KafkaCluster) -> None:
    wrong = security_of(cluster, "xapp", "guessed").aiokafka_options()
    producer = AIOKafkaProducer(bootstrap_servers=cluster.bootstrap_servers, **wrong)
    with pytest.raises(KafkaConnectionError):
        async with asyncio.timeout(WAIT_S):
            await producer.start()
    await producer.stop()


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SASL_PLAINTEXT"])
async def test_plain_text_is_refused(cluster: KafkaCluster, protocol: str) -> None:
    sasl = {"sasl_mechanism": "SCRAM-SHA-512", "sasl_plain_username": "xapp", "sasl_plain_password": PASSWORDS["xapp"]}
    options = {"security_protocol": protocol, **(sasl if protocol != "PLAINTEXT" else {})}
    producer = AIOKafkaProducer(bootstrap_servers=cluster.bootstrap_servers, request_timeout_ms=2_000, **options)
    with pytest.raises(KafkaConnectionError):
        async with asyncio.timeout(WAIT_S):
            await producer.start()
    await producer.stop()


async def test_a_broker_whose_authority_is_not_trusted_is_not_talked_to(cluster: KafkaCluster, tmp_path: Path) -> None:
    _, other = authority(tmp_path)
    security = KafkaSecurity.of(
        security_protocol="SASL_SSL",
        ssl_cafile=other,
        sasl_mechanism="SCRAM-SHA-512",
        sasl_username="xapp",
        environment={PASSWORD_VARIABLE: PASSWORDS["xapp"]},
    )
    producer = AIOKafkaProducer(bootstrap_servers=cluster.bootstrap_servers, **security.aiokafka_options())
    with pytest.raises(KafkaConnectionError):
        async with asyncio.timeout(WAIT_S):
            await producer.start()
    await producer.stop()


async def test_guard_xapp_and_ran_work_together_with_the_rights_of_the_table_and_no_more(cluster: KafkaCluster) -> None:
    prefix = "whole."
    apply_acls(admin_options(cluster), PRINCIPALS, prefix)
    settings = GuardSettings.of(
        bootstrap_servers=cluster.bootstrap_servers,
        prefix=prefix,
        security=security_of(cluster, "guard"),
        unsigned=True,
        connect_timeout_s=60,
    )
    async with running(Guard(settings, contracts())):
        async with producing(cluster, "ran") as ran:
            await ran.send_and_wait(topics(prefix).telemetry, report("r-1", 9), key=REGION.encode())
        async with GuardClient(
            cluster.bootstrap_servers,
            region=REGION,
            name="xapp:test",
            prefix=prefix,
            security=security_of(cluster, "xapp"),
        ) as xapp:
            decision = await xapp.propose(
                contract_ref="test/1",
                control_key="cell:1/ue:7/prb",
                bindings={"cell": "1", "ue": "7"},
                plan={"bandwidth": {"value": 8, "unit": "MHz"}},
                timeout_s=WAIT_S,
            )
    assert decision["action"] == "APPLY"


async def test_faust_reads_with_the_same_description(with_topics: KafkaCluster) -> None:
    async with producing(with_topics, "ran") as ran:
        await ran.send_and_wait(NAMES.outcomes, b"outcome", partition=0)
    app = faust.App(
        f"{PREFIX}app.test",
        broker=f"kafka://{with_topics.bootstrap_servers}",
        broker_credentials=security_of(with_topics, "guard").faust_credentials(),
        store="memory://",
        loop=asyncio.get_running_loop(),
        topic_allow_declare=False,
        topic_disable_leader=True,
        consumer_auto_offset_reset="earliest",
        web_enabled=False,
    )
    found: asyncio.Queue[bytes] = asyncio.Queue()
    topic = app.topic(NAMES.outcomes, value_type=bytes, value_serializer="raw")

    @app.agent(topic)
    async def outcomes(stream: Any) -> None:
        async for value in stream:
            await found.put(value)

    await app.start()
    try:
        async with asyncio.timeout(WAIT_S):
            while await found.get() != b"outcome":
                pass
    finally:
        await app.stop()


def test_the_table_is_written_for_kafkas_own_tool_too() -> None:
    lines = list(acl_commands(PRINCIPALS, PREFIX))
    assert len(lines) == len(acls(PREFIX))
    assert "--add --allow-principal 'User:guard' --operation Write --topic 'secure.control'" in lines
    assert [line for line in lines if "Write" in line and "control'" in line and "User:guard" not in line] == []
    prefixed = " --resource-pattern-type prefixed"
    assert (
        f"--add --allow-principal 'User:guard' --operation Write --transactional-id 'secure.guard.'{prefixed}" in lines
    )
