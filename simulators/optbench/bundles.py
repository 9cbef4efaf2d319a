"""The JSON form of decision bundles, and of the lines that a user's own agent is scored from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import orjson

from simulators.optbench.agents import Bundle, RawProposal
from xapp.faithfulness import MAX_DEPTH, deeper_than
from xapp.model import ACTIONS

_PROPOSAL: Final = {"action", "answer", "plan", "fields"}
_BUNDLE: Final = {
    "episode_id", "action", "answer", "plan", "record", "proposed", "invalid", "calls", "tokens_in", "tokens_out",
    "cost_usd",
}  # fmt: skip
_SHOWN: Final = 300
_MOST: Final = 2**53 - 1
"""Of calls, tokens and US dollars of one episode: sums over a suite fit into 64 bits, and every reader takes them."""


class BundleError(ValueError):
    """A document that is neither a bundle nor a proposal; `path` is the place, `$` the whole."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(_shown(f"{path}: {reason}"))
        self.path = path


@dataclass(frozen=True, slots=True)
class ProposalLine:
    """A user's proposal for one episode: `{"episode_id", "proposal"}`. `reply`: what a backbone would have said."""

    episode_id: str
    reply: str


def bundle_json(bundle: Bundle) -> dict[str, Any]:
    """The document of a bundle, member by member; `proposed` an object of RawProposal's members, or null."""
    proposed = bundle.proposed
    return {
        "episode_id": bundle.episode_id,
        "action": bundle.action,
        "answer": bundle.answer,
        "plan": bundle.plan,
        "record": bundle.record,
        "proposed": proposed and {name: getattr(proposed, name) for name in ("action", "answer", "plan", "fields")},
        "invalid": bundle.invalid,
        "calls": bundle.calls,
        "tokens_in": bundle.tokens_in,
        "tokens_out": bundle.tokens_out,
        "cost_usd": bundle.cost_usd,
    }


def encode(bundle: Bundle) -> str:
    """The bundle as one line of JSON, which `decode` and every other reader of results reads as the same.

    Raises ValueError, TypeError or RecursionError for what has no such line.
    """
    line = json.dumps(bundle_json(bundle), allow_nan=False, separators=(",", ":"), default=_plain)
    decode(line)
    return line


def decode(line: bytes | str) -> Bundle:
    """The bundle of such a line. Raises ValueError (BundleError among them), also for JSON that not every parser

    reads as the same: lone surrogates, integers beyond 64 bits, a key twice in an object, nesting beyond MAX_DEPTH.
    """
    if deeper_than(orjson.loads(line), MAX_DEPTH):
        raise ValueError(f"nested deeper than {MAX_DEPTH}")
    return bundle_from(json.loads(line, object_pairs_hook=_unique, parse_int=_bounded))


def bundle_from(document: Any) -> Bundle:
    """The bundle of a document; all members but `episode_id` and `action` may be left out. Raises BundleError.

    An action of null is an invalid output, which counts. Members of `plan` are not looked into: what a proposer wrote
    there may be anything, and is for the scoring to judge.
    """
    known = _object(document, "$", _BUNDLE)
    episode_id = _episode_id(known)
    if "action" not in known:
        _fail("$.action", "missing; null where the agent gave none")
    action = known["action"]
    if action is not None and action not in ACTIONS:
        _fail("$.action", f"{_shown(action)} is none of {', '.join(ACTIONS)}, nor null for an invalid output")
    invalid = _text(known.get("invalid"), "$.invalid")
    if action is None and invalid is None:
        invalid = "no action"
    counts = {name: _count(known.get(name, 0), f"$.{name}") for name in ("calls", "tokens_in", "tokens_out")}
    return Bundle(
        episode_id=episode_id,
        action=action,
        answer=known.get("answer"),
        plan=_object(known.get("plan") or {}, "$.plan"),
        record=_record(known.get("record")),
        proposed=_proposal(known.get("proposed")),
        invalid=invalid,
        cost_usd=_cost(known.get("cost_usd")),
        **counts,
    )


