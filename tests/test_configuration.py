"""Configuration: what wins, what may change of a running guard, and that a fault changes nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, web
from guard_rig import guarded, proposal, report

from streams import configuration as module
from streams.commands.run import _settings
from streams.configuration import ChangeRefused, Configuration
from streams.descriptor import Descriptor, read_descriptor
from streams.settings import GuardSettings
from streams.settings_errors import SettingsError
from streams.tuning import LIVE, LiveTuning, Tuning
from streams.web.config import PATH, config_routes

FOLDER = Path("/opt/ric/config")
FILE = FOLDER / "config-file.json"


def descriptor(**controls: Any) -> bytes:
    return json.dumps({"xapp_name": "guard-of-north", "version": "1.2.3", "controls": controls}).encode()


# Reading the descriptor.


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"{", ["$: no JSON"]),
        (b"\xff", ["$: no JSON"]),
        (b"[]", ["$: an object"]),
        (b"[" * 100_000, ["$: no JSON"]),
        (b'{"xapp_name": 7}', ["$.xapp_name: "]),
        (b'{"controls": []}', ["$.controls: "]),
        (b'{"controls": {"hold_ms": 1, "hold_ms": 2}}', ["'hold_ms' stands there twice"]),
        (b'{"controls": {"retry_budget_per_s": NaN}}', ["NaN is no JSON"]),
        (b'{"controls": {"retry_budget_per_s": 1e999}}', ["$.controls.retry_budget_per_s: "]),
        (descriptor(hold_ms="2000"), ["$.controls.hold_ms: "]),
        (descriptor(hold_ms=2000.5), ["$.controls.hold_ms: "]),
        (descriptor(hold_ms=True), ["$.controls.hold_ms: "]),
        (descriptor(hold_ms=-1, holdms=5), ["$.controls.hold_ms: ", "$.controls.holdms: there is no such control"]),
        (descriptor(contracts="c"), ["$.controls.contracts: there is no such control; is contracts_dir meant?"]),
        (descriptor(**{"hold-ms": 5}), ["$.controls.hold-ms: there is no such control; is hold_ms meant?"]),
        (descriptor(colour="red"), ["$.controls.colour: there is no such control"]),
        (descriptor(prefix="a b"), ["$.controls.prefix: "]),
        (descriptor(log_level="loud"), ["$.controls.log_level: "]),
        (descriptor(trusted_keys=["a.pem", 3]), ["$.controls.trusted_keys[1]: "]),
        (descriptor(alarm_url="alarms"), ["$.controls.alarm_url: "]),
        (descriptor(security={"sasl_password": "s3cret"}), ["$.controls.security: there is no such control"]),
        (descriptor(alone=True), ["$.controls.alone: there is no such control"]),
    ],
)
def test_every_fault_of_a_descriptor_is_told_with_file_and_json_path(data: bytes, said: list[str]) -> None:
    with pytest.raises(SettingsError) as refused:
        read_descriptor(data, FILE)
    lines = str(refused.value).splitlines()
    assert len(lines) == len(said)
    for line, part in zip(lines, said, strict=True):
        assert line.startswith(f"{FILE}: $")
        assert part in line
        assert "s3cret" not in line


def test_paths_in_a_descriptor_begin_at_its_folder() -> None:
    read = read_descriptor(
        descriptor(signing_key="guard.pem", trusted_keys=["a.pem", "/keys/b.pem"], contracts_dir="contracts"), FILE
    )
    assert read.controls == {
        "signing_key": FOLDER / "guard.pem",
        "trusted_keys": (FOLDER / "a.pem", Path("/keys/b.pem")),
        "contracts_dir": FOLDER / "contracts",
    }


def test_options_win_over_controls_and_controls_over_defaults() -> None:
    controls = read_descriptor(descriptor(bootstrap_servers="kafka:9092", hold_ms=7, queue_limit=8), FILE).controls
    with ExitStack() as stack:
        settings = _settings(controls, {"queue_limit": 9}, stack)
    assert (settings.bootstrap_servers, settings.hold_ms, settings.queue_limit) == ("kafka:9092", 7, 9)
    assert settings.history_ms == GuardSettings.model_fields["history_ms"].default


# A running guard's.


def configured(read: Descriptor | None = None, *options: str, path: Path | None = None) -> Configuration:
    controls = {} if read is None else dict(read.controls)
    settings = GuardSettings.of(**{"bootstrap_servers": "kafka:9092", **controls})
    return Configuration(settings, LiveTuning(Tuning.of(settings)), read, path, frozenset(options))


def in_force(configuration: Configuration) -> dict[str, Any]:
    (shown,) = configuration.document()
    controls: dict[str, Any] = shown["config"]["controls"]
    return controls


def changed(configuration: Configuration, **controls: Any) -> None:
    configuration.change(controls, "$", operator="alice", reason="because")


def test_the_live_settings_change_together() -> None:
    configuration = configured()
    asked = {"hold_ms": 1, "escalation_ms": 2, "queue_limit": 3, "log_level": "error"}
    assert set(asked) == set(LIVE)
    changed(configuration, **asked)
    assert asked.items() <= in_force(configuration).items()


@pytest.mark.parametrize(
    "fault",
    [{"queue_limit": 0}, {"log_level": "loud"}, {"nothing": 1}, {"partitions": 9}, {"prefix": "x."}, {"hold_ms": None}],
)
def test_one_fault_and_nothing_is_changed(fault: dict[str, Any]) -> None:
    configuration = configured()
    before = configuration.document()
    with pytest.raises(ChangeRefused, match=next(iter(fault))):
        changed(configuration, **{"escalation_ms": 5, **fault})
    assert configuration.document() == before


def test_every_other_control_is_refused_as_needing_a_restart() -> None:
    configuration = configured()
    shown = in_force(configuration)
    others = {"web_port": 8081, "guard_name": "guard-2", "prefix": "x.", "unsigned": True, "trusted_keys": ["x.pem"],
              "shipped_contracts": False}  # fmt: skip
    for name in shown.keys() - set(LIVE):
        value = shown[name]
        other = others.get(name, value + 1 if isinstance(value, int | float) else "http://x:1")
        with pytest.raises(ChangeRefused, match=rf"^\$\.{name}: needs a restart"):
            changed(configuration, **{name: other})


def test_what_was_read_can_be_written_back() -> None:
    configuration = configured(read_descriptor(descriptor(signing_key="guard.pem", alarm_url="http://u:p@h:1/a"), FILE))
    shown = in_force(configuration)
    changed(configuration, **shown)
    changed(configuration, **{**shown, "hold_ms": 77})
    assert in_force(configuration) == {**shown, "hold_ms": 77}


def test_a_descriptor_that_is_gone_for_one_look_is_no_fault() -> None:
    configuration = configured(read_descriptor(descriptor(), FILE), path=FILE)
    for _ in range(3):
        configuration.unreadable("No such file")
        assert configuration.refused is None
        configuration.look(descriptor())
    configuration.unreadable("No such file")
    configuration.unreadable("No such file")
    assert configuration.refused == "No such file"
    configuration.look(descriptor())
    configuration.look(descriptor())
    assert configuration.refused is None


def test_no_secret_is_shown() -> None:
    document = {"db": {"password": "s3cret"}, "controls": {"alarm_url": "http://user:s3cret@host:1/a"}}
    read = read_descriptor(json.dumps(document).encode(), FILE)
    secure = {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN"}
    secure |= {"sasl_username": "u", "sasl_password": "s3cret"}
    settings = GuardSettings.of(bootstrap_servers="k:1", security=secure, **read.controls)
    shown = json.dumps(Configuration(settings, LiveTuning(Tuning.of(settings)), read).document())
    assert "s3cret" not in shown
    assert "http://host:1/a" in shown


# A changed descriptor.


def seen(configuration: Configuration, content: bytes) -> None:
    configuration.look(content)
    configuration.look(content)


def test_a_changed_descriptor_reaches_what_is_live_and_names_what_needs_a_restart() -> None:
    configuration = configured(read_descriptor(descriptor(hold_ms=10), FILE), path=FILE)
    seen(configuration, descriptor(hold_ms=20, history_ms=1000))
    assert (in_force(configuration)["hold_ms"], configuration.restart_for) == (20, ("history_ms",))
    seen(configuration, descriptor())
    assert (in_force(configuration)["hold_ms"], configuration.restart_for) == (2_000, ())


def test_a_descriptor_with_a_fault_changes_nothing_until_it_has_none() -> None:
    configuration = configured(read_descriptor(descriptor(hold_ms=10), FILE), path=FILE)
    before = configuration.document()
    seen(configuration, descriptor(hold_ms=20, queue_limit="many"))
    assert configuration.document() == before
    assert configuration.refused is not None
    assert "$.controls.queue_limit" in configuration.refused
    seen(configuration, descriptor(hold_ms=20))
    assert (in_force(configuration)["hold_ms"], configuration.refused) == (20, None)


def test_a_descriptor_that_is_half_written_is_not_looked_at() -> None:
    configuration = configured(read_descriptor(descriptor(hold_ms=10), FILE), path=FILE)
    whole = descriptor(hold_ms=20)
    for size in (10, 20, 30):
        configuration.look(whole[:size])
    assert configuration.refused is None
    seen(configuration, whole)
    assert in_force(configuration)["hold_ms"] == 20


def test_what_the_command_line_gave_no_descriptor_changes() -> None:
    configuration = configured(read_descriptor(descriptor(hold_ms=10), FILE), "hold_ms", "history_ms", path=FILE)
    seen(configuration, descriptor(hold_ms=20, history_ms=5_000))
    assert (in_force(configuration)["hold_ms"], configuration.restart_for) == (10, ())


def test_what_an_operator_changed_stays_until_the_descriptor_says_something_new_of_it() -> None:
    configuration = configured(read_descriptor(descriptor(hold_ms=10), FILE), path=FILE)
    changed(configuration, hold_ms=15)
    seen(configuration, descriptor(hold_ms=10, queue_limit=5))
    assert (in_force(configuration)["hold_ms"], in_force(configuration)["queue_limit"]) == (15, 5)
    seen(configuration, descriptor(hold_ms=30, queue_limit=5))
    assert in_force(configuration)["hold_ms"] == 30


async def until(wanted: Callable[[], bool]) -> None:
    async with asyncio.timeout(8):
        while not wanted():  # noqa: ASYNC110 - of a file, which tells nobody
            await asyncio.sleep(0.01)


def mount(folder: Path, content: bytes | None) -> Path:
    """A ConfigMap as the kubelet mounts it: files are links into `..data`, which is a link that it swaps."""
    version = folder / f"..{len(list(folder.iterdir()))}"
    version.mkdir()
    if content is not None:
        (version / FILE.name).write_bytes(content)
    (folder / "..new").symlink_to(version.name)
    (folder / "..new").rename(folder / "..data")
    link = folder / FILE.name
    if not link.is_symlink():
        link.symlink_to(Path("..data") / FILE.name)
    return link


async def test_a_swapped_mount_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_S", 0.02)
    path = mount(tmp_path, descriptor(hold_ms=10))
    configuration = configured(read_descriptor(path.read_bytes(), path), path=path)
    watching = asyncio.create_task(configuration.watch())
    try:
        mount(tmp_path, descriptor(hold_ms=20))
        await until(lambda: in_force(configuration)["hold_ms"] == 20)
        mount(tmp_path, None)
        await until(lambda: configuration.refused is not None)
        mount(tmp_path, descriptor(hold_ms=20))
        await until(lambda: configuration.refused is None)
        assert in_force(configuration)["hold_ms"] == 20
        assert not watching.done()
    finally:
        watching.cancel()


async def test_a_proposal_waits_as_long_as_the_tuning_says_when_it_is_read() -> None:
    async with guarded(hold_ms=600_000) as (rig, guard):
        await rig.send("proposals", proposal("long"))
        assert not (await rig.decision("long"))["final"]
        guard.tuning.change(Tuning(hold_ms=0, escalation_ms=0, queue_limit=2_000, log_level="info"))
        await rig.send("proposals", proposal("short"))
        assert (await rig.decision("short"))["final"]
        await rig.send("telemetry", report("r", 5))
        await rig.wait_for("control", lambda d: d["proposal_id"] == "long" and d["final"])


# Over HTTP.


def by_token(request: web.Request) -> str | web.Response:
    operator = {"Bearer secret": "alice"}.get(request.headers.get("Authorization", ""))
    return web.json_response({"error": "who?"}, status=401) if operator is None else operator


@asynccontextmanager
async def served(configuration: Configuration) -> AsyncIterator[Callable[..., Any]]:
    application = web.Application()
    application.add_routes(config_routes(configuration, by_token))
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}{PATH}"
    async with ClientSession() as session:

        async def ask(method: str, document: Any = None, token: str | None = "secret") -> tuple[int, Any]:
            headers = {} if token is None else {"Authorization": f"Bearer {token}"}
            body = document if isinstance(document, bytes) else json.dumps(document).encode()
            async with session.request(method, url, data=body, headers=headers) as reply:
                return reply.status, await reply.json()

        yield ask
    await runner.cleanup()


def asked(**controls: Any) -> dict[str, Any]:
    return {"config": {"controls": controls}, "reason": "a busy night"}


async def test_a_change_over_http_needs_a_token_and_answers_with_what_is_in_force() -> None:
    configuration = configured(read_descriptor(descriptor(), FILE))
    async with served(configuration) as ask:
        for token in (None, "guessed"):
            assert (await ask("PUT", asked(hold_ms=5), token))[0] == 401
        status, shown = await ask("GET", token=None)
        assert (status, shown) == (200, configuration.document())
        (item,) = shown
        assert item["metadata"] == {"xappName": "guard-of-north", "configType": "json"}
        assert item["config"]["controls"]["hold_ms"] == 2_000
        item["config"]["controls"]["hold_ms"] = 5
        status, after = await ask("PUT", {**item, "reason": "a busy night"})
        assert (status, after) == (200, [item])
        assert await ask("GET", token=None) == (200, [item])


@pytest.mark.parametrize(
    ("status", "document"),
    [
        (400, b"{"),
        (400, []),
        (400, {"config": {"controls": {"hold_ms": 5}}}),
        (400, {**asked(hold_ms=5), "reason": "  "}),
        (400, {**asked(hold_ms=5), "operator": "bob"}),
        (400, {"config": {"controls": [5]}, "reason": "x"}),
        (422, {**asked(hold_ms=5), "metadata": {"xappName": "another"}}),
        (422, {"config": {"controls": {"hold_ms": 5}, "version": "9.9.9"}, "reason": "x"}),
        (422, asked(hold_ms=5, queue_limit=-1)),
        (422, asked(hold_ms=5, history_ms=1_000)),
        (422, asked(hold_ms=5, what=1)),
    ],
)
async def test_what_is_refused_over_http_changes_nothing_and_says_why(status: int, document: Any) -> None:
    configuration = configured(read_descriptor(descriptor(), FILE))
    before = configuration.document()
    async with served(configuration) as ask:
        got, said = await ask("PUT", document)
    assert (got, set(said)) == (status, {"error"})
    assert said["error"].startswith("$")
    assert configuration.document() == before
