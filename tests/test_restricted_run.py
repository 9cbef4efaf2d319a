"""`wirelessops run` as it is deployed: probed over HTTP, restricted as the chart restricts it, drained on SIGTERM."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient
from guard_rig import PARTITIONS, Rig, proposal
from prometheus_client.parser import text_string_to_metric_families
from real_kafka import RealKafka

from streams.broker import EmbeddedBroker

ROOT = Path(__file__).parent.parent
DESCRIPTOR = json.loads((ROOT / "deploy/xapp/config-file.json").read_text())
COMMAND = [sys.executable, "-c", "from streams.cli import main; main()", "run"]
USER = 10001
BOUND_S = 6.0
"""Stopping: five seconds, and the one of the watchdog."""
WAIT_S = 60.0
"""For anything else, on a machine that does other things."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def mounted(folder: Path, **controls: Any) -> Path:
    """The descriptor of `deploy`, with controls of this test and without those of a cluster."""
    document = {**DESCRIPTOR, "controls": controls}
    path = folder / "config-file.json"
    path.write_text(json.dumps(document))
    return path


@contextmanager
def started(command: list[str], log: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, **environment}, cwd="/")
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def text_of(log: Path) -> str:
    """What a process said."""
    return log.read_text()


class Probe:
    """What an orchestrator, Prometheus and a browser ask of a guard."""

    def __init__(self, session: aiohttp.ClientSession, port: int) -> None:
        self.session = session
        self.url = f"http://127.0.0.1:{port}"

    async def get(self, path: str, **options: Any) -> tuple[int, str]:
        async with self.session.get(self.url + path, **options) as reply:
            return reply.status, await reply.text()

    async def until_ready(self, log: Path, process: subprocess.Popen[bytes]) -> None:
        ends_s = time.monotonic() + WAIT_S
        while process.poll() is None and time.monotonic() < ends_s:
            try:
                if (await self.get("/ric/v1/health/ready"))[0] == 200:
                    return
            except aiohttp.ClientError:
                pass  # it does not listen yet
            await asyncio.sleep(0.05)
        raise AssertionError(f"not ready: {text_of(log)}")


@asynccontextmanager
async def probing(port: int) -> AsyncIterator[Probe]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session:
        yield Probe(session, port)


async def probe_all(probe: Probe) -> None:
    """Every endpoint that the descriptor promises."""
    for name in ("livenessProbe", "readinessProbe"):
        assert (await probe.get("/" + DESCRIPTOR[name]["httpGet"]["path"]))[0] == 200
    status, text = await probe.get("/ric/v1/config")
    (item,) = json.loads(text)
    assert (status, item["metadata"]) == (200, {"xappName": "wirelessops", "configType": "json"})
    assert {name: item["config"][name] for name in ("version", "containers")} == {
        name: DESCRIPTOR[name] for name in ("version", "containers")
    }
    status, text = await probe.get("/ric/v1/metrics")
    families = {family.name for family in text_string_to_metric_families(text)}
    assert status == 200
    assert {metric["name"].removesuffix("_total") for metric in DESCRIPTOR["metrics"]} <= families
    assert (await probe.get("/"))[0] == 200


# Restricted.

IMAGE = r"""
set -e
mount --make-rprivate /
mount -t tmpfs -o mode=755 image "$IMAGE"
for name in usr lib lib64 bin sbin etc; do
  if [ -L "/$name" ]; then cp -P "/$name" "$IMAGE/$name"
  elif [ -d "/$name" ]; then
    mkdir "$IMAGE/$name"; mount --bind "/$name" "$IMAGE/$name"; mount -o remount,bind,ro "$IMAGE/$name"
  fi
done
mkdir "$IMAGE/tmp"; mount -t tmpfs -o mode=1777,size=16m,noexec,nosuid,nodev scratch "$IMAGE/tmp"
for path in $PATHS; do
  mkdir -p "$IMAGE$path"; mount --bind "$path" "$IMAGE$path"; mount -o remount,bind,ro "$IMAGE$path"
done
mkdir -p "$IMAGE/opt/ric/config" "$IMAGE/proc" "$IMAGE/dev"
mount --bind "$CONFIG" "$IMAGE/opt/ric/config"; mount -o remount,bind,ro "$IMAGE/opt/ric/config"
mount --rbind /proc "$IMAGE/proc"
mount --rbind /dev "$IMAGE/dev"
mount -o remount,ro "$IMAGE"
exec chroot "$IMAGE" setpriv --reuid "$USER_ID" --regid "$USER_ID" --clear-groups --no-new-privs \
  --bounding-set=-all --inh-caps=-all -- env -i PATH=/usr/bin HOME=/tmp "$@"
"""
"""What the chart's security context and volumes make of a container: docs/xapp.md."""


