"""The command line, and the composition root: each command wires what it needs, when it is called."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from streams.cli_optbench import optbench_app
from streams.cli_study import study_app
from streams.cli_support import support_app

app = typer.Typer(
    name="wirelessops",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Action assurance for radio networks: does the evidence under a proposed action still hold?",
)
contract_app = typer.Typer(no_args_is_help=True, help="Contracts.")
record_app = typer.Typer(help="Record topics to a file; export decision records.")
keys_app = typer.Typer(no_args_is_help=True, help="Signing keys, and operators' tokens.")
app.add_typer(contract_app, name="contract")
app.add_typer(keys_app, name="keys")
app.add_typer(record_app, name="record")
app.add_typer(optbench_app, name="optbench")
app.add_typer(study_app, name="study")
app.add_typer(support_app, name="support")

File = Annotated[str, typer.Argument(metavar="FILE", help="A file, or - for standard input.")]
Keys = Annotated[
    list[Path] | None, typer.Option("--keys", help="Public keys that are known: PEM files, or folders of *.pem.")
]
AllowUnsigned = Annotated[bool, typer.Option("--allow-unsigned", help="Take what nobody signed, too.")]
Bootstrap = Annotated[str | None, typer.Option("--bootstrap-servers", help="Kafka; none: the embedded broker.")]
KafkaConfig = Annotated[
    Path | None,
    typer.Option(
        "--kafka-config", help="How to reach Kafka: name=value a line, as security.protocol=SASL_SSL (docs/kafka.md)."
    ),
]
Prefix = Annotated[str, typer.Option(help="What the names of all topics begin with.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]


@app.command()
def assure(file: File, jsonl: Annotated[bool, typer.Option("--jsonl", help="One episode a line.")] = False) -> None:
    """Decide one episode: its decision as one JSON document. Exit 0 whatever the action, 2 for an invalid episode."""
    from streams.commands.assure import assure_file

    raise typer.Exit(assure_file(file, jsonl))


@app.command()
def view(file: File) -> None:
    """The normalised view of an episode: per field the value that would be admitted, its age, limit and violations."""
    from streams.commands.assure import view_file

    raise typer.Exit(view_file(file))


@app.command()
def verify(
    file: File,
    keys: Keys = None,
    allow_unsigned: AllowUnsigned = False,
    checkpoints: Annotated[str | None, typer.Option(help="A file of checkpoints kept apart from FILE.")] = None,
    from_index: Annotated[
        list[str] | None, typer.Option(metavar="[PARTITION:]N", help="Where the records must begin.")
    ] = None,
) -> None:
    """Decide again from the record alone; check signatures, and the chain of records, where the file has them.

    `faithful`, or exit 1 and what is wrong, by line. Exit 3: nothing is wrong, but signatures need --keys.
    """
    from streams.commands.verify import verify_file

    code = verify_file(
        file, keys=keys or (), allow_unsigned=allow_unsigned, checkpoints=checkpoints, from_index=from_index or ()
    )
    raise typer.Exit(code)


@app.command()
def explain(file: File) -> None:
    """Why a decision was taken: every row of the policy held against its record, the one taken, and the next one."""
    from streams.commands.explain import explain_file

    raise typer.Exit(explain_file(file))


@app.command("actuate-check")
def actuate_check(
    file: File,
    keys: Keys = None,
    allow_unsigned: AllowUnsigned = False,
    state: Annotated[Path | None, typer.Option(help="What was seen before; kept here for the next run.")] = None,
    now_ms: Annotated[int | None, typer.Option(help="Unix ms; none: the clock.")] = None,
) -> None:
    """May an actuator carry out these decisions, now? One verdict a line; exit 1 where one is refused."""
    from streams.commands.actuate import actuate_file

    raise typer.Exit(actuate_file(file, keys=keys or (), allow_unsigned=allow_unsigned, state=state, now_ms=now_ms))


@keys_app.command("new")
def keys_new(out: Annotated[Path, typer.Option(help="The private key; its public half goes beside it.")]) -> None:
    """Make a signing key (Ed25519). Nothing is overwritten."""
    from streams.commands.keys import new_key

    raise typer.Exit(new_key(out))


@keys_app.command("show")
def keys_show(file: Annotated[Path, typer.Argument(metavar="FILE", help="A private or a public key, PEM.")]) -> None:
    """The keyid of a key, and its public half."""
    from streams.commands.keys import show_keys

    raise typer.Exit(show_keys(file))


@keys_app.command("token")
def keys_token(
    operator: Annotated[str, typer.Option(help="Who may act with it, by the guard's web.")],
    out: Annotated[Path, typer.Option(help="The file of --operator-tokens: a line is added to it.")],
) -> None:
    """A new bearer token for an operator: told this once, alone on standard output; the file gets its digest."""
    from streams.commands.keys import new_operator_token

    raise typer.Exit(new_operator_token(operator, out))


@contract_app.command("check")
def contract_check(
    files: Annotated[list[str], typer.Argument(metavar="FILE…", help="Files, folders of them, - for standard input.")],
) -> None:
    """Exit 0 where the contracts (JSON or YAML) may be loaded, together; else 2, and file and place of each error."""
    from streams.commands.contracts import check_contracts

    raise typer.Exit(check_contracts(files))


@contract_app.command("show")
def contract_show(
    name: Annotated[str, typer.Argument(metavar="ID", help="Such as slicing/1; none: all.")] = "",
) -> None:
    """A shipped contract as it is written, comments included; without a name, what is shipped."""
    from xapp.contracts import NAMES, shipped, text

    by_id = {contract_id: text(file) for contract_id, file in zip(shipped(), NAMES, strict=True)}
    if name and name not in by_id:
        typer.echo(f"no contract '{name}' is shipped: {', '.join(by_id)}", err=True)
        raise typer.Exit(2)
    typer.echo(by_id[name] if name else "\n".join(by_id), nl=not name)


@record_app.callback(invoke_without_command=True)
def record(
    context: typer.Context,
    bootstrap_servers: Annotated[str | None, typer.Option("--bootstrap-servers", help="Kafka to read from.")] = None,
    out: Annotated[Path | None, typer.Option(help="The recording: .jsonl.gz")] = None,
    prefix: Prefix = "wirelessops.",
    topic: Annotated[list[str] | None, typer.Option(help="Topics without their prefix; what a replay needs.")] = None,
    from_beginning: Annotated[bool, typer.Option("--from-beginning", help="Also what they hold.")] = False,
    seconds: Annotated[float | None, typer.Option(min=0, help="Stop by itself; else on SIGTERM or SIGINT.")] = None,
    kafka_config: KafkaConfig = None,
) -> None:
    """Record topics to a compressed JSON Lines file, which `wirelessops replay` decides again."""
    if context.invoked_subcommand is not None:
        return
    if bootstrap_servers is None or out is None:
        typer.echo("wirelessops record needs --bootstrap-servers and --out", err=True)
        raise typer.Exit(2)
    from streams.commands.record import REPLAYED
    from streams.commands.record import record as run_record

    code = run_record(
        bootstrap_servers, out, prefix=prefix, only=topic or REPLAYED, from_beginning=from_beginning, seconds=seconds,
        kafka_config=kafka_config,
    )  # fmt: skip
    raise typer.Exit(code)


@record_app.command("export")
def record_export(file: File, prov: Annotated[bool, typer.Option("--prov", help="W3C PROV-JSON.")] = False) -> None:
    """Export decision records: one PROV-JSON document a decision."""
    if not prov:
        typer.echo("wirelessops record export needs a form: --prov", err=True)
        raise typer.Exit(2)
    from streams.commands.assure import export_prov

    raise typer.Exit(export_prov(file))


@app.command()
def run(
    context: typer.Context,
    bootstrap_servers: Bootstrap = None,
    config: Annotated[
        Path | None,
        typer.Option(
            envvar="CONFIG_FILE",
            help="The xApp descriptor, config-file.json: its controls are options by name; options given here win.",
        ),
    ] = None,
    prefix: Prefix = "wirelessops.",
    guard_name: Annotated[str, typer.Option(help="What the guard is called in its decisions.")] = "guard",
    contracts: Annotated[Path | None, typer.Option(help="A folder of contracts of your own.")] = None,
    shipped_contracts: Annotated[
        bool, typer.Option(help="Whether proposals under the shipped contracts are decided, too.")
    ] = True,
    support: Annotated[
        Path | None,
        typer.Option("--support-dir", help="A folder of support terms and reference maps; none: no support gate."),
    ] = None,
    web_host: Annotated[str, typer.Option(help="Where the web views listen.")] = "127.0.0.1",
    web_port: Annotated[int | None, typer.Option(help="Port of the web views; none: no web.")] = None,
    history_ms: Annotated[int, typer.Option(help="How long evidence is kept, ms.")] = 60_000,
    history_count: Annotated[int, typer.Option(help="Versions kept of one field of one source.")] = 4096,
    partitions: Annotated[int, typer.Option(help="Of topics that do not exist yet.")] = 4,
    replication: Annotated[int, typer.Option(help="Of topics that do not exist yet.")] = 1,
    kafka_config: KafkaConfig = None,
    session_timeout_ms: Annotated[int, typer.Option(help="A worker silent for so long loses its partitions.")] = 10_000,
    hold_ms: Annotated[int, typer.Option(help="How long a proposal without a deadline may wait.")] = 2_000,
    escalation_ms: Annotated[int, typer.Option(help="How long one that is an ESCALATE waits for a person.")] = 600_000,
    queue_limit: Annotated[int, typer.Option(help="Proposals of one partition that wait to be decided.")] = 2_000,
    signing_key: Annotated[
        Path | None,
        typer.Option(help="Ed25519 key, PEM; else WIRELESSOPS_SIGNING_KEY; else one that ends with this run."),
    ] = None,
    trusted_keys: Annotated[
        list[Path] | None,
        typer.Option(help="Public keys of all guards, past ones too: what none of them signed is not taken up."),
    ] = None,
    unsigned: Annotated[bool, typer.Option("--unsigned", help="Sign nothing, and say so.")] = False,
    operator_tokens: Annotated[Path | None, typer.Option(help="Who may act by the web; none: nobody.")] = None,
    alarm_url: Annotated[
        str | None, typer.Option(help="Where alarms are posted: http://HOST:PORT/ric/v1/alarms; none: nowhere.")
    ] = None,
    log_level: Annotated[str, typer.Option(help="The least level logged: debug, info, warning, error.")] = "info",
) -> None:
    """The guard as a service, until SIGTERM or SIGINT. Several of one prefix share the work, each by its own name."""
    from streams.commands.run import run as run_guard
    from streams.logs import flush as flush_log

    options = _given(context)
    options |= {"contracts_dir": options.pop("contracts")} if "contracts" in options else {}
    options |= {"support_dir": options.pop("support")} if "support" in options else {}
    options |= {"trusted_keys": tuple(trusted_keys or ())} if "trusted_keys" in options else {}
    code = run_guard(**options)
    sys.stdout.flush()
    sys.stderr.flush()
    flush_log()
    os._exit(code)  # everything of ours has ended; threads of the clients may wait a minute for a broker that is gone


@app.command()
def answer(
    proposal_id: Annotated[str, typer.Argument(metavar="PROPOSAL_ID")],
    verdict: Annotated[str, typer.Argument(metavar="approve|deny")],
    bootstrap_servers: Annotated[str, typer.Option("--bootstrap-servers", help="Kafka.")],
    region: Annotated[str, typer.Option(help="Of the proposal.")],
    operator: Annotated[str, typer.Option(help="Who answers.")],
    reason: Annotated[str, typer.Option(help="Why.")],
    settle: Annotated[
        list[str] | None,
        typer.Option(metavar="FIELD[@SUBJECT]=VALUE[:UNIT]", help="The value that holds of a disputed field."),
    ] = None,
    prefix: Prefix = "wirelessops.",
    kafka_config: KafkaConfig = None,
) -> None:
    """Answer an ESCALATE: deny the proposal, or approve it by settling what is disputed; the rest is checked again."""
    from streams.commands.answer import answer as give_answer

    code = give_answer(
        bootstrap_servers, proposal_id, verdict, region=region, operator=operator, reason=reason,
        settles=settle or [], prefix=prefix, kafka_config=kafka_config,
    )  # fmt: skip
    raise typer.Exit(code)


@app.command()
def switch(
    mode: Annotated[str, typer.Argument(metavar="live|hold|shadow")],
    bootstrap_servers: Annotated[str, typer.Option("--bootstrap-servers", help="Kafka.")],
    operator: Annotated[str, typer.Option(help="Who switches.")],
    reason: Annotated[str, typer.Option(help="Why.")],
    region: Annotated[str | None, typer.Option(help="Of this region alone; none: of all.")] = None,
    prefix: Prefix = "wirelessops.",
    kafka_config: KafkaConfig = None,
) -> None:
    """Kill switch (hold), shadow mode, or live again: hold and shadow turn every APPLY into HOLD."""
    from streams.commands.switch import switch as write_switch

    code = write_switch(
        bootstrap_servers, mode, operator=operator, reason=reason, region=region, prefix=prefix,
        kafka_config=kafka_config,
    )  # fmt: skip
    raise typer.Exit(code)


@app.command()
def replay(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…")],
    form: Annotated[
        str | None, typer.Option("--format", help="scope, flexric, perf3gpp or recording; none: guessed.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Decisions with their records, as JSON Lines.")] = None,
    as_json: Json = False,
    contracts: Annotated[Path | None, typer.Option(help="As the guard of an own recording had it.")] = None,
    shipped_contracts: Annotated[bool, typer.Option(help="As the guard of an own recording had it.")] = True,
    history_ms: Annotated[int, typer.Option(help="As the guard of an own recording had it.")] = 60_000,
    history_count: Annotated[int, typer.Option(help="As the guard of an own recording had it.")] = 4096,
    support: Annotated[
        Path | None,
        typer.Option("--support-dir", help="Support terms and maps; what they would have vetoed is counted."),
    ] = None,
) -> None:
    """Decide a recording again, on its own clocks: decisions out, and a summary of every violation found."""
    from streams.replay import replay as run_replay

    code = run_replay(
        files, form=form, out=out, as_json=as_json, contracts_dir=contracts,
        shipped_contracts=shipped_contracts, history_ms=history_ms, history_count=history_count,
        support_dir=support,
    )  # fmt: skip
    raise typer.Exit(code)


@app.command()
def demo(
    seconds: Annotated[float, typer.Option(min=1, help="How long the simulated network runs.")] = 20.0,
    seed: Annotated[int, typer.Option(min=0, help="Of the simulated network.")] = 7,
    as_json: Json = False,
    web_port: Annotated[int | None, typer.Option(help="Port of the page, at 127.0.0.1; none: no page.")] = None,
    support: Annotated[
        Path | None,
        typer.Option("--support-dir", help="A folder of support terms and reference maps; none: no support gate."),
    ] = None,
) -> None:
    """Broker, simulated RAN, faults, proposers and guard in one process; then what the guard was good for."""
    from streams.demo import run_demo

    raise typer.Exit(run_demo(seconds, seed, as_json, web_port=web_port, support_dir=support))


@app.command()
def simulate(
    bootstrap_servers: Annotated[str, typer.Option("--bootstrap-servers", help="Kafka.")],
    seed: Annotated[int, typer.Option(min=0, help="Of the simulated network.")] = 7,
    seconds: Annotated[float | None, typer.Option(min=1, help="Stop by itself; else on SIGTERM or SIGINT.")] = None,
    region: Annotated[str, typer.Option(help="Of the simulated network.")] = "demo",
    prefix: Prefix = "wirelessops.",
    trusted_keys: Annotated[
        list[Path] | None, typer.Option(help="Public keys of the guards whose decisions are carried out.")
    ] = None,
    kafka_config: KafkaConfig = None,
    heartbeat: Annotated[Path | None, typer.Option(help="A file, touched every second: for a health check.")] = None,
) -> None:
    """The simulated RAN and its xApps against a running guard; their faults go on for ever. Counts go to the log."""
    from streams.commands.simulate import simulate as run_simulation

    code = run_simulation(
        bootstrap_servers, prefix=prefix, region=region, seed=seed, seconds=seconds,
        trusted_keys=trusted_keys or (), kafka_config=kafka_config, heartbeat=heartbeat,
    )  # fmt: skip
    raise typer.Exit(code)


@app.command()
def bench(out: Annotated[Path, typer.Option(help="Where the figures go, as JSON.")] = Path("bench.json")) -> None:
    """Measure every stage on this machine."""
    from streams.bench import run_bench

    raise typer.Exit(run_bench(out))


@app.command()
def chaos(
    kills: Annotated[int, typer.Option(min=0, help="Workers killed, one after the other.")] = 100,
    broker_kills: Annotated[int, typer.Option(min=0, help="Brokers killed.")] = 20,
    fuzz: Annotated[int, typer.Option(min=0, help="Fuzzed messages on every topic.")] = 100_000,
    seed: Annotated[int, typer.Option(min=0, help="Of load, faults and fuzz.")] = 1,
    workers: Annotated[int, typer.Option(min=1, max=8, help="Guards that share the load.")] = 2,
    rate: Annotated[float, typer.Option(min=1, help="Proposals a second.")] = 100.0,
    out: Annotated[Path, typer.Option(help="Where the figures go, as JSON.")] = Path("chaos.json"),
) -> None:
    """Kill workers and brokers of a real Kafka under load, and check every law on what the topics hold then."""
    from streams.chaos.campaign import Campaign
    from streams.commands.chaos import chaos as run_chaos

    campaign = Campaign(
        kills=kills, broker_kills=broker_kills, fuzz=fuzz, seed=seed, workers=workers, rate=rate
    )
    raise typer.Exit(run_chaos(campaign, out))


@app.command()
def schemas(out: Annotated[Path | None, typer.Option(help="A folder: one file a message.")] = None) -> None:
    """The JSON Schemas of all messages, contracts included."""
    from streams.commands.schemas import schemas as export

    typer.echo(export(out))


def _given(context: typer.Context) -> dict[str, Any]:
    """The options of a command that somebody gave: on the command line, or in the environment."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    given = {name for name, source in sources.items() if source is not None and source.name != "DEFAULT"}
    return {name: value for name, value in context.params.items() if name in given}


def main() -> None:
    app()
