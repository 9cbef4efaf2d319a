"""A first xApp: telemetry in with a plain Kafka client, a proposal, and the guard's decision on it.

    wirelessops run                                       # in one terminal; it prints where its Kafka is
    python docs/examples/first_xapp.py 127.0.0.1:PORT     # in another
"""

import asyncio
import sys
import time

import orjson
from aiokafka import AIOKafkaProducer

from streams.client import GuardClient

REGION = b"north"  # the key of telemetry and of proposals: what belongs together has one region
FRESH_MS = 800  # freshness of sinr in slicing/1 (`wirelessops contract show slicing/1`)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def report(source: str, *measurements: tuple[str, float, str | None, str]) -> bytes:
    """One telemetry message; the contract says which source each field must come from."""
    at = now_ms()
    return orjson.dumps(
        {
            "format": "wirelessops.telemetry/1",
            "report_id": f"{source}/{at}",
            "source": source,
            "event_time_ms": at,
            "measurements": [{"name": n, "value": v, "unit": u, "subject": s} for n, v, u, s in measurements],
        }
    )


async def main(bootstrap_servers: str) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap_servers)
    await producer.start()
    try:
        node = report(
            "e2:gnb-du-1",
            ("sinr", 15.0, "dB", "cell:1/ue:7"),
            ("capacity", 30.0, "MHz", "cell:1/slice:1"),
            ("users", 5, None, "cell:1/slice:1"),
        )
        policy = report("a1:policy", ("min_rate", 5.0, "Mbit/s", "cell:1/slice:1"))
        for value in (node, policy):
            await producer.send_and_wait("wirelessops.telemetry", value, key=REGION)
        async with GuardClient(bootstrap_servers, region=REGION.decode(), name="xapp:first") as guard:
            for pause_ms in (0, FRESH_MS + 100):
                await asyncio.sleep(pause_ms / 1000)
                decision = await guard.propose(
                    contract_ref="slicing/1",
                    bindings={"cell": "1", "ue": "7", "slice": "1"},
                    control_key="cell:1/slice:1/ue:7/prb",
                    plan={"bandwidth": {"value": 1.317, "unit": "MHz"}},
                    timeout_s=5.0,
                )
                print(decision["action"], decision["released"], decision["explanation"], sep="\n  ")
    finally:
        await producer.stop()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
