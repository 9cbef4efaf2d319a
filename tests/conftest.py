"""Fixtures that several modules share, and how hypothesis runs: on a slow machine a law holds all the same."""

from hypothesis import settings
from real_kafka import kafka, kafka3, kafka_address

__all__ = ["kafka", "kafka3", "kafka_address"]

settings.register_profile("wirelessops", deadline=None)
settings.load_profile("wirelessops")
