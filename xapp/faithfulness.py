"""Faithfulness (section 6): does each claim of a decision agree with the ledger that its record holds?

The decision is made again from the record alone, and compared claim by claim.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from xapp.address import digest
from xapp.authorization import decision_json
from xapp.engine import assure
from xapp.episode import EpisodeError, episode_from

# what the control topic adds to a decision (section 6): true of its delivery, not of the evidence (but for the lease)
ENVELOPE: Final = frozenset(
    {
        "attempt", "final", "sequence", "guard", "region", "decided_at_ms", "proposal_digest", "proposal_offset",
        "resume", "evidence", "lease", "asked", "proposer", "contract_ref", "until_ms", "signature", "chain",
    }
)  # fmt: skip


MAX_DEPTH: Final = 104
"""A record nested deeper is none: a proposal may nest 100 deep (section 8), and a record holds it three levels down."""


def deeper_than(document: Any, bound: int) -> bool:
    """Whether containers nest deeper than `bound`, level by level: no recursion."""
    level = [document]
    for _ in range(bound + 1):
        level = [one for one in level if isinstance(one, dict | list)]
        if not level:
            return False
        level = [item for one in level for item in (one.values() if isinstance(one, dict) else one)]
    return True


def verify(document: Any) -> list[str]:
    """The claims of a decision document that fail, each as `path: why`; an empty list means faithful.

    What a claim says is a stranger's text: it may hold line breaks and control characters.
    """
    if not isinstance(document, Mapping):
        return ["$: is no decision"]
    if deeper_than(document, MAX_DEPTH):
        return [f"$: nested deeper than {MAX_DEPTH}"]
    record = document.get("record")
    if not isinstance(record, Mapping) or "episode" not in record:
        return ["record: holds no episode, so nothing can be replayed from it"]
    try:
        made = assure(episode_from(record["episode"], {}, recorded=True))
    except EpisodeError as error:
        return [f"record.episode{error.path[1:]}: {error.reason}"]
    again = orjson.loads(decision_json(made))
    claims = {key: value for key, value in document.items() if key not in ENVELOPE | {"record"}}
    truth = {key: value for key, value in again.items() if key != "record"}
    failing = _differing("", claims, truth)
    failing += _differing("record.", {k: v for k, v in record.items() if k != "digest"}, again["record"], {"digest"})
    if "lease" in document:  # it follows from the decision, wherever it was delivered
        granted = orjson.loads(orjson.dumps(made.lease))
        failing += _differing("", {"lease": document["lease"]}, {"lease": granted})
    body = {key: value for key, value in record.items() if key != "digest"}
    if record.get("digest") != digest(orjson.dumps(body)):
        failing.append("record.digest: is not that of the record")
    return failing


def _differing(
    prefix: str, claims: Mapping[str, Any], truth: Mapping[str, Any], leave: frozenset[str] | set[str] = frozenset()
) -> list[str]:
    found = []
    for key in {**truth, **claims}:
        if key in leave:
            continue
        if key not in truth:
            found.append(f"{prefix}{key}: no decision makes this claim")
        elif key not in claims:
            found.append(f"{prefix}{key}: is missing")
        elif _canonical(claims[key]) != _canonical(truth[key]):
            found.append(f"{prefix}{key}: claims {_short(claims[key])}, the ledger gives {_short(truth[key])}")
    return found


def _canonical(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _short(value: Any) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= 120 else text[:117] + "…"
