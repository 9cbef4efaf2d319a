"""`wirelessops optbench report`: what is not in the results yet is run, then tables and figures are written."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, cast

from streams.commands.answering import NotRun, answering, check_output, put
from streams.commands.optbench_agents import agents_of
from streams.commands.optbench_answering import RESUMED
from streams.commands.optbench_bundles import decided
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
    from simulators.optbench.scoring.answers import Scorer
    from simulators.optbench.scoring.outcome import Evaluator


def report(out: Path, suite_options: SuiteOptions, options: RunOptions) -> int:
    """Writes the report of the headline methods over each backbone, and of the ablations over the first, to `out`.

    `options.methods` is not looked at. Exit codes as `run`: 1 where calls failed for good, after the report.
    """
    from simulators.optbench.report import write
    from simulators.optbench.report.measured import measure

    with answering(RESUMED) as answer:
        check_output()
        check_backbones(options)
        suite = suite_of(suite_options)
        proposers = proposers_of(suite, options)
        rows = [(one, p) for p in proposers for one in agents_of(method_names(()), p.backbone)]
        rows += [(one, proposers[0]) for one in agents_of(method_names((ABLATIONS,)), proposers[0].backbone)]
        results = options.results or out / "results"
        synthetic = frozenset(proposer.backbone.name for proposer in proposers if proposer.backbone.synthetic)

        with progress_of(len(rows)) as watch:
            evaluator, scorer = cast("Evaluator", options.evaluator), cast("Scorer", options.scorer)
            named = (
                ((one.label, one.backbone.name), bundles)
                for one, bundles in decided(suite, rows, results, options.parallel, watch, answer)
            )
            measured = measure(suite, named, synthetic, evaluator, scorer, version("wirelessops"))
        try:
            written = write(measured, out)
        except OSError as error:
            raise NotRun(f"{error.filename or out}: {error.strerror or error}") from error
        put("".join(f"{path}\n" for path in written))
    return answer.code
