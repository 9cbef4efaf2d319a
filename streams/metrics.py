"""What Prometheus reads of a guard (docs/metrics.md has the names): counts of what was published, and how it stands.

What happens a thousand times a second is counted in plain integers; the families of Prometheus are made when it asks.
Numbers of a partition are those of its newest status, at most about a second old.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from streams import logs
from streams.observing import Published
from streams.support_health import WHY
from xapp.support.rule import SEVERITY

if TYPE_CHECKING:
    from streams.guard import Guard
    from streams.status import PartitionStatus, SourceView

PREFIX: Final = "ricxapp_wirelessops_"
WORST_SOURCES: Final = 20
"""Sources whose age is told one by one: the worst. How many there are of each state is told of all."""
MOST_NAMED: Final = 1_000
"""Sources that are told by name in the life of a guard; the age of the worst of any others is told under `(other)`."""
OTHER: Final = "(other)"
BUCKETS_S: Final = (
    0.00025, 0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
)  # fmt: skip
STAGES: Final = ("waited", "decide", "publish", "total")
SWITCHED: Final[Mapping[str, str]] = {"kill_switch": "hold", "shadow": "shadow"}
"""Violation code → the mode of the switch that it tells of."""
WAITS_FOR: Final[Mapping[str, str]] = {"HOLD": "evidence", "RETRY": "source", "ESCALATE": "operator", "ready": "guard"}
"""What is open, as the status has it → what it waits for."""
_COUNTS: Final[Mapping[str, tuple[str, str]]] = {
    "proposals": ("proposals", "Proposals read."),
    "repeated_proposals": ("repeated_proposals", "Proposals read again with the same content: dropped."),
    "telemetry_messages": ("telemetry_messages", "Reports and source statuses read."),
    "observations": ("observations", "Observations stored as evidence."),
    "repeated_reports": ("repeated_reports", "Reports read again with the same content: dropped."),
    "unknown_keys": ("unknown_keys", "Keys in telemetry that the guard does not know: ignored."),
    "queries": ("queries", "Questions read from the topic queries."),
    "requests": ("requests", "Requests for telemetry sent to sources in outage (RETRY)."),
    "redecided": ("redecided", "Decisions made again because an APPLY would have come after its authority."),
    "fenced": ("partitions_fenced", "Partitions lost to another guard that began to own them."),
    "reopened": (
        "partitions_reopened",
        "Partitions taken up again after a failure of Kafka: a batch of records and decisions could not be written.",
    ),
}
"""Field of `Counters` → name and help."""
_LABELLED: Final[Mapping[str, tuple[str, str, str]]] = {
    "outcomes": ("outcomes", "outcome", "What became of released controls, as read from the topic outcomes."),
    "answers": ("answers", "verdict", "Operators' answers read."),
    "observer_failures": ("observer_failures", "observer", "Failures of a metric, log, trace or alarm; see the log."),
}
_KNOWN: Final[Mapping[str, Sequence[str]]] = {
    "outcomes": ("applied", "refused", "unacknowledged", "effect", "no_effect"),
    "answers": ("approve", "deny"),
}
"""Labels that are told from the start: what begins at 1 has not risen, to Prometheus."""


_MAP_GAUGES: Final[Mapping[str, str]] = {
    "support_map_version": "Version of the reference map in force.",
    "support_map_age_seconds": "For how long the reference map in force has been built.",
    "support_map_expires_seconds": "For how long it still counts; below 0 it has expired.",
    "support_drifted_partitions": "Partitions of the window beyond its drift limit, in the region where most are.",
}


class Histogram:
    """How often each range of seconds was seen. `bounds`: upper bounds, ascending."""

    def __init__(self, bounds: Sequence[float] = BUCKETS_S) -> None:
        self.sum_s = 0.0
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)

    def observe(self, seconds: float) -> None:
        """One more of so many seconds."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self.sum_s += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """Upper bounds with how many were at most so long, as Prometheus writes them."""
        found, total = [], 0
        for bound, count in zip((*map(str, self._bounds), "+Inf"), self._counts, strict=True):
            total += count
            found.append((bound, float(total)))
        return found


class Metrics(Collector):
    """The metrics of one guard, on a registry of their own. `clock` gives Unix ms. An observer (streams.observing)."""

    def __init__(self, guard: Guard, clock: Callable[[], int]) -> None:
        self.registry = CollectorRegistry()
        self._guard = guard
        self._clock = clock
        self._version = version("wirelessops")
        self._decisions: Counter[tuple[str, str, bool, str]] = Counter()
        self._repairs: Counter[str] = Counter()
        self._supports: Counter[tuple[str, str]] = Counter()
        self._stages = {stage: Histogram() for stage in STAGES}
        self._named: set[tuple[str, str]] = set()
        ProcessCollector(registry=self.registry)
        self.registry.register(self)

    def published(self, published: Published) -> None:
        """A decision stands."""
        decision, reason, stages = published.decision, published.reason, self._stages
        self._decisions[decision.action, reason, published.final, SWITCHED.get(reason, "live")] += 1
        if decision.support is not None:
            self._supports[str(published.proposal.get("contract_ref")), decision.support.state] += 1
        for repair in decision.repairs:
            self._repairs[repair.operator] += 1
        stages["decide"].observe(published.decide_s)
        stages["publish"].observe(published.publish_s)
        if published.attempt == 1:  # later ones wait for what is missing: that is no latency of the guard
            stages["waited"].observe(published.waited_s)
            stages["total"].observe(max(0, published.published_at_ms - published.appended_at_ms) / 1000)

    def describe(self) -> list[Metric]:
        """Nothing: names are not checked against those of other collectors, as there are none."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All families, as they stand now."""
        yield from self._of_decisions()
        yield from self._of_counters()
        yield from self._of_the_guard()
        yield from self._of_support()
        statuses = self._guard.statuses
        yield from _of_partitions(statuses)
        yield from _of_evidence(statuses, self._clock(), self._name)

    def _name(self, view: SourceView) -> tuple[str, str]:
        """The labels of a source. Whoever may write telemetry may name ever new ones: they would be series for ever."""
        name = (view.region, view.source)
        if name not in self._named:
            if len(self._named) >= MOST_NAMED:
                return OTHER, OTHER
            self._named.add(name)
        return name

    def _of_decisions(self) -> Iterator[Metric]:
        decisions = CounterMetricFamily(
            PREFIX + "decisions",
            "Decisions published. reason: the first code of what blocks, 'none' for APPLY; final: false where the "
            "proposal is decided again; switch: the operator's switch that held an APPLY back, or live.",
            labels=("action", "reason", "final", "switch"),
        )
        for (action, reason, final, switch), count in sorted(self._decisions.items()):
            decisions.add_metric((action, reason, str(final).lower(), switch), count)
        yield decisions
        stages = HistogramMetricFamily(
            PREFIX + "decision_stage_seconds",
            "Time of each stage: waited (from the broker's taking the proposal to its first decision), decide, publish "
            "(its batch written and acknowledged), total (from the broker's taking it to its first decision standing).",
            labels=("stage",),
        )
        for stage, histogram in self._stages.items():
            stages.add_metric((stage,), buckets=histogram.buckets(), sum_value=histogram.sum_s)
        yield stages
        repairs = CounterMetricFamily(
            PREFIX + "repairs", "Repairs made in published decisions, by operator.", labels=("operator",)
        )
        for operator, count in sorted(self._repairs.items()):
            repairs.add_metric((operator,), count)
        yield repairs

    def _of_counters(self) -> Iterator[Metric]:
        counters = self._guard.counters
        for field, (name, text) in _COUNTS.items():
            yield CounterMetricFamily(PREFIX + name, text, value=getattr(counters, field))
        for field, (name, label, text) in _LABELLED.items():
            yield _counted(name, text, label, dict.fromkeys(_KNOWN.get(field, ()), 0) | getattr(counters, field))
        prefix, names = self._guard.settings.prefix, self._guard.settings.topics
        inputs = (names.telemetry, names.proposals, names.queries, names.outcomes, names.answers)
        letters = {topic.removeprefix(prefix): counters.dead_letters[topic] for topic in inputs}  # 0 is told too
        text = "Messages that could not be used, by the topic that they came from: each is on the topic dead-letters."
        yield _counted("dead_letters", text, "topic", letters)

    def _of_the_guard(self) -> Iterator[Metric]:
        guard = self._guard
        text = "1 where the guard decides: assigned, warm, log writable. Where it is 0, /ric/v1/health/ready says why."
        yield _gauge("ready", text, float(guard.ready))
        text = "For how long the oldest write to Kafka has gone unacknowledged."
        yield _gauge("unacknowledged_write_seconds", text, guard.unacknowledged_s)
        text = "Lines of the log that were dropped because nobody read them."
        yield CounterMetricFamily(PREFIX + "log_lines_dropped", text, value=logs.dropped())
        build = GaugeMetricFamily(
            PREFIX + "build_info", "Always 1: the version, and the guard's name.", labels=("version", "guard")
        )
        build.add_metric((self._version, guard.settings.guard_name), 1)
        yield build


    def _of_support(self) -> Iterator[Metric]:
        maps, now_ms = self._guard.maps, self._clock()
        verdicts = CounterMetricFamily(
            PREFIX + "support_verdicts",
            "Published decisions by what the support gate of their contract said.",
            labels=("contract", "state"),
        )
        for contract_id in maps.terms:
            for state in SEVERITY:
                verdicts.add_metric((contract_id, state), self._supports[contract_id, state])
        yield verdicts
        gauges = {
            name: GaugeMetricFamily(PREFIX + name, text, labels=("contract",)) for name, text in _MAP_GAUGES.items()
        }
        due = GaugeMetricFamily(
            PREFIX + "support_refresh_due",
            "1 where the reference map of a contract should be refreshed, and why: missing, mismatched, expired, "
            "expiring, drifted.",
            labels=("contract", "why"),
        )
        forgotten = CounterMetricFamily(
            PREFIX + "support_forgotten",
            "How often a book of visits held too much and began anew: the window fills again.",
            labels=("contract",),
        )
        for one in self._guard.support_health.look():
            forgotten.add_metric((one.contract_id,), one.forgotten)
            for why in WHY:
                due.add_metric((one.contract_id, why), float(why in one.due))
            gauges["support_drifted_partitions"].add_metric((one.contract_id,), one.drifted)
            if one.map is not None:
                gauges["support_map_version"].add_metric((one.contract_id,), one.map.version)
                gauges["support_map_age_seconds"].add_metric((one.contract_id,), (now_ms - one.map.built_at_ms) / 1000)
                left_s = (one.map.expires_at_ms - now_ms) / 1000
                gauges["support_map_expires_seconds"].add_metric((one.contract_id,), left_s)
        yield from gauges.values()
        yield due
        yield forgotten
        text = "1 where the changed folder of support terms and maps has a fault: the old maps stay in force."
        yield _gauge("support_maps_refused", text, float(maps.refused is not None))


