"""`wirelessops chaos`: workers and brokers killed under load, fuzz on every topic, and what the topics then show."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import orjson

from streams.chaos.campaign import Campaign, run_campaign
from streams.chaos.report import figures, show
from streams.kafka_cluster import KafkaCluster, KafkaUnavailable

EXIT_STOPPED = 143


def chaos(campaign: Campaign, out: Path) -> int:
    """Run on a Kafka of its own. Exit code 0: all laws hold; 1: one is broken or was not judged; 2: not started."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_STOPPED))  # so that workers and brokers are ended too
    try:
        out.touch()
        with KafkaCluster(campaign.brokers) as cluster:
            document = figures(campaign, run_campaign(campaign, cluster))
            out.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")
            show(document)
    except (KafkaUnavailable, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0 if document["verdict"] == "holds" else 1