def read_line(document: Any) -> Bundle | ProposalLine:
    """What a user's line holds: a proposal where it has a member `proposal`, else a bundle. Raises BundleError.

    `proposal` is an object as a backbone would write it, or a backbone's whole reply as text. Of a bundle, each member
    of `plan` must be `{"value", "unit"}`.
    """
    if isinstance(document, dict) and "proposal" in document:
        return proposal_from(document)
    bundle = bundle_from(document)
    for name, member in bundle.plan.items():
        if not isinstance(member, dict) or "value" not in member or member.keys() - {"value", "unit"}:
            _fail(f"$.plan.{name}", 'an object {"value", "unit"} is wanted')
    return bundle


def proposal_from(document: Any) -> ProposalLine:
    """The proposal of a line that must hold one. Raises BundleError."""
    known = _object(document, "$", {"episode_id", "proposal"})
    episode_id, proposal = _episode_id(known), known.get("proposal")
    if not isinstance(proposal, dict | str):
        _fail("$.proposal", "an object, or the text of a reply, is wanted")
    return ProposalLine(episode_id, proposal if isinstance(proposal, str) else json.dumps(proposal))


def invalid_output(episode_id: str, reason: str) -> Bundle:
    """The bundle of an episode that brought no valid output: it counts, with why."""
    return Bundle(episode_id, None, invalid=_shown(reason))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def _bounded(digits: str) -> int:
    value = int(digits) if len(digits) < 30 else None
    if value is None or not -(2**63) <= value < 2**64:
        raise ValueError("an integer does not fit into 64 bits")
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} is no JSON")


def _object(value: Any, path: str, names: set[str] | None = None) -> dict[str, Any]:
    if not isinstance(value, dict):
        _fail(path, "an object is wanted")
    for name in value:
        if names is not None and name not in names:
            _fail(f"{path}.{name}", f"no such member; known are {', '.join(sorted(names))}")
    known: dict[str, Any] = value
    return known


def _episode_id(document: Mapping[str, Any]) -> str:
    episode_id = document.get("episode_id")
    if not isinstance(episode_id, str):
        _fail("$.episode_id", "a text is wanted")
    return episode_id


def _record(value: Any) -> Mapping[str, Any] | None:
    if value is None:
        return None
    record = _object(value, "$.record")
    for name, member in _object(record.get("fields", {}), "$.record.fields").items():
        path = f"$.record.fields.{name}"
        state = _object(member, path).get("state")
        if state not in ("supported", "blocked"):
            _fail(f"{path}.state", f"{_shown(state)} is neither supported nor blocked")
    for name in ("blocked", "repairs"):
        if not isinstance(record.get(name, []), list):
            _fail(f"$.record.{name}", "a list is wanted")
    return record


def _proposal(value: Any) -> RawProposal | None:
    if value is None:
        return None
    known = _object(value, "$.proposed", _PROPOSAL)
    return RawProposal(
        action=_text(known.get("action"), "$.proposed.action"),
        answer=known.get("answer"),
        plan=_object(known.get("plan", {}), "$.proposed.plan"),
        fields=_object(known.get("fields", {}), "$.proposed.fields"),
    )


def _text(value: Any, path: str) -> str | None:
    if value is not None and not isinstance(value, str):
        _fail(path, "a text is wanted, or null")
    known: str | None = value
    return known


def _count(value: Any, path: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MOST:
        _fail(path, f"a count is wanted, at most {_MOST}")
    return value


def _cost(value: Any) -> float | None:
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= _MOST:
        _fail("$.cost_usd", f"a number from 0 to {_MOST} is wanted, or null")
    return float(value)


def reason_of(error: BaseException) -> str:
    """What an exception says, its type before it; of one that cannot even say that, the type."""
    try:
        said = str(error)
        return f"{type(error).__name__}: {said}" if said else type(error).__name__
    except KeyboardInterrupt:
        raise
    except BaseException:
        return f"{type(error).__name__}, which cannot say why"


def _shown(value: Any) -> str:
    """On one line, as text that every reader takes."""
    return " ".join(str(value).split())[:_SHOWN].encode(errors="replace").decode()


def _fail(path: str, reason: str) -> NoReturn:
    raise BundleError(path, reason)
