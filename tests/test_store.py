"""Laws of the evidence store: what is kept, what is forgotten, what a read gives, what a decision is built from."""

from __future__ import annotations

from itertools import groupby, pairwise
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from xapp.contract import Resolution
from xapp.contract_loading import load_contract
from xapp.engine import assure
from xapp.evidence.series import StoredReport
from xapp.evidence.store import Contradiction, EvidenceStore
from xapp.metrics import KNOWN_NAMES
from xapp.model import Decision, Episode, Measurement, Observation, Proposal, Report, SourceState

T = 1_800_000_000_000
OUTAGE = SourceState("outage", retryable=True, retry_after_ms=200, retries_left=2)


def report(
    report_id: str, *measurements: Measurement, source: str = "rt", event: int = 0, **more: Any
) -> Report:  # fmt: skip
    """A report measured `event` ms after T (so mostly a negative number)."""
    return Report(report_id, source, T + event, measurements, **more)


def cqi(value: Any = 10, **more: Any) -> Measurement:
    return Measurement("cqi", value, "1", **more)


def observed(one: Report, ingest_time_ms: int) -> list[Observation]:
    """What a report says, spelled out by hand: the oracle's reading of it."""
    return [
        Observation(
            id=m.id or f"{one.report_id}#{i}",
            name=m.name,
            value=m.value,
            unit=m.unit,
            source=one.source,
            event_time_ms=one.event_time_ms if m.event_time_ms is None else m.event_time_ms,
            ingest_time_ms=ingest_time_ms,
            version=one.version,
            quality=m.quality or one.quality,
            schema=m.schema or one.schema,
            subject=m.subject or one.subject,
            parents=m.parents,
            origin=m.origin,
        )
        for i, m in enumerate(one.measurements)
    ]


def values(store: EvidenceStore, name: str = "cqi", source: str = "rt", subject: str | None = None) -> list[Any]:
    return [o.value for o in store.history(subject, name, source)]


# ── what is kept ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_observation_is_read_back_as_it_was_exposed() -> None:
    sent = report(
        "r1",
        Measurement("Wb-CQI", 7, "1", "ue:1", "suspect", T - 5, "kpm/9", "own", ("p1", "p2"), "operator"),
        Measurement("On", True),
        Measurement("Cell State", "open", None),
        source="e2", event=-10, version=4, schema="kpm/3", subject="cell:1", period_ms=100,
    )  # fmt: skip
    store = EvidenceStore()
    assert store.append(sent, T).stored == 3
    assert [*store.history("ue:1", "wb_cqi", "e2"), *store.history("cell:1", "on", "e2")] == observed(sent, T)[:2]
    assert list(store.history("cell:1", "cell-state", "e2")) == observed(sent, T)[2:]


@given(st.lists(st.tuples(st.integers(-50, 50), st.integers(0, 40)), max_size=40), st.data())
def test_late_and_reordered_arrivals_land_in_event_time_order(
    pairs: list[tuple[int, int]], data: st.DataObject
) -> None:
    store = EvidenceStore(history_ms=10**6)
    arrivals = data.draw(st.permutations(pairs))
    for n, (event, ingest) in enumerate(arrivals):
        store.append(report(f"r{n}", cqi(n), event=event), T + ingest)
    expected = [n for n, _ in sorted(enumerate(arrivals), key=lambda one: one[1][0])]  # stable: then by arrival
    assert values(store) == expected


def test_an_own_event_time_places_one_measurement_of_a_report() -> None:
    store = EvidenceStore()
    store.append(report("r1", cqi(1), event=-10), T)
    store.append(report("r2", cqi(2, event_time_ms=T - 20), Measurement("users", 3), event=-5), T)
    assert values(store) == [2, 1]
    assert store.history(None, "users", "rt")[0].event_time_ms == T - 5


# ── ids ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_repeated_report_is_dropped_and_counted() -> None:
    store = EvidenceStore()
    one = report("r1", cqi(), cqi(3.0, subject="ue:1"))
    assert store.append(one, T).stored == 2
    again = store.append(one, T + 5)
    assert (again.stored, again.duplicate, store.duplicates, len(store)) == (0, True, 1, 2)
    assert store.history(None, "cqi", "rt")[0].ingest_time_ms == T


