"""`wirelessops optbench …` on the command line: its options, handed to what they run."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

optbench_app = typer.Typer(
    no_args_is_help=True,
    help="WirelessOptBench: wireless tasks whose evidence is disturbed. Does a method execute, wait, ask again, or call"
    " a person?",
)


class Anchors(StrEnum):
    """Splits of a suite."""

    FINAL = "final"
    DEVELOPMENT = "development"


class Evaluators(StrEnum):
    """Evaluators of a decision."""

    CORRECTED = "corrected"
    FROZEN = "frozen"


class Scorers(StrEnum):
    """Scorers of an answer."""

    STRICT = "strict"
    PUBLISHED = "published"


SuiteDirectory = Annotated[
    Path | None, typer.Option("--suite", help="A folder that `build` wrote; none: built now, by the options beside.")
]
Split = Annotated[Anchors | None, typer.Option(help="Which anchors; none: final.")]
Seed = Annotated[int | None, typer.Option(min=0, max=2**63 - 1, help="Of everything that is drawn; none: 0.")]
Base = Annotated[
    Path | None, typer.Option(help="A folder of WirelessBench files to take base items from; none: all generated.")
]
Evaluator = Annotated[
    Evaluators,
    typer.Option(help="Frozen: a disagreement within tolerance is a conflict, as in the paper's first evaluator."),
]
Scorer = Annotated[
    Scorers,
    typer.Option(help="Of calculations: by the published text, or by the published code, which pays for some errors."),
]
Json = Annotated[bool, typer.Option("--json", help="A JSON list of rows on standard output.")]
Results = Annotated[
    Path | None, typer.Option(help="A folder that keeps every decision bundle: a run that was stopped goes on.")
]
Backbones = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="synthetic-a, -b, -c; none: those three, or what --model, --proposals name."),
]
Proposals = Annotated[
    str | None, typer.Option(metavar="FILE", help="Your proposals as a backbone: JSON Lines, or - for stdin.")
]
Model = Annotated[str | None, typer.Option(help="A language model as a backbone.")]
BaseUrl = Annotated[str | None, typer.Option(help="Its server (OpenAI's chat completions); none: OpenAI.")]
ApiKeyEnv = Annotated[
    str | None, typer.Option(metavar="VAR", help="The environment variable that holds its key; none: no key.")
]
PriceIn = Annotated[float | None, typer.Option(min=0, help="US dollars per million tokens in.")]
PriceOut = Annotated[float | None, typer.Option(min=0, help="US dollars per million tokens out.")]
Cache = Annotated[Path | None, typer.Option(help="A file that keeps its replies: nothing is asked twice.")]
ReplayOnly = Annotated[bool, typer.Option("--replay-only", help="Answer from --cache alone.")]
Timeout = Annotated[float, typer.Option(min=0.1, help="Of one call, s.")]
Parallel = Annotated[int, typer.Option(min=1, max=256, help="Episodes that are decided at a time.")]


@optbench_app.command()
def build(
    out: Annotated[Path, typer.Option(help="The folder: episodes, sealed parts, manifest.")],
    split: Split = None,
    seed: Seed = None,
    base: Base = None,
) -> None:
    """Build a suite of 600 episodes and write it; prints what it was made from."""
    from streams.commands.optbench import build as build_suite
    from streams.commands.optbench_suites import SuiteOptions

    raise typer.Exit(build_suite(out, SuiteOptions(None, split, seed, base)))


@optbench_app.command()
def run(
    method: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="A method or an ablation, `all` methods, `ablations`, or an agent of your own as"
            " FILE.py:NAME; none: the paper's four and two sanity rows."
        ),
    ] = None,
    backbone: Backbones = None,
    suite: SuiteDirectory = None,
    split: Split = None,
    seed: Seed = None,
    base: Base = None,
    evaluator: Evaluator = Evaluators.CORRECTED,
    scorer: Scorer = Scorers.STRICT,
    results: Results = None,
    as_json: Json = False,
    proposals: Proposals = None,
    model: Model = None,
    base_url: BaseUrl = None,
    api_key_env: ApiKeyEnv = None,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    cache: Cache = None,
    replay_only: ReplayOnly = False,
    timeout: Timeout = 60.0,
    parallel: Parallel = 1,
) -> None:
    """Methods over a suite: one row for each method and backbone.

    Exit 1 where calls to a backbone failed for good, after the rows; what rests on them is not kept in --results.
    """
    from streams.commands.optbench import run as run_methods
    from streams.commands.optbench_options import ModelOptions, RunOptions
    from streams.commands.optbench_suites import SuiteOptions

    asked = ModelOptions(model, base_url, api_key_env, price_in, price_out, cache, replay_only, timeout)
    options = RunOptions(
        tuple(method or ()), tuple(backbone or ()), proposals, asked, evaluator, scorer, results, as_json, parallel
    )
    raise typer.Exit(run_methods(SuiteOptions(suite, split, seed, base), options))


@optbench_app.command()
def report(
    out: Annotated[Path, typer.Option(help="The folder: report.html, report.md, figures as PNG and SVG.")],
    backbone: Backbones = None,
    suite: SuiteDirectory = None,
    split: Split = None,
    seed: Seed = None,
    base: Base = None,
    evaluator: Evaluator = Evaluators.CORRECTED,
    scorer: Scorer = Scorers.STRICT,
    results: Annotated[
        Path | None, typer.Option(help="The folder of decision bundles: only what it lacks is run; none: OUT/results.")
    ] = None,
    proposals: Proposals = None,
    model: Model = None,
    base_url: BaseUrl = None,
    api_key_env: ApiKeyEnv = None,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    cache: Cache = None,
    replay_only: ReplayOnly = False,
    timeout: Timeout = 60.0,
    parallel: Parallel = 1,
) -> None:
    """Tables I, III to VI and figures 4 to 7, beside the published values; ablations over the first backbone.

    Runs what --results lacks. Exit 1 where calls to a backbone failed for good, after the report.
    """
    from streams.commands.optbench_options import ModelOptions, RunOptions
    from streams.commands.optbench_report import report as write_report
    from streams.commands.optbench_suites import SuiteOptions

    asked = ModelOptions(model, base_url, api_key_env, price_in, price_out, cache, replay_only, timeout)
    options = RunOptions(
        (), tuple(backbone or ()), proposals, asked, evaluator, scorer, results, as_json=False, parallel=parallel
    )
    raise typer.Exit(write_report(out, SuiteOptions(suite, split, seed, base), options))


@optbench_app.command()
def audit(
    suite: SuiteDirectory = None,
    split: Split = None,
    seed: Seed = None,
    base: Base = None,
    seed_leak: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="Plant a leak first, to see it found: note, id-parity, key-order, time-base, nonce, or position.",
        ),
    ] = None,
    leak_share: Annotated[
        float | None, typer.Option(help="The share of the items that leak, with --seed-leak: all, else.")
    ] = None,
    leak_family: Annotated[
        str | None, typer.Option(metavar="FAMILY", help="Leak under this family alone, with --seed-leak.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """Check a suite's own claims, and that nothing but evidence tells of its labels. Exit 1 if a check fails."""
    from streams.commands.optbench_audit import SeededLeak
    from streams.commands.optbench_audit import audit as audit_suite
    from streams.commands.optbench_suites import SuiteOptions

    leak = SeededLeak(seed_leak, leak_share, leak_family)
    raise typer.Exit(audit_suite(SuiteOptions(suite, split, seed, base), as_json, leak))


