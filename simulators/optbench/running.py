"""An agent over the episodes of a suite: resumable, and nothing that it does is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

import orjson

from simulators.optbench.agents import Agent, Bundle
from simulators.optbench.bundles import decode, encode, invalid_output, reason_of
from simulators.optbench.model import Case

Progress = Callable[[int, int], None]
"""Called with how many episodes are decided, and of how many: once at the start, then after each."""


def run(
    cases: Sequence[Case],
    agent: Agent,
    stored: Mapping[str, Bundle],
    keep: Callable[[Bundle], None],
    parallel: int = 1,
    progress: Progress | None = None,
) -> list[Bundle]:
    """The bundles of `agent`, one a case, in their order.

    `stored`: episode id → bundle of an earlier run, taken as it is. `keep` gets each new bundle as soon as it is there,
    in the caller's thread, so that a run that is stopped goes on where it was. `parallel`: episodes decided at a time,
    each in a thread of its own where it is more than 1. Whatever an agent raises (SystemExit, too), and a bundle that
    is none or is no JSON, is an invalid output of that episode. Bundles are what their JSON says: a resumed run gives
    the same.
    """
    found = {case.episode_id: stored[case.episode_id] for case in cases if case.episode_id in stored}
    told = progress or (lambda done, of: None)
    told(len(found), len(cases))
    for bundle in _decided([case for case in cases if case.episode_id not in found], agent, parallel):
        keep(bundle)
        found[bundle.episode_id] = bundle
        told(len(found), len(cases))
    return [found[case.episode_id] for case in cases]


def decide(case: Case, agent: Agent) -> Bundle:
    """What `agent` makes of one episode, checked; it gets a copy of the view, which other agents see too."""
    try:
        view: Mapping[str, Any] = orjson.loads(orjson.dumps(case.view))
        bundle = agent.decide(view)
        if not isinstance(bundle, Bundle):
            return invalid_output(case.episode_id, f"the agent gave a {type(bundle).__name__}, no bundle")
        if bundle.episode_id != case.episode_id:
            return invalid_output(case.episode_id, f"the agent decided another episode: {bundle.episode_id}")
        return decode(encode(bundle))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # an agent that calls sys.exit must not end the run
        return invalid_output(case.episode_id, reason_of(error))


def _decided(cases: Sequence[Case], agent: Agent, parallel: int) -> Iterator[Bundle]:
    if parallel <= 1:
        yield from (decide(case, agent) for case in cases)
        return
    pool = ThreadPoolExecutor(parallel)
    try:
        for future in as_completed([pool.submit(decide, case, agent) for case in cases]):
            yield future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