@pytest.mark.parametrize(
    "other",
    [
        report("r1", cqi(11)),
        report("r1", cqi(True)),
        report("r1", Measurement("cqi", 1, "dB")),
        report("r1", cqi(1), cqi(1)),
        report("r1", cqi(1), event=1),
        report("r1", cqi(1), version=1),
        report("r1", cqi(1), period_ms=100),
        report("r1", cqi(1, event_time_ms=T + 1)),
        report("r1", cqi(1, id="x")),
        report("r1", cqi(1, parents=("x",))),
        report("r1", cqi(1), subject="ue:1"),
    ],
)
def test_a_repeated_id_with_other_content_is_refused_and_changes_nothing(other: Report) -> None:
    store = EvidenceStore()
    first = report("r1", cqi(1))
    store.append(first, T)
    with pytest.raises(Contradiction, match="r1"):
        store.append(other, T + 1)
    assert list(store.history(None, "cqi", "rt")) == observed(first, T)
    assert (len(store), store.duplicates) == (1, 0)


def test_an_id_spelled_out_as_it_would_derive_changes_nothing() -> None:
    store = EvidenceStore()
    store.append(report("r1", cqi(1), cqi(2)), T)
    assert store.append(report("r1", cqi(1), cqi(2, id="r1#1")), T).duplicate


def test_a_single_observation_may_be_repeated_but_not_contradicted() -> None:
    store = EvidenceStore()
    store.append(report("r1", cqi(1, id="a")), T)
    again = store.append(report("r2", cqi(1, id="a"), cqi(2, id="b")), T)
    assert (again.stored, again.duplicate, store.duplicates) == (1, False, 1)
    for clash in (
        report("r3", cqi(9, id="a")),
        report("r4", cqi(1, id="r5#0"), cqi(2, id="r5#0")),
    ):
        with pytest.raises(Contradiction):
            store.append(clash, T)
    store.append(report("r7", cqi(1, id="r8#0")), T)
    with pytest.raises(Contradiction):
        store.append(report("r8", cqi(2)), T)
    assert [o.id for o in store.history(None, "cqi", "rt")] == ["a", "b", "r8#0"]


def test_an_id_of_another_source_is_never_taken_away() -> None:
    """The second source with a report id, or an id of its own, bears its name in its ids while the first is held."""
    store = EvidenceStore(history_count=1)
    store.append(report("r", cqi(1), Measurement("users", 2)), T)
    store.append(report("s", cqi(3), event=1), T + 1)
    assert store.find("r#0") is None
    store.append(report("r", cqi(4), source="e2"), T)  # r#1 is held
    store.append(report("x", cqi(5, id="r#1"), cqi(6, id="own"), source="core"), T)
    assert store.find("r#1") is not None
    assert [o.id for o in store.history(None, "cqi", "e2")] == ["e2/r#0"]
    assert [o.id for o in store.history(None, "cqi", "core")] == ["core/own"]
    assert store.append(report("r", cqi(4), source="e2"), T).duplicate
    with pytest.raises(Contradiction):
        store.append(report("r", cqi(5), source="e2"), T)
    again = report("x3", cqi(7, id="core/own"), source="other")
    store.append(again, T)
    assert [o.id for o in store.history(None, "cqi", "other")] == ["other/core/own"]
    store.append(report("core/own", cqi(1), source="a"), T)
    assert store.find("core/own#0") is not None
    store.append(report("x4", cqi(1, id="z/x5#0"), event=5), T + 5)
    store.append(report("x5", cqi(1), source="y"), T)
    with pytest.raises(Contradiction, match="those of other sources"):
        store.append(report("x5", cqi(1), source="z"), T)
    alone = EvidenceStore()
    alone.append(report("r", cqi(4), source="e2"), T)
    assert alone.find("r#0") is not None


def test_a_source_that_cites_an_id_means_its_own() -> None:
    store = EvidenceStore()
    store.append(report("r", cqi(1, subject="ue:7"), source="stranger"), T - 20)
    store.append(report("r", cqi(2, subject="ue:7"), event=-10), T - 10)
    store.append(report("child", cqi(2, subject="ue:7", parents=("r#0",))), T)
    assert {"child#0", "rt/r#0"} <= {o.id for o in store.episode_observations(CONTRACT.resolve(ONE), T)}
    store.append(report("fused", cqi(2, subject="ue:7", parents=("r#0", "rt/r#0")), source="e2"), T)
    store.append(report("odd", cqi(3, subject="ue:8", id="e2/r#0"), source="stranger"), T)
    assert [o.parents for o in store.history("ue:7", "cqi", "rt")] == [(), ("rt/r#0",)]
    assert [o.parents for o in store.history("ue:7", "cqi", "e2")] == [("r#0", "rt/r#0")]


