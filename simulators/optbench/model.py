"""The nouns of the benchmark: frozen values that every part shares (paper, section III).

`BaseItem` is a wireless task with its answer; `Facts` say what was done to the evidence under it, and never leave the
sealed side; `Case` is one episode: the view that every method gets, and the sealed part that only the evaluator reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

Scalar = float | int | str | bool
Task = Literal["WCHW", "WCNS", "WCMSA"]
Domain = Literal["schema_unit", "freshness_order", "availability_brownout", "conflict_provenance", "mixed_evidence"]
Split = Literal["development", "final"]

TASKS: Final[tuple[Task, ...]] = ("WCHW", "WCNS", "WCMSA")
DOMAINS: Final[tuple[Domain, ...]] = (
    "schema_unit", "freshness_order", "availability_brownout", "conflict_provenance", "mixed_evidence",
)  # fmt: skip
REFERENCES: Final[tuple[str, ...]] = ("APPLY", "HOLD", "RETRY", "ESCALATE")
"""Reference actions; ABSTAIN is none, and stays a wrong prediction where it is predicted."""


@dataclass(frozen=True, slots=True)
class BaseItem:
    """One wireless task with its answer, before anything is done to its evidence.

    `item_id` is unique within the task, and sealed. `input`: what the task states openly (WirelessBench's `input`; for
    WCHW empty). `contract`: the execution contract's document. `observed`: observed field → its value in the contract's
    unit; `series`: field with a windowed constraint → (age in ms, value), oldest first, besides the newest value.
    `lineage`: observed field → the observed fields that it is computed from. `plan`: planned and derived fields → the
    reference values in the contract's units. `answer`: the reference answer (WCHW `{"value", "unit"}`; WCNS and WCMSA
    WirelessBench's own keys).
    """

    task: Task
    item_id: str
    origin: Literal["file", "generated"]
    question: str
    input: Mapping[str, Any]
    contract: Mapping[str, Any]
    observed: Mapping[str, Scalar]
    lineage: Mapping[str, tuple[str, ...]]
    plan: Mapping[str, Scalar]
    answer: Mapping[str, Any]
    series: Mapping[str, tuple[tuple[int, float], ...]] = field(default_factory=dict)


ChangeKind = Literal[
    "alias",  # told under a known alias, or another spelling of a known name: `text`
    "foreign_name",  # told under a name that no field of the contract knows: `text`
    "shared_name",  # told under a name that belongs to this field and to `other`: `text`
    "prefixed_unit",  # told in another unit of the same dimension: `text`
    "no_unit",  # told without a unit, on a field whose unit is not 1
    "foreign_unit",  # told in a unit of another dimension: `text`
    "unheard_unit",  # told in a unit that no registry knows: `text`
    "schema",  # told under a schema identifier that the field does not accept: `text`
    "aged",  # measured `amount` ms before t
    "repeated",  # measured `amount` ms before t, and sent again just now as if new
    "differs",  # its value is `amount` (contract's unit) away from the item's; of a string, it is `text`
    "contradicted",  # the same source tells a second value at the same event time, `amount` away
    "overtaken",  # a report `age_ms` older, of a lower version, `amount` away, arrives after the newer one
    "overwritten",  # a report `age_ms` older, of a higher version, `amount` away, arrives after the newer one
    "no_value",  # told with no value
    "lost_parent",  # names a parent that the ledger does not hold
]


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that was done to an exposure. `ChangeKind` says which members each kind reads."""

    kind: ChangeKind
    amount: float = 0.0
    text: str | None = None
    other: str | None = None
    age_ms: int = 0


@dataclass(frozen=True, slots=True)
class Exposure:
    """That a source tells a field: one observation, or two where a change says so; an absent exposure was withheld.

    `age_ms`: t less its event time where no change says otherwise. `parents`: the exposures (field, source) that it was
    computed from. `memory`: an agent's recollection of what that source told, never a parent.
    """

    field: str
    source: str
    age_ms: int
    parents: tuple[tuple[str, str], ...] = ()
    changes: tuple[Change, ...] = ()
    memory: bool = False


@dataclass(frozen=True, slots=True)
class Outage:
    """A source that is out, and on what terms it may be asked again."""

    source: str
    retryable: bool = True
    retry_after_ms: int = 200
    retries_left: int = 2


@dataclass(frozen=True, slots=True)
class Facts:
    """All that was done to the evidence of one episode. Says nothing of an action: the label follows from it."""

    exposures: tuple[Exposure, ...]
    outages: tuple[Outage, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judge's answer: the reference action, the predicate that gave it, and the critical observed fields blocked.

    `cites`: blocked field → what shows it: observation ids, or `source:NAME` for a source in outage. The oracle, which
    reads no observations, leaves it empty.
    """

    action: str
    predicate: str
    blocked: frozenset[str]
    cites: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sealed:
    """What only the evaluator reads. `reference` is the action that both judges gave; `blocked` the fields."""

    item: BaseItem
    family: str
    domain: Domain
    facts: Facts
    reference: str
    blocked: frozenset[str]


@dataclass(frozen=True, slots=True)
class Case:
    """One episode: what any method sees, and what only the evaluator does.

    `view`: `{"episode_id", "task": {"task", "question", "input"}, "episode"}`, where `episode` is an episode document
    of the rules without its proposal.
    """

    view: Mapping[str, Any]
    sealed: Sealed

    @property
    def episode_id(self) -> str:
        """The neutral name of the episode."""
        return str(self.view["episode_id"])