@optbench_app.command()
def prompts(
    out: Annotated[str, typer.Option(metavar="FILE", help="Where they go, or - for standard output.")],
    suite: SuiteDirectory = None,
    split: Split = None,
    seed: Seed = None,
    base: Base = None,
) -> None:
    """For an agent of your own that runs elsewhere: the public view and the prompt of each episode, as JSON Lines."""
    from streams.commands.optbench import prompts as write_prompts
    from streams.commands.optbench_suites import SuiteOptions

    raise typer.Exit(write_prompts(out, SuiteOptions(suite, split, seed, base)))


@optbench_app.command()
def score(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Bundles or proposals; - for stdin.")],
    suite: SuiteDirectory = None,
    split: Split = None,
    seed: Seed = None,
    base: Base = None,
    evaluator: Evaluator = Evaluators.CORRECTED,
    scorer: Scorer = Scorers.STRICT,
    as_json: Json = False,
) -> None:
    """Score your own agent: JSON Lines of {"episode_id", "action", "answer", "plan", "record"}, or of

    {"episode_id", "proposal"}, which stands as it is. An episode that is missing counts as an invalid output.
    """
    from streams.commands.optbench import score as score_file
    from streams.commands.optbench_suites import SuiteOptions

    raise typer.Exit(score_file(file, SuiteOptions(suite, split, seed, base), evaluator, scorer, as_json))


@optbench_app.command()
def show(
    episode_id: Annotated[str, typer.Argument(metavar="EPISODE_ID")],
    suite: SuiteDirectory = None,
    split: Split = None,
    seed: Seed = None,
    base: Base = None,
    results: Annotated[
        Path | None, typer.Option(help="A folder of decision bundles: what each method did, and its verdict.")
    ] = None,
    evaluator: Evaluator = Evaluators.CORRECTED,
    scorer: Scorer = Scorers.STRICT,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """Why an episode has its label: its ledger, what was done to it, what blocks it, and what the guard says of it."""
    from streams.commands.optbench_show import show_episode
    from streams.commands.optbench_suites import SuiteOptions

    options = SuiteOptions(suite, split, seed, base)
    raise typer.Exit(show_episode(episode_id, options, results, evaluator, scorer, as_json))
