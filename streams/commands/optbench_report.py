"""`wirelessops optbench report`: what is not in the results yet is run, then tables and figures are written."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from simulators.optbench.agents import Bundle
from simulators.optbench.backbones import Watched
from streams.commands.optbench import answering, bundles_of
from streams.commands.optbench_lines import NotRun
from streams.commands.optbench_options import (
    ABLATIONS,
    RunOptions,
    check_backbones,
    method_names,
    proposers_of,
)  # fmt: skip
from streams.commands.optbench_suites import SuiteOptions, suite_of
from streams.commands.optbench_view import progress_of

if TYPE_CHECKING:
    from simulators.optbench.report.measured import Row
    from simulators.optbench.scoring.answers import Scorer
    from simulators.optbench.scoring.outcome import Evaluator


def report(out: Path, suite_options: SuiteOptions, options: RunOptions) -> int:
    """Writes the report of the headline methods over each backbone, and of the ablations over the first, to `out`.

    `options.methods` is not looked at. Exit codes as `run`: 1 where calls failed for good, after the report.
    """
    from simulators.optbench.report import write
    from simulators.optbench.report.measured import measure

    with answering(resumable=True) as answer:
        check_backbones(options)
        suite = suite_of(suite_options)
        proposers = proposers_of(suite, options)
        rows = [(method, proposer) for proposer in proposers for method in method_names(())]
        rows += [(method, proposers[0]) for method in method_names((ABLATIONS,))]
        results = options.results or out / "results"
        failed: dict[str, dict[str, str]] = {}
        synthetic = frozenset(proposer.backbone.name for proposer in proposers if proposer.backbone.synthetic)

        def decided(watch: Any) -> Iterator[tuple[Row, list[Bundle]]]:
            for method, proposer in rows:
                watched = Watched(proposer.backbone)
                name = f"{method}, {watched.name}"
                bundles = bundles_of(suite, method, watched, proposer, results, options.parallel, watch(name))
                if watched.failed:
                    failed[name] = watched.failed
                yield (method, watched.name), bundles

        with progress_of(len(rows)) as watch:
            evaluator, scorer = cast("Evaluator", options.evaluator), cast("Scorer", options.scorer)
            measured = measure(suite, decided(watch), synthetic, evaluator, scorer, version("wirelessops"))
        try:
            written = write(measured, out)
        except OSError as error:
            raise NotRun(f"{error.filename or out}: {error.strerror or error}") from error
        print("\n".join(map(str, written)))
        answer.tell_failed(failed)
    return answer.code
