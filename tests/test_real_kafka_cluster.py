"""Our own real Kafka: it leaves nothing behind however its starter ends, and says why where it cannot start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from real_kafka import jars_allowed

from streams.kafka_cluster import KafkaCluster, KafkaUnavailable
from streams.kafka_distribution import kafka_jars

STARTS_ONE = """
import sys, time
from streams.kafka_cluster import KafkaCluster
with KafkaCluster() as cluster:
    print(cluster.pid(0), cluster.folder, flush=True)
    {then}
"""
WAIT_S = 20.0


def wait_until(met: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not met():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.fixture(scope="module", autouse=True)
def possible() -> None:
    if not jars_allowed():
        pytest.skip("WIRELESSOPS_TEST_KAFKA forbids starting a Kafka from jars")


@pytest.fixture
def real() -> None:
    try:
        kafka_jars()
    except KafkaUnavailable as error:
        pytest.skip(f"no real Kafka: {error}")


@pytest.mark.usefixtures("real")
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_behind_when_the_starter_is_killed(end: signal.Signals) -> None:
    code = STARTS_ONE.format(then="time.sleep(60)")
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        pid, folder = starter.stdout.readline().split()
        assert is_running(int(pid))
        starter.send_signal(end)
    wait_until(lambda: not is_running(int(pid)) and not Path(folder).exists())


@pytest.mark.usefixtures("real")
def test_nothing_is_left_behind_after_an_exception_or_an_exit() -> None:
    for then in ("raise RuntimeError", "sys.exit(3)"):
        command = [sys.executable, "-c", STARTS_ONE.format(then=then)]
        ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
        pid, folder = ran.stdout.split()
        assert not is_running(int(pid))
        assert not Path(folder).exists()


@pytest.mark.usefixtures("real")
def test_a_cluster_that_a_thread_started_outlives_the_thread_and_starts_again_after_a_stop() -> None:
    cluster = KafkaCluster()
    starter = threading.Thread(target=cluster.start)
    starter.start()
    starter.join()
    try:
        with pytest.raises(RuntimeError, match="is running"):
            cluster.start()
        time.sleep(0.5)
        assert cluster.runs(0)
        first = cluster.pid(0)
        cluster.pause(0)
        cluster.resume(0)
        cluster.restart(0)
        assert cluster.pid(0) != first
        cluster.stop()
        cluster.stop()
        assert not cluster.runs(0)
        with pytest.raises(RuntimeError, match="is down"):
            cluster.pid(0)
        assert cluster.start().runs(0)
    finally:
        cluster.stop()


@pytest.mark.usefixtures("real")
def test_settings_that_kafka_refuses_are_told_in_its_own_words() -> None:
    with pytest.raises(RuntimeError, match=r"num\.network\.threads"):
        KafkaCluster(settings={"num.network.threads": 0}).start()
    with pytest.raises(RuntimeError, match=r"broker 0 died(.|\n)*no\.such\.Authorizer"):
        KafkaCluster(settings={"authorizer.class.name": "no.such.Authorizer"}).start()


def test_where_nothing_can_start_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(KafkaUnavailable, match="no Java"):
        KafkaCluster().start()
    with pytest.raises(KafkaUnavailable, match="no Maven"):
        kafka_jars()


def fake_maven(folder: Path, then: str) -> None:
    """A `mvn` that writes two jars slowly, and counts its calls."""
    folder.mkdir()
    output = 'for word; do case "$word" in -DoutputDirectory=*) out="${word#*=}";; esac; done; mkdir "$out"'
    script = f'#!/bin/sh\necho called >>"{folder}/calls"\n{output}\n>"$out/a.jar"; sleep 1; >"$out/b.jar"\n{then}\n'
    (folder / "mvn").write_text(script)
    (folder / "mvn").chmod(0o755)


def test_many_at_once_fetch_the_jars_once_and_nobody_sees_half_of_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake_maven(tmp_path / "bin", "exit 0")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    code = "import os; from streams.kafka_distribution import kafka_jars; print(*sorted(os.listdir(kafka_jars())))"
    many = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert {process.communicate(timeout=60)[0] for process in many} == {"a.jar b.jar\n"}
    assert (tmp_path / "bin" / "calls").read_text() == "called\n"


def test_half_of_the_jars_is_never_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake_maven(tmp_path / "bin", "echo 'no network'; exit 1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    with pytest.raises(KafkaUnavailable, match="no network"):
        kafka_jars()
    assert list((tmp_path / "cache").rglob("*.jar")) == []
