"""`wirelessops optbench`: suites built, methods run over them, bundles scored."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import orjson

from simulators.optbench.agents import Backbone, Bundle
from simulators.optbench.backbones import RecordedReplies, Watched
from simulators.optbench.bundles import ProposalLine
from simulators.optbench.results import Origin, Results, ResultsError
from simulators.optbench.running import Progress
from simulators.optbench.running import run as run_agent
from streams.commands.documents import STDIN
from streams.commands.optbench_agents import agent_of, source_of
from streams.commands.optbench_lines import NotRun, left_out, read_lines, stem
from streams.commands.optbench_options import (
    Proposer,
    RunOptions,
    check_backbones,
    method_names,
    proposers_of,
)  # fmt: skip
from streams.commands.optbench_suites import SuiteOptions, suite_of
from streams.commands.optbench_view import progress_of, show

if TYPE_CHECKING:
    from simulators.optbench.scoring.answers import Scorer
    from simulators.optbench.scoring.outcome import Evaluator
    from simulators.optbench.suite import Suite

OK, FAILED, REFUSED, INTERRUPTED = 0, 1, 2, 130
_KIND: Final = re.compile(":| of ")
"""What of a reason differs from row to row comes after one of these."""


def build(out: Path, options: SuiteOptions) -> int:
    """Builds a suite, and then writes it to `out`; nothing is left there where it cannot be built.

    Exit codes of all commands here: 0; 2 with the reason in one line; 130.
    """
    from simulators.optbench.suite import write

    with answering() as answer:
        if not next(place for place in (out, *out.absolute().parents) if place.exists()).is_dir():
            raise NotRun(f"{out}: no folder can be made there")
        suite = suite_of(options)
        try:
            write(suite, out)
        except OSError as error:
            raise NotRun(f"{out}: {error.strerror or error}") from error
        print("\n".join(_told_of(suite, options.base)))
        print(f"{len(suite.cases)} episodes in {out}, {suite.digest}")
    return answer.code


def run(suite_options: SuiteOptions, options: RunOptions) -> int:
    """Runs methods over backbones and prints their rows. Exit 1, after the rows, where calls failed for good."""
    with answering(resumable=options.results is not None) as answer:
        methods = method_names(options.methods)
        check_backbones(options)
        suite = suite_of(suite_options)
        rows: list[dict[str, Any]] = []
        failed: dict[str, dict[str, str]] = {}
        proposers = proposers_of(suite, options)
        with progress_of(len(methods) * len(proposers)) as watch:
            for proposer in proposers:
                for method in methods:
                    watched = Watched(proposer.backbone)
                    name = f"{method}, {watched.name}"
                    bundles = bundles_of(
                        suite, method, watched, proposer, options.results, options.parallel, watch(name)
                    )
                    rows.append(_scored(suite, method, watched.name, bundles, options.evaluator, options.scorer))
                    if watched.failed:
                        failed[name] = watched.failed
        show(rows, options.as_json, [p.backbone.name for p in proposers if p.backbone.synthetic])
        answer.tell_failed(failed)
    return answer.code


def prompts(out: str, options: SuiteOptions) -> int:
    """Writes `{"episode_id", "view", "messages"}` of each episode; messages are those of the method `direct`."""
    from simulators.optbench.prompts import propose

    with answering() as answer:
        try:
            with nullcontext(sys.stdout.buffer) if out == STDIN else Path(out).open("wb") as stream:
                for case in suite_of(options).cases:
                    messages = [{"role": role, "content": text} for role, text in propose(case.view, "direct").messages]
                    line = {"episode_id": case.episode_id, "view": case.view, "messages": messages}
                    stream.write(orjson.dumps(line) + b"\n")
        except OSError as error:
            raise NotRun(f"{out}: {error.strerror or error}") from error
    return answer.code


def score(file: str, options: SuiteOptions, evaluator: str, scorer: str, as_json: bool) -> int:
    """Scores a file of bundles, of proposals, or of results; what is wrong with it is told by line, and exit 2."""
    with answering() as answer:
        suite = suite_of(options)
        head, lines = read_lines(file, suite)
        replies = {line.episode_id: line.reply for line in lines if isinstance(line, ProposalLine)}
        bundles = {line.episode_id: line for line in lines if isinstance(line, Bundle)}
        proposer = RecordedReplies(stem(file), replies)
        decided = _decided(suite, "direct", proposer, bundles | left_out(suite, {*bundles, *replies}, file))
        row = _scored(suite, head.get("method") or stem(file), head.get("backbone") or "external", decided,
                      evaluator, scorer)  # fmt: skip
        show([row], as_json, ())
    return answer.code


def _told_of(suite: Suite, base: Path | None) -> Iterator[str]:
    """What a suite was made from, a line each."""
    from simulators.optbench.base.formulas import FORMULAS
    from simulators.optbench.base.lookup import coverage

    manifest = suite.manifest
    yield f"split {manifest['split']}, seed {manifest['seed']}, generator {manifest['generator']}"
    for task, of_split in manifest["base"].items():
        counts = (f"{split} {n['file']} from files, {n['generated']} generated" for split, n in of_split.items())
        yield f"{task}: {'; '.join(counts)}"
    if base is None:
        return
    kinds = Counter((one["task"], _KIND.split(one["reason"])[0]) for one in manifest["excluded"])
    for (task, kind), count in sorted(kinds.items()):
        yield f"{task}: {count} rows excluded: {kind}"
    questions = _questions(base)
    yield f"WCHW: {len(FORMULAS)} formula tools answer {coverage(questions)} of {len(questions)} different questions"


def _questions(base: Path) -> set[str]:
    """The questions of WCHW files; rows that cannot be read are among the excluded already."""
    found = set()
    for line in (line for path in base.glob("wchw_*.jsonl") for line in path.read_bytes().splitlines()):
        with suppress(orjson.JSONDecodeError, TypeError, LookupError, AttributeError):
            found.add(" ".join(orjson.loads(line)["question"].split()))
    return found


def bundles_of(
    suite: Suite,
    method: str,
    backbone: Watched,
    proposer: Proposer,
    results: Path | None,
    parallel: int = 1,
    progress: Progress | None = None,
) -> list[Bundle]:
    """What a method makes of each episode over the watched backbone of `proposer`.

    `results`: a folder that is read first and kept up to date, or None. Bundles of calls that failed are not kept, so
    that the next run asks again. Raises NotRun where that folder cannot be used, and where the backbone gives up.
    """
    if results is None:
        stop = _stop_of(suite, backbone, proposer, len(proposer.unasked))
        return _decided(suite, method, backbone, proposer.unasked, parallel, progress, stop)
    try:
        settings = proposer.settings + source_of(method)
        with Results(results, Origin(suite.digest, method, backbone.name, settings)) as kept:

            stored = {**kept.bundles, **proposer.unasked}
            stop = _stop_of(suite, backbone, proposer, len(stored))

            def keep(bundle: Bundle) -> None:
                if bundle.episode_id not in backbone.failed:
                    kept.keep(bundle)
                stop(bundle)

            return _decided(suite, method, backbone, stored, parallel, progress, keep)
    except OSError as error:
        raise NotRun(f"{error.filename or results}: {error.strerror or error}") from error
    except ResultsError as error:
        raise NotRun(str(error)) from error


def _stop_of(suite: Suite, backbone: Watched, proposer: Proposer, decided: int) -> Callable[[Bundle], None]:
    """What is called with each new bundle: raises NotRun where `proposer` has given up. `decided`: bundles before."""

    def stop(bundle: Bundle) -> None:
        nonlocal decided
        decided += bundle.episode_id not in backbone.failed
        if (why := proposer.gave_up()) is not None:
            raise NotRun(f"stopped: {why}; {decided} of {len(suite.cases)} episodes were decided")

    return stop


def _decided(
    suite: Suite,
    method: str,
    backbone: Backbone,
    stored: Mapping[str, Bundle],
    parallel: int = 1,
    progress: Progress | None = None,
    keep: Any = lambda _: None,
) -> list[Bundle]:
    return run_agent(suite.cases, agent_of(method, backbone), stored, keep, parallel, progress)


def _scored(
    suite: Suite, method: str, backbone: str, bundles: Sequence[Bundle], evaluator: str, scorer: str
) -> dict[str, Any]:
    from simulators.optbench.rows import row

    chosen = cast("Evaluator", evaluator), cast("Scorer", scorer)
    return row(suite, method, backbone, bundles, *chosen)


@dataclass(slots=True)
class Answer:
    """The exit code of a command."""

    code: int = OK

    def tell_failed(self, failed: Mapping[str, Mapping[str, str]]) -> None:
        """Says for each row (by its name) whose calls failed for good how many did; there is exit code 1 for it."""
        for name, reasons in failed.items():
            why = next(iter(reasons.values()))
            sys.stderr.write(f"{name}: calls failed on {len(reasons)} episodes; the first: {why}\n")
            self.code = FAILED


@contextmanager
def answering(resumable: bool = False) -> Iterator[Answer]:
    """What a command answers: its exit code; 2 and the reason for what is refused; Ctrl-C ends the process at once."""
    answer = Answer()
    try:
        yield answer
    except NotRun as error:
        sys.stderr.write(f"{error}\n")
        answer.code = REFUSED
    except KeyboardInterrupt:
        again = "the same command goes on from here" if resumable else "a run with --results can be resumed"
        sys.stderr.write(f"stopped; {again}\n")
        sys.stderr.flush()
        os._exit(INTERRUPTED)  # threads may wait a minute for a server; what was kept is on disk