def test_a_source_whose_clock_is_wrong_touches_nobody_else() -> None:
    store = EvidenceStore(history_ms=100)
    for n in range(5):
        store.append(report(f"r{n}", cqi(n), event=n), T + n)
    store.append(report("ahead", cqi(9), source="e2", event=10**9), T + 10**9)
    store.set_source("core", OUTAGE, T + 10**9, T + 10**9)
    store.append(report("r5", cqi(5), event=5), T + 5)
    assert values(store) == [0, 1, 2, 3, 4, 5]
    for n in range(3):  # and it recovers itself
        store.append(report(f"e{n}", cqi(n), source="e2", event=n), T + n)
    assert [v for v in values(store, source="e2") if v != 9] == [0, 1, 2]
    store.append(report("e3", cqi(3), source="e2", event=1000), T + 1000)
    assert [v for v in values(store, source="e2") if v != 9] == [3]


def test_a_source_that_falls_quiet_keeps_only_what_is_newest() -> None:
    store = EvidenceStore(history_ms=10**6, quiet_reports=10)
    for n in range(5):
        store.append(report(f"r{n}", cqi(n), event=n), T + n)
    for n in range(10):
        store.append(report(f"e{n}", cqi(n), source="e2", event=n), T + n)
    assert values(store) == [0, 1, 2, 3, 4]
    store.set_source("core", OUTAGE, T, T)
    assert values(store) == [4]
    assert store.find("r0#0") is None
    store.append(report("r9", cqi(9), event=9), T + 9)
    assert values(store) == [9]
    for n in range(10, 22):
        store.append(report(f"e{n}", cqi(n), source="e2", event=n), T + n)
        if n < 15:
            store.append(report(f"r{n}", cqi(n), event=n), T + n)
    assert values(store, source="e2") == [*range(22)]  # it was heard all the time
    assert values(store) == [9, 10, 11, 12, 13, 14]
    for n in range(22, 26):
        store.append(report(f"e{n}", cqi(n), source="e2", event=n), T + n)
    assert values(store) == [14]


def test_an_id_is_free_again_when_its_observation_is_forgotten() -> None:
    store = EvidenceStore(history_ms=100)
    store.append(report("r1", cqi(1), cqi(2, id="a")), T)
    store.append(report("r2", cqi(3), event=200), T + 200)
    assert (store.find("r1#0"), store.find("a")) == (None, None)
    assert store.append(report("r1", cqi(7), cqi(8, id="a"), event=201), T + 201).stored == 2


def test_a_number_that_is_not_finite_is_refused() -> None:
    store = EvidenceStore()
    with pytest.raises(ValueError, match="not finite"):
        store.append(report("r1", cqi(float("nan"))), T)
    assert len(store) == 0


# ── forgetting ───────────────────────────────────────────────────────────────────────────────────────────────────────


@st.composite
def floods(draw: st.DrawFn) -> tuple[list[tuple[Report, int]], int, int]:
    """Arrivals of two series (ingest times ascending; event times late, early or equal), and the bounds."""
    ingest = 0
    arrivals = []
    for n in range(draw(st.integers(1, 60))):
        ingest += draw(st.sampled_from([0, 1, 10, 40]))
        event = ingest - draw(st.sampled_from([0, 0, 0, 5, 30, 300, -1000]))
        ms = [cqi(n, origin=draw(st.sampled_from(["live", "live", "memory"])))]
        if draw(st.booleans()):
            ms.append(Measurement("users", n, event_time_ms=T + ingest - draw(st.sampled_from([0, 7, 500]))))
        arrivals.append((report(f"r{n}", *ms, event=event), T + ingest))
    return arrivals, draw(st.sampled_from([20, 100])), draw(st.sampled_from([1, 3, 1000]))


