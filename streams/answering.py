"""Questions to the evidence store: as-of reads on both clocks, and normalised views. Pure: t is an argument.

The same answers serve the `queries` topic and the web.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from pydantic import ValidationError

from streams.deciding import RegionState
from streams.messages import QUERY, AsOfQuery, Evidence, ViewMessage, ViewQuery
from streams.topics import region_of
from streams.wire import parse_object
from xapp.contract import BindingError
from xapp.contract_loading import document_errors
from xapp.evidence.view import normalised_view
from xapp.model import Proposal

ASKED_BY: Final = "query"


class BadQuery(ValueError):
    """A question that cannot be read: the place and the reason."""


def read_query(value: bytes | None) -> AsOfQuery | ViewQuery:
    """Read one question. Raises BadQuery."""
    try:
        return QUERY.validate_python(parse_object(value))
    except ValidationError as error:
        raise _bad(error) from error
    except ValueError as error:
        raise BadQuery(str(error)) from error


def read_web_query(kind: str, parameters: Any) -> tuple[str, AsOfQuery | ViewQuery]:
    """The region and the question of a GET request. `parameters`: name → value, with `getall`.

    A binding is a parameter `binding.NAME`, given several times for a list. Raises BadQuery and NoRegion.
    """
    region = region_of(parameters.get("region", "").encode())
    given: dict[str, Any] = {"kind": kind, "query_id": "web"}
    bindings: dict[str, str | list[str]] = {}
    for name in dict.fromkeys(parameters):
        values = parameters.getall(name)
        if name.startswith("binding."):
            bindings[name.removeprefix("binding.")] = values[0] if len(values) == 1 else values
        elif name.endswith("_ms"):
            given[name] = _integer(name, values[-1])
        elif name != "region":
            given[name] = values[-1]
    try:
        return region, QUERY.validate_python({**given, "kind": kind, "bindings": bindings})
    except ValidationError as error:
        raise _bad(error) from error


def _integer(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise BadQuery(f"$.{name}: an integer is required, Unix ms") from error


def _bad(error: ValidationError) -> BadQuery:
    (path, reason), *_ = document_errors(error)
    for kind in ("as_of", "view"):
        path = path.replace(f"$.{kind}.", "$.", 1)
    return BadQuery(f"{path}: {reason}")


def answer(state: RegionState, query: AsOfQuery | ViewQuery, t_ms: int, evidence: Evidence | None) -> ViewMessage:
    """Answer at t. A question that does not fit the contracts is answered with `error`."""
    reply: dict[str, Any]
    if isinstance(query, AsOfQuery):
        reply = {"observations": _as_of(state, query, t_ms)}
    else:
        try:
            reply = {"view": _view(state, query, t_ms)}
        except BadQuery as error:
            reply = {"error": str(error)}
    return ViewMessage(query_id=query.query_id, region=state.region, answered_at_ms=t_ms, evidence=evidence, **reply)


def _as_of(state: RegionState, query: AsOfQuery, t_ms: int) -> list[dict[str, Any]]:
    event_time_ms = t_ms if query.event_time_ms is None else query.event_time_ms
    ingest_time_ms = t_ms if query.ingest_time_ms is None else query.ingest_time_ms
    found = state.store.as_of(query.subject, query.name, event_time_ms, ingest_time_ms, query.source)
    return [asdict(observation) for observation in found]


def _view(state: RegionState, query: ViewQuery, t_ms: int) -> dict[str, Any]:
    contract = state.contracts.get(query.contract_ref)
    if contract is None:
        raise BadQuery(f"$.contract_ref: no contract {query.contract_ref!r} here")
    bindings = {name: tuple(to) if isinstance(to, list) else to for name, to in query.bindings.items()}
    asked = Proposal(
        proposal_id=query.query_id,
        proposer=ASKED_BY,
        created_at_ms=t_ms,
        control_key="",
        plan={},
        contract_ref=query.contract_ref,
        bindings=bindings,
    )
    try:
        return normalised_view(state.episode(contract, asked, {}, t_ms))
    except BindingError as error:
        raise BadQuery(f"$.bindings.{error.name}: {error}") from error
