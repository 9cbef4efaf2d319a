"""The JSON form of an episode (rules, section 1), read with the place of each error.

What breaks the form outside `proposal` raises `EpisodeError`; what is wrong inside `proposal` is a `Malformed` value,
which the engine answers with ABSTAIN.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final, NoReturn

import orjson

from xapp.contract import Contract, ContractError
from xapp.contract_loading import load_contract
from xapp.control_document import ControlError, read_control
from xapp.controls import control_order
from xapp.model import (
    ORIGINS,
    QUALITIES,
    SWITCH_MODES,
    AppliedControl,
    Episode,
    Malformed,
    Observation,
    Proposal,
    SourceState,
    Switch,
)
from xapp.plan import PlanError, read_proposal_document
from xapp.support.carried import Support, SupportError, read_support, support_document
from xapp.times import time_fault

FORMAT: Final = "wirelessops.episode/1"
MAX_BYTES: Final = 10_000_000  # section 8: a document or line of more than 10 MB is invalid
MAX_DEPTH: Final = 100  # section 8: nested deeper than 100 is invalid

_REQUIRED: Final = ("format", "episode_id", "decided_at_ms", "observations", "proposal")
_OPTIONAL: Final = ("contract", "contract_ref", "sources", "controls", "switch", "support")
_INT64: Final = 2**63
PROPOSAL_KEY: Final = "$digest"  # how a record names a proposal that it cannot carry for its size,
RECORD_BYTES_KEY: Final = "$record_bytes"  # and the size that the record would have
TEXT_KEY: Final = "$text"  # how a record carries a proposal that is no JSON value (NaN, a lone surrogate)


class EpisodeError(ValueError):
    """An invalid episode: `path` is the JSON path of the fault."""

    def __init__(self, path: str, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(f"{path}: {reason}")


def parse_episode(data: bytes, contracts: Mapping[str, Contract]) -> Episode:
    """Read one episode document. `contracts`: what `contract_ref` may name. Raises EpisodeError."""
    document, flaw = read_document(data)
    return episode_from(document, contracts, flaw)


def read_document(data: bytes) -> tuple[Any, tuple[str, str] | None]:
    """The JSON value of `data`, and the first place that holds no JSON value (NaN, a lone surrogate), if any.

    Raises EpisodeError where the text is too large, nested too deep, or no JSON at all.
    """
    if len(data) > MAX_BYTES:
        _fail("$", f"larger than {MAX_BYTES // 10**6} MB")
    flaw: tuple[str, str] | None = None
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        document, flaw = _read_leniently(data, str(error))
    _check_depth(document)
    return document, flaw


def _read_leniently(data: bytes, reason: str) -> tuple[Any, tuple[str, str]]:
    """Python's own parser takes NaN and lone surrogates: it finds the place that the strict one cannot name."""
    try:
        document = json.loads(data, parse_int=_number)
    except RecursionError:
        _fail("$", f"nested deeper than {MAX_DEPTH}")
    except ValueError:
        _fail("$", f"not JSON: {reason}")
    flaws = _flaws(document)
    if not flaws:
        _fail("$", f"not JSON: {reason}")
    outside = [f for f in flaws if not f[0].startswith("$.proposal.")]
    return document, (outside or flaws)[0]


def _number(text: str) -> int | float:
    """An integer, or beyond 64 bits a float, as the strict parser reads it."""
    return int(text) if len(text) < 19 else float(text)


def _flaws(document: Any) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    stack: list[tuple[str, Any]] = [("$", document)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, dict):
            stack += [(f"{path}.{key}", item) for key, item in reversed(value.items())]
            found += [(path, "a key is no valid Unicode") for key in value if not _encodable(key)]
        elif isinstance(value, list):
            stack += [(f"{path}[{i}]", item) for i, item in reversed(list(enumerate(value)))]
        elif isinstance(value, float) and not math.isfinite(value):
            found.append((path, "is no finite number"))
        elif isinstance(value, str) and not _encodable(value):
            found.append((path, "is no valid Unicode"))
    return found


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_depth(document: Any) -> None:
    level, depth = [document], 0
    while level := [value for value in level if isinstance(value, (dict, list))]:
        depth += 1
        if depth > MAX_DEPTH:
            _fail("$", f"nested deeper than {MAX_DEPTH}")
        level = [item for value in level for item in (value.values() if isinstance(value, dict) else value)]


