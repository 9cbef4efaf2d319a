"""The Helm chart: what it renders is valid, tight, and what the guard can be started with."""

from __future__ import annotations

import functools
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import threading
import tomllib
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import jsonschema
import kubernetes_validate
import pytest
import yaml
from helm_binary import HelmUnavailable
from helm_chart import (
    CHART,
    NAMES,
    ROOT,
    Object,
    all_of,
    config_map,
    descriptor,
    guard,
    kinds,
    pods,
    program,
    rendered,
    run_helm,
    the,
    values_of,
)
from helm_custom_resources import CUSTOM
from real_kafka import RealKafka

from streams.descriptor import read_descriptor
from streams.kafka_cluster import KafkaCluster
from streams.kafka_config import kafka_security
from streams.keys import who_else, write_new
from streams.settings import GuardSettings, load_contracts
from streams.support_folder import load_support
from streams.topics import topics

KUBERNETES = ("1.25", "1.37")
"""The oldest that Chart.yaml takes, and the newest that there are schemas of."""


@pytest.fixture(scope="module", autouse=True)
def _there_is_helm() -> None:
    try:
        program()
    except HelmUnavailable as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", NAMES)
def test_helm_finds_nothing_to_complain_of(name: str) -> None:
    values = () if name == "default" else ("--values", str(CHART / "examples" / f"{name}.yaml"))
    ran = run_helm("lint", "--strict", str(CHART), *values)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "[WARNING]" not in ran.stdout


@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("name", NAMES)
def test_every_object_is_valid_for_the_oldest_and_the_newest_kubernetes(name: str, version: str) -> None:
    for document in rendered(name):
        if document["kind"] not in CUSTOM:
            kubernetes_validate.validate(dict(document), version, strict=True)


def test_the_chart_is_of_this_version_of_the_project_and_refuses_an_older_kubernetes() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert guard("default")["image"] == f"wirelessops:{chart['appVersion']}"
    ran = run_helm("template", "wirelessops", str(CHART), "--kube-version", "1.24")
    assert ran.returncode != 0
    assert "kubeVersion" in ran.stderr


