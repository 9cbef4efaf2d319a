"""An actuator's check before it carries out a decision: is this an order, of a guard it knows, now, for the first time?

Pure: the clock is an argument, and what was seen before is a value that goes in and comes out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Self

import orjson

from xapp.authorization import FORMAT
from xapp.signing import KnownKeys, check_document

STATE_FORMAT: Final = "wirelessops.actuator-state/1"
REMEMBERED: Final = 1024
"""Orders remembered as carried out. An older one is still refused: its sequence is not new."""

STREAMS: Final = 4096
"""Sequences remembered, of (partition, region); the one that was silent longest is forgotten first."""

Kind = Literal[
    "permitted", "nothing_to_do", "expired", "replayed", "out_of_sequence", "unknown_signer", "bad_signature",
    "unsigned", "not_final", "malformed",
]  # fmt: skip

_ACTIONS: Final = frozenset({"APPLY", "HOLD", "RETRY", "ESCALATE", "ABSTAIN"})

Stream = tuple[int, str]
"""The partition of `control` that a decision came by (as its evidence says) and its region."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a decision may be carried out, and if not, why not."""

    kind: Kind
    detail: str = ""
    believed: bool = True
    """Whether a guard that is known said it: nothing may be told to others about a decision that a stranger made up."""

    @property
    def permitted(self) -> bool:
        return self.kind == "permitted"

    @property
    def refused(self) -> bool:
        """Neither permitted nor a decision that orders nothing."""
        return self.kind not in ("permitted", "nothing_to_do")


class StateError(ValueError):
    """What should be an actuator's state is none."""


@dataclass(frozen=True, slots=True)
class ActuatorState:
    """What an actuator has seen: the last sequence of each stream, and what it was permitted to carry out.

    `executed` maps decision ids, and the idempotency keys (proposal_id, attempt), to the order as JSON keeps it.
    """

    sequences: Mapping[Stream, int] = field(default_factory=dict)
    executed: Mapping[str | tuple[str, int], tuple[str, str, int]] = field(default_factory=dict)

    def to_json(self) -> bytes:
        return orjson.dumps(
            {
                "format": STATE_FORMAT,
                "sequences": [[partition, region, last] for (partition, region), last in self.sequences.items()],
                "executed": list(dict.fromkeys(self.executed.values())),
            }
        )

    @classmethod
    def from_json(cls, data: bytes) -> Self:
        """The state in these bytes. Raises StateError: one that cannot be read must not pass for an empty one."""
        try:
            document = orjson.loads(data)
            if document["format"] != STATE_FORMAT:
                raise ValueError(f"its format is not {STATE_FORMAT}")
            sequences = {}
            for partition, region, last in document["sequences"]:
                if not (_is_count(partition) and isinstance(region, str) and _is_count(last)):
                    raise ValueError("sequences: [partition, region, sequence] is needed")
                sequences[partition, region] = last
            executed: dict[str | tuple[str, int], tuple[str, str, int]] = {}
            for decision_id, proposal_id, attempt in document["executed"]:
                if not (isinstance(decision_id, str) and isinstance(proposal_id, str) and _is_count(attempt)):
                    raise ValueError("executed: [decision_id, proposal_id, attempt] is needed")
                order = (decision_id, proposal_id, attempt)
                executed |= {decision_id: order, (proposal_id, attempt): order}
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(f"no state of an actuator: {error}") from error
        return cls(sequences, executed)

    def seen(self, stream: Stream, sequence: int) -> ActuatorState:
        """As this, with a stream at least at `sequence`."""
        sequences = dict(self.sequences)
        last = sequences.pop(stream, -1)
        sequences[stream] = max(last, sequence)
        if len(sequences) > STREAMS:
            del sequences[next(iter(sequences))]
        return ActuatorState(sequences, self.executed)

    def carried_out(self, decision_id: str, proposal_id: str, attempt: int) -> ActuatorState:
        """As this, with one more order that may not be carried out again."""
        order = (decision_id, proposal_id, attempt)
        executed = {**self.executed, decision_id: order, (proposal_id, attempt): order}
        while len(executed) > 2 * REMEMBERED:
            del executed[next(iter(executed))]
        return ActuatorState(self.sequences, executed)


