"""An agent over episodes: in order, resumable, and with nothing lost; bundles and users' lines as JSON."""

from __future__ import annotations

import dataclasses
import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulators.optbench.agents import Bundle, RawProposal
from simulators.optbench.bundles import BundleError, ProposalLine, bundle_from, decode, encode, read_line
from simulators.optbench.model import BaseItem, Case, Facts, Sealed
from simulators.optbench.results import Origin, Results, ResultsError, file_name
from simulators.optbench.running import run
from streams.commands.documents import read_document
from xapp.model import ACTIONS

ITEM = BaseItem("WCNS", "i", "generated", "q", {}, {}, {}, {}, {}, {})
SEALED = Sealed(ITEM, "family", "schema_unit", Facts(()), "APPLY", frozenset())
CASES = [Case({"episode_id": f"e{n}", "task": {"question": str(n)}}, SEALED) for n in range(12)]


@dataclasses.dataclass
class Answering:
    """An agent that answers as `how` says, and counts whom it was asked."""

    how: Callable[[Mapping[str, Any]], Any] = lambda view: Bundle(view["episode_id"], "HOLD", view["task"]["question"])
    name: str = "answering"
    asked: list[str] = dataclasses.field(default_factory=list)

    def decide(self, view: Mapping[str, Any]) -> Bundle:
        self.asked.append(view["episode_id"])
        given: Bundle = self.how(view)
        return given


@pytest.mark.parametrize("parallel", [1, 5])
def test_bundles_come_in_the_order_of_the_cases_however_long_each_takes(parallel: int) -> None:
    def slow_first(view: Mapping[str, Any]) -> Bundle:
        time.sleep(0.05 if view["episode_id"] in ("e0", "e1") else 0)
        return Bundle(view["episode_id"], "HOLD")

    kept: list[str] = []
    told: list[tuple[int, int]] = []
    bundles = run(
        CASES, Answering(slow_first), {}, lambda b: kept.append(b.episode_id), parallel, lambda *n: told.append(n)
    )
    ids = [case.episode_id for case in CASES]
    assert [bundle.episode_id for bundle in bundles] == ids
    assert sorted(kept) == sorted(ids)
    assert told == [(n, 12) for n in range(13)]
    assert (kept == ids) == (parallel == 1)


def test_episodes_run_at_the_same_time_where_that_is_asked_for() -> None:
    meet = threading.Barrier(4, timeout=10)

    def together(view: Mapping[str, Any]) -> Bundle:
        meet.wait()
        return Bundle(view["episode_id"], "APPLY")

    assert {bundle.action for bundle in run(CASES, Answering(together), {}, lambda _: None, 4)} == {"APPLY"}


def test_what_is_stored_is_not_asked_again_nor_kept_again() -> None:
    stored = {"e3": Bundle("e3", "APPLY", "kept"), "elsewhere": Bundle("elsewhere", "APPLY")}
    kept: list[Bundle] = []
    agent = Answering()
    bundles = run(CASES, agent, stored, kept.append)
    assert bundles[3] == stored["e3"]
    assert "e3" not in agent.asked
    assert len(agent.asked) == len(kept) == 11


def raising(view: Mapping[str, Any]) -> Bundle:
    raise RuntimeError("no\nidea")


class Mute(Exception):
    """Cannot say what it is."""

    def __str__(self) -> str:
        raise SystemExit(0)


def throwing(error: BaseException) -> Callable[[Mapping[str, Any]], Bundle]:
    def how(view: Mapping[str, Any]) -> Bundle:
        raise error

    return how


def nested(levels: int) -> Any:
    document: Any = 1
    for _ in range(levels):
        document = [document]
    return document


class Lost:
    """An agent that has no `decide`, and raises where it is looked for."""

    name = "lost"

    @property
    def decide(self) -> Any:
        raise GeneratorExit("nothing")


@pytest.mark.parametrize("parallel", [1, 3])
def test_an_agent_whose_decide_cannot_be_had_is_invalid_in_every_episode(parallel: int) -> None:
    bundles = run(CASES[:3], Lost(), {}, lambda _: None, parallel)
    assert [bundle.invalid for bundle in bundles] == ["GeneratorExit: nothing"] * 3