@given(floods())
def test_forgetting_keeps_the_history_and_every_head_and_no_more(
    flood: tuple[list[tuple[Report, int]], int, int],
) -> None:
    arrivals, history_ms, history_count = flood
    store = EvidenceStore(history_ms=history_ms, history_count=history_count)
    for one, ingest in arrivals:
        store.append(one, ingest)
    now = arrivals[-1][1]
    everything = [o for one, ingest in arrivals for o in observed(one, ingest)]
    for name in ("cqi", "users"):
        for memory in (False, True):
            series = [o for o in everything if o.name == name and (o.origin == "memory") == memory]
            kept = [o for o in store.history(None, name, "rt") if (o.origin == "memory") == memory]
            assert len(kept) <= history_count
            recent = {o.id for o in series if o.ingest_time_ms >= now - history_ms}
            if len(series) <= history_count:
                assert recent <= {o.id for o in kept}
            if not series:
                continue
            # the head: the newest event time that is not ahead of the newest arrival
            behind = [o.event_time_ms for o in series if o.event_time_ms <= now]
            if behind:
                assert max(behind) in {o.event_time_ms for o in kept}
            else:
                assert kept
            # nothing else of what is past its time; what was pinned goes at the latest with the next arrival
            last = max(o.ingest_time_ms for o in series)
            at_last = [o.event_time_ms for o in series if o.event_time_ms <= last]
            pinned = {max(at_last)} if at_last else set()
            pinned |= {max(behind)} if behind else {max(o.event_time_ms for o in series)}
            for o in kept:
                assert o.id in recent or o.event_time_ms in pinned
    for o in everything:
        held = o in store.history(None, o.name, "rt")
        assert (store.find(o.id) is not None) == held


def test_one_event_time_in_the_future_expires_nothing() -> None:
    store = EvidenceStore(history_ms=100)
    store.append(report("good", cqi(1), event=-10), T)
    store.append(report("wrong", cqi(2), event=10**9), T + 10)
    assert values(store) == [1, 2]
    store.append(report("other", Measurement("users", 1), event=500), T + 500)
    assert 1 in values(store)  # past its time, but still the newest that is not ahead of the clock


def test_an_old_value_of_a_slow_field_stays_until_a_newer_one_arrives() -> None:
    store = EvidenceStore(history_ms=100)
    store.append(report("slow", Measurement("capacity", 60), source="oam"), T)
    for n in range(50):
        store.append(report(f"r{n}", cqi(n), event=n * 100), T + n * 100)
    assert values(store, "capacity", "oam") == [60]
    assert store.find("slow#0") is not None
    store.append(report("next", Measurement("capacity", 61), source="oam", event=5000), T + 5000)
    assert values(store, "capacity", "oam") == [61]
    assert store.find("slow#0") is None


def test_memory_does_not_push_out_the_newest_measurement() -> None:
    store = EvidenceStore(history_ms=100)
    store.append(report("live", cqi(1)), T)
    store.append(report("told", cqi(2, origin="memory"), event=50), T + 50)
    store.append(report("child", cqi(3, parents=("told#0",)), event=60), T + 60)
    store.append(report("other", Measurement("users", 1), event=900), T + 900)
    assert 1 in values(store)


@pytest.mark.parametrize("every", [3, 10**6], ids=["late ones for ever", "in order"])
def test_what_is_held_stays_bounded_however_long_the_stream(every: int) -> None:
    store = EvidenceStore(history_ms=1000, history_count=50)
    largest = 0
    for n in range(3000):
        event = n - 10**6 if n % every == 0 else n * 100  # the first kind is about the distant past
        store.append(report(f"r{n}", cqi(n, id=f"o{n}"), Measurement("users", n), event=event), T + n * 100)
        series = store.lanes(None, "cqi")["rt", False]
        largest = max(largest, len(series.slots))
    assert len(store) <= 2 * 12
    assert largest <= 120  # dead entries are dropped once they outnumber the living
    assert len(store._ids.reports) <= 12
    assert len(store._ids._explicit) + len(store._ids._derived) + len(store._ids._of_source) <= 36
    assert len(store._sources["rt"]) <= 120


def test_identities_that_come_and_go_are_bounded_by_the_series_limit() -> None:
    store = EvidenceStore(history_ms=1000, series_limit=100)
    for n in range(1000):
        store.append(report(f"r{n}", cqi(n, subject=f"ue:{n}"), source=f"s{n % 150}", event=n), T + n)
    assert len(store) <= 101
    assert len(store._sources) <= 101
    for n in range(1000):
        store.append(report(f"u{n}", Measurement(f"strange{n}", n), source=f"s{n % 150}", event=n), T + n)
    named = {f"s{n}": store.names_of(f"s{n}") for n in range(150)}
    assert {s: {*names} for s, names in named.items()} == {
        s: {name for (_, name), lanes in store._index.items() if any(of == s for of, _ in lanes)} for s in named
    }
    assert "cqi" not in store.names_of("s99"), "forgotten with its series"
    assert sum(len(store.unknown_names(f"s{n}")) for n in range(150)) <= 101
    store.append(report("again", cqi(999, subject="ue:999"), source="s99", event=1001), T + 1001)
    assert values(store, source="s99", subject="ue:999") == [999]
    assert values(store, source="s0", subject="ue:0") == []


