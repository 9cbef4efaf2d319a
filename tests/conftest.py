"""Fixtures that several modules of tests share."""

from real_kafka import kafka, kafka3, kafka_address

__all__ = ["kafka", "kafka3", "kafka_address"]