def episode_from(
    document: Any,
    contracts: Mapping[str, Contract],
    flaw: tuple[str, str] | None = None,
    *,
    needs_proposal: bool = True,
    recorded: bool = False,
) -> Episode:
    """An episode from its parsed document; `flaw` as `read_document` gives it. Raises EpisodeError.

    `needs_proposal` False lets the proposal be absent, or be no more than its `bindings` (a view needs only those).
    `recorded` True takes what a record may hold beside: no contract, where the proposal named none that was known.
    """
    if flaw is not None and not flaw[0].startswith("$.proposal."):
        _fail(*flaw)
    if not isinstance(document, dict):
        _fail("$", "must be an object")
    for key in _REQUIRED:
        if key not in document and (key != "proposal" or needs_proposal):
            _fail(f"$.{key}", "is required")
    for key in document:
        if key not in _REQUIRED and key not in _OPTIONAL:
            _fail(f"$.{key}", "unknown key")
    if document["format"] != FORMAT:
        _fail("$.format", f"must be '{FORMAT}'")
    episode_id = document["episode_id"]
    if not isinstance(episode_id, str) or not episode_id:
        _fail("$.episode_id", "must be a non-empty string")
    now = _integer(document["decided_at_ms"], "$.decided_at_ms")
    fault = time_fault(now)
    if fault is not None:
        _fail("$.decided_at_ms", fault)
    unnamed = recorded and "contract" in document and document["contract"] is None
    contract = None if unnamed else _contract(document, contracts)
    raw = document.get("proposal", {})
    if not isinstance(raw, dict):
        _fail("$.proposal", "must be an object")
    if needs_proposal and not isinstance(raw.get("proposal_id"), str):
        _fail("$.proposal.proposal_id", "must be a string" if "proposal_id" in raw else "is required")
    if contract is None:
        proposal: Proposal | Malformed = no_contract(raw)
    else:
        proposal, raw = _proposal(raw, contract, now, flaw)
    return Episode(
        episode_id=episode_id,
        decided_at_ms=now,
        contract=contract,
        observations=_observations(document["observations"]),
        proposal=proposal,
        proposal_raw=raw,
        sources=_sources(document.get("sources", {})),
        controls=_controls(document.get("controls", [])),
        switch=_switch(document["switch"], "$.switch") if "switch" in document else None,
        support=_support(document["support"], "$.support") if "support" in document else None,
    )


def read_proposal(raw: Mapping[str, Any], contract: Contract, now_ms: int) -> Proposal | Malformed:
    """Read a proposal document (an object with a string `proposal_id`) against its contract.

    The order of its keys is lost on the way: it must not reach the decision.
    """
    try:
        return read_proposal_document(orjson.loads(orjson.dumps(raw, option=orjson.OPT_SORT_KEYS)), contract, now_ms)
    except PlanError as error:
        return Malformed(raw["proposal_id"], error.path, error.reason)


def no_contract(raw: Mapping[str, Any]) -> Malformed:
    """A proposal (an object with a string `proposal_id`) whose contract is missing, or unknown here."""
    if raw.keys() == {"proposal_id", PROPOSAL_KEY, RECORD_BYTES_KEY}:
        reason = f"its record of {raw[RECORD_BYTES_KEY]} bytes is larger than a message may be"
        return Malformed(raw["proposal_id"], "$.proposal", reason)
    reference = raw.get("contract_ref")
    reason = "is required" if reference is None else f"no contract {reference!r} here"
    return Malformed(raw["proposal_id"], "$.proposal.contract_ref", reason)