# ── reads on both clocks ─────────────────────────────────────────────────────────────────────────────────────────────


def head_as_of(
    held: list[Observation], event_time_ms: int, ingest_time_ms: int
) -> list[Observation]:  # fmt: skip
    """By the letter of section 3: newest event time, version where all have one, latest arrival, smaller id."""
    heads = []
    for _, items in groupby(sorted(held, key=lambda o: o.source), key=lambda o: o.source):
        known = [o for o in items if o.ingest_time_ms <= ingest_time_ms and o.event_time_ms <= event_time_ms]
        group = [o for o in known if o.event_time_ms == max(k.event_time_ms for k in known)]
        if group and None not in [o.version for o in group]:
            group = [o for o in group if o.version == max(g.version or 0 for g in group)]
        if group:
            heads.append(min(group, key=lambda o: (-o.ingest_time_ms, o.id)))
    return heads


@settings(max_examples=400)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["rt", "e2"]), st.integers(-2, 2), st.integers(0, 9), st.sampled_from([None, -3, 1, 2]),
            st.sampled_from(["live", "live", "memory"]),
        ),
        max_size=25,
    ),
    st.integers(-3, 3),
    st.integers(-1, 10),
)  # fmt: skip
def test_an_as_of_read_gives_the_head_of_each_source_on_both_clocks(
    sent: list[tuple[str, int, int, int | None, str]], event: int, ingest: int
) -> None:
    store = EvidenceStore()
    held = []
    for n, (source, at, arrived, version, origin) in enumerate(sent):
        one = report(f"r{n:02}", cqi(n, origin=origin), source=source, event=at, version=version)
        store.append(one, T + arrived)
        held += observed(one, T + arrived)
    expected = head_as_of([o for o in held if o.origin != "memory"], T + event, T + ingest)
    assert list(store.as_of(None, "CQI", T + event, T + ingest)) == expected
    assert list(store.as_of(None, "cqi", T + event, T + ingest, "e2")) == [o for o in expected if o.source == "e2"]


# ── sources ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_status_of_the_newest_event_time_stands_as_of_t() -> None:
    store = EvidenceStore()
    store.set_source("rt", OUTAGE, T + 10, T + 12)
    store.set_source("rt", SourceState("up"), T + 5, T + 20)  # late news of an earlier time
    assert store.sources(T + 11) == {}
    assert store.sources(T + 30) == {"rt": OUTAGE}
    store.set_source("rt", SourceState("up"), T + 40, T + 41)
    assert store.sources(T + 40) == {"rt": OUTAGE}
    assert store.sources(T + 41) == {}


def test_a_status_ahead_of_the_clock_does_not_outlive_its_arrival() -> None:
    store = EvidenceStore()
    store.set_source("rt", SourceState("up"), T + 10**9, T)
    store.set_source("rt", OUTAGE, T + 10, T + 10)
    assert store.sources(T + 10) == {"rt": OUTAGE}


def test_an_outage_ends_with_a_report_measured_after_it() -> None:
    store = EvidenceStore()
    store.set_source("rt", OUTAGE, T, T)
    store.append(report("before", cqi(), event=-5), T + 10)
    assert store.sources(T + 10) == {"rt": OUTAGE}
    store.append(report("after", cqi(), event=1), T + 11)
    assert store.sources(T + 10) == {"rt": OUTAGE}
    assert store.sources(T + 11) == {}
    assert store.sources(T + 11, among=["rt", "nobody"]) == {}


def test_a_source_is_in_outage_after_three_silent_periods() -> None:
    silent = SourceState("outage", retryable=True, retry_after_ms=100, retries_left=1)
    store = EvidenceStore()
    store.append(report("r1", cqi(), period_ms=100), T)
    store.append(report("r2", cqi(), event=1), T + 1)  # declares none: the declared one stands
    store.append(report("x1", cqi(), source="calm"), T)
    assert store.sources(T + 301) == {}
    assert store.sources(T + 302) == {"rt": silent}
    assert store.sources(T + 302, among=["calm"]) == {}
    assert store.append(report("r2", cqi(), event=1), T + 302).duplicate
    assert store.sources(T + 303) == {"rt": silent}  # a repeat is no sign of life
    store.set_source("rt", SourceState("up"), T + 310, T + 310)
    assert store.sources(T + 610) == {}
    assert store.sources(T + 611) == {"rt": silent}
    store.append(report("r3", cqi(), event=2), T + 620)  # even one that is old: it is heard again
    assert store.sources(T + 620) == {}
    assert store.sources(T + 611) == {"rt": silent}  # as of then it was not


