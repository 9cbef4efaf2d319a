"""Fixtures that several modules share, how hypothesis runs, and which tests have the machine to themselves."""

from collections.abc import Iterable

import pytest
from hypothesis import settings
from real_kafka import kafka, kafka3, kafka_address
from study_runs import study, study_protocol

__all__ = ["kafka", "kafka3", "kafka_address", "study", "study_protocol"]

settings.register_profile("wirelessops", deadline=None)  # on a slow machine a law holds all the same
settings.load_profile("wirelessops")

RIGS = (
    "alarm_manager", "asyncio.subprocess", "guard_rig", "page_rig", "real_kafka", "streams.broker", "streams.chaos.rig",
    "streams.demo", "web_rig",
)  # fmt: skip


def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    """Tests of a module that uses a rig are `live` (other modules say it themselves): real time passes in them, and
    they run one after the other. All others run beside each other, on every core.
    """
    for item in items:
        assert isinstance(item, pytest.Function)
        named = {getattr(value, "__module__", None) for value in vars(item.module).values()}
        named |= {getattr(value, "__name__", None) for value in vars(item.module).values()}
        if named & set(RIGS):
            item.add_marker(pytest.mark.live)
