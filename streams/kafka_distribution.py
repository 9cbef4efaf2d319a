"""The jars of a real Apache Kafka, fetched once by Maven into a cache: what `KafkaCluster` starts brokers from."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_RESOLVE_S: Final = 300.0
_POMS: Final = (Path(__file__).parents[1] / "deploy/kafka/pom.xml", Path(__file__).with_name("kafka_pom.xml"))
"""Where the list of jars stands in a checkout, and in an installed package."""


class KafkaUnavailable(RuntimeError):
    """No real Kafka can be started on this machine; the text says why."""


def java() -> str:
    """The Java launcher. Raises KafkaUnavailable."""
    home = os.environ.get("JAVA_HOME")
    found = (shutil.which("java", path=f"{home}/bin") if home else None) or shutil.which("java")
    if found is None:
        raise KafkaUnavailable("no Java: a real Kafka needs `java` (17 or newer) on the path, or JAVA_HOME")
    return found


def kafka_jars() -> Path:
    """The folder of Kafka's jars, resolved where the cache does not hold them yet. Raises KafkaUnavailable.

    Callers at the same time wait for one another, and nobody sees half of the jars.
    """
    pom = next((path for path in _POMS if path.is_file()), None)
    if pom is None:
        raise KafkaUnavailable("no list of Kafka's jars (deploy/kafka/pom.xml) beside this program")
    jars = _cache() / f"kafka-{_version(pom)}" / "libs"
    if jars.is_dir():
        return jars
    with _locked(jars.parent):
        if not jars.is_dir():
            _resolve(pom, jars)
    return jars


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wirelessops"


def _version(pom: Path) -> str:
    place = "{*}dependencies/{*}dependency[{*}artifactId='kafka_2.13']/{*}version"
    version = ElementTree.parse(pom).findtext(place)  # noqa: S314 - a file of ours
    assert version, f"{pom} names no version of kafka_2.13"
    return version


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise KafkaUnavailable(f"{folder}: {error.strerror or error}") from error


def _resolve(pom: Path, jars: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise KafkaUnavailable(f"no Maven (`mvn`) to fetch Kafka's jars with, and none in {jars}")
    with tempfile.TemporaryDirectory(dir=jars.parent, prefix=".resolving-") as folder:
        shutil.copyfile(pom, Path(folder) / "pom.xml")
        output = Path(folder) / "libs"
        command = [maven, "-B", "-q", "dependency:copy-dependencies", f"-DoutputDirectory={output}"]
        try:
            ran = subprocess.run(
                command,
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                timeout=_RESOLVE_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise KafkaUnavailable(f"Maven did not fetch Kafka's jars within {_RESOLVE_S:g} s") from error
        if ran.returncode != 0:
            said = ran.stdout.decode(errors="replace").strip().splitlines()
            raise KafkaUnavailable("Maven could not fetch Kafka's jars: " + " ".join(said[:3]))
        output.rename(jars)