def render(guard: Guard) -> tuple[bytes, str]:
    """The text that Prometheus reads, and its content type (text format 0.0.4)."""
    return generate_latest(guard.metrics.registry), CONTENT_TYPE_PLAIN_0_0_4


def _of_partitions(statuses: Mapping[int, PartitionStatus]) -> Iterator[Metric]:
    yield _gauge("partitions_owned", "Partitions that this guard owns.", len(statuses))
    warm = sum(status.warm for status in statuses.values())
    yield _gauge("partitions_warm", "Partitions of this guard whose evidence is rebuilt: they are decided.", warm)
    lag = GaugeMetricFamily(
        PREFIX + "lag_messages", "Messages of a topic that were not taken in yet.", labels=("topic", "partition")
    )
    chains = GaugeMetricFamily(
        PREFIX + "record_chain_index", "Index of the next record in the chain of a partition.", labels=("partition",)
    )
    open_now = Counter[str]()
    switches = Counter[str]()
    for partition, status in sorted(statuses.items()):
        for topic, behind in status.behind.items():
            lag.add_metric((topic, str(partition)), behind)
        chains.add_metric((str(partition),), status.records)
        open_now.update(status.open)
        switches.update({switch["mode"] for switch in status.switches})
    yield lag
    yield chains
    waiting = GaugeMetricFamily(
        PREFIX + "open_proposals",
        "Proposals without a final decision, by what they wait for: evidence (HOLD), a source (RETRY), an operator "
        "(ESCALATE), or their turn (guard).",
        labels=("waits_for",),
    )
    for name, waits_for in WAITS_FOR.items():
        waiting.add_metric((waits_for,), open_now[name])
    yield waiting
    switched = GaugeMetricFamily(
        PREFIX + "switched_partitions",
        "Partitions in which an operator's switch is in force for all regions or some: hold (the kill switch), shadow.",
        labels=("mode",),
    )
    for mode in SWITCHED.values():
        switched.add_metric((mode,), switches[mode])
    yield switched
    yield _gauge("leases", "Leases on control keys that are held.", sum(s.leases for s in statuses.values()))


