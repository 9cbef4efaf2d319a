"""The reference map, `wirelessops.support-map/1`: where the network has been, as recordings show it (section 5.1).

Built by `xapp.support.building`; its digest covers all the rest, so that a map that was touched is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import orjson
from pydantic import Field

from xapp.address import digest
from xapp.contract import DocumentFaults
from xapp.contract_document import Document, Text
from xapp.contract_loading import parsed_as
from xapp.support.carried import MapClaim
from xapp.support.component import Component
from xapp.support.drift import Standard
from xapp.support.features import BESIDE_SHARES
from xapp.times import time_fault

FORMAT: Final = "wirelessops.support-map/1"

Label = Literal["REFRESHED", "SMOKE_TEST"]
Count = Annotated[int, Field(strict=True, ge=0, lt=2**53)]
Quarter = Annotated[int, Field(strict=True, ge=0, le=3)]
Finite = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Positive = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]


class MapError(DocumentFaults):
    """A map that must not be used."""

    @property
    def path(self) -> str:
        return self.errors[0][0]

    @property
    def reason(self) -> str:
        return self.errors[0][1]


@dataclass(frozen=True, slots=True, eq=False)
class DriftLimit:
    """What is watched for drift in one quarter of the day. `components`: those whose share of the visits is a feature,
    in the order of `standard` (`xapp.support.building`); `calibrated_on`: partitions that the limit rests on.
    """

    components: tuple[Component, ...]
    standard: Standard
    limit: float
    calibrated_on: int


@dataclass(frozen=True, slots=True)
class ReferenceMap:
    """`visits`: (field, component) → its visits by slot (partition index mod `partitions`).

    `label`: SMOKE_TEST where it was refreshed from the buffer that the map before it was built from. `recordings`: the
    digests of what it was built from. `runs`: quarter → index of the first partition of its reference. `drift`: quarter
    → its limit, or why there is none. `built_at_ms`, `expires_at_ms`: inclusive, Unix ms.
    """

    map_id: str
    version: int
    contract_id: str
    contract_digest: str
    terms_digest: str
    label: Label
    built_at_ms: int
    expires_at_ms: int
    recordings: tuple[str, ...]
    partitions: int
    runs: Mapping[int, int]
    visits: Mapping[tuple[str, Component], tuple[int, ...]]
    drift: Mapping[int, DriftLimit | str]
    digest: str = ""

    @property
    def claim(self) -> MapClaim:
        """What an episode says of it."""
        return MapClaim(
            map_id=self.map_id,
            version=self.version,
            digest=self.digest,
            contract_digest=self.contract_digest,
            terms_digest=self.terms_digest,
            built_at_ms=self.built_at_ms,
            expires_at_ms=self.expires_at_ms,
        )

    def reference(self, field: str, component: Component, first: int) -> tuple[int, ...] | None:
        """The visits of a field in a component, in the order of a window whose oldest partition is `first`."""
        by_slot = self.visits.get((field, component))
        if by_slot is None:
            return None
        start = first % self.partitions
        return by_slot[start:] + by_slot[:start]


class ComponentDocument(Document):
    place: str
    quarter: Quarter
    load: Literal["low", "high", "any"]
    cqi: Literal["low", "middle", "high", "any"]

    def component(self) -> Component:
        return Component(self.place, self.quarter, self.load, self.cqi)


class RunDocument(Document):
    quarter: Quarter
    first: Count


class VisitsDocument(Document):
    field: Text
    component: ComponentDocument
    visits: list[Count]


class LimitDocument(Document):
    components: list[ComponentDocument]
    mean: list[Finite]
    deviation: list[Positive]
    limit: Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
    calibrated_on: Count


class DriftDocument(Document):
    """`limit` null: it is not watched, for the reason that `because` gives."""

    quarter: Quarter
    limit: LimitDocument | None
    because: str | None


class MapDocument(Document):
    """A reference map as written."""

    format: Literal["wirelessops.support-map/1"]
    map_id: Text
    version: Annotated[int, Field(strict=True, ge=1, lt=2**53)]
    contract_id: Text
    contract_digest: Text
    terms_digest: Text
    label: Label
    built_at_ms: Count
    expires_at_ms: Count
    recordings: list[Text]
    partitions: Annotated[int, Field(strict=True, ge=1)]
    runs: list[RunDocument]
    visits: list[VisitsDocument]
    drift: list[DriftDocument]
    digest: Text


def read_map(data: bytes) -> ReferenceMap:
    """A reference map from its JSON bytes. Raises MapError with the place of each fault, a digest that does not fit
    among them.
    """
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise MapError([("$", f"not JSON: {error}")]) from error
    parsed = parsed_as(MapDocument, document, MapError)
    errors: list[tuple[str, str]] = []
    for name in ("built_at_ms", "expires_at_ms"):
        fault = time_fault(getattr(parsed, name))
        if fault is not None:
            errors.append((f"$.{name}", fault))
    if parsed.expires_at_ms < parsed.built_at_ms:
        errors.append(("$.expires_at_ms", "lies before built_at_ms"))
    for rows in ("runs", "drift"):
        quarters = [row.quarter for row in getattr(parsed, rows)]
        errors += [
            (f"$.{rows}[{i}]", "the quarter is listed twice") for i, q in enumerate(quarters) if q in quarters[:i]
        ]
    visits: dict[tuple[str, Component], tuple[int, ...]] = {}
    for i, row in enumerate(parsed.visits):
        key = (row.field, row.component.component())
        if key in visits:
            errors.append((f"$.visits[{i}]", "the field and component are listed twice"))
        if len(row.visits) != parsed.partitions:
            errors.append((f"$.visits[{i}].visits", f"{len(row.visits)} of them: there are {parsed.partitions} slots"))
        visits[key] = tuple(row.visits)
    found = ReferenceMap(
        map_id=parsed.map_id,
        version=parsed.version,
        contract_id=parsed.contract_id,
        contract_digest=parsed.contract_digest,
        terms_digest=parsed.terms_digest,
        label=parsed.label,
        built_at_ms=parsed.built_at_ms,
        expires_at_ms=parsed.expires_at_ms,
        recordings=tuple(parsed.recordings),
        partitions=parsed.partitions,
        runs={run.quarter: run.first for run in parsed.runs},
        visits=visits,
        drift={one.quarter: _drift(one, f"$.drift[{i}]", errors) for i, one in enumerate(parsed.drift)},
        digest=parsed.digest,
    )
    if not errors and digest_of(found) != parsed.digest:
        errors.append(("$.digest", "is not that of the map: it was touched after it was built"))
    if errors:
        raise MapError(errors)
    return found


def _drift(spec: DriftDocument, path: str, errors: list[tuple[str, str]]) -> DriftLimit | str:
    limit = spec.limit
    if (limit is None) == (spec.because is None):
        errors.append((path, "exactly one of limit and because is needed"))
    if limit is None:
        return spec.because or ""
    if len(limit.mean) != len(limit.deviation) or len(limit.mean) != len(limit.components) + BESIDE_SHARES:
        errors.append((f"{path}.limit", "mean and deviation are of each component's share and four features more"))
    components = tuple(one.component() for one in limit.components)
    return DriftLimit(components, Standard(tuple(limit.mean), tuple(limit.deviation)), limit.limit, limit.calibrated_on)


def map_json(reference_map: ReferenceMap) -> bytes:
    """The canonical bytes of a map, its digest last."""
    body = _body(reference_map)
    return body[:-1] + b',"digest":"' + reference_map.digest.encode() + b'"}'


def digest_of(reference_map: ReferenceMap) -> str:
    """The digest that a map must have: over its canonical bytes without one."""
    return digest(_body(reference_map))


def _body(m: ReferenceMap) -> bytes:
    rows = sorted(m.visits.items())
    return orjson.dumps(
        {
            "format": FORMAT,
            "map_id": m.map_id,
            "version": m.version,
            "contract_id": m.contract_id,
            "contract_digest": m.contract_digest,
            "terms_digest": m.terms_digest,
            "label": m.label,
            "built_at_ms": m.built_at_ms,
            "expires_at_ms": m.expires_at_ms,
            "recordings": m.recordings,
            "partitions": m.partitions,
            "runs": [{"quarter": quarter, "first": first} for quarter, first in sorted(m.runs.items())],
            "visits": [
                {"field": field, "component": component.document(), "visits": visits}
                for (field, component), visits in rows
            ],
            "drift": [_drift_document(quarter, limit) for quarter, limit in sorted(m.drift.items(), key=_quarter)],
        }
    )


def _quarter(item: tuple[int, Any]) -> int:
    return item[0]


def _drift_document(quarter: int, limit: DriftLimit | str) -> dict[str, Any]:
    if isinstance(limit, str):
        return {"quarter": quarter, "limit": None, "because": limit}
    written = {
        "components": [component.document() for component in limit.components],
        "mean": limit.standard.mean,
        "deviation": limit.standard.deviation,
        "limit": limit.limit,
        "calibrated_on": limit.calibrated_on,
    }
    return {"quarter": quarter, "limit": written, "because": None}
