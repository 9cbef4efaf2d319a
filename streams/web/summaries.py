"""What the page says of one decision in a line: the summary of a message on `control` (docs/operator-page.md). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

import orjson

from xapp.signing import KnownKeys, Signature, check_document, signature_of

FORMAT: Final = "wirelessops.decision/1"
OPEN_ACTIONS: Final = ("HOLD", "RETRY", "ESCALATE")
_ACTIONS: Final = frozenset({"APPLY", "ABSTAIN", *OPEN_ACTIONS})
_SWITCHED: Final[Mapping[str, str]] = {"kill_switch": "hold", "shadow": "shadow"}
_CELLS: Final = frozenset({"cell", "serving", "target"})
"""What contracts call the cells among their bindings; names that end in `_cell` are cells too."""
_MAX_TEXT: Final = 2_000
_MAX_ITEMS: Final = 100
_MAX_VALUES: Final = 2_000
"""Bytes of JSON that values are shown in as they are."""
_SHORT_FIELDS: Final = 20
_SHORT_TEXT: Final = 80


class DecisionId(NamedTuple):
    """Where a decision stands on `control`."""

    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.partition}-{self.offset}"

    @classmethod
    def read(cls, text: str) -> DecisionId:
        """Of `{partition}-{offset}`. Raises ValueError."""
        partition, separator, offset = text.partition("-")
        sound = separator and all(part.isascii() and part.isdigit() and len(part) <= 19 for part in (partition, offset))
        if not sound:
            raise ValueError(f"{text[:100]!r} is no id of a decision: it is {{partition}}-{{offset}}")
        return cls(int(partition), int(offset))


def summary(
    document: Mapping[str, Any], where: DecisionId, known: KnownKeys | None, appended_at_ms: int | None
) -> dict[str, Any]:
    """The summary of a decision. Raises ValueError for a document that is none.

    `known`: keys of the guards, None where this guard was given none (`believed` is null then); `appended_at_ms`: when
    the broker took the proposal, where that is known. Long texts and lists are cut: the record has them in full.
    """
    try:
        return _summary(document, where, known, appended_at_ms)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no decision: {error!r}") from error


def _summary(
    document: Mapping[str, Any], where: DecisionId, known: KnownKeys | None, appended_at_ms: int | None
) -> dict[str, Any]:
    if document["format"] != FORMAT or document["action"] not in _ACTIONS:
        raise ValueError("no decision: another format, or an action that is none")
    decided_at_ms, attempt = _whole(document["decided_at_ms"]), _whole(document["attempt"])
    final = document["final"]
    if not isinstance(final, bool):
        raise ValueError("no decision: final is no boolean")
    blocking = [v for v in document["violations"] if v["blocking"]]
    codes = tuple(dict.fromkeys(_text(v["code"]) for v in blocking))[:_MAX_ITEMS]
    reasons = tuple(dict.fromkeys(_reason(v) for v in blocking))[:_MAX_ITEMS]
    repairs = tuple(dict.fromkeys(_text(r["operator"]) for r in document["repairs"]))[:_MAX_ITEMS]
    signature = signature_of(document)
    return {
        "id": str(where),
        "decision_id": _text(document["decision_id"]),
        "decided_at_ms": decided_at_ms,
        "action": document["action"],
        "final": final,
        "attempt": attempt,
        "region": _text(document["region"]),
        "partition": where.partition,
        "proposal_id": _text(document["proposal_id"]),
        "proposer": _optional(document.get("proposer")),
        "contract": _optional(document.get("contract_ref")),
        "control_key": _optional(document["control_key"]),
        "cells": _cells(document["bindings"]),
        "codes": codes,
        "reasons": reasons,
        "repairs": repairs,
        "explanation": _text(document["explanation"]),
        "until_ms": _time(document.get("until_ms")),
        "valid_until_ms": _time(document["valid_until_ms"]),
        "released": None if document["released"] is None else shortened(document["released"]),
        "guard": _text(document["guard"]),
        "late_ms": None if appended_at_ms is None else max(0, decided_at_ms - appended_at_ms),
        "switched": next((_SWITCHED[code] for code in codes if code in _SWITCHED), None),
        "signed_by": _text(signature.keyid) if isinstance(signature, Signature) else None,
        "believed": None if known is None else check_document(document, known) is None,
    }


def shortened(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of a control (field → `{"value", "unit"}`) as a line shows them: long ones by how many they are."""
    if not isinstance(values, Mapping):
        raise TypeError(f"an object is required, not {type(values).__name__}")
    if len(orjson.dumps(values)) <= _MAX_VALUES:
        return dict(values)
    found = {_short(name): _shortened(entry) for name, entry in islice(values.items(), _SHORT_FIELDS)}
    left = len(values) - _SHORT_FIELDS
    return found if left <= 0 else {**found, "…": f"and {left} more"}


def _shortened(entry: Any) -> Any:
    if isinstance(entry, Mapping) and "value" in entry:
        return {name: _short(entry[name]) for name in ("value", "unit") if name in entry}
    return _short(entry)


def _short(value: Any) -> Any:
    if isinstance(value, Mapping):
        return f"{len(value)} members"
    if isinstance(value, list | tuple):
        return f"{len(value)} values"
    return value[: _SHORT_TEXT - 1] + "…" if isinstance(value, str) and len(value) > _SHORT_TEXT else value


def _reason(violation: Mapping[str, Any]) -> str:
    """What blocks, and of which field or constraint: "stale sinr"."""
    of = violation.get("field") or violation.get("constraint")
    return _text(violation["code"]) if of is None else _text(f"{violation['code']} {_text(of)}")


def _cells(bindings: Mapping[str, Any]) -> list[str]:
    found: dict[str, None] = {}
    for name, bound in bindings.items():
        if name in _CELLS or name.endswith("_cell"):
            found.update(dict.fromkeys(_text(one) for one in ([bound] if isinstance(bound, str) else bound)))
    return list(found)[:_MAX_ITEMS]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a string is required, not {type(value).__name__}")
    return value if len(value) <= _MAX_TEXT else value[: _MAX_TEXT - 1] + "…"


def _optional(value: Any) -> str | None:
    return None if value is None else _text(value)


def _time(value: Any) -> int | None:
    return None if value is None else _whole(value)


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"an integer is required, not {type(value).__name__}")
    return value
