"""`wirelessops optbench show`: why an episode has its label, and what methods made of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import orjson

from simulators.optbench.results import ResultsError, read
from streams.commands.answering import NotRun, answering, check_output, put
from streams.commands.optbench_suites import SuiteOptions, suite_of
from streams.commands.optbench_view import rendered

if TYPE_CHECKING:
    from simulators.optbench.model import Case
    from simulators.optbench.scoring.answers import Scorer
    from simulators.optbench.scoring.outcome import Evaluator
    from simulators.optbench.suite import Suite

_NEAR: Final = 5
_PARTS: Final = ("decision", "utility", "state", "record")


def show_episode(
    episode_id: str, options: SuiteOptions, results: Path | None, evaluator: str, scorer: str, as_json: bool
) -> int:
    """Prints an episode with its sealed part, and the bundles that `results` holds of it. Exit 2 for an unknown one."""
    from simulators.optbench.episode_account import account

    with answering() as answer:
        check_output()
        suite = suite_of(options)
        case = _case(suite, episode_id)
        document = account(case)
        if results is not None:
            document["bundles"] = list(_bundles(suite, case, results, evaluator, scorer))
        put(orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n" if as_json else rendered(*_page(document)))
    return answer.code


def _case(suite: Suite, episode_id: str) -> Case:
    found = {case.episode_id: case for case in suite.cases}
    if episode_id in found:
        return found[episode_id]
    shared = {one: sum(1 for _ in takewhile(bool, map(str.__eq__, one, episode_id))) for one in found}
    near = sorted(found, key=lambda one: (-shared[one], one))[:_NEAR]
    told = " ".join(ascii(episode_id)[:100].split())
    raise NotRun(f"no episode {told} in this suite; the nearest are {', '.join(near)}")


def _bundles(suite: Suite, case: Case, results: Path, evaluator: str, scorer: str) -> Iterator[dict[str, Any]]:
    """What each file of results holds of an episode; files of other suites hold nothing of it."""
    from simulators.optbench.episode_account import verdict_on

    try:
        for path in sorted(results.iterdir()):
            if path.suffix != ".jsonl":
                continue
            origin, bundles = read(path)
            if origin.suite != suite.digest or case.episode_id not in bundles:
                continue
            made = verdict_on(case, bundles[case.episode_id], cast("Evaluator", evaluator), cast("Scorer", scorer))
            yield {"method": origin.method, "backbone": origin.backbone, **made}
    except OSError as error:
        raise NotRun(f"{error.filename or results}: {error.strerror or error}") from error
    except ResultsError as error:
        raise NotRun(str(error)) from error


def _page(told: Mapping[str, Any]) -> Iterator[Any]:
    yield f"{told['episode_id']}, {told['task']}"
    yield f"{told['question']}\n"
    yield f"reference {told['reference']}: {told['predicate']}"
    yield f"family {told['family']} ({told['domain']}): {told['symptom']}"
    for name, cited in told["blocked"].items():
        yield f"blocked: {name} ({', '.join(cited)})"
    for outage in told["outages"]:
        again = "may be asked again" if outage["retryable"] else "may not be asked again"
        yield f"in outage: {outage['source']}, {again}"
    plan = (f"{name} {entry['value']} {entry['unit']}" for name, entry in told["plan"].items())
    yield f"reference plan: {', '.join(plan)}\n"
    yield _table(
        ("id", "name", "value", "unit", "source", "age / limit, ms", "what was done to it"),
        (
            (o["id"], o["name"], o["value"], o["unit"], o["source"], _age(o),
             "; ".join([*(["memory"] if o["origin"] == "memory" else []), *o["done"]]))
            for o in told["ledger"]
        ),
    )  # fmt: skip
    guard = told["guard"]
    yield f"\nthe guard, on the reference plan: {guard['action']}"
    yield guard["explanation"]
    for one in guard["violations"]:
        about = " ".join(filter(None, (one["field"], one["constraint"], ", ".join(one["observations"]))))
        state = "blocking" if one["blocking"] else "resolved" if one["resolved"] else "harmless"
        yield f"- {one['code']} ({state}), {about}: {one['detail']}"
    if "bundles" in told:
        yield ""
        yield from _made(told["bundles"])


def _made(bundles: Sequence[Mapping[str, Any]]) -> Iterator[Any]:
    if not bundles:
        yield "no results of this episode on this suite"
        return
    for backbone in dict.fromkeys(b["backbone"] for b in bundles):
        yield backbone
        yield _table(
            ("method", "action", "verdict", "OPS", *_PARTS),
            (
                (b["method"], b["action"], _verdict(b), *(f"{b[part]:.2f}" for part in ("ops", *_PARTS)))
                for b in bundles
                if b["backbone"] == backbone
            ),
        )


def _verdict(bundle: Mapping[str, Any]) -> str:
    if bundle["invalid"] is not None:
        return f"invalid: {bundle['invalid']}"
    if bundle["unsafe"]:
        return f"unsafe: {', '.join(bundle['unsafe'])}"
    right = "exact" if bundle["exact"] else "wrong"
    return f"{right}, safe" if bundle["safe"] else right


def _age(observation: Mapping[str, Any]) -> str:
    limit = observation["limit_ms"]
    return f"{observation['age_ms']:,} / {'–' if limit is None else f'{limit:,}'}"


def _table(heads: Sequence[str], rows: Any) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for head in heads:
        table.add_column(head, overflow="fold")
    for row in rows:
        table.add_row(*(Text("–" if cell is None else str(cell)) for cell in row))
    return table
