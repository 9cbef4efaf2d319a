"""`wirelessops optbench`: suites built, methods run over them, bundles scored."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

import orjson

from simulators.optbench.agents import Bundle
from simulators.optbench.backbones import RecordedReplies
from simulators.optbench.bundles import ProposalLine
from streams.commands.answering import NotRun, answering, check_output, others_output_on_stderr, put
from streams.commands.documents import STDIN
from streams.commands.optbench_agents import agents_of
from streams.commands.optbench_answering import RESUMABLE, RESUMED, tell_invalid
from streams.commands.optbench_bundles import bundles_of, decided, scored
from streams.commands.optbench_lines import left_out, read_lines, stem
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
    from simulators.optbench.suite import Suite

_KIND: Final = re.compile(":| of ")
"""What of a reason differs from row to row comes after one of these."""


def build(out: Path, options: SuiteOptions) -> int:
    """Builds a suite, and then writes it to `out`; nothing is left there where it cannot be built.

    Exit codes of all commands here: 0; 2 with the reason in one line; 130.
    """
    from simulators.optbench.suite import ManifestError, replaces, write

    with answering("no suite was written") as answer:
        check_output()
        if not next(place for place in (out, *out.absolute().parents) if place.exists()).is_dir():
            raise NotRun(f"{out}: no folder can be made there")
        try:
            old = replaces(out)
            suite = suite_of(options)
            write(suite, out)
        except ManifestError as error:
            raise NotRun(str(error)) from error
        except OSError as error:
            raise NotRun(f"{error.filename or out}: {error.strerror or error}") from error
        told = [*_told_of(suite, options.base)]
        if suite.manifest["excluded"]:
            told.append(f"the reason of each exclusion stands in {out / 'manifest.json'} under `excluded`")
        if old is not None:
            told.append(f"replaced the suite that was there, {old}")
        put("\n".join((*told, f"{len(suite.cases)} episodes in {out}, {suite.digest}", "")))
    return answer.code


def run(suite_options: SuiteOptions, options: RunOptions) -> int:
    """Runs methods over backbones and prints their rows. Exit 1, after the rows, where calls failed for good."""
    with answering(RESUMABLE if options.results is None else RESUMED) as answer:
        check_output()
        methods = method_names(options.methods)
        check_backbones(options)
        suite = suite_of(suite_options)
        proposers = proposers_of(suite, options)
        with others_output_on_stderr():
            asked = [(one, proposer) for proposer in proposers for one in agents_of(methods, proposer.backbone)]
            with progress_of(len(asked)) as watch:
                rows = [
                    scored(suite, one.label, one.backbone.name, bundles, options.evaluator, options.scorer)
                    for one, bundles in decided(suite, asked, options.results, options.parallel, watch, answer)
                ]
        show(rows, options.as_json, [p.backbone.name for p in proposers if p.backbone.synthetic])
    return answer.code


def prompts(out: str, options: SuiteOptions) -> int:
    """Writes `{"episode_id", "view", "messages"}` of each episode; messages are those of the method `direct`."""
    from simulators.optbench.prompts import propose

    with answering() as answer:
        if out == STDIN:
            check_output()
        elif not Path(out).parent.is_dir():
            raise NotRun(f"{out}: there is no such folder")
        suite = suite_of(options)
        try:
            with nullcontext() if out == STDIN else Path(out).open("wb") as file:
                for case in suite.cases:
                    messages = [{"role": role, "content": text} for role, text in propose(case.view, "direct").messages]
                    line = {"episode_id": case.episode_id, "view": case.view, "messages": messages}
                    _put_into(file, orjson.dumps(line) + b"\n")
        except BrokenPipeError:
            raise
        except OSError as error:
            raise NotRun(f"{out}: {error.strerror or error}") from error
    return answer.code


def _put_into(file: BinaryIO | None, line: bytes) -> None:
    if file is None:
        put(line)
    else:
        file.write(line)


def score(file: str, options: SuiteOptions, evaluator: str, scorer: str, as_json: bool) -> int:
    """Scores a file of bundles, of proposals, or of results; what is wrong with it is told by line, and exit 2."""
    with answering() as answer:
        check_output()
        suite = suite_of(options)
        head, lines = read_lines(file, suite)
        replies = {line.episode_id: line.reply for line in lines if isinstance(line, ProposalLine)}
        bundles = {line.episode_id: line for line in lines if isinstance(line, Bundle)}
        left = left_out(suite, {*bundles, *replies}, file)
        method, backbone = head.get("method") or stem(file), head.get("backbone") or "external"
        proposer = Proposer(RecordedReplies(backbone, replies), "", bundles | left)
        (as_it_stands,) = agents_of(["direct"], proposer.backbone)
        bundles_there = bundles_of(suite, as_it_stands, proposer)
        tell_invalid(f"{method}, {backbone}", bundles_there, frozenset(left))
        show([scored(suite, method, backbone, bundles_there, evaluator, scorer)], as_json, ())
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