def _of_evidence(
    statuses: Mapping[int, PartitionStatus], now_ms: int, name: Callable[[SourceView], tuple[str, str]]
) -> Iterator[Metric]:
    sources = GaugeMetricFamily(
        PREFIX + "sources",
        "Sources that some contract lists, by state: up, stale (up, and older than their limit), outage.",
        labels=("state",),
    )
    counts = Counter[str]()
    for status in statuses.values():
        counts.update(status.source_counts)
    for state in ("up", "stale", "outage"):
        sources.add_metric((state,), counts[state])
    yield sources
    labels = ("region", "source")
    ages = GaugeMetricFamily(
        PREFIX + "evidence_age_seconds",
        f"Age of the newest report of a source, for the {WORST_SOURCES} sources worst against their limit.",
        labels=labels,
    )
    limits = GaugeMetricFamily(
        PREFIX + "evidence_limit_seconds",
        "The tightest freshness that any contract asks of the same sources.",
        labels=labels,
    )
    listed = (view for status in statuses.values() for view in status.sources if view.event_time_ms is not None)
    told = set[tuple[str, str]]()
    for view in heapq.nlargest(WORST_SOURCES, listed, key=lambda view: view.excess(now_ms)):
        known_as = name(view)
        if known_as not in told:
            told.add(known_as)
            ages.add_metric(known_as, (view.age_ms(now_ms) or 0) / 1000)
            limits.add_metric(known_as, view.limit_ms / 1000)
    yield ages
    yield limits


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(PREFIX + name, text, value=value)


def _counted(name: str, text: str, label: str, counts: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(PREFIX + name, text, labels=(label,))
    for value, count in sorted(counts.items()):
        family.add_metric((value,), count)
    return family
