"""The embedded broker: librdkafka's in-process cluster, which speaks Kafka's own protocol over loopback.

It is the default where no Kafka is given. Its limits: four partitions a topic, no CreateTopics (a topic appears when
first asked for), one member per consumer group, about 5 MB kept per partition (what displaces all before it is
dropped at once, and so is the message after one of more than 5 MB), nothing kept after `stop()`. The web keeps the
records that its page opens by itself therefore (`streams.web.kept_records`).
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Final, Self

EMBEDDED_FETCH_WAIT_MS: Final = 2
"""A waiting fetch returns only after this long on the embedded broker, whatever arrives meanwhile."""

EMBEDDED_MESSAGE_BYTES: Final = 2_000_000
"""Largest message that surely stays on the embedded broker, whose partitions keep about 5 MB."""

_START_TIMEOUT_S: Final = 10.0


class EmbeddedBroker:
    """A broker of this process. Use as a context manager, or `start()` and `stop()`; `bootstrap_servers` once started.

    Raises RuntimeError if it does not come up within 10 s.
    """

    def __init__(self) -> None:
        self._handle: Any = None
        self.bootstrap_servers = ""

    def start(self) -> Self:
        """Start serving on a free loopback port."""
        from confluent_kafka import KafkaException, Producer

        self._handle = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "embedded", "log_level": 0})
        try:
            brokers = self._handle.list_topics(timeout=_START_TIMEOUT_S).brokers
        except KafkaException as error:
            self.stop()
            raise RuntimeError(f"the embedded broker did not start: {error}") from error
        self.bootstrap_servers = ",".join(f"{broker.host}:{broker.port}" for broker in brokers.values())
        return self

    def stop(self) -> None:
        """Stop serving; everything it held is gone. Later calls do nothing."""
        self._handle = None
        self.bootstrap_servers = ""

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()