def test_a_silence_outlasts_the_history() -> None:
    store = EvidenceStore(history_ms=1000)
    for n in range(200):
        store.append(report(f"r{n}", cqi(), event=n, period_ms=100), T + n)
    store.append(report("x", Measurement("users", 1), source="e2", event=10**6), T + 10**6)
    assert store.sources(T + 10**6)["rt"].retry_after_ms == 100


@pytest.mark.parametrize("reports", range(1, 40))
def test_a_declared_period_outlasts_the_history(reports: int) -> None:
    store = EvidenceStore(history_ms=1000)
    for n in range(reports):
        store.append(report(f"r{n}", cqi(), event=n, period_ms=100), T + n)
    store.append(report("last", cqi(), event=10**6), T + 10**6)
    assert store.sources(T + 10**6 + 300) == {}
    assert store.sources(T + 10**6 + 301).keys() == {"rt"}


# ── the episode of a decision ────────────────────────────────────────────────────────────────────────────────────────

CONTRACT = load_contract(
    {
        "contract_id": "store/1",
        "fields": {
            "cqi": {"kind": "observed", "aliases": ["wb_cqi"], "subject": "ue:{ue}", "freshness_ms": 1000, "min": 0,
                    "max": 15, "sources": ["rt", "e2"], "tolerance": 1},
            "users": {"kind": "observed", "freshness_ms": 3000, "sources": ["e2", "core"]},
            "rsrp": {"kind": "observed", "unit": "dBm", "subject": "ue:{ue}", "freshness_ms": 400, "sources": ["rt"]},
            "bandwidth": {"kind": "planned", "unit": "MHz", "repairable": True, "rel_tolerance": 0.01,
                          "expr": "60/(users+1)"},
        },
        "constraints": [
            {"id": "good", "expr": "all(cqi >= 3)"},
            {"id": "held", "expr": "all(rsrp > -100)", "window_ms": 480, "max_gap_ms": 200},
        ],
        "max_clock_skew_ms": 50,
    }
)  # fmt: skip
VALUES: dict[str, list[int | None]] = {"rsrp": [-80, -80, -110, None], "users": [5, 5, 7]}
ONE: dict[str, Any] = {"ue": "7"}
BOTH: dict[str, Any] = {"ue": ("7", "8")}


def base() -> list[tuple[Report, int]]:
    """Evidence under which both bindings get APPLY."""
    arrivals = []
    for n in range(8):
        ms = [Measurement("rsrp", -80 + ue, "dBm", f"ue:{ue}") for ue in (7, 8)]
        ms += [cqi(10, subject="ue:7"), cqi(10, subject="ue:8")] if n % 4 == 3 else []
        arrivals.append((report(f"b{n}", *ms, event=100 * n - 750, version=n), T + 100 * n - 740))
    arrivals.append((report("bu", Measurement("users", 5, "1"), source="e2", event=-90), T - 80))
    return arrivals


