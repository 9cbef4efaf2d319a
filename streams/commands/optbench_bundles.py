"""What agents make of a suite, kept in a folder of results, and scored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from simulators.optbench.agents import Bundle
from simulators.optbench.backbones import Watched
from simulators.optbench.results import Origin, Results, ResultsError
from simulators.optbench.running import Progress, run
from streams.commands.answering import Answer, NotRun
from streams.commands.optbench_agents import Asked
from streams.commands.optbench_answering import tell_failed, tell_invalid
from streams.commands.optbench_options import Proposer

if TYPE_CHECKING:
    from simulators.optbench.scoring.answers import Scorer
    from simulators.optbench.scoring.outcome import Evaluator
    from simulators.optbench.suite import Suite


def bundles_of(
    suite: Suite,
    asked: Asked,
    proposer: Proposer,
    results: Path | None = None,
    parallel: int = 1,
    progress: Progress | None = None,
) -> list[Bundle]:
    """What an agent makes of each episode over the backbone of `proposer`.

    `results`: a folder that is read first and kept up to date, or None. Bundles of calls that failed are not kept, so
    that the next run asks again. Raises NotRun where that folder cannot be used, and where the backbone gives up.
    """
    backbone = asked.backbone
    if results is None:
        stop = _stop_of(suite, backbone, proposer, len(proposer.unasked))
        return run(suite.cases, asked.agent, proposer.unasked, stop, parallel, progress)
    try:
        origin = Origin(suite.digest, asked.label, backbone.name, proposer.settings, asked.code)
        with Results(results, origin) as kept:
            stored = {**kept.bundles, **proposer.unasked}
            stop = _stop_of(suite, backbone, proposer, len(stored))

            def keep(bundle: Bundle) -> None:
                if bundle.episode_id not in backbone.failed:
                    kept.keep(bundle)
                stop(bundle)

            return run(suite.cases, asked.agent, stored, keep, parallel, progress)
    except OSError as error:
        raise NotRun(f"{error.filename or results}: {error.strerror or error}") from error
    except ResultsError as error:
        raise NotRun(str(error)) from error


def decided(
    suite: Suite,
    rows: Sequence[tuple[Asked, Proposer]],
    results: Path | None,
    parallel: int,
    watch: Callable[[str], Progress | None],
    answer: Answer,
) -> Iterator[tuple[Asked, list[Bundle]]]:
    """Each agent with its bundles, as they are done; failed calls and invalid outputs are told.

    `watch`: called with the name of a row, gives what its progress is told to.
    """
    for asked, proposer in rows:
        bundles = bundles_of(suite, asked, proposer, results, parallel, watch(asked.row))
        tell_failed(answer, asked.row, asked.backbone.failed)
        tell_invalid(asked.row, bundles, frozenset((*asked.backbone.failed, *proposer.unasked)))
        yield asked, bundles


def _stop_of(suite: Suite, backbone: Watched, proposer: Proposer, decided: int) -> Callable[[Bundle], None]:
    """What is called with each new bundle: raises NotRun where `proposer` has given up. `decided`: bundles before."""

    def stop(bundle: Bundle) -> None:
        nonlocal decided
        decided += bundle.episode_id not in backbone.failed
        if (why := proposer.gave_up()) is not None:
            raise NotRun(f"stopped: {why}; {decided} of {len(suite.cases)} episodes were decided")

    return stop


def scored(
    suite: Suite, method: str, backbone: str, bundles: Sequence[Bundle], evaluator: str, scorer: str
) -> dict[str, Any]:
    """The row of these bundles (see `simulators.optbench.rows`)."""
    from simulators.optbench.rows import row

    chosen = cast("Evaluator", evaluator), cast("Scorer", scorer)
    return row(suite, method, backbone, bundles, *chosen)