def test_ctrl_c_ends_a_run() -> None:
    with pytest.raises(KeyboardInterrupt):
        run(CASES, Answering(throwing(KeyboardInterrupt())), {}, lambda _: None)


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        (raising, "RuntimeError: no idea"),
        (throwing(SystemExit(0)), "SystemExit: 0"),
        (throwing(GeneratorExit()), "GeneratorExit"),
        (throwing(StopIteration(3)), "StopIteration: 3"),
        (throwing(BaseException("odd")), "BaseException: odd"),
        (throwing(Mute()), "Mute, which cannot say why"),
        (throwing(ValueError("\udcff")), "ValueError: ?"),
        (lambda view: Bundle(view["episode_id"], "APPLY", "\ud800"), "JSONDecodeError: "),
        (lambda view: Bundle(view["episode_id"], "APPLY", {"\udfff": 1}), "JSONDecodeError: "),
        (lambda view: Bundle(view["episode_id"], "APPLY", 2**64), "ValueError: an integer does not fit"),
        (lambda view: Bundle(view["episode_id"], "APPLY", -(2**63) - 1), "ValueError: an integer does not fit"),
        (lambda view: Bundle(view["episode_id"], "APPLY", 10**5000), "ValueError: "),
        (lambda view: Bundle(view["episode_id"], "APPLY", tokens_in=2**63), "BundleError: $.tokens_in"),
        (lambda view: Bundle(view["episode_id"], "APPLY", cost_usd=1e300), "BundleError: $.cost_usd"),
        (lambda view: Bundle(view["episode_id"], "APPLY", {1: 1, "1": 2}), "ValueError: a key stands twice"),
        (lambda view: Bundle(view["episode_id"], "APPLY", nested(105)), "ValueError: nested deeper than"),
        (lambda view: Bundle(view["episode_id"], "APPLY", nested(900)), "ValueError: nested deeper than"),
        (lambda view: Bundle(view["episode_id"], "APPLY", nested(100_000)), "RecursionError: "),
        (lambda view: None, "the agent gave a NoneType, no bundle"),
        (lambda view: Bundle("e99", "APPLY"), "the agent decided another episode: e99"),
        (lambda view: Bundle(view["episode_id"], "WAIT"), "BundleError: $.action: WAIT is none of "),
        (lambda view: Bundle(view["episode_id"], None, invalid="the reply was cut"), "the reply was cut"),
        (lambda view: Bundle(view["episode_id"], "APPLY", {1, 2}), "TypeError: a set is no JSON"),
        (lambda view: Bundle(view["episode_id"], "APPLY", float("nan")), "ValueError: "),
        (lambda view: view["nothing"], "KeyError: 'nothing'"),
    ],
)
def test_what_an_agent_cannot_do_is_an_invalid_output_with_its_reason(how: Any, reason: str) -> None:
    for parallel in (1, 3):
        kept: list[Bundle] = []
        bundles = run(CASES[:3], Answering(how), {}, kept.append, parallel)
        assert [bundle.episode_id for bundle in bundles] == ["e0", "e1", "e2"]
        assert sorted(map(repr, kept)) == sorted(map(repr, bundles))
        assert {bundle.action for bundle in bundles} == {None}
        for bundle in bundles:
            assert str(bundle.invalid).startswith(reason)


def test_an_agent_that_writes_into_its_view_changes_nobody_elses() -> None:
    def scribbling(view: Mapping[str, Any]) -> Bundle:
        view["task"]["question"] = "APPLY!"
        return Bundle(view["episode_id"], "APPLY")

    run(CASES, Answering(scribbling), {}, lambda _: None)
    assert [case.view["task"]["question"] for case in CASES] == [str(n) for n in range(12)]


@pytest.mark.parametrize("parallel", [1, 3])
def test_a_run_that_is_interrupted_goes_on_where_it_was(tmp_path: Path, parallel: int) -> None:
    origin = Origin("sha256:a", "m", "b")

    def interrupt(bundle: Bundle) -> None:
        results.keep(bundle)
        if len(results.path.read_bytes().splitlines()) == 6:
            raise KeyboardInterrupt

    with Results(tmp_path, origin) as results, pytest.raises(KeyboardInterrupt):
        run(CASES, Answering(), results.bundles, interrupt, parallel)
    later = Answering()
    with Results(tmp_path, origin) as results:
        assert len(results.bundles) == 5
        resumed = run(CASES, later, results.bundles, results.keep, parallel)
    assert len(later.asked) == 7
    assert resumed == run(CASES, Answering(), {}, lambda _: None)
    with Results(tmp_path, origin) as results:
        assert list(results.bundles.values()) != []
        assert run(CASES, Answering(raising), results.bundles, results.keep) == resumed


def test_a_line_that_a_killed_run_left_half_is_cut_off_and_decided_again(tmp_path: Path) -> None:
    origin = Origin("sha256:a", "m", "b")
    with Results(tmp_path, origin) as results:
        whole = run(CASES, Answering(), {}, results.keep)
    data = results.path.read_bytes()
    for cut in (1, 30, len(data) - len(data.splitlines()[0]) - 1, len(data) - 5, len(data)):
        results.path.write_bytes(data[: len(data) - cut])
        with Results(tmp_path, origin) as results:
            assert run(CASES, Answering(), results.bundles, results.keep) == whole
        assert results.path.read_bytes() == data


