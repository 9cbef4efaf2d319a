"""Laws of the engine, over generated episodes."""

from __future__ import annotations

import copy
import importlib
import json
import os
import pkgutil
import random
import subprocess
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import orjson
import pytest
from episodes import T, clean, decide, decide_bytes, observation
from hypothesis import given, settings
from hypothesis import strategies as st

import xapp.integrity
from xapp.authorization import decision_json
from xapp.engine import assure
from xapp.episode import parse_episode
from xapp.faithfulness import verify
from xapp.governor import POLICY, SWITCHED, UNSUPPORTED, Findings, considered, govern
from xapp.integrity.fault import CLASSES, FINAL, GROUPS, RETRYABLE, Filing
from xapp.model import ACTIONS, Switch, Violation
from xapp.support.carried import SupportVerdict

EXAMPLES = Path(__file__).parents[2] / "shared" / "spec" / "examples"
FIELDS = {"cqi": ("rt", "e2"), "users": ("e2", "core"), "capacity": ("oam",), "min_rate": ("a1",), "note": ("e2",)}
UNITS = {"capacity": "MHz", "min_rate": "Mbit/s"}


@st.composite
def observations(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Up to a dozen more observations, good and bad, of every field."""
    found = []
    for i in range(draw(st.integers(0, 8))):
        name = draw(st.sampled_from(sorted(FIELDS)))
        good = {"cqi": 10, "users": 5, "capacity": 60, "min_rate": 20, "note": 1}[name]
        age = draw(st.sampled_from([0, 50, 100, 100, 150, 900, 1000, 1001, 6000, -50, -200]))
        one = observation(
            f"x{i}", name, draw(st.sampled_from([good, good, good + 1, good * 3, None])),
            draw(st.sampled_from(FIELDS[name] + ("stranger",))), age_ms=age,
        )  # fmt: skip
        one["unit"] = draw(st.sampled_from([UNITS.get(name), UNITS.get(name), None, "dB"]))
        one["version"] = draw(st.sampled_from([None, None, 1, 2]))
        one["origin"] = draw(st.sampled_from(["live", "live", "live", "memory"]))
        one["parents"] = draw(st.lists(st.sampled_from(["o1", "o2", "x0", "x1", "gone"]), max_size=2, unique=True))
        if draw(st.integers(0, 3)):
            one["parents"] = []
        found.append(one)
    return found


@st.composite
def episodes(draw: st.DrawFn) -> dict[str, Any]:
    episode = clean()
    base = episode["observations"]
    kept = draw(st.lists(st.booleans(), min_size=len(base), max_size=len(base)))
    episode["observations"] = [o for o, keep in zip(base, kept, strict=True) if keep or draw(st.integers(0, 2))]
    episode["observations"] += draw(observations())
    outage = {"status": "outage", "retryable": True, "retry_after_ms": 200, "retries_left": draw(st.integers(0, 1))}
    episode["sources"] = dict.fromkeys(draw(st.sets(st.sampled_from(["rt", "e2", "oam", "a1"]), max_size=1)), outage)
    episode["proposal"]["plan"] = draw(
        st.sampled_from(
            [
                {"bandwidth": {"value": 10, "unit": "MHz"}},
                {"bandwidth": {"value": 7, "unit": "MHz"}},
                {"bandwidth": {"value": 10}},
                {"bandwidth": {"value": 10_000, "unit": "kHz"}, "rate": {"value": 1, "unit": "Mbit/s"}},
                {},
            ]
        )
    )
    return episode


LAW = settings(max_examples=150, deadline=None, derandomize=True)


@LAW
@given(episodes(), st.randoms(use_true_random=False))
def test_the_order_of_observations_changes_no_byte(episode: dict[str, Any], chance: random.Random) -> None:
    before = decide_bytes(episode)
    chance.shuffle(episode["observations"])
    episode["proposal"] = dict(reversed(episode["proposal"].items()))
    assert decide_bytes(episode) == before


@LAW
@given(episodes(), st.sampled_from(sorted(FIELDS)), st.sampled_from([10, 5, 60, None]), st.integers(-300, 2000))
def test_a_stranger_never_turns_a_refusal_into_apply(
    episode: dict[str, Any], name: str, value: float | None, age_ms: int
) -> None:
    before = decide(episode)["action"]
    episode["observations"].append(observation("s1", name, value, "no-such-source", age_ms, unit=UNITS.get(name)))
    after = decide(episode)["action"]
    assert after != "APPLY" or before == "APPLY"


@LAW
@given(episodes(), st.integers(1, 1500))
def test_later_is_never_better_while_all_evidence_stays_admissible(episode: dict[str, Any], later_ms: int) -> None:
    for o in episode["observations"]:
        o["ingest_time_ms"] = min(o["ingest_time_ms"], T)
        o["event_time_ms"] = min(o["event_time_ms"], T)
    before = decide(episode)
    ages_out = any(
        T - o["event_time_ms"] <= limit < T + later_ms - o["event_time_ms"]
        for o in episode["observations"]
        for limit in (1000, 5000, 60_000)
    )
    episode["decided_at_ms"] = T + later_ms
    if not ages_out and before["action"] != "APPLY":
        assert decide(episode)["action"] != "APPLY"


@LAW
@given(episodes())
def test_no_apply_outlives_what_it_used_or_its_deadline(episode: dict[str, Any]) -> None:
    decision = decide(episode)
    if decision["action"] != "APPLY":
        assert decision["released"] is None
        return
    until = decision["valid_until_ms"]
    assert T <= until <= episode["proposal"]["deadline_ms"]
    by_id = {o["id"]: o for o in episode["observations"]}
    for name, ids in decision["used"].items():
        limit = episode["contract"]["fields"][name]["freshness_ms"]
        assert all(until <= min(by_id[i]["event_time_ms"], T) + limit for i in ids)
    if until < episode["proposal"]["deadline_ms"]:
        episode["decided_at_ms"] = until + 1
        assert decide(episode)["action"] != "APPLY", "one ms after authority has ended nothing is released"


@LAW
@given(episodes())
def test_a_decision_is_faithful_and_its_action_follows_from_what_blocks(episode: dict[str, Any]) -> None:
    decision = decide(episode)
    assert verify(decision) == []
    blocking = [v for v in decision["violations"] if v["blocking"]]
    assert (decision["action"] == "APPLY") == (not blocking)
    assert not [v for v in blocking if v["resolved"]]
    assert decision["record"]["unsafe_overwrites"] == 0


@LAW
@given(episodes())
def test_what_lies_outside_the_repair_scope_is_copied_as_proposed(episode: dict[str, Any]) -> None:
    record = decide(episode)["record"]
    scope = record["repair_scope"]
    assert set(scope["failed"]) <= set(scope["scope"])
    for name, entry in episode["proposal"]["plan"].items():
        if name == "bandwidth" and name not in scope["scope"]:
            assert scope["copied"][name] == entry
            assert record["candidate"][name]["value"] == entry["value"]


MODULES = [
    importlib.import_module(module.name) for module in pkgutil.iter_modules(xapp.integrity.__path__, "xapp.integrity.")
]
CHECKS = sorted({name for module in MODULES for name in vars(module) if name.startswith("check_")})
WEIGHING = ["disagreeing", "material_conflict", "remaining"]


def test_every_check_of_section_3_is_found() -> None:
    assert len(CHECKS) >= 8


@pytest.mark.parametrize("check", [*CHECKS, *WEIGHING])
def test_an_exception_inside_a_check_never_ends_in_apply(check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("our bug")

    episode = clean()
    episode["observations"][0]["parents"] = ["o2"]
    episode["observations"].append(observation("o9", "cqi", 10, "rt"))
    assert decide(episode)["action"] == "APPLY"
    for module in MODULES:
        monkeypatch.setattr(module, check, broken, raising=False)
    decision = decide(episode)
    assert decision["action"] != "APPLY"
    assert any("our bug" in v["detail"] for v in decision["violations"] if v["blocking"])


@pytest.mark.parametrize(
    ("module", "function"),
    [
        ("plan", "of_type"), ("plan", "unit_fault"), ("plan", "convert"), ("plan", "entry_value"),
        ("repair", "differ"), ("repair", "check_domain"), ("repair", "compute"), ("repair", "_check_planned"),
        ("repair", "_derive"), ("repair", "_check_restated"), ("coordination", "_unexpected"), ("engine", "_holds"),
    ],
)  # fmt: skip
def test_an_exception_inside_a_check_of_the_plan_is_a_refusal_too(
    module: str, function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("our bug")

    episode = clean()
    episode["proposal"]["plan"]["capacity"] = {"value": 60, "unit": "MHz"}
    episode["proposal"]["expected"] = {"capacity": {"value": 60, "unit": "MHz"}}
    assert decide(episode)["action"] == "APPLY"
    monkeypatch.setattr(f"xapp.{module}.{function}", broken)
    decision = decide(episode)
    assert decision["action"] != "APPLY"
    assert any(v["blocking"] for v in decision["violations"])


SWITCHES = (Switch("hold", "alice", "storm", 1_800_000_000_000, "s-1"), Switch("shadow", "bob", "trial", 10**11, "s-2"))
SUPPORTED = SupportVerdict("SUPPORTED", "enough everywhere")
VERDICTS = (
    SUPPORTED,
    SupportVerdict("RUNTIME_ABSTAIN", "too few lately"),
    SupportVerdict("REFERENCE_ABSTAIN", "no map"),
)
FINAL_ANSWERS = ("expired", "denied")
_LEASE = Violation("lease_conflict", None, None, (), False, True, "")


def test_the_policy_is_total_and_ordered_over_every_combination() -> None:
    """Every combination of filings (or none), of what else blocks, and of the intent, against section 5 in words."""
    outages = [("outage", RETRYABLE), ("outage", FINAL)]
    filed: list[tuple[str, int] | None] = [None, *GROUPS.items(), *outages]
    others = [
        None,
        "constraint",
        "plan_mismatch",
        "unknown_unit",
        "ambiguous_unit",
        "gap",
        "not_sustained",
        "expired",
        "denied",
    ]
    assert {code for code, _ in [*GROUPS.items(), *outages]} == set(CLASSES)
    for one, two, other, intended in product(filed, filed, others, (True, False)):
        filings = {f"f{i}": Filing(f[0], f[1], f"s{i}", 0, ()) for i, f in enumerate((one, two)) if f is not None}
        blocking = () if other is None else (Violation(other, None, None, (), False, True, ""),)
        names = [f[0] for f in (one, two) if f is not None]
        findings = Findings(intended, True, filings, blocking, None)
        action = govern(findings).action
        assert action in ACTIONS
        for asks in ("HOLD", "ESCALATE"):  # section 7 asks: after what is unanswerable, before what has no answer
            after = govern(replace(findings, blocking=(*blocking, _LEASE), asked=frozenset({asks}))).action
            above = {"HOLD": ("ESCALATE", "RETRY"), "ESCALATE": ()}[asks]
            assert after == (action if action in above or other in FINAL_ANSWERS else asks)
        final = any(f == ("outage", FINAL) for f in (one, two))
        if other in FINAL_ANSWERS:
            expected = "ABSTAIN"
        elif not names and other is None and intended:
            expected = "APPLY"
        elif any(
            n.startswith("ambiguous") or n in ("conflict", "out_of_order", "unknown_source", "unresolved_provenance")
            for n in [*names, other or ""]
        ):
            expected = "ESCALATE"
        elif ("outage", RETRYABLE) in (one, two) and not final:
            expected = "RETRY"
        elif not final and (set(names) - {"outage"} or other in ("gap", "not_sustained")):
            expected = "HOLD"
        else:
            expected = "ABSTAIN"
        assert action == expected, (one, two, other, intended)
        for switch in SWITCHES:  # an operator's switch turns APPLY into HOLD, and nothing else
            turned = govern(replace(findings, switch=switch))
            assert turned.action == ("HOLD" if expected == "APPLY" else expected)
            assert (turned is SWITCHED) == (expected == "APPLY")
            _rows_are_told(replace(findings, switch=switch))
        for verdict in VERDICTS:  # the support gate turns APPLY into ABSTAIN, and nothing else
            gated = govern(replace(findings, support=verdict))
            assert gated.action == ("ABSTAIN" if expected == "APPLY" and verdict is not SUPPORTED else expected)
            assert (gated is UNSUPPORTED) == (expected == "APPLY" and verdict is not SUPPORTED)
            both = replace(findings, support=verdict, switch=SWITCHES[0])  # and a switch comes before it
            assert (govern(both) is SWITCHED) == (expected == "APPLY")
            _rows_are_told(replace(findings, support=verdict))
        _rows_are_told(findings)
    rows = [rule.action for rule in POLICY]
    assert rows == ["ABSTAIN", "HOLD", "ABSTAIN", "APPLY", "ESCALATE", "RETRY", "HOLD", "ABSTAIN"]


def _rows_are_told(findings: Findings) -> None:
    """Every row says why; the first that applies is the one that is taken; what does not apply names what blocks."""
    rows = considered(findings)
    assert next(POLICY[i] for i, row in enumerate(rows) if row.applies) is govern(findings)
    assert [(row.action, row.name) for row in rows] == [(rule.action, rule.name) for rule in POLICY]
    assert all(row.because for row in rows)
    ready = next(row for row in rows if row.name == "ready")
    for code in [*(filing.code for filing in findings.filings.values()), *(v.code for v in findings.blocking)]:
        assert code in ready.because


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [path, *(p for key, item in value.items() for p in _paths(item, (*path, key)))]
    if isinstance(value, list):
        return [path, *(p for i, item in enumerate(value) for p in _paths(item, (*path, i)))]
    return [path]


def test_an_edit_anywhere_in_a_decision_is_found() -> None:
    episode = clean()
    episode["observations"][0] |= {"name": "wb_cqi", "source": "e2"}
    episode["proposal"]["evidence"] = ["o1", "gone"]
    decision = decide(episode)
    paths = [p for p in _paths(decision) if p]
    assert len(paths) > 150
    for path in paths:
        edited = copy.deepcopy(decision)
        place = edited
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = "edited" if place[path[-1]] != "edited" else None
        assert verify(edited), path


@pytest.mark.parametrize("document", [None, [], {}, {"record": None}, {"record": {"episode": []}}, {"record": {}}, 7])
def test_what_is_no_decision_is_not_faithful(document: Any) -> None:
    assert verify(document)


def test_the_same_episode_gives_the_same_bytes_in_another_process() -> None:
    episode = clean()
    episode["observations"].append(observation("o9", "cqi", 3, "stranger"))
    program = (
        "import sys; from xapp.episode import parse_episode; from xapp.engine import assure;"
        "from xapp.authorization import decision_json;"
        "sys.stdout.buffer.write(decision_json(assure(parse_episode(sys.stdin.buffer.read(), {}))))"
    )
    for hash_seed in ("1", "2"):
        result = subprocess.run(
            [sys.executable, "-c", program],
            input=orjson.dumps(episode),
            capture_output=True,
            check=True,
            env=os.environ | {"PYTHONHASHSEED": hash_seed, "TZ": "Asia/Tokyo"},
        )
        assert result.stdout == decide_bytes(episode)


def _example_names() -> list[str]:
    if not (EXAMPLES / "expect.json").exists():
        return []
    return sorted(json.loads((EXAMPLES / "expect.json").read_text()))


@pytest.mark.skipif(not _example_names(), reason="the handed examples are not on this machine")
@pytest.mark.parametrize("name", _example_names())
def test_each_handed_example_gets_its_action(name: str) -> None:
    wanted = json.loads((EXAMPLES / "expect.json").read_text())[name]
    bytes_ = decision_json(assure(parse_episode((EXAMPLES / f"{name}.json").read_bytes(), {})))
    decision = orjson.loads(bytes_)
    assert decision["action"] == wanted["action"]
    assert set(wanted.get("codes", [])) <= {v["code"] for v in decision["violations"]}
    if "repairs" in wanted:
        assert {r["operator"] for r in decision["repairs"]} == set(wanted["repairs"])
    if "valid_until_ms" in wanted:
        assert decision["valid_until_ms"] == wanted["valid_until_ms"]
    for field, value in wanted.get("released", {}).items():
        assert decision["released"][field]["value"] == value
    for field, ids in wanted.get("used", {}).items():
        assert set(ids) <= set(decision["used"][field])
    assert verify(decision) == []


def test_numbers_are_written_in_one_form_whatever_the_version_of_the_library() -> None:
    """Digests rest on it: orjson before 3.11.8 wrote 1e18 for what is 1e+18 since."""
    written = orjson.dumps([1e16, 1e18, 1.5e300, 1e-7, 5e-324, 0.1, -0.0, 123456789012345680.0])
    assert written == b"[1e+16,1e+18,1.5e+300,1e-7,5e-324,0.1,-0.0,1.2345678901234568e+17]"