@dataclass(frozen=True, slots=True)
class _Read:
    """The members of a decision that the check looks at."""

    decision_id: str
    proposal_id: str
    attempt: int
    sequence: int
    stream: Stream


@dataclass(frozen=True, slots=True)
class ActuatorCheck:
    """The check of one actuator. With no keys and `allow_unsigned` not set, nothing is ever permitted.

    `allow_unsigned` takes decisions without a signature; one with a signature must be by a known key all the same.
    """

    known: KnownKeys
    allow_unsigned: bool = False

    def check(self, decision: Mapping[str, Any], now_ms: int, state: ActuatorState) -> tuple[Verdict, ActuatorState]:
        """Whether a decision (as `orjson.loads` gave it) may be carried out at `now_ms`, and the state after it.

        A decision that is permitted counts as carried out from then on, whatever becomes of it. Every decision that is
        believed and has a sequence advances its stream, also one that is refused or orders nothing: what comes after it
        with a lower one is old. One that is not believed advances nothing: a stranger must not be able to shut the
        guard out with a sequence that it will never reach.
        """
        if not isinstance(decision, Mapping) or decision.get("format") != FORMAT:
            return Verdict("malformed", f"no {FORMAT}", believed=False), state
        fault = check_document(decision, self.known)
        if fault is not None and not (fault == "unsigned" and self.allow_unsigned):
            return Verdict(fault, _signer(decision), believed=False), state
        read = _read(decision)
        if isinstance(read, Verdict):
            return read, state
        last = state.sequences.get(read.stream, -1)
        state = state.seen(read.stream, read.sequence)
        verdict = _judge(decision, read, now_ms, last, state)
        if verdict.permitted:
            state = state.carried_out(read.decision_id, read.proposal_id, read.attempt)
        return verdict, state


def _judge(decision: Mapping[str, Any], read: _Read, now_ms: int, last: int, state: ActuatorState) -> Verdict:
    if decision["action"] != "APPLY":
        return Verdict("nothing_to_do", decision["action"])
    if decision.get("final") is not True:
        return Verdict("not_final", "another decision on this proposal will follow")
    if read.decision_id in state.executed or (read.proposal_id, read.attempt) in state.executed:
        return Verdict("replayed", "carried out before")
    if read.sequence <= last:
        return Verdict("out_of_sequence", f"sequence {read.sequence} after {last}")
    valid_until_ms = decision.get("valid_until_ms")
    if type(valid_until_ms) is not int:
        return Verdict("malformed", "no end of validity")
    if not isinstance(decision.get("released"), Mapping):
        return Verdict("malformed", "releases nothing")
    if now_ms > valid_until_ms:
        return Verdict("expired", f"expired {now_ms - valid_until_ms} ms ago")
    return Verdict("permitted")


def _read(decision: Mapping[str, Any]) -> _Read | Verdict:
    decision_id, proposal_id, action = (decision.get(name) for name in ("decision_id", "proposal_id", "action"))
    attempt, sequence, evidence = decision.get("attempt"), decision.get("sequence"), decision.get("evidence")
    region = decision.get("region")
    partition = evidence.get("partition") if isinstance(evidence, Mapping) else None
    if not isinstance(decision_id, str) or not isinstance(proposal_id, str) or not isinstance(region, str):
        return Verdict("malformed", "decision_id, proposal_id and region must be strings")
    if not isinstance(action, str) or action not in _ACTIONS:
        return Verdict("malformed", "no action that a decision can have")
    if type(attempt) is not int or type(sequence) is not int or type(partition) is not int:
        return Verdict("malformed", "attempt, sequence and evidence.partition must be integers")
    if attempt < 1 or sequence < 0 or partition < 0:
        return Verdict("malformed", "attempt, sequence and evidence.partition must be counts")
    return _Read(decision_id, proposal_id, attempt, sequence, (partition, region))


def _signer(decision: Mapping[str, Any]) -> str:
    signature = decision.get("signature")
    keyid = signature.get("keyid") if isinstance(signature, Mapping) else None
    return f"signed by {keyid}" if isinstance(keyid, str) else "no signature"


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0