@pytest.mark.parametrize("member", ["suite", "method", "backbone", "settings", "code"])
def test_results_of_another_run_are_refused_and_left_as_they_are(tmp_path: Path, member: str) -> None:
    origin = Origin("sha256:a", "m", "b", "seed 0")
    with Results(tmp_path, origin) as results:
        run(CASES, Answering(), {}, results.keep)
    other = dataclasses.replace(origin, **{member: "other"})
    results.path.rename(tmp_path / "kept")
    with Results(tmp_path, other) as results:
        pass
    (tmp_path / "kept").rename(results.path)
    before = results.path.read_bytes()
    torn = before + b'{"episode_id'
    for data in (before, torn):
        results.path.write_bytes(data)
        with pytest.raises(ResultsError, match=r"(not (on|of|with)|now) other; use another --results") as told:
            Results(tmp_path, other)
        assert str(results.path) in str(told.value)
        assert "delete this file" in str(told.value)
        assert len(str(told.value).splitlines()) == 1
        assert results.path.read_bytes() == data


@pytest.mark.parametrize("data", [b"my notes", b'{"format": "other', b'{"format": "wirelessops.optbench.bundles/2'])
def test_a_file_that_a_run_did_not_begin_is_refused_and_not_emptied(tmp_path: Path, data: bytes) -> None:
    origin = Origin("sha256:a", "m", "b")
    (tmp_path / "m--b.jsonl").write_bytes(data)
    with pytest.raises(ResultsError, match="no results of format"):
        Results(tmp_path, origin)
    assert (tmp_path / "m--b.jsonl").read_bytes() == data


def test_only_one_run_writes_a_file_of_results_at_a_time(tmp_path: Path) -> None:
    origin = Origin("sha256:a", "m", "b")
    with Results(tmp_path, origin) as first:
        first.keep(Bundle("e0", "HOLD"))
        before = first.path.read_bytes()
        with pytest.raises(ResultsError, match="another run writes"):
            Results(tmp_path, origin)
        assert first.path.read_bytes() == before
        with Results(tmp_path, dataclasses.replace(origin, method="other")) as beside:
            assert beside.bundles == {}
        first.keep(Bundle("e1", "HOLD"))
    with Results(tmp_path, origin) as later:
        assert set(later.bundles) == {"e0", "e1"}


def test_a_damaged_results_file_is_refused_with_its_line(tmp_path: Path) -> None:
    origin = Origin("sha256:a", "m", "b")
    with Results(tmp_path, origin) as results:
        run(CASES, Answering(), {}, results.keep)
    lines = results.path.read_bytes().splitlines(keepends=True)
    for head in (b"[" * 100_000, b'{"format":' * 5000, b"[]", b"3"):
        results.path.write_bytes(b"".join([head + b"\n", *lines[1:]]))
        with pytest.raises(ResultsError, match="no results of format"):
            Results(tmp_path, origin)
    for damage in (b"{\n", b'{"episode_id": 3}\n', b"[" * 100_000 + b"\n"):
        results.path.write_bytes(b"".join([*lines[:4], damage, *lines[5:]]))
        with pytest.raises(ResultsError, match="line 5"):
            Results(tmp_path, origin)
    results.path.write_bytes(b"anything\n")
    with pytest.raises(ResultsError, match="no results of format"):
        Results(tmp_path, origin)


def test_names_that_are_no_file_names_stay_inside_the_directory(tmp_path: Path) -> None:
    with Results(tmp_path / "r", Origin("s", "../m", "meta/llama 3:8b")) as results:
        results.keep(Bundle("e", "HOLD"))
    assert [path.parent for path in tmp_path.rglob("*.jsonl")] == [tmp_path / "r"]


NAMES = st.text(st.sampled_from("aB1./-_ :%é\n\udcff"), min_size=1, max_size=9) | st.text(min_size=1, max_size=200)


@given(NAMES, NAMES)
def test_a_name_in_a_files_name_is_plain_and_its_own(one: str, other: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*", file_name(one))
    assert len(file_name(one)) < 80
    assert (file_name(one) == file_name(other)) == (one == other)


@pytest.mark.parametrize("name", ["direct", "wirelessagent-contract", "synthetic-a", "qwen3-8b", "gpt-5.4-mini"])
def test_a_plain_name_stays_as_it_is(name: str) -> None:
    assert file_name(name) == name


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(-1e300, 1e300) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.text(), JSON, max_size=3)
PLANS = st.dictionaries(st.text(), st.fixed_dictionaries({"value": JSON}, optional={"unit": JSON}), max_size=3)
RECORDS = st.fixed_dictionaries(
    {
        "fields": st.dictionaries(
            st.text(),
            st.fixed_dictionaries(
                {"state": st.sampled_from(["supported", "blocked"])}, optional={"observation": JSON, "value": JSON}
            ),
            max_size=2,
        ),
        "blocked": st.lists(st.text(), max_size=2),
        "repairs": st.lists(JSON, max_size=2),
    }
)
BUNDLES = st.builds(
    Bundle,
    episode_id=st.text(),
    action=st.sampled_from(ACTIONS),
    answer=JSON,
    plan=PLANS,
    record=st.none() | RECORDS,
    proposed=st.none() | st.builds(RawProposal, st.none() | st.text(), JSON, OBJECTS, OBJECTS),
    invalid=st.none(),
    calls=st.integers(0, 9),
    tokens_in=st.integers(0, 10**6),
    tokens_out=st.integers(0, 10**6),
    cost_usd=st.none() | st.floats(0, 10),
)