@st.composite
def ledgers(draw: st.DrawFn) -> list[tuple[Report, int]]:
    """The base, thinned, among good and bad evidence of every kind; some of it arrives after T."""
    arrivals = [one for one in base() if draw(st.integers(0, 9))]
    for n in range(draw(st.integers(0, 12))):
        event = draw(st.sampled_from([0, -1, -50, -150, -350, -400, -480, -550, -900, -1000, -1100, 20, 50, 60, 200]))
        ingest = max(event, -1200) + draw(st.sampled_from([0, 0, 5, 100, 800]))
        ms = []
        for _ in range(draw(st.integers(1, 2))):
            name = draw(st.sampled_from(["cqi", "cqi", "Wb-CQI", "rsrp", "rsrp", "users", "mystery", "enigma"]))
            value: int | None = draw(st.sampled_from(VALUES.get(name, [10, 10, 2])))
            subject = None if name == "users" else draw(st.sampled_from(["ue:7", "ue:7", "ue:8", "ue:9", None]))
            unit = draw(st.sampled_from(["dBm" if name == "rsrp" else "1"] * 5 + ["dB"]))
            known = draw(st.integers(0, 2)) == 0
            parents = draw(st.lists(st.sampled_from(["b3#0", "b7#2", "bu#0", "x0#0", "x1#0", "x2#0", "x5#1", "gone"]),
                                    max_size=2, unique=True)) if known else []  # fmt: skip
            origin = draw(st.sampled_from(["live"] * 5 + ["memory", "operator"]))
            quality = draw(st.sampled_from(["good"] * 5 + ["no_value"]))
            ms.append(Measurement(name, value, unit, subject, quality, parents=tuple(parents), origin=origin))
        source = draw(st.sampled_from(["rt", "rt", "e2", "e2", "core", "stranger", "operator:alice"]))
        version = draw(st.sampled_from([None, 2, 6, 7, 9]))
        arrivals.append((report(f"x{n}", *ms, source=source, event=event, version=version), T + ingest))
    return sorted(arrivals, key=lambda one: one[1])


def decide(
    observations: tuple[Observation, ...], bindings: dict[str, Any], sources: dict[str, SourceState]
) -> Decision:
    plan = {"bandwidth": {"value": 10, "unit": "MHz"}}
    proposal = Proposal("p", "xapp", T - 10, "key", plan, deadline_ms=T + 3000, bindings=bindings)
    raw = {"proposal_id": "p", "proposer": "xapp", "created_at_ms": T - 10, "control_key": "key", "plan": plan,
           "deadline_ms": T + 3000, "bindings": bindings}  # fmt: skip
    return assure(Episode("e", T, CONTRACT, observations, proposal, raw, sources))


def said(decision: Decision) -> tuple[Any, ...]:
    codes = {(v.code, v.field, v.constraint, v.resolved, v.blocking) for v in decision.violations}
    return (decision.action, codes, decision.used, decision.released, decision.valid_until_ms, decision.repairs)


@settings(max_examples=400, deadline=None)
@given(ledgers(), st.sampled_from([ONE, BOTH]), st.sampled_from([{}, {}, {"rt": OUTAGE}]))
def test_the_episode_decides_as_the_whole_ledger_would(
    arrivals: list[tuple[Report, int]], bindings: dict[str, Any], sources: dict[str, SourceState]
) -> None:
    store = EvidenceStore()
    whole: list[Observation] = []
    for one, ingest in arrivals:
        store.append(one, ingest)
        whole += observed(one, ingest)
    chosen = store.episode_observations(CONTRACT.resolve(bindings), T)
    assert set(chosen) <= {o for o in whole if o.ingest_time_ms <= T}
    assert len({o.id for o in chosen}) == len(chosen)
    assert [whole.index(o) for o in chosen] == sorted(whole.index(o) for o in chosen)  # in order of arrival
    assert said(decide(chosen, bindings, sources)) == said(decide(tuple(whole), bindings, sources))


@pytest.mark.parametrize("bindings", [ONE, BOTH])
def test_the_base_of_the_law_gets_apply(bindings: dict[str, Any]) -> None:
    store = EvidenceStore()
    for one, ingest in base():
        store.append(one, ingest)
    decision = decide(store.episode_observations(CONTRACT.resolve(bindings), T), bindings, {})
    assert decision.action == "APPLY", decision.explanation


def chosen_ids(*arrivals: tuple[Report, int]) -> set[str]:
    store = EvidenceStore()
    for one, ingest in arrivals:
        store.append(one, ingest)
    return {o.id for o in store.episode_observations(CONTRACT.resolve(ONE), T)}


def test_an_older_version_counts_against_a_head_within_the_skew() -> None:
    assert chosen_ids(
        (report("c", cqi(subject="ue:7"), event=-300, version=5), T - 290),
        (report("b", cqi(subject="ue:7"), event=-200, version=9), T - 190),
        (report("a", cqi(subject="ue:7"), event=-100, version=1), T - 90),
        (report("head", cqi(subject="ue:7"), event=40, version=2), T),
    ) == {"head#0", "b#0", "c#0"}


def test_an_older_version_counts_until_the_limit_of_the_field() -> None:
    assert chosen_ids(
        (report("c", cqi(subject="ue:7"), event=-1001, version=9), T - 1000),
        (report("b", cqi(subject="ue:7"), event=-1000, version=9), T - 990),
        (report("a", cqi(subject="ue:7"), event=-100, version=2), T - 90),
        (report("none", Measurement("wb-cqi", 10, "1", "ue:7"), event=-500), T - 490),
    ) == {"a#0", "b#0"}