def restricted(command: list[str], folder: Path, config: Path) -> list[str]:
    """The command in a root file system of its own that nobody can write, as a user without any capability."""
    image = folder / "image"
    image.mkdir()
    paths = {str(ROOT), sys.prefix, sys.base_prefix} - {"/usr"}
    exports = {"IMAGE": str(image), "CONFIG": str(config.parent), "USER_ID": str(USER), "PATHS": " ".join(paths)}
    script = "".join(f"{name}={shlex.quote(value)}\n" for name, value in exports.items()) + IMAGE
    return ["unshare", "--mount", "sh", "-c", script, "sh", *command]


def why_not_restricted() -> str | None:
    if os.geteuid() != 0:
        return "only root can make the mounts that a container runtime would"
    missing = [tool for tool in ("unshare", "setpriv", "mount", "chroot") if shutil.which(tool) is None]
    if missing:
        return f"no {', '.join(missing)} here"
    tried = subprocess.run(["unshare", "--mount", "mount", "--make-rprivate", "/"], capture_output=True, check=False)
    return None if tried.returncode == 0 else f"no mount namespaces here: {tried.stderr.decode().strip()}"


async def test_a_guard_decides_as_nobody_on_a_root_file_system_that_it_cannot_write(tmp_path: Path) -> None:
    why_not = why_not_restricted()
    if why_not is not None:
        pytest.skip(why_not)
    config_folder, port, log = tmp_path / "config", free_port(), tmp_path / "log"
    config_folder.mkdir()
    with EmbeddedBroker() as broker:
        config = mounted(
            config_folder, bootstrap_servers=broker.bootstrap_servers, web_port=port, unsigned=True, log_level="warning"
        )
        command = restricted([*COMMAND, "--config", "/opt/ric/config/config-file.json"], tmp_path, config)
        rig = Rig(broker.bootstrap_servers)
        with started(command, log) as process:
            async with probing(port) as probe:
                try:
                    await probe.until_ready(log, process)
                    await rig.open()
                    of_process = Path("/proc") / str(process.pid)
                    status = dict(line.split(":\t", 1) for line in (of_process / "status").read_text().splitlines())
                    assert set(status["Uid"].split()) == set(status["Gid"].split()) == {str(USER)}
                    assert int(status["CapEff"], 16) == int(status["CapBnd"], 16) == 0
                    assert (status["NoNewPrivs"].strip(), status["Groups"].strip()) == ("1", "")
                    await rig.send("proposals", proposal("p1", contract_ref="slicing/1"))
                    assert (await rig.decision("p1"))["action"] in {"HOLD", "ABSTAIN", "ESCALATE"}
                    await probe_all(probe)
                    scratch = of_process / "root/tmp"  # the project itself may be mounted below it
                    own = (path for path in scratch.rglob("*") if path.lstat().st_dev == scratch.stat().st_dev)
                    assert not [path for path in own if path.is_file()]
                    process.send_signal(signal.SIGTERM)
                    assert process.wait(BOUND_S) == 0, log.read_text()
                finally:
                    await rig.close()
        assert "Traceback" not in log.read_text()
        assert "ead-only file system" not in log.read_text()


# Drained.


@asynccontextmanager
async def load(kafka: RealKafka, rate: float) -> AsyncIterator[list[str]]:
    """So many proposals a second, in regions of every partition; the ids of those that Kafka has."""
    sent: list[str] = []
    producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers)
    await producer.start()

    async def send() -> None:
        while True:
            name = f"p{len(sent)}"
            region = f"region-{len(sent) % 16}".encode()
            value = proposal(name, contract_ref="slicing/1", control_key=name)
            await producer.send_and_wait(f"{kafka.prefix}proposals", value, key=region)
            sent.append(name)
            await asyncio.sleep(1 / rate)

    sending = asyncio.create_task(send())
    try:
        yield sent
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        await producer.stop()


