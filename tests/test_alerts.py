"""Alert rules and the dashboard: they fire when they must, and speak of metrics that a guard has."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from guard_rig import contracts
from prometheus_client.parser import text_string_to_metric_families

from streams.guard import Guard
from streams.metrics import render
from streams.settings import GuardSettings

ROOT = Path(__file__).parent.parent
ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yaml"
DASHBOARD = ROOT / "deploy" / "grafana" / "dashboard.json"
RULES = [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]
CASES = yaml.safe_load((Path(__file__).parent / "alert_rules.yaml").read_text())
NAME = re.compile(r"\b(?:ricxapp|process)_\w+")


@pytest.fixture(scope="module")
def promtool() -> str:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("promtool is not installed")
    return found


@pytest.fixture(scope="module")
def names() -> set[str]:
    """Every name under which Prometheus keeps a series of a guard."""
    guard = Guard(GuardSettings.embedded("localhost:1"), contracts())
    suffixes = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}
    families = text_string_to_metric_families(render(guard)[0].decode())
    return {family.name + suffix for family in families for suffix in suffixes[family.type]}


def run(promtool: str, *arguments: str) -> str:
    found = subprocess.run([promtool, *arguments], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout + found.stderr


def test_the_rules_are_what_promtool_takes(promtool: str) -> None:
    run(promtool, "check", "rules", str(ALERTS))


def test_the_scrape_configuration_of_the_document_is_one(promtool: str, tmp_path: Path) -> None:
    blocks = re.findall(r"^```yaml\n(.*?)^```", (ROOT / "docs" / "metrics.md").read_text(), re.DOTALL | re.MULTILINE)
    (shown,) = [block for block in blocks if "scrape_configs" in block]
    shown = shown.replace("/etc/prometheus/rules/alerts.yaml", str(ALERTS))
    (tmp_path / "prometheus.yml").write_text(shown)
    assert "SUCCESS" in run(promtool, "check", "config", str(tmp_path / "prometheus.yml"))
    (job,) = yaml.safe_load(shown)["scrape_configs"]
    assert job["metrics_path"] == "/ric/v1/metrics"


def test_every_alert_fires_when_it_must_and_is_quiet_otherwise(promtool: str, tmp_path: Path) -> None:
    """The texts are left out: promtool compares them to the letter."""
    bare = yaml.safe_load(ALERTS.read_text())
    for group in bare["groups"]:
        for rule in group["rules"]:
            del rule["annotations"]
    (tmp_path / "alerts.yaml").write_text(yaml.safe_dump(bare))
    (tmp_path / "cases.yaml").write_text(yaml.safe_dump(CASES))
    run(promtool, "test", "rules", str(tmp_path / "cases.yaml"))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_every_alert_is_tried_both_ways(rule: dict[str, Any]) -> None:
    tried = [case for test in CASES["tests"] for case in test["alert_rule_test"] if case["alertname"] == rule["alert"]]
    assert {bool(case["exp_alerts"]) for case in tried} == {True, False}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_every_alert_speaks_of_metrics_that_exist_and_says_what_to_do(rule: dict[str, Any], names: set[str]) -> None:
    used = set(NAME.findall(rule["expr"]))
    assert used
    assert used - names == set()
    assert rule["annotations"]["summary"]
    assert len(rule["annotations"]["description"]) > 80
    path, anchor = rule["annotations"]["runbook"].split("#")
    headings = re.findall(r"^#+ (.+)$", (ROOT / path).read_text(), re.MULTILINE)
    assert anchor in {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


def panels() -> Iterator[dict[str, Any]]:
    yield from json.loads(DASHBOARD.read_text())["panels"]


def expressions() -> list[str]:
    return [target["expr"] for panel in panels() for target in panel.get("targets", ())]


def test_the_dashboard_speaks_of_metrics_that_exist(names: set[str]) -> None:
    used = {name for expression in expressions() for name in NAME.findall(expression)}
    variables = json.loads(DASHBOARD.read_text())["templating"]["list"]
    used |= {name for variable in variables for name in NAME.findall(variable.get("definition", ""))}
    assert len(used) > 20
    assert used - names == set()
    assert {name for name in used if "_support_" in name} >= {
        "ricxapp_wirelessops_support_verdicts_total", "ricxapp_wirelessops_support_map_expires_seconds",
    }  # fmt: skip


def test_every_query_of_the_dashboard_is_promql(promtool: str, tmp_path: Path) -> None:
    filled = [
        e.replace("$__rate_interval", "1m").replace("$job", ".*").replace("$instance", ".*") for e in expressions()
    ]
    assert not any("$" in expression for expression in filled)
    rules = [{"record": f"panel:{number}", "expr": expression} for number, expression in enumerate(filled)]
    path = tmp_path / "panels.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    run(promtool, "check", "rules", "--lint=none", str(path))


def test_the_dashboard_names_no_data_source_and_its_panels_do_not_overlap() -> None:
    text = DASHBOARD.read_text()
    assert set(re.findall(r'"uid": "([^"]*)"', text)) == {"${datasource}", "wirelessops"}
    found = [*panels()]
    assert len({panel["id"] for panel in found}) == len(found)
    taken: set[tuple[int, int]] = set()
    for panel in found:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells


def test_every_metric_is_documented(names: set[str]) -> None:
    text = (ROOT / "docs" / "metrics.md").read_text()
    documented = {f"ricxapp_wirelessops_{name}" for name in re.findall(r"^\| `(\w+)", text, re.MULTILINE)}
    suffix = re.compile(r"_(bucket|sum|count)$")
    own = {suffix.sub("", name) for name in names if name.startswith("ricxapp_")}
    assert documented == own