def _proposal(
    raw: dict[str, Any], contract: Contract, now: int, flaw: tuple[str, str] | None
) -> tuple[Proposal | Malformed, dict[str, Any]]:
    if flaw is not None:
        text = {"proposal_id": _printable(raw.get("proposal_id", "")), TEXT_KEY: json.dumps(raw, sort_keys=True)}
        return Malformed(text["proposal_id"], *flaw), text
    if raw.keys() == {"proposal_id", TEXT_KEY} and isinstance(raw[TEXT_KEY], str):
        try:
            flaws = _flaws({"proposal": json.loads(raw[TEXT_KEY])})
        except (ValueError, RecursionError):
            flaws = []
        if flaws:
            return Malformed(raw["proposal_id"], *flaws[0]), raw
    return read_proposal({"proposal_id": "", **raw}, contract, now), raw


def _printable(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()


def _contract(document: dict[str, Any], contracts: Mapping[str, Contract]) -> Contract:
    if ("contract" in document) == ("contract_ref" in document):
        _fail("$.contract", "exactly one of contract and contract_ref is required")
    if "contract_ref" in document:
        reference = document["contract_ref"]
        if not isinstance(reference, str) or reference not in contracts:
            _fail("$.contract_ref", f"unknown contract {reference!r}")
        return contracts[reference]
    try:
        return load_contract(document["contract"])
    except ContractError as error:
        _fail("$.contract" + error.errors[0][0][1:], error.errors[0][1])


_OBSERVATION_KEYS: Final = frozenset(Observation.__dataclass_fields__)
_NEEDED: Final = ("id", "name", "value", "source", "event_time_ms", "ingest_time_ms")


def _observations(items: Any) -> tuple[Observation, ...]:
    if not isinstance(items, list):
        _fail("$.observations", "must be a list")
    found = tuple(_observation(item, f"$.observations[{i}]") for i, item in enumerate(items))
    seen: dict[str, int] = {}
    for i, observation in enumerate(found):
        if observation.id in seen:
            _fail(f"$.observations[{i}].id", f"'{observation.id}' is also the id of observation {seen[observation.id]}")
        seen[observation.id] = i
    return found


def _observation(item: Any, path: str) -> Observation:
    if not isinstance(item, dict):
        _fail(path, "must be an object")
    for key in _NEEDED:
        if key not in item:
            _fail(f"{path}.{key}", "is required")
    for key in item:
        if key not in _OBSERVATION_KEYS:
            _fail(f"{path}.{key}", "unknown key")
    for key in ("id", "name", "source"):
        if not isinstance(item[key], str) or not item[key]:
            _fail(f"{path}.{key}", "must be a non-empty string")
    for key in ("unit", "schema", "subject"):
        if not isinstance(item.get(key), (str, type(None))):
            _fail(f"{path}.{key}", "must be a string or null")
    value = item["value"]
    if not isinstance(value, (float, int, str, bool, type(None))):
        _fail(f"{path}.value", "must be a number, a string, a boolean or null")
    version = item.get("version")
    if version is not None:
        _integer(version, f"{path}.version")
    for key, allowed, default in (("quality", QUALITIES, "good"), ("origin", ORIGINS, "live")):
        if item.get(key, default) not in allowed:
            _fail(f"{path}.{key}", "must be one of " + ", ".join(allowed))
    parents = item.get("parents", [])
    if not isinstance(parents, list) or not all(isinstance(p, str) for p in parents):
        _fail(f"{path}.parents", "must be a list of observation ids")
    return Observation(
        item["id"],
        item["name"],
        value,
        item.get("unit") or None,
        item["source"],
        _integer(item["event_time_ms"], f"{path}.event_time_ms"),
        _integer(item["ingest_time_ms"], f"{path}.ingest_time_ms"),
        version,
        item.get("quality", "good"),
        item.get("schema"),
        item.get("subject"),
        tuple(parents),
        item.get("origin", "live"),
    )


def _sources(items: Any) -> dict[str, SourceState]:
    if not isinstance(items, dict):
        _fail("$.sources", "must be an object")
    return {name: _source(item, f"$.sources.{name}") for name, item in items.items()}


def _source(item: Any, path: str) -> SourceState:
    if not isinstance(item, dict):
        _fail(path, "must be an object")
    for key in item:
        if key not in SourceState.__dataclass_fields__:
            _fail(f"{path}.{key}", "unknown key")
    if item.get("status") not in ("up", "outage"):
        _fail(f"{path}.status", "must be 'up' or 'outage'" if "status" in item else "is required")
    retryable = item.get("retryable", False)
    if not isinstance(retryable, bool):
        _fail(f"{path}.retryable", "must be a boolean")
    after = item.get("retry_after_ms")
    if after is not None and _integer(after, f"{path}.retry_after_ms") < 0:
        _fail(f"{path}.retry_after_ms", "must not be negative")
    left = _integer(item.get("retries_left", 0), f"{path}.retries_left")
    if left < 0:
        _fail(f"{path}.retries_left", "must not be negative")
    return SourceState(item["status"], retryable, after, left)


def _controls(items: Any) -> tuple[AppliedControl, ...]:
    if not isinstance(items, list):
        _fail("$.controls", "must be a list")
    try:
        found = tuple(read_control(item, f"$.controls[{i}]") for i, item in enumerate(items))
    except ControlError as error:
        _fail(error.path, error.reason)
    seen: dict[str, int] = {}
    for i, control in enumerate(found):
        if control.decision_id in seen:
            _fail(f"$.controls[{i}].decision_id", f"is also that of control {seen[control.decision_id]}")
        seen[control.decision_id] = i
    return found


def _switch(item: Any, path: str) -> Switch:
    if not isinstance(item, dict):
        _fail(path, "must be an object")
    for key in Switch.__dataclass_fields__:
        if key not in item:
            _fail(f"{path}.{key}", "is required")
    for key in item:
        if key not in Switch.__dataclass_fields__:
            _fail(f"{path}.{key}", "unknown key")
    if item["mode"] not in SWITCH_MODES:
        _fail(f"{path}.mode", "must be one of " + ", ".join(SWITCH_MODES))
    for key in ("operator", "reason", "switch_id"):
        if not isinstance(item[key], str) or not item[key]:
            _fail(f"{path}.{key}", "must be a non-empty string")
    fault = time_fault(_integer(item["at_ms"], f"{path}.at_ms"))
    if fault is not None:
        _fail(f"{path}.at_ms", fault)
    return Switch(**item)


def _support(item: Any, path: str) -> Support:
    try:
        return read_support(item, path)
    except SupportError as error:
        _fail(error.path, error.reason)


def _integer(value: Any, path: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        _fail(path, "must be an integer")
    if not -_INT64 <= value < _INT64:
        _fail(path, "is beyond 64 bits")
    return value


def _fail(path: str, reason: str) -> NoReturn:
    raise EpisodeError(path, reason)


def episode_json(episode: Episode) -> bytes:
    """The canonical bytes of an episode: observations by arrival, then id; controls as granted; every default written,
    but for `switch` and `support`, which are absent where there are none.

    Permuting observations, controls, sources or the keys of the proposal leaves them as they are. They read back to an
    equal episode, and their digest is the identity of a decision.
    """
    return orjson.dumps(
        {
            "format": FORMAT,
            "episode_id": episode.episode_id,
            "decided_at_ms": episode.decided_at_ms,
            "contract": None if episode.contract is None else orjson.Fragment(episode.contract.document),
            "sources": dict(sorted(episode.sources.items())),
            "observations": sorted(episode.observations, key=_arrival),
            "controls": orjson.Fragment(_controls_json(episode.controls)) if episode.controls else (),
            "proposal": orjson.Fragment(orjson.dumps(episode.proposal_raw, option=orjson.OPT_SORT_KEYS)),
            **({} if episode.switch is None else {"switch": episode.switch}),
            **({} if episode.support is None else {"support": support_document(episode.support)}),
        }
    )


def _controls_json(controls: tuple[AppliedControl, ...]) -> bytes:
    return orjson.dumps(sorted(controls, key=control_order), option=orjson.OPT_SORT_KEYS)


def _arrival(observation: Observation) -> tuple[int, str]:
    return observation.ingest_time_ms, observation.id
