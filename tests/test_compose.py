"""The composition as a file: what `make compose-check`, which runs it, cannot see."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from streams.cli import app
from streams.web.operators import Operators

ROOT = Path(__file__).parent.parent
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
ONE_SHOT = "keys"


def default(text: str) -> str:
    """A value with its variables at their defaults."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text)


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_runs_confined_and_bounded(name: str) -> None:
    service = SERVICES[name]
    assert int(service["user"].split(":")[0]) > 0
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["mem_limit"]
    assert service["pids_limit"] > 0
    assert "privileged" not in service
    assert not any("docker.sock" in volume for volume in service.get("volumes", ()))


@pytest.mark.parametrize("name", SERVICES)
def test_every_image_is_pinned_to_a_whole_version(name: str) -> None:
    assert re.search(r":v?\d+\.\d+\.\d+", default(SERVICES[name]["image"]))


@pytest.mark.parametrize("name", SERVICES)
def test_ports_are_published_on_loopback_alone(name: str) -> None:
    for port in SERVICES[name].get("ports", ()):
        assert port.startswith("127.0.0.1:")


@pytest.mark.parametrize("name", sorted(set(SERVICES) - {ONE_SHOT}))
def test_what_lasts_has_a_health_check_and_starts_again(name: str) -> None:
    assert SERVICES[name]["healthcheck"]["test"][0] == "CMD"
    assert SERVICES[name]["restart"] == "unless-stopped"


@pytest.mark.parametrize("name", SERVICES)
def test_what_is_mounted_from_the_project_exists_and_cannot_be_written(name: str) -> None:
    for volume in SERVICES[name].get("volumes", ()):
        source, _, mode = volume.partition(":")[0], *volume.rpartition(":")[1:]
        if source.startswith("."):
            assert (ROOT / source).exists()
            assert mode == "ro"
        else:
            assert source in COMPOSE["volumes"]


@pytest.mark.parametrize("name", ["guard", "ran"])
def test_the_command_line_knows_what_the_services_are_started_with(name: str) -> None:
    command, *options = SERVICES[name]["command"]
    known = {word for parameter in get_command(app).commands[command].params for word in parameter.opts}  # type: ignore[attr-defined]
    assert {option.partition("=")[0] for option in options} <= known


def test_only_the_guard_and_who_makes_it_can_read_the_signing_key() -> None:
    readers = {n for n, s in SERVICES.items() if any(v.startswith("guard-keys:") for v in s.get("volumes", ()))}
    assert readers == {"guard", ONE_SHOT}


def test_kafka_is_reached_by_the_guard_and_the_ran_alone() -> None:
    assert COMPOSE["networks"]["messages"]["internal"] is True
    assert {n for n, s in SERVICES.items() if "messages" in s.get("networks", ())} == {"kafka", "guard", "ran"}
    assert "ports" not in SERVICES["kafka"]


def test_the_base_image_is_the_same_wherever_it_is_named() -> None:
    (base,) = re.findall(r"ARG BASE_IMAGE=(\S+)", (ROOT / "deploy/image/Dockerfile").read_text())
    (checked,) = re.findall(r"OFFICIAL=(\S+)", (ROOT / "deploy/compose/check.sh").read_text())
    built = {default(s["build"]["args"]["BASE_IMAGE"]) for s in SERVICES.values() if "build" in s}
    assert built == {base} == {checked}


def test_one_service_builds_the_image_that_all_of_ours_run() -> None:
    """Compose 2 builds services at the same time, and of two builds of one tag one may fail."""
    assert [name for name, service in SERVICES.items() if "build" in service] == [ONE_SHOT]
    assert {default(SERVICES[name]["image"]) for name in ("guard", "ran")} == {default(SERVICES[ONE_SHOT]["image"])}
    for name in ("guard", "ran"):
        before, needed = set[str](), {name}
        while needed - before:
            before |= needed
            needed = {each for one in before for each in SERVICES[one].get("depends_on", ())}
        assert ONE_SHOT in before, "it would be started before its image is there"


