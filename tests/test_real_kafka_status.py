"""Readiness and the topic `status` on a real Kafka: a log that cannot be written makes a guard not ready."""

from __future__ import annotations

from typing import Any

from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from guard_rig import contracts
from real_kafka import RealKafka
from test_real_kafka_guard import WAIT_S, configure, deciding, settings, until

from streams.guard import Guard


async def test_a_guard_whose_writes_are_not_acknowledged_is_not_ready_until_they_are(kafka: RealKafka) -> None:
    """The broker lives and serves what is read: it only takes no messages."""
    async with deciding(Guard(settings(kafka), contracts())) as guard:
        await until(lambda: len(guard.statuses) == 4)
        configure(kafka, "status", max_message_bytes="10")
        await until(lambda: not guard.ready)
        assert "the log cannot be written" in (guard.why_not_ready() or "")
        assert guard.unacknowledged_s > 5
        configure(kafka, "status", max_message_bytes="1000000")
        await until(lambda: guard.ready)


async def test_status_is_compacted_and_stamped_by_the_broker(kafka: RealKafka) -> None:
    async with deciding(Guard(settings(kafka), contracts())):
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
        resource = ConfigResource(ResourceType.TOPIC, kafka.prefix + "status")
        found: dict[str, Any] = admin.describe_configs([resource])[resource].result(WAIT_S)
    assert found["cleanup.policy"].value == "compact"
    assert found["message.timestamp.type"].value == "LogAppendTime"