def test_an_object_with_a_member_that_kubernetes_does_not_know_would_be_found() -> None:
    broken = json.loads(json.dumps(the("default", "Deployment")))
    broken["spec"]["template"]["spec"]["containers"][0]["readynessProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, KUBERNETES[1], strict=True)


@pytest.mark.parametrize("name", NAMES)
def test_custom_resources_have_the_form_that_their_operators_take(name: str) -> None:
    for document in rendered(name):
        if document["kind"] in CUSTOM:
            assert set(document) == {"apiVersion", "kind", "metadata", "spec"}
            jsonschema.validate(document["spec"], CUSTOM[document["kind"]])


def test_the_example_with_everything_shows_every_template() -> None:
    shown = set().union(*(kinds(name) for name in NAMES))
    templates = "".join(path.read_text() for path in (CHART / "templates").rglob("*.yaml"))
    assert shown == set(re.findall(r"^kind: (\w+)$", templates, re.MULTILINE))
    assert {each["metadata"]["name"].rsplit("-", 1)[1] for each in all_of("everything", "ConfigMap")} == {
        "appconfig", "kafka", "contracts", "support", "dashboard",
    }  # fmt: skip
    assert shown - kinds("everything") == {"HorizontalPodAutoscaler"}  # KEDA makes its own


def test_a_packaged_chart_renders_the_same(tmp_path: Path) -> None:
    ran = run_helm("package", str(CHART), "--destination", str(tmp_path))
    assert ran.returncode == 0, ran.stderr
    (package,) = tmp_path.glob("*.tgz")
    assert rendered("everything", chart=str(package)) == rendered("everything")


def test_names_are_those_of_an_xapp_on_the_platform() -> None:
    assert the("near-rt-ric", "Deployment")["metadata"]["name"] == "ricxapp-wirelessops"
    assert the("near-rt-ric", "Service")["metadata"]["name"] == "service-ricxapp-wirelessops-http"
    assert the("near-rt-ric", "ConfigMap")["metadata"]["name"] == "configmap-ricxapp-wirelessops-appconfig"
    mounts = {mount["name"]: mount for mount in guard("near-rt-ric")["volumeMounts"]}
    assert mounts["config-volume"]["mountPath"] == "/opt/ric/config"
    labels = the("near-rt-ric", "Deployment")["metadata"]["labels"]
    assert (labels["app"], labels["release"]) == ("ricxapp-wirelessops", "wirelessops")
    services = {each["metadata"]["name"] for each in all_of("everything", "Service")}
    assert services == {"service-ricxapp-guard-of-everything-http", "service-ricxapp-guard-of-everything-rmr"}


@pytest.mark.parametrize("name", [name for name in NAMES if name != "everything"])
def test_rmr_and_the_database_are_off_unless_asked_for(name: str) -> None:
    assert not any("rmr" in each["metadata"]["name"] for each in rendered(name))
    assert "envFrom" not in guard(name)
    assert not any("rmr" in port["name"] for port in descriptor(name)["messaging"]["ports"])


@pytest.mark.parametrize("name", NAMES)
def test_all_selectors_find_the_guards_and_nothing_else_of_the_release(name: str) -> None:
    workload, test = (pod["metadata"]["labels"] for pod in pods(name))
    service, *_ = all_of(name, "Service")
    selectors = [
        (the(name, "Deployment")["spec"]["selector"]["matchLabels"], workload),
        *((each["spec"]["selector"], workload) for each in all_of(name, "Service")),
        *((each["spec"]["selector"]["matchLabels"], workload) for each in all_of(name, "PodDisruptionBudget")),
        *((each["spec"]["podSelector"]["matchLabels"], workload) for each in all_of(name, "NetworkPolicy")),
        *((each["spec"]["selector"]["matchLabels"], service["metadata"]["labels"])
          for each in all_of(name, "ServiceMonitor")),
        *((each["labelSelector"]["matchLabels"], workload)
          for each in the(name, "Deployment")["spec"]["template"]["spec"]["topologySpreadConstraints"]),
    ]  # fmt: skip
    for selector, labels in selectors:
        assert selector.items() <= labels.items()
        assert not selector.items() <= test.items()
    for kind in ("HorizontalPodAutoscaler", "ScaledObject"):
        for each in all_of(name, kind):
            target = each["spec"]["scaleTargetRef"]
            assert (target["kind"], target["name"]) == ("Deployment", the(name, "Deployment")["metadata"]["name"])


def test_a_service_monitor_finds_one_service_and_not_that_of_rmr() -> None:
    selector = the("everything", "ServiceMonitor")["spec"]["selector"]["matchLabels"]
    found = [each for each in all_of("everything", "Service") if selector.items() <= each["metadata"]["labels"].items()]
    assert [each["metadata"]["name"] for each in found] == ["service-ricxapp-guard-of-everything-http"]


def test_what_other_tools_select_by_wins_over_a_label_of_the_chart() -> None:
    """`release` is what kube-prometheus-stack selects by."""
    chosen = {"ServiceMonitor": "serviceMonitor", "PrometheusRule": "prometheusRule", "ConfigMap": "grafanaDashboard"}
    options = [word for value in chosen.values() for word in ("--set", f"{value}.labels.release=monitoring")]
    for kind in chosen:
        *_, found = (
            each["metadata"]["labels"] for each in all_of("everything", kind, *options)
            if kind != "ConfigMap" or each["metadata"]["name"].endswith("-dashboard")
        )  # fmt: skip
        assert found["release"] == "monitoring"
        assert found["app"] == "ricxapp-guard-of-everything"
    assert the("everything", "Deployment", *options)["metadata"]["labels"]["release"] == "wirelessops"


class _EachKeyOnce(yaml.SafeLoader):
    """Refuses a mapping that has a key twice, of which tools take one or the other."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        assert len(set(keys)) == len(keys), f"{node.start_mark}: {sorted(keys)}"
        return super().construct_mapping(node, deep)


def test_no_member_is_written_twice_whatever_labels_are_given() -> None:
    objects = ("serviceMonitor.labels", "prometheusRule.labels", "grafanaDashboard.labels", "podLabels")
    options = [word for value in objects for word in ("--set", f"{value}.heritage=mine")]
    values = ("--values", str(CHART / "examples" / "everything.yaml"))
    ran = run_helm("template", "wirelessops", str(CHART), *values, *options)
    assert ran.returncode == 0, ran.stderr
    assert len(list(yaml.load_all(ran.stdout, _EachKeyOnce))) > 10


@pytest.mark.parametrize("name", NAMES)
def test_probes_services_and_monitors_name_ports_that_exist(name: str) -> None:
    containers = the(name, "Deployment")["spec"]["template"]["spec"]["containers"]
    opened = {port["name"]: port["containerPort"] for each in containers for port in each.get("ports", ())}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert guard(name)[probe]["httpGet"]["port"] == "http"
    assert guard(name)["readinessProbe"]["httpGet"]["path"] == "/ric/v1/health/ready"
    assert guard(name)["livenessProbe"]["httpGet"]["path"] == "/ric/v1/health/alive"
    for service in all_of(name, "Service"):
        for port in service["spec"]["ports"]:
            assert port["targetPort"] in {*opened, *opened.values()}
    for monitor in all_of(name, "ServiceMonitor"):
        (endpoint,) = monitor["spec"]["endpoints"]
        assert endpoint["port"] in {port["name"] for port in all_of(name, "Service")[0]["spec"]["ports"]}
        assert endpoint["path"] == "/ric/v1/metrics"


@pytest.mark.parametrize("name", NAMES)
def test_no_container_has_more_rights_than_the_guard_needs(name: str) -> None:
    for pod in pods(name):
        spec = pod["spec"]
        assert spec["automountServiceAccountToken"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["runAsUser"] == spec["securityContext"]["fsGroup"] == 10001
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
        for container in spec["containers"]:
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"] is True
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert not context.get("privileged")
            assert container["resources"]["requests"].keys() == {"cpu", "memory"}
            assert "memory" in container["resources"]["limits"]
        for volume in spec.get("volumes", ()):
            assert volume.keys() - {"name"} <= {"configMap", "emptyDir", "projected", "secret"}
    assert the(name, "ServiceAccount")["automountServiceAccountToken"] is False


@pytest.mark.parametrize("name", NAMES)
def test_only_scratch_is_writable_and_every_mount_has_its_volume(name: str) -> None:
    spec = the(name, "Deployment")["spec"]["template"]["spec"]
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    mounts = {mount["name"]: mount for mount in guard(name)["volumeMounts"]}
    assert mounts.keys() == volumes.keys()
    assert [mount["mountPath"] for mount in mounts.values() if not mount.get("readOnly")] == ["/tmp"]
    assert "emptyDir" in volumes["scratch"]


@pytest.mark.parametrize("name", NAMES)
def test_secrets_are_named_and_never_held(name: str) -> None:
    assert "Secret" not in kinds(name)
    text = json.dumps(rendered(name))
    assert "PRIVATE KEY" not in text
    assert not [each["name"] for each in guard(name)["env"] if "secretKeyRef" in each.get("valueFrom", {})]
    assert not [word for word in guard(name)["args"] if re.search(r"password|token|key", word)]


@pytest.mark.parametrize("name", NAMES)
def test_whatever_configuration_a_pod_names_is_made_here_or_named_in_the_values(name: str) -> None:
    spec = the(name, "Deployment")["spec"]["template"]["spec"]
    named = set()
    for volume in spec["volumes"]:
        sources = [volume, *volume.get("projected", {}).get("sources", ())]
        named |= {source["configMap"]["name"] for source in sources if "configMap" in source}
    made = {each["metadata"]["name"] for each in all_of(name, "ConfigMap")}
    mounted = {each for each in made if not each.endswith("-dashboard")}
    assert mounted <= named
    outside = named - made
    values = "" if name == "default" else (CHART / "examples" / f"{name}.yaml").read_text()
    assert all(each in values for each in outside)


def test_files_of_secrets_can_be_read_by_the_guards_group_alone() -> None:
    volumes = the("everything", "Deployment")["spec"]["template"]["spec"]["volumes"]
    modes = {each["name"]: (each.get("secret") or each.get("projected") or {}).get("defaultMode") for each in volumes}
    assert (modes["kafka"], modes["operators"], modes["signing"]) == (0o440, 0o440, 0o440)


def test_the_guard_takes_the_signing_key_as_kubernetes_mounts_it(tmp_path: Path) -> None:
    """Owner root, the group of `fsGroup`, and the volume's mode: taken by a user that is of that group."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another owner and group")
    template = the("secured-kafka", "Deployment")["spec"]["template"]["spec"]
    (secret,) = (each["secret"] for each in template["volumes"] if each["name"] == "signing")
    (mount,) = (each for each in guard("secured-kafka")["volumeMounts"] if each["name"] == "signing")
    path = Path(descriptor("secured-kafka")["controls"]["signing_key"])
    assert (str(path.parent), path.name) == (mount["mountPath"], secret["items"][0]["path"])
    context = template["securityContext"]
    key = tmp_path / path.name
    write_new(key)
    os.chown(key, 0, context["fsGroup"])
    key.chmod(secret["defaultMode"])
    assert who_else(key.stat(), context["runAsUser"], {context["runAsGroup"], context["fsGroup"]}) is None


def run_cli(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from streams.cli import main; main()", *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)


@functools.cache
def options_of(command: str) -> frozenset[str]:
    return frozenset(re.findall(r"--[a-z][a-z-]+", run_cli(command, "--help").stdout))


@pytest.mark.parametrize("name", NAMES)
def test_the_command_line_knows_every_option_that_the_container_gives(name: str) -> None:
    (program,), (command, *options) = guard(name)["command"], guard(name)["args"]
    assert (program, command) == ("wirelessops", "run")
    assert {option.split("=")[0] for option in options} <= options_of("run")


@pytest.mark.parametrize("name", NAMES)
def test_the_descriptor_holds_settings_that_the_guard_takes(name: str) -> None:
    data = config_map(name, "appconfig")["config-file.json"].encode()
    read = read_descriptor(data, Path("/opt/ric/config/config-file.json"))
    controls = {control: value for control, value in read.controls.items() if control != "kafka_config"}
    settings = GuardSettings.of(**controls)
    values = values_of(name)
    assert settings.bootstrap_servers == values["kafka"]["bootstrapServers"]
    assert settings.topics == topics(values["kafka"]["topicPrefix"])
    assert settings.web_port == guard(name)["ports"][0]["containerPort"]
    assert {control: getattr(settings, control) for control in values["controls"]} == values["controls"]
    assert the(name, "Deployment")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] > (
        settings.stop_timeout_s + 1
    )
    paths = [settings.contracts_dir, settings.operator_tokens, settings.signing_key, *settings.trusted_keys]
    paths.append(settings.support_dir)
    paths.append(read.controls.get("kafka_config"))
    mounted = [mount["mountPath"] for mount in guard(name)["volumeMounts"]]
    for path in paths:
        assert path is None or any(str(path) == each or str(path.parent) == each for each in mounted), path


@pytest.mark.parametrize("name", NAMES)
def test_the_descriptor_is_one_that_the_onboarder_takes(name: str) -> None:
    document = descriptor(name)
    schema = json.loads((ROOT / "deploy" / "xapp" / "schema.json").read_text())
    jsonschema.Draft7Validator(schema).validate(document["controls"])
    (container,) = document["containers"]
    assert container["image"]["name"] in guard(name)["image"]
    assert container["name"] == guard(name)["name"]
    assert container["command"] == guard(name)["command"]
    assert [*container["args"], "--guard-name=$(POD_NAME)"] == guard(name)["args"]
    (port,) = (each["port"] for each in document["messaging"]["ports"] if each["name"] == "http")
    assert port == guard(name)["ports"][0]["containerPort"]
    assert document["xapp_name"] == the(name, "Deployment")["metadata"]["name"].removeprefix("ricxapp-")


SHARED = {
    "files/config-file.json": "deploy/xapp/config-file.json",
    "files/alerts.yaml": "deploy/prometheus/alerts.yaml",
    "files/dashboard.json": "deploy/grafana/dashboard.json",
}


@pytest.mark.parametrize("copy", SHARED)
def test_what_the_chart_shares_with_deploy_is_the_same(copy: str) -> None:
    """A chart reads only files inside it, and tools that take one from git refuse links that lead out of it."""
    source = ROOT / SHARED[copy]
    assert (CHART / copy).read_bytes() == source.read_bytes(), f"run: cp {SHARED[copy]} helm/wirelessops/{copy}"


def test_rules_and_dashboard_arrive_as_they_are_written() -> None:
    rules = yaml.safe_load((CHART / "files/alerts.yaml").read_text())
    assert the("everything", "PrometheusRule")["spec"] == rules
    (text,) = config_map("everything", "dashboard").values()
    assert json.loads(text) == json.loads((CHART / "files/dashboard.json").read_text())


def arguments(folder: Path, *options: str) -> list[str]:
    """How the chart starts a guard, with its descriptor written to a folder here."""
    (folder / "config-file.json").write_text(config_map("minimal", "appconfig", *options)["config-file.json"])
    pod = "ricxapp-wirelessops-5c9f8d7b6-x2x4z"
    return [
        word.replace("/opt/ric/config", str(folder)).replace("$(POD_NAME)", pod)
        for word in guard("minimal", *options)["args"]
    ]


def test_a_guard_started_as_the_chart_starts_it_does_not_fall_back_on_another_kafka(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"  # bound and not listening: nobody answers there
        wired = {
            "kafka.bootstrapServers": address,
            "web.port": KafkaCluster.free_port(),
            "controls.connect_timeout_s": 1,
        }
        options = [word for name, value in wired.items() for word in ("--set", f"{name}={value}")]
        ran = run_cli(*arguments(tmp_path, *options))
    assert ran.returncode == 2, ran.stderr
    assert address in ran.stderr


def test_a_guard_started_as_the_chart_starts_it_passes_the_test_of_the_release(
    kafka: RealKafka, tmp_path: Path
) -> None:
    port = KafkaCluster.free_port()
    wired = {"kafka.bootstrapServers": kafka.bootstrap_servers, "kafka.topicPrefix": kafka.prefix}
    wired |= {"web.host": "127.0.0.1", "web.port": port, "kafka.partitions": 2}
    options = [word for name, value in wired.items() for word in ("--set", f"{name}={value}")]
    (script,) = the("minimal", "Pod", *options)["spec"]["containers"][0]["args"]
    here = script.replace("service-ricxapp-wirelessops-http", "127.0.0.1")
    command = [sys.executable, "-c", "from streams.cli import main; main()", *arguments(tmp_path, *options)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, text=True) as process:
        try:
            asked = subprocess.run([sys.executable, "-c", here], capture_output=True, timeout=60, check=False)
            (endpoint,) = the("everything", "ServiceMonitor")["spec"]["endpoints"]
            with urlopen(f"http://127.0.0.1:{port}{endpoint['path']}", timeout=5) as reply:
                metrics = reply.read().decode()
        finally:
            process.terminate()
        out, err = process.communicate(timeout=30)
    assert asked.returncode == 0, err
    assert re.search(r"^ricxapp_wirelessops_ready(\{.*\})? 1\.0$", metrics, re.MULTILINE)
    assert out.startswith(f"ready: Kafka at {kafka.bootstrap_servers}, topics {kafka.prefix}*")
    assert process.returncode == 0


def test_the_guard_reads_what_the_chart_writes_of_kafka(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    new = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=guard", "-days", "1"]
    subprocess.run([*new, "-keyout", "tls.key", "-out", "tls.crt"], check=True, capture_output=True, cwd=tmp_path)
    volumes = the("everything", "Deployment")["spec"]["template"]["spec"]["volumes"]
    (volume,) = (each["projected"] for each in volumes if each["name"] == "kafka")
    paths = {item["path"] for source in volume["sources"] for item in source.get("secret", {}).get("items", ())}
    assert paths == {"password", "ca.crt", "tls.crt", "tls.key"}
    shutil.copy(tmp_path / "tls.crt", tmp_path / "ca.crt")
    (tmp_path / "password").write_text("of the secret\n")
    (tmp_path / "kafka.properties").write_text(config_map("everything", "kafka")["kafka.properties"])
    security = kafka_security(tmp_path / "kafka.properties")
    assert security.librdkafka_options() == {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(tmp_path / "ca.crt"),
        "ssl.certificate.location": str(tmp_path / "tls.crt"),
        "ssl.key.location": str(tmp_path / "tls.key"),
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": "guard",
        "sasl.password": "of the secret",
    }


@pytest.mark.parametrize("name", ["shadow-rollout", "everything"])
def test_the_guard_loads_the_contracts_of_the_values(name: str, tmp_path: Path) -> None:
    for file, text in config_map(name, "contracts").items():
        (tmp_path / file).write_text(text)
    assert load_contracts(tmp_path).keys() - load_contracts(None).keys() == {"prb-quota/1"}


def test_the_guard_loads_the_support_terms_of_the_values_and_takes_maps_up_without_a_new_pod(tmp_path: Path) -> None:
    for folder in ("contracts", "support"):
        (tmp_path / folder).mkdir()
        for file, text in config_map("everything", folder).items():
            (tmp_path / folder / file).write_text(text)
    assert dict(load_support(tmp_path / "support", load_contracts(tmp_path / "contracts")).newest) == {
        "prb-quota/1": None
    }

    def pod(*options: str) -> Any:
        return the("everything", "Deployment", *options)["spec"]["template"]

    assert pod() == pod("--set", r"support.maps.north\.json=\{\}")
    assert pod() != pod("--set", r"support.terms.prb-quota\.yaml=other")


def test_the_names_and_ranges_of_controls_are_those_of_the_guard() -> None:
    theirs = GuardSettings.model_json_schema()["properties"]
    ours = json.loads((CHART / "values.schema.json").read_text())["properties"]["controls"]["properties"]
    told = re.findall(r"^#   (\w+: \S+)", (CHART / "values.yaml").read_text(), re.MULTILINE)
    comments = yaml.safe_load("\n".join(told))
    assert comments.keys() == ours.keys()
    for control, schema in ours.items():
        assert schema == {key: value for key, value in theirs[control].items() if key not in {"title", "default"}}
        assert comments[control] == theirs[control]["default"]


@pytest.mark.parametrize("name", NAMES)
def test_one_thing_alone_says_how_many_guards_there_are(name: str) -> None:
    said = [kind for kind in ("HorizontalPodAutoscaler", "ScaledObject") if kind in kinds(name)]
    assert len(said) <= 1
    assert ("replicas" in the(name, "Deployment")["spec"]) == (not said)


@pytest.mark.parametrize("name", ["autoscaled-keda", "everything"])
def test_keda_looks_at_the_lag_of_the_guards_group(name: str) -> None:
    (trigger,) = the(name, "ScaledObject")["spec"]["triggers"]
    controls = descriptor(name)["controls"]
    assert trigger["metadata"]["topic"] == topics(controls["prefix"]).proposals
    assert trigger["metadata"]["consumerGroup"] == f"{controls['prefix']}guard"
    assert trigger["metadata"]["bootstrapServers"] == controls["bootstrap_servers"]
    assert the(name, "ScaledObject")["spec"]["maxReplicaCount"] <= controls["partitions"]


@pytest.mark.parametrize("name", NAMES)
def test_a_disruption_budget_lets_a_node_be_drained(name: str) -> None:
    assert the(name, "PodDisruptionBudget")["spec"]["maxUnavailable"] not in (0, "0%")


def ports(rule: Object) -> set[tuple[str, int]]:
    return {(port["protocol"], port["port"]) for port in rule["ports"]}


@pytest.mark.parametrize("name", NAMES)
def test_the_network_policy_lets_out_what_the_guard_needs_and_no_more(name: str) -> None:
    controls, values = descriptor(name)["controls"], values_of(name)
    brokers = {int(each.rsplit(":", 1)[1]) for each in controls["bootstrap_servers"].split(",")}
    brokers |= set(values["networkPolicy"]["egress"]["kafkaExtraPorts"])
    dns, kafka, *others = the(name, "NetworkPolicy")["spec"]["egress"]
    resolvers = values["networkPolicy"]["egress"]["dnsPorts"]
    assert ports(dns) == {(protocol, port) for protocol in ("UDP", "TCP") for port in resolvers}
    assert ports(kafka) == {("TCP", port) for port in brokers}
    urls = [controls.get("alarm_url"), *(each["value"] for each in guard(name)["env"] if "ENDPOINT" in each["name"])]
    needed = [{("TCP", urlsplit(url).port)} for url in urls if url]
    extra = [ports(rule) for rule in values["networkPolicy"]["egress"]["extra"]]
    assert [ports(rule) for rule in others] == needed + extra


@pytest.mark.parametrize("name", NAMES)
def test_the_network_policy_lets_in_only_who_is_named(name: str) -> None:
    spec = the(name, "NetworkPolicy")["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    http, *rmr = spec["ingress"]
    assert ports(http) == {("TCP", guard(name)["ports"][0]["containerPort"])}
    test, *named = http["from"]
    assert test["podSelector"]["matchLabels"].items() <= the(name, "Pod")["metadata"]["labels"].items()
    assert named == values_of(name)["networkPolicy"]["httpFrom"]
    assert [rule["from"] for rule in rmr] == ([values_of(name)["networkPolicy"]["rmrFrom"]] if rmr else [])
    assert all(rule["from"] for rule in spec["ingress"]), "an empty list of peers is everybody"


@pytest.mark.parametrize(
    ("url", "port"), [("http://alarms/ric/v1/alarms", 80), ("https://alarms/x:1", 443), ("https://alarms:9443", 9443)]
)
def test_the_port_of_a_url_is_let_out_also_where_it_is_not_written(url: str, port: int) -> None:
    *_, alarms = the("default", "NetworkPolicy", "--set", f"alarms.url={url}")["spec"]["egress"]
    assert ports(alarms) == {("TCP", port)}


RELEASES = [("wirelessops", "wirelessops-2"), ("north", "south"), ("a", "wirelessops")]


@pytest.mark.parametrize(("first", "second"), RELEASES)
def test_two_releases_in_one_namespace_do_not_touch_each_other(first: str, second: str) -> None:
    here, there = rendered("secured-kafka", first), rendered("secured-kafka", second)
    names = [{(each["kind"], each["metadata"]["name"]) for each in release} for release in (here, there)]
    assert not names[0] & names[1]
    selectors = [each["spec"]["selector"]["matchLabels"] for each in here if each["kind"] == "Deployment"]
    labels = [each["spec"]["template"]["metadata"]["labels"] for each in there if each["kind"] == "Deployment"]
    assert not selectors[0].items() <= labels[0].items()


def test_a_changed_configuration_is_a_new_pod_and_an_unchanged_one_is_not() -> None:
    def pod(*options: str) -> Any:
        return the("shadow-rollout", "Deployment", *options)["spec"]["template"]

    assert pod() == pod("--set", "replicas=2")
    changes = ("controls.hold_ms=1000", "kafka.replication=3", r"contracts.files.prb-quota\.yaml=other")
    for change in changes:
        assert pod()["metadata"]["annotations"] != pod("--set", change)["metadata"]["annotations"], change


def test_a_test_of_the_release_passes_when_the_guards_are_ready_and_not_before() -> None:
    (container,) = the("default", "Pod", "--set", "tests.attempts=2")["spec"]["containers"]
    (script,) = container["args"]
    asked: list[str] = []

    class Guard(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(503 if len(asked) == 1 else 200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Guard) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        here = script.replace("service-ricxapp-wirelessops-http:8080", f"127.0.0.1:{server.server_port}")
        here = here.replace("time.sleep(2)", "time.sleep(0)")
        ran = subprocess.run([sys.executable, "-c", here], capture_output=True, timeout=30, check=False)
        server.shutdown()
    assert ran.returncode == 0, ran.stderr
    assert asked == ["/ric/v1/health/ready"] * 2
    once = here.replace("range(2)", "range(1)")  # nobody listens any more
    ran = subprocess.run([sys.executable, "-c", once], capture_output=True, timeout=30, check=False)
    assert (ran.returncode, ran.stderr.decode().strip()) == (1, "not ready")


def test_notes_name_commands_that_exist() -> None:
    values = str(CHART / "examples" / "secured-kafka.yaml")
    ran = run_helm("install", "wirelessops", str(CHART), "-n", "ricxapp", "-f", values, "--dry-run=client")
    assert ran.returncode == 0, ran.stderr
    notes = ran.stdout.split("NOTES:")[1]
    assert "service/service-ricxapp-wirelessops-http 8080:8080" in notes
    (line,) = re.findall(r"-- wirelessops (switch hold .*)", notes.replace("\\\n", ""))
    words = shlex.split(line)
    assert {word for word in words if word.startswith("--")} <= options_of("switch")
    assert words[words.index("--kafka-config") + 1] == "/etc/wirelessops/kafka/kafka.properties"


WRONG = [
    ({"replica": 2}, "replica"),
    ({"replicas": 0}, "/replicas"),
    ({"replicas": "2"}, "/replicas"),
    ({"replicas": 5}, "replicas: 5, but kafka.partitions is 4"),
    ({"user": 0}, "/user"),
    ({"securityContext": {"privileged": True}}, "securityContext"),
    ({"kafka": {"bootstrapServers": "kafka"}}, "/kafka/bootstrapServers"),
    ({"kafka": {"bootstrapServers": "https://kafka:9092"}}, "/kafka/bootstrapServers"),
    ({"kafka": {"bootstrapServer": "kafka:9092"}}, "bootstrapServer"),
    ({"kafka": {"topicPrefix": "north/"}}, "/kafka/topicPrefix"),
    ({"kafka": {"security": "TLS"}}, "/kafka/security"),
    ({"kafka": {"sasl": {"password": "hunter2"}}}, "/kafka/sasl"),
    ({"kafka": {"security": "SASL_SSL"}}, "kafka.sasl.username: needed with kafka.security SASL_SSL"),
    ({"kafka": {"security": "SASL_SSL", "sasl": {"username": "guard"}}}, "kafka.sasl.existingSecret: needed"),
    ({"kafka": {"security": "SSL", "sasl": {"username": "guard"}}}, "kafka.sasl: would be ignored"),
    ({"kafka": {"tls": {"caSecret": "ca"}}}, "kafka.tls: would be ignored"),
    ({"controls": {"hold_ms": -1}}, "/controls/hold_ms"),
    ({"controls": {"hold_msec": 1}}, "hold_msec"),
    ({"controls": {"bootstrap_servers": "kafka:9092"}}, "bootstrap_servers"),
    ({"controls": {"stop_timeout_s": 26}}, "terminationGracePeriodSeconds: 30"),
    ({"controls": {"shipped_contracts": False}}, "controls.shipped_contracts: false leaves no contract"),
    ({"contracts": {"files": {"../x.yaml": "a"}}}, "/contracts/files"),
    ({"support": {"maps": {"m.json": "{}"}}}, "support.maps: a map needs its terms"),
    ({"support": {"terms": {"a.json": "{}"}, "maps": {"a.json": "{}"}}}, "support: a.json stands in terms and in maps"),
    ({"support": {"maps": {"m.yaml": "{}"}}}, "/support/maps"),
    ({"signing": {"key": "-----BEGIN PRIVATE KEY-----"}}, "/signing/key"),
    ({"signing": {"unsigned": True, "existingSecret": "a"}}, "signing.unsigned: not with"),
    ({"signing": {"trustedKeysConfigMap": "a"}}, "signing.existingSecret: needed"),
    ({"alarms": {"url": "alarmmanager:8080"}}, "/alarms/url"),
    ({"web": {"port": 80}}, "/web/port"),
    ({"xappName": "Wireless Ops"}, "/xappName"),
    ({"xappName": "a" * 40, "image": {"tag": "x y"}}, "/image/tag"),
    ({"autoscaling": {"mode": "both"}}, "/autoscaling/mode"),
    ({"autoscaling": {"mode": "hpa", "minReplicas": 0}}, "/autoscaling/minReplicas"),
    ({"autoscaling": {"mode": "hpa", "maxReplicas": 9}}, "autoscaling.maxReplicas: 9, but kafka.partitions is 4"),
    ({"autoscaling": {"mode": "hpa", "minReplicas": 3, "maxReplicas": 2}}, "autoscaling.minReplicas: 3 is above"),
    ({"autoscaling": {"mode": "hpa"}, "resources": {"requests": {"cpu": None}}}, "resources.requests.cpu: needed"),
    ({"autoscaling": {"mode": "keda"}, "kafka": {"security": "SSL"}}, "keda.authenticationRef.name: needed"),
    ({"podDisruptionBudget": {"maxUnavailable": 0}}, "/podDisruptionBudget/maxUnavailable"),
    ({"strategy": {"maxUnavailable": 0}}, "strategy: maxSurge and maxUnavailable"),
    ({"podLabels": {"app": "other"}}, "/podLabels"),
    ({"extraEnv": [{"name": "WIRELESSOPS_SIGNING_KEY", "value": "x"}]}, "/extraEnv/0/name"),
    ({"extraContainers": [{"name": "a", "image": "b"}]}, "/extraContainers/0"),
    ({"extraContainers": [{"name": "a", "image": "b", "securityContext": {"privileged": True}}]}, "/extraContainers/0"),
    ({"networkPolicy": {"httpFrom": [{}]}}, "/networkPolicy/httpFrom/0"),
    ({"networkPolicy": {"httpFrom": [{"pods": {}}]}}, "/networkPolicy/httpFrom/0"),
]  # fmt: skip


@pytest.mark.parametrize(("values", "place"), WRONG, ids=[json.dumps(values)[:60] for values, _ in WRONG])
def test_wrong_values_are_refused_by_their_place(values: dict[str, Any], place: str, tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(values))
    ran = run_helm("template", "wirelessops", str(CHART), "-n", "ricxapp", "-f", str(tmp_path / "values.yaml"))
    assert ran.returncode != 0
    assert place in ran.stderr


def test_a_name_too_long_for_a_service_is_refused_instead_of_cut() -> None:
    ran = run_helm("template", "wirelessops", str(CHART), "-n", "n" * 40)
    assert ran.returncode != 0
    assert "xappName" in ran.stderr


def test_the_schema_knows_each_value_and_no_other() -> None:
    def compare(values: Mapping[str, Any], schema: Mapping[str, Any], place: str) -> None:
        if "properties" not in schema or place == "controls":
            return
        assert values.keys() == schema["properties"].keys() - {"global"}, place
        assert schema["additionalProperties"] is False, place
        for key, value in values.items():
            if isinstance(value, dict):
                compare(value, schema["properties"][key], key)

    schema = json.loads((CHART / "values.schema.json").read_text())
    compare(yaml.safe_load((CHART / "values.yaml").read_text()), schema, "values")


DOCUMENT = (ROOT / "docs" / "helm.md").read_text()
COMMANDS = [
    line
    for block in re.findall(r"```sh\n(.*?)```", DOCUMENT, re.DOTALL)
    for line in block.splitlines()
    if line and not line.startswith(("make ", "docker "))
]


@pytest.mark.parametrize("line", COMMANDS)
def test_each_command_of_the_document_runs(line: str) -> None:
    command, verb, *words = shlex.split(line)
    assert command == "helm"
    if verb == "test":  # asks a cluster; what it does there is tested above
        assert words == ["wirelessops"]
        return
    words = [str(ROOT / word) if (ROOT / word).exists() else word for word in words]
    ran = run_helm(verb, *words, *(["--dry-run=client"] if verb == "install" else []))
    assert ran.returncode == 0, ran.stderr


def test_the_document_names_every_example() -> None:
    assert set(re.findall(r"examples/([\w-]+)\.yaml\) \|", DOCUMENT)) == set(NAMES) - {"default"}


def test_the_message_that_the_document_shows_is_the_one_that_comes() -> None:
    ran = run_helm("template", "wirelessops", str(CHART), "--set", "kafka.bootstrapServer=kafka:9092")
    (shown,) = re.findall(r"```\n(Error: .*?)```", DOCUMENT, re.DOTALL)
    assert shown in ran.stderr