async def decided(kafka: RealKafka) -> dict[int, list[dict[str, Any]]]:
    """All decisions, by partition, in order."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=kafka.bootstrap_servers, isolation_level="read_committed", auto_offset_reset="earliest"
    )
    await consumer.start()
    try:
        partitions = [TopicPartition(f"{kafka.prefix}control", partition) for partition in range(PARTITIONS)]
        consumer.assign(partitions)
        ends = await consumer.end_offsets(partitions)
        found: dict[int, list[dict[str, Any]]] = {partition: [] for partition in range(PARTITIONS)}
        while any([await consumer.position(tp) < end for tp, end in ends.items()]):
            for tp, messages in (await consumer.getmany(timeout_ms=200)).items():
                found[tp.partition] += [json.loads(message.value) for message in messages]
        return found
    finally:
        await consumer.stop()


def finals(decisions: dict[int, list[dict[str, Any]]]) -> Counter[str]:
    """How many final decisions each proposal has."""
    return Counter(one["proposal_id"] for several in decisions.values() for one in several if one["final"])


def committed(admin: AdminClient, group: str) -> dict[int, int]:
    """The group's offsets of its topic, by partition."""
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(10)
    return {tp.partition: tp.offset for tp in asked.topic_partitions}


async def readiness(probe: Probe, seen: list[int]) -> None:
    """What readiness says, again and again, until nobody answers."""
    while True:
        try:
            seen.append((await probe.get("/ric/v1/health/ready"))[0])
        except aiohttp.ClientError:
            return


async def until(holds: Any) -> None:
    async with asyncio.timeout(WAIT_S):
        while not holds():  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.02)


async def test_a_guard_under_load_drains_on_sigterm_and_its_successor_goes_on(kafka: RealKafka, tmp_path: Path) -> None:
    options = {"bootstrap_servers": kafka.bootstrap_servers, "prefix": kafka.prefix, "unsigned": True, "hold_ms": 200}
    group = f"{kafka.prefix}guard"
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    ports = [free_port(), free_port()]
    logs = [tmp_path / "first", tmp_path / "second"]
    configs = []
    for number, port in enumerate(ports):
        (tmp_path / str(number)).mkdir()
        configs.append(mounted(tmp_path / str(number), web_port=port, guard_name=f"g{number}", **options))
    async with probing(ports[0]) as probe, probing(ports[1]) as next_probe:
        with started(COMMAND, logs[0], CONFIG_FILE=str(configs[0])) as first:
            await probe.until_ready(logs[0], first)
            async with load(kafka, 100) as sent:
                await until(lambda: len(sent) > 64)
                async with probe.session.get(probe.url + "/v1/events", timeout=aiohttp.ClientTimeout(60)) as events:
                    assert events.status == 200
                    await events.content.readline()
                    seen: list[int] = []
                    looking = asyncio.create_task(readiness(probe, seen))
                    asked_s = time.monotonic()
                    first.send_signal(signal.SIGTERM)
                    assert await asyncio.to_thread(first.wait, BOUND_S) == 0, logs[0].read_text()
                    assert time.monotonic() - asked_s < BOUND_S
                await looking
                assert sorted(seen) == seen, "once not ready it was ready again"
                members = admin.describe_consumer_groups([group])[group].result(10).members
                assert not members, "it left its group, and did not wait to be missed"
                before = await decided(kafka)
                offsets = committed(admin, group)
                for partition, several in before.items():
                    assert offsets[partition] >= several[-1]["resume"]["proposals"] > 0
                stopped_at = len(sent)
                await until(lambda: len(sent) > stopped_at + 20)
        assert "Traceback" not in logs[0].read_text()
        with started(COMMAND, logs[1], CONFIG_FILE=str(configs[1])) as second:
            await next_probe.until_ready(logs[1], second)
            after = finals(before)
            async with asyncio.timeout(WAIT_S):
                while not after.keys() >= set(sent):
                    after = finals(await decided(kafka))
            assert set(after.values()) == {1}, "a proposal has one final decision, whoever made it"
            second.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(second.wait, BOUND_S) == 0


def test_what_a_descriptor_must_not_say_ends_the_start_with_file_and_path(tmp_path: Path) -> None:
    path = mounted(tmp_path, hold_ms="2000", web_prot=8080)
    ended = subprocess.run(
        COMMAND, env={**os.environ, "CONFIG_FILE": str(path)}, cwd="/", capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    hold, port = ended.stderr.strip().splitlines()
    assert hold.startswith(f"{path}: $.controls.hold_ms: ")
    assert port.startswith(f"{path}: $.controls.web_prot: ")
