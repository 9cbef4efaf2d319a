"""The terms of support of one contract: `wirelessops.support-terms/1`, YAML or JSON, the operator's own.

Thresholds have no default: what is enough in one deployment says nothing of another.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import orjson
from pydantic import Field

from xapp import units
from xapp.address import digest
from xapp.contract import DocumentFaults, normalise
from xapp.contract_document import Document, Number, Text
from xapp.contract_loading import json_or_yaml, parsed_as
from xapp.support.component import ANY, LABELS, QUARTER_MS, quarter_of
from xapp.support.rule import Rule

FORMAT: Final = "wirelessops.support-terms/1"
MAX_PARTITIONS: Final = 1000
_SPLITS: Final = {"load": 1, "cqi": 2}

Positive = Annotated[int, Field(strict=True, ge=1, lt=2**53)]
LongMs = Annotated[int, Field(strict=True, ge=1, lt=10**12)]  # 31 years: what it is added to stays a time


class TermsError(DocumentFaults):
    """Terms that must not be loaded."""


class RuleDocument(Document):
    """What is enough: `min_visits` in `min_partitions` of `partitions`."""

    min_visits: Positive
    min_partitions: Positive
    partitions: Annotated[int, Field(strict=True, ge=1, le=MAX_PARTITIONS)]


class AxisDocument(Document):
    """What load or CQI is read from. `splits` in `unit` (none is `1`): one for load, two for CQI, ascending."""

    names: Annotated[list[Text], Field(min_length=1)]
    unit: str | None = None
    splits: list[Number]
    freshness_ms: Positive


class AxesDocument(Document):
    """The axes that there are; one that is missing is `any` everywhere."""

    load: AxisDocument | None = None
    cqi: AxisDocument | None = None


class TermsDocument(Document):
    """Terms as written. `drift_partitions`: so many drifted ones of a window make the map drifted; a third if none."""

    format: Literal["wirelessops.support-terms/1"]
    contract_id: Text
    partition_ms: Positive
    rule: RuleDocument
    axes: AxesDocument = AxesDocument()
    utc_offset_min: Annotated[int, Field(strict=True, ge=-720, le=840)] = 0
    expires_after_ms: LongMs
    drift_partitions: Positive | None = None


@dataclass(frozen=True, slots=True)
class Axis:
    """What one axis is read from. `names`: normalised; `splits` in `unit`, ascending; `freshness_ms`: how long a value
    stands.
    """

    names: frozenset[str]
    unit: str
    splits: tuple[float, ...]
    freshness_ms: int

    @property
    def labels(self) -> tuple[str, ...]:
        """All that `label` gives."""
        return LABELS[len(self.splits)]

    @property
    def scale(self) -> float:
        """What a mean is told in multiples of: the (upper) split."""
        return abs(self.splits[-1]) or 1.0

    def label(self, value: float) -> str:
        """Which part a value in `unit` lies in; one on a split belongs to the upper part."""
        return LABELS[len(self.splits)][bisect_right(self.splits, value)]


@dataclass(frozen=True, slots=True)
class Terms:
    """Terms that were read. `load`, `cqi`: the axes, None where there is none; `document`: canonical JSON bytes, every
    default written; `digest`: over them.
    """

    contract_id: str
    partition_ms: int
    rule: Rule
    load: Axis | None
    cqi: Axis | None
    utc_offset_min: int
    expires_after_ms: int
    drift_partitions: int
    document: bytes
    digest: str

    @property
    def axes(self) -> tuple[Axis | None, Axis | None]:
        """Load, CQI: in the order in which a component names them."""
        return self.load, self.cqi

    def first_of(self, t_ms: int) -> int:
        """The index of the oldest of the last `partitions` whole partitions at t."""
        return t_ms // self.partition_ms - self.rule.partitions

    def quarter_of_partition(self, index: int) -> int | None:
        """The quarter of the day that a partition lies in; None where it lies in two."""
        start = index * self.partition_ms
        first, last = (quarter_of(t, self.utc_offset_min) for t in (start, start + self.partition_ms - 1))
        return first if first == last else None


def labels_of(axis: Axis | None) -> tuple[str, ...]:
    """What a component may say of an axis."""
    return (ANY,) if axis is None else (*axis.labels, ANY)


def read_terms(text: bytes | str) -> Terms:
    """Terms from JSON or YAML text. Raises TermsError with the place of each fault."""
    return load_terms(json_or_yaml(text, TermsError))


def load_terms(document: Any) -> Terms:
    """Terms from a parsed document. Raises TermsError with the place of each fault."""
    parsed = parsed_as(TermsDocument, document, TermsError)
    errors: list[tuple[str, str]] = []
    rule = parsed.rule
    if rule.min_partitions > rule.partitions:
        errors.append(("$.rule.min_partitions", f"{rule.min_partitions} is above partitions, {rule.partitions}"))
    if rule.partitions * parsed.partition_ms > QUARTER_MS:
        errors.append(
            ("$.partition_ms", "the window (partitions x partition_ms) is longer than a quarter of the day: 6 h")
        )
    drift = max(1, rule.partitions // 3) if parsed.drift_partitions is None else parsed.drift_partitions
    if drift > rule.partitions:
        errors.append(("$.drift_partitions", f"{drift} is above partitions, {rule.partitions}"))
    load = None if parsed.axes.load is None else _axis(parsed.axes.load, "load", errors)
    cqi = None if parsed.axes.cqi is None else _axis(parsed.axes.cqi, "cqi", errors)
    if errors:
        raise TermsError(errors)
    written = parsed.model_dump() | {"drift_partitions": drift}
    canonical = orjson.dumps(written, option=orjson.OPT_SORT_KEYS)
    return Terms(
        contract_id=parsed.contract_id,
        partition_ms=parsed.partition_ms,
        rule=Rule(rule.min_visits, rule.min_partitions, rule.partitions),
        load=load,
        cqi=cqi,
        utc_offset_min=parsed.utc_offset_min,
        expires_after_ms=parsed.expires_after_ms,
        drift_partitions=drift,
        document=canonical,
        digest=digest(canonical),
    )


def _axis(spec: AxisDocument, name: str, errors: list[tuple[str, str]]) -> Axis:
    path, unit = f"$.axes.{name}", spec.unit or units.DIMENSIONLESS
    if not units.known(unit):
        errors.append((f"{path}.unit", f"unknown unit '{unit}'"))
    names = frozenset(map(normalise, spec.names))
    if len(names) < len(spec.names):
        errors.append((f"{path}.names", "a name is listed twice"))
    wanted = _SPLITS[name]
    if len(spec.splits) != wanted:
        errors.append((f"{path}.splits", f"{len(spec.splits)} of them: {name} is split by {wanted}"))
    elif list(spec.splits) != sorted(set(spec.splits)):
        errors.append((f"{path}.splits", "must ascend"))
    return Axis(names, unit, tuple(spec.splits), spec.freshness_ms)