def test_nobody_logs_in_to_grafana() -> None:
    settings = SERVICES["grafana"]["environment"]
    assert settings["GF_AUTH_ANONYMOUS_ORG_ROLE"] == "Viewer"
    assert (settings["GF_AUTH_DISABLE_LOGIN_FORM"], settings["GF_AUTH_BASIC_ENABLED"]) == ("true", "false")
    assert settings["GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION"] == "true"


def made_keys(folder: Path, operator: str) -> subprocess.CompletedProcess[str]:
    """keys.sh with its folders here, and the command as it is."""
    script = (ROOT / "deploy/compose/keys.sh").read_text().replace("/var/lib/wirelessops", str(folder))
    command = folder / "wirelessops"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -c "from streams.cli import main; main()" "$@"\n')
    command.chmod(0o755)
    given = {**os.environ, "OPERATOR": operator, "PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    return subprocess.run(["sh", "-c", script], capture_output=True, text=True, env=given, check=False)


def test_keys_are_made_once_and_each_operator_has_a_token_of_its_own(tmp_path: Path) -> None:
    for name in ("private", "public"):
        (tmp_path / name).mkdir()
    tokens = {}
    for operator in ("alice", "a.ice", "ali"):  # one is a pattern of another, one begins as another
        ran = made_keys(tmp_path, operator)
        assert ran.returncode == 0, ran.stderr
        (tokens[operator],) = (line.split()[1] for line in ran.stdout.splitlines() if line.startswith("token:"))
    again = made_keys(tmp_path, "alice")
    assert again.returncode == 0
    assert "token:" not in again.stdout
    operators = Operators(tmp_path / "private" / "operators")
    assert {operator: operators.bearer(token) for operator, token in tokens.items()} == {o: o for o in tokens}
    assert (tmp_path / "public" / "guard.pub.pem").read_bytes() == (tmp_path / "private" / "guard.pub.pem").read_bytes()
    assert (tmp_path / "private" / "guard.pem").stat().st_mode & 0o077 == 0


def test_the_image_has_the_version_of_the_package() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f'image.version="{version}"' in (ROOT / "deploy/image/Dockerfile").read_text()
    assert default(SERVICES["guard"]["image"]) == f"wirelessops:{version}"


def test_the_build_context_holds_what_the_package_is_made_of_and_no_more() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {*build["packages"], *build["force-include"], "pyproject.toml", "README.md", "LICENSE"}
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in lines
    let_in = {line[1:] for line in lines if line.startswith("!")}
    assert needed <= let_in
    shut_again = {line.removesuffix("/*") for line in lines if line.endswith("/*")}
    assert let_in - shut_again == needed | {"wheels"}


def test_prometheus_asks_every_guard_and_reads_the_rules() -> None:
    config = yaml.safe_load((ROOT / "deploy/compose/prometheus.yml").read_text())
    (job,) = config["scrape_configs"]
    assert job["metrics_path"] == "/ric/v1/metrics"
    assert job["dns_sd_configs"][0]["names"] == ["guard"]
    (pattern,) = config["rule_files"]
    assert list((ROOT / "deploy/prometheus").glob(Path(pattern).name))


@pytest.mark.skipif(shutil.which("docker-compose") is None, reason="no docker-compose")
def test_compose_accepts_the_file() -> None:
    ran = subprocess.run(["docker-compose", "config", "--quiet"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("script", ["image/debian-base.sh", "image/wheels.sh", "kafka/build-image.sh", "kafka/run",
                                    "compose/check.sh", "compose/keys.sh"])  # fmt: skip
def test_the_scripts_are_executable_and_stop_at_a_fault(script: str) -> None:
    path = ROOT / "deploy" / script
    assert path.stat().st_mode & 0o111
    text = path.read_text()
    assert re.search(r"^set -eu", text, re.MULTILINE)
    shell = text.partition("\n")[0].rpartition("/")[2].split()[-1]
    assert subprocess.run([shell, "-n", path], capture_output=True, check=False).returncode == 0
