"""The chart, rendered: each example's objects, once."""

from __future__ import annotations

import functools
import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from helm_binary import helm

ROOT = Path(__file__).parents[1]
CHART = ROOT / "helm" / "wirelessops"
NAMES = ["default", *sorted(path.stem for path in (CHART / "examples").glob("*.yaml"))]
"""The default values, and every example."""

Object = Mapping[str, Any]


@functools.cache
def program() -> str:
    """Raises HelmUnavailable."""
    return helm()


def run_helm(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program(), *words], capture_output=True, text=True, timeout=60, check=False)


@functools.cache
def rendered(name: str, release: str = "wirelessops", *options: str, chart: str = str(CHART)) -> tuple[Object, ...]:
    """The objects of an example (or of the default values), the test's pod among them."""
    values = () if name == "default" else ("--values", str(CHART / "examples" / f"{name}.yaml"))
    ran = run_helm("template", release, chart, "--namespace", "ricxapp", *values, *options)
    assert ran.returncode == 0, ran.stderr
    return tuple(document for document in yaml.safe_load_all(ran.stdout) if document)


def kinds(name: str) -> set[str]:
    return {each["kind"] for each in rendered(name)}


def all_of(name: str, kind: str, *options: str) -> list[Object]:
    return [each for each in rendered(name, "wirelessops", *options) if each["kind"] == kind]


def the(name: str, kind: str, *options: str) -> Object:
    (found,) = all_of(name, kind, *options)
    return found


def guard(name: str, *options: str) -> Object:
    """The guard's container."""
    return the(name, "Deployment", *options)["spec"]["template"]["spec"]["containers"][0]


def config_map(name: str, suffix: str, *options: str) -> Mapping[str, str]:
    return next(
        each["data"] for each in all_of(name, "ConfigMap", *options) if each["metadata"]["name"].endswith(f"-{suffix}")
    )


def descriptor(name: str, *options: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(config_map(name, "appconfig", *options)["config-file.json"])
    return document


def pods(name: str) -> Iterator[Mapping[str, Any]]:
    yield the(name, "Deployment")["spec"]["template"]
    yield the(name, "Pod")


def values_of(name: str) -> dict[str, Any]:
    def over(base: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
        return base | {
            key: over(base[key], value) if isinstance(value, dict) and isinstance(base.get(key), dict) else value
            for key, value in other.items()
        }

    base: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
    return base if name == "default" else over(base, yaml.safe_load((CHART / "examples" / f"{name}.yaml").read_text()))