@given(BUNDLES)
def test_a_bundle_is_what_its_json_says(bundle: Bundle) -> None:
    line = encode(bundle)
    assert "\n" not in line
    assert decode(line) == bundle
    assert bundle_from(read_document(line.encode())) == bundle, "what a run keeps, `score` reads"
    assert read_line(json.loads(line)) == bundle


@given(JSON | st.builds(lambda b, extra: json.loads(encode(b)) | extra, BUNDLES, OBJECTS))
def test_any_document_is_read_or_refused_with_a_place(document: Any) -> None:
    refusal = None
    try:
        assert isinstance(read_line(document), Bundle | ProposalLine)
    except BundleError as error:
        refusal = error
    assert refusal is None or refusal.path.startswith("$")
    assert refusal is None or str(refusal).splitlines() == [str(refusal)]


@pytest.mark.parametrize("answer", ["\ud800", 2**64, -(2**63) - 1, nested(105), {1: 1, "1": 2}, float("inf"), {3}])
def test_nothing_is_encoded_that_a_reader_would_refuse(answer: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        encode(Bundle("e", "APPLY", answer))


def test_mappings_of_any_kind_are_objects() -> None:
    bundle = Bundle("e", "APPLY", MappingProxyType({"a": MappingProxyType({"b": 1})}), plan=MappingProxyType({}))
    assert decode(encode(bundle)).answer == {"a": {"b": 1}}


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"episode_id": 7}, "$.episode_id"),
    ({"action": "apply"}, "$.action"),
    ({"action": ["APPLY"]}, "$.action"),
    ({"plan": [1]}, "$.plan"),
    ({"plan": {"bandwidth": 5}}, "$.plan.bandwidth"),
    ({"plan": {"bandwidth": {"value": 5, "units": "MHz"}}}, "$.plan.bandwidth"),
    ({"record": "none"}, "$.record"),
    ({"record": {"fields": []}}, "$.record.fields"),
    ({"record": {"fields": {"cqi": {"state": "fine"}}}}, "$.record.fields.cqi.state"),
    ({"record": {"blocked": "o1"}}, "$.record.blocked"),
    ({"calls": -1}, "$.calls"),
    ({"tokens_in": True}, "$.tokens_in"),
    ({"cost_usd": "free"}, "$.cost_usd"),
    ({"acton": "HOLD"}, "$.acton"),
    ({"act\non\u2028": "HOLD"}, "$.act\non\u2028"),
    ({"proposed": {"action": 1}}, "$.proposed.action"),
    ({"proposal": 3, "action": "HOLD"}, "$.action"),
]


@pytest.mark.parametrize(("changes", "path"), WRONG)
def test_a_wrong_line_is_refused_with_the_place(changes: dict[str, Any], path: str) -> None:
    right = {"episode_id": "e", "action": "HOLD", "answer": 1, "plan": {}, "record": None}
    assert read_line(right) == Bundle("e", "HOLD", 1)
    with pytest.raises(BundleError) as raised:
        read_line(right | changes)
    assert raised.value.path == path
    assert str(raised.value).splitlines() == [str(raised.value)]


def test_an_output_without_an_action_is_invalid_and_says_so() -> None:
    assert bundle_from({"episode_id": "e", "action": None}) == Bundle("e", None, invalid="no action")
    assert bundle_from({"episode_id": "e", "action": None, "invalid": "cut"}) == Bundle("e", None, invalid="cut")
    with pytest.raises(BundleError):
        bundle_from({"episode_id": "e"})


def test_a_proposal_is_told_from_a_bundle_and_may_be_a_reply_as_it_came() -> None:
    proposal = {"action": "APPLY", "answer": {"value": 2}}
    assert read_line({"episode_id": "e", "proposal": proposal}) == ProposalLine("e", json.dumps(proposal))
    assert read_line({"episode_id": "e", "proposal": "I would HOLD."}) == ProposalLine("e", "I would HOLD.")
    with pytest.raises(BundleError):
        read_line({"episode_id": "e", "proposal": None})