def test_what_replaced_an_ancestor_comes_with_it() -> None:
    assert chosen_ids(
        (report("p", cqi(subject="ue:7"), event=-500, version=1), T - 490),
        (report("q", Measurement("wb_cqi", 3, "1", "ue:7"), event=-500, version=2), T - 480),
        (report("late", cqi(4, subject="ue:7"), event=-500, version=3), T + 1),
        (report("x", cqi(subject="ue:8"), event=-500), T - 480),
        (report("child", cqi(subject="ue:7", parents=("p#0",)), event=-100), T - 90),
    ) == {"child#0", "p#0", "q#0"}


def test_at_most_a_few_of_those_ahead_of_the_clock_are_taken() -> None:
    ahead = [(report(f"f{n}", cqi(subject="ue:7"), event=1000 + n), T) for n in range(100)]
    ids = chosen_ids(*ahead, (report("head", cqi(subject="ue:7"), event=-10), T))
    assert "head#0" in ids
    assert "f99#0" in ids
    assert len(ids) <= 20


class CountingStore(EvidenceStore):
    """Counts what a read touches."""

    touched = 0

    def stored(self, slot: int) -> StoredReport:
        self.touched += 1
        return super().stored(slot)


def test_an_episode_costs_what_it_touches_not_the_size_of_the_store() -> None:
    costs = []
    for others in (0, 200):
        store = CountingStore()
        for n in range(60):
            ms = [m for ue in (7, *range(100, 100 + others))
                  for m in (cqi(10, subject=f"ue:{ue}"), Measurement("rsrp", -80, "dBm", f"ue:{ue}"))]  # fmt: skip
            store.append(report(f"r{n}", *ms, event=100 * (n - 60), version=n), T + 100 * (n - 60))
        chosen = store.episode_observations(CONTRACT.resolve(ONE), T)
        costs.append((store.touched, len(chosen)))
    assert costs[0] == costs[1]
    assert costs[0][0] <= 60
    assert len(chosen) <= 10  # the head of cqi, and the half second of rsrp that its window asks for


def episode_names(store: EvidenceStore, resolution: Resolution) -> set[str]:
    return {o.name for o in store.episode_observations(resolution, T)}


def test_only_names_that_nobody_knows_enter_an_episode_beside_its_fields() -> None:
    store = EvidenceStore(known_names={"Slice PRB quota"})
    resolution = CONTRACT.resolve(ONE)
    names = ("DRB.UEThpDl", "slice_prb_quota", "chan-state-v9", "Users")  # the last: a field, but about something else
    ms = [Measurement(name, 1, subject="ue:7") for name in names]
    store.append(report("r1", *ms, event=-10), T - 5)
    assert "drb.uethpdl" in KNOWN_NAMES
    assert episode_names(store, resolution) == {"chan-state-v9"}
    told = cqi(9, subject="ue:7", origin="memory")
    store.append(report("r2", told, Measurement("rsrp", -80, "dBm", "ue:7"), event=-10), T - 5)
    assert episode_names(store, resolution) == {"chan-state-v9", "cqi", "rsrp"}  # memory is no word of the source
    store.append(report("r3", cqi(9, subject="ue:7"), event=-10), T - 5)
    assert episode_names(store, resolution) == {"cqi", "rsrp"}  # all that its sources can say is there


def test_bounds_below_one_are_refused() -> None:
    for bounds in ({"history_ms": 0}, {"history_count": 0}, {"series_limit": 0}):
        with pytest.raises(ValueError, match="at least 1"):
            EvidenceStore(**bounds)  # type: ignore[arg-type]


@given(st.lists(st.integers(0, 30), min_size=2, max_size=60), st.integers(1, 10))
def test_the_count_limit_lets_the_oldest_go(events: list[int], count: int) -> None:
    assume(len(events) > count)
    store = EvidenceStore(history_ms=10**6, history_count=count)
    for n, event in enumerate(events):
        store.append(report(f"r{n}", cqi(n), event=event - 1000), T)
    kept = [o.event_time_ms for o in store.history(None, "cqi", "rt")]
    assert len(kept) == count
    assert all(a <= b for a, b in pairwise(kept))
    assert kept == sorted(T + event - 1000 for event in events)[-count:]
