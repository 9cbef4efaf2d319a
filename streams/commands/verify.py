"""`wirelessops verify`: is each decision faithful to its record, signed, and in its place in the chain of records?

A file of plain decisions is decided again, and that is all, unless keys, checkpoints or a beginning are given: then
each is one that nobody sealed. Record envelopes, checkpoints and the lines of a recording
are held against their signatures, each other and the checkpoints too; `docs/tamper-evidence.md` says what that finds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from streams.commands.documents import EndsEarly, Refused, Unreadable, documents, read_document
from streams.commands.printing import printable
from streams.keys import KeyFault, known_keys
from streams.recording import RecordedMessage, RecordingError, decode
from xapp.address import digest
from xapp.authorization import FORMAT
from xapp.chain import CHAIN, CHECKPOINT_TYPE, RECORD_TYPE, ChainError, Checkpoint, Finding, Link, Shown, audit
from xapp.faithfulness import verify
from xapp.signing import (
    SIGNATURE,
    SIGNATURE_BYTES,
    EnvelopeError,
    Fault,
    KnownKeys,
    Signature,
    check_document,
    is_envelope,
    read_envelope,
    signature_of,
)

OK, FAILED, INVALID, UNPROVEN = 0, 1, 2, 3

_CLAIMS: Final = (
    "format", "decision_id", "episode_id", "proposal_id", "action", "control_key", "bindings", "released",
    "valid_until_ms", "violations", "repairs", "used", "blocked", "retry", "explanation",
)  # fmt: skip
"""What a decision says on `control` and in its record alike."""

_SAID: Final[Mapping[Fault, str]] = {
    "unsigned": "unsigned",
    "unknown_signer": "signed by nobody known",
    "bad_signature": "bad signature: edited, or inserted by somebody without the key",
    "malformed": "its signature cannot be read",
}


def verify_file(
    source: str,
    *,
    keys: Sequence[Path] = (),
    allow_unsigned: bool = False,
    checkpoints: str | None = None,
    from_index: Sequence[str] = (),
) -> int:
    """Verify all that a file holds. `from_index`: `N`, or `PARTITION:N`, where the records must begin.

    Exit codes: 0 `faithful`; 1 and everything that is wrong; 2 where nothing can be read; 3 where nothing is wrong but
    the signatures were not checked, for want of keys.
    """
    try:
        asked = bool(keys) or checkpoints is not None or bool(from_index)
        trail = _Trail(known_keys(keys) if keys else None, allow_unsigned, asked)
        begins = _begins(from_index)
        for line, document in documents(source):
            trail.take(line, document)
        for line, document in documents(checkpoints) if checkpoints is not None else ():
            trail.take_checkpoint(line, document)
    except (KeyFault, _Usage) as error:
        return _complain(str(error))
    except Unreadable as error:
        return _complain(f"{source}: {error}")
    except OSError as error:
        return _complain(f"{error.filename or source}: {error.strerror or error}")
    if trail.is_empty:
        return _complain(f"{source}: holds no decision")
    if trail.is_plain:
        sys.stderr.write("".join(f"{printable(note)}\n" for note in trail.notes))
        print("\n".join(map(printable, trail.plain_claims)) or "faithful")
        return FAILED if trail.plain_claims else OK
    if len(trail.topics) > 1:
        return _complain(f"{source}: holds records of {len(trail.topics)} topics: {', '.join(sorted(trail.topics))}")
    trail.finish(begins)
    said = [*trail.faults, *(f"note: {note}" for note in trail.notes), trail.summary]
    print("\n".join(map(printable, said)))
    return trail.code


class _Usage(ValueError):
    """An option that cannot be read."""


@dataclass(slots=True)
class _Place:
    """Where something stands: the line, and the topic's partition if it is of a recording."""

    line: int
    topic: str | None = None
    partition: int | None = None

    def __str__(self) -> str:
        return f"line {max(self.line, 1)}: "


@dataclass(slots=True)
class _Control:
    """A decision on `control`, kept until all records are read."""

    where: str
    topic: str
    partition: int
    decision_id: str
    digest: str
    claims: str
    misplaced: bool


@dataclass(slots=True)
class _Kept:
    """A record that a decision on `control` may name. `topic`, `partition`: None where it does not say."""

    digest: str
    claims: str
    topic: str | None
    partition: int | None


@dataclass(slots=True)
class _Trail:
    """All that a file shows. `known` of None: no keys were given. `asked`: plain decisions are held to a chain too."""

    known: KnownKeys | None
    allow_unsigned: bool
    asked: bool
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    topics: set[str] = field(default_factory=set)
    plain_claims: list[str] = field(default_factory=list)
    _plain: list[tuple[str, Fault | None, tuple[str, ...]]] = field(default_factory=list)
    _sealed: int = 0
    _shown: list[Shown] = field(default_factory=list)
    _unchained: int = 0
    _checkpoints: list[Checkpoint] = field(default_factory=list)
    _controls: list[_Control] = field(default_factory=list)
    _sequences: dict[tuple[str, int], int] = field(default_factory=dict)
    _sighted: dict[str, str] = field(default_factory=dict)
    _finals: dict[tuple[str, str, str], str] = field(default_factory=dict)
    _records: dict[str, list[_Kept]] = field(default_factory=dict)
    _unchecked: set[str] = field(default_factory=set)
    _unsigned: int = 0

    @property
    def is_empty(self) -> bool:
        return not self._plain and not self._sealed and not self.plain_claims

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing but plain decisions (and lines that are no JSON), and nobody asks for more."""
        return not self._sealed and not self.asked

    @property
    def code(self) -> int:
        if self.faults:
            return FAILED
        return UNPROVEN if self._unchecked and not self.allow_unsigned else OK

    @property
    def summary(self) -> str:
        chains = len({one.link.partition for one in self._shown})
        counts = [
            (len(self._shown) + self._unchained, "record", "records"),
            (chains, "chain", "chains"),
            (len(self._checkpoints), "checkpoint", "checkpoints"),
            (len(self._controls), "decision on control", "decisions on control"),
            (len(self._plain), "plain decision", "plain decisions"),
        ]
        said = ", ".join(f"{n} {one if n == 1 else many}" for n, one, many in counts if n)
        if self.faults:
            return f"not faithful: {len(self.faults)} fault{'s' * (len(self.faults) != 1)} in {said or 'the file'}"
        return f"{'unproven' if self.code == UNPROVEN else 'faithful'}: {said}"

    def take(self, line: int, document: Any) -> None:
        """One document of the file, whatever it is."""
        place = _Place(line)
        if isinstance(document, EndsEarly):
            self.notes.append(str(document))
        elif _is_message(document):
            self._message(place, document)
        elif is_envelope(document):
            self._sealed += 1
            self._envelope(place, document, (RECORD_TYPE, CHECKPOINT_TYPE))
        elif isinstance(document, ValueError):
            reason = f"{document}" if isinstance(document, Refused) else f"not JSON: {document}"
            self.plain_claims.append(f"line {line}: {reason}" if line else reason)
        else:
            self.plain_claims += [f"line {line}: {claim}" if line else claim for claim in verify(document)]
            fault, keyids = self._document_proof(document)
            self._plain.append((f"{place}{_name(document)}: ", fault, keyids))

    def take_checkpoint(self, line: int, document: Any) -> None:
        """One document of the file of checkpoints."""
        place = _Place(line)
        if _is_message(document):
            message = self._decoded(place, document)
            if message is None or not message.topic.endswith("checkpoints"):
                return
            document = self._value(place, message)
            if document is None:
                return
        if is_envelope(document):
            self._envelope(place, document, (CHECKPOINT_TYPE,))
        else:
            self.faults.append(f"checkpoints, {place}no sealed checkpoint")

    def finish(self, begins: Mapping[int | None, int]) -> None:
        """What only shows once everything is read: the chains, and whether each decision has its record."""
        self.faults += self.plain_claims
        self._outside()
        partitions = {one.link.partition for one in self._shown}
        starts = dict.fromkeys(partitions, begins[None]) if None in begins else {}
        starts |= {p: index for p, index in begins.items() if p is not None}
        if begins and not starts and not self.allow_unsigned:
            self.faults.append(f"truncated: no record that has a place is shown, though they begin at {begins[None]}")
        counted = [c for c in self._checkpoints if not self.topics or c.topic in self.topics]
        for checkpoint in self._checkpoints:
            if checkpoint not in counted:
                self.notes.append(f"a checkpoint of {_word(checkpoint.topic)} is about other records than these")
        findings = audit(self._shown, counted, starts)
        cut = {finding.partition for finding in findings if finding.kind == "truncated"}
        for partition in sorted(starts.keys() - partitions - cut):
            told = "truncated: no record of this partition is shown"
            self.faults.append(f"partition {partition}, index {starts[partition]}: {told}")
        for finding in findings:
            (self.notes if finding.kind == "begins" else self.faults).append(_told(finding))
        if self._unchained and (self._shown or not self.allow_unsigned):
            self.faults.append(f"{self._unchained} records outside the chain: nobody sealed them")
        self._match({finding.partition for finding in findings if finding.kind == "begins"})
        for partition in sorted(partitions):
            last = max(one.link.index for one in self._shown if one.link.partition == partition)
            if last > max((c.index for c in counted if c.partition == partition), default=-1):
                told = f"partition {partition} ends at index {last}, behind every checkpoint shown here: "
                self.notes.append(told + "whether more came after cannot be told")
        if self._unsigned:
            self.notes.append(f"{self._unsigned} unsigned, as --allow-unsigned has it")
        if self._unchecked:
            self.notes.append(f"signed by {', '.join(map(_word, sorted(self._unchecked)))}, not checked: no --keys")

    def _outside(self) -> None:
        """Plain decisions among what is held to a chain: none of them has a place in it."""
        for where, fault, keyids in self._plain:
            if fault is not None or self._sealed or not self.allow_unsigned:
                outside = "outside the chain: a plain decision, which nobody sealed"
                self.faults.append(f"{where}{_signed(fault, keyids)}{outside}")

    def _match(self, incomplete: set[int]) -> None:
        missing = 0
        for control in self._controls:
            records = self._records.get(control.decision_id)
            if records is None:
                if self._records and control.partition not in incomplete:
                    self.faults.append(f"{control.where}it has no record")
                missing += 1
                continue
            named = [one for one in records if one.digest == control.digest]
            said = [one for one in named if one.claims == control.claims]
            if not named:
                self.faults.append(f"{control.where}it names another record than the one of this decision")
            elif not said:
                self.faults.append(f"{control.where}it says other things than its record")
            elif not control.misplaced and not any(_is_beside(control, one) for one in said):
                theirs = f"{_word(said[0].topic or 'the chain')}, partition {said[0].partition}"
                told = f"misplaced: it stands in {_word(control.topic)}, its record in {theirs}"
                self.faults.append(f"{control.where}{told}")
        if missing:
            self.notes.append(f"{missing} decisions on control whose record is not shown here")

    def _message(self, place: _Place, document: Mapping[str, Any]) -> None:
        """One line of a recording."""
        topic = document["topic"]
        kind = next((k for k in ("records", "checkpoints", "control") if str(topic).endswith(k)), None)
        if kind is None and not is_envelope(document):
            return
        self._sealed += 1
        message = self._decoded(place, document)
        value = None if message is None else self._value(place, message)
        if message is None or value is None:
            return
        place = _Place(place.line, message.topic, message.partition)
        if kind == "control":
            self._control(place, value)
        elif kind == "checkpoints":
            self._envelope(place, value, (CHECKPOINT_TYPE,))
        else:
            self.topics.add(message.topic)
            if is_envelope(value):
                self._envelope(place, value, (RECORD_TYPE,))
            else:
                self._record(place, value, None, self._proof((), lambda _: "unsigned"), ())

    def _decoded(self, place: _Place, document: Mapping[str, Any]) -> RecordedMessage | None:
        """A line of a recording, as all others read it; None, and a fault, where they may read it otherwise."""
        try:
            if is_envelope(document):
                raise RecordingError("both a recorded message and an envelope")
            return decode(document)
        except RecordingError as error:
            self.faults.append(f"{place}{_word(document['topic'])}: {error}")
            return None

    def _value(self, place: _Place, message: RecordedMessage) -> Any:
        """The JSON value of a recorded message; None, and a fault, where it has none."""
        try:
            if message.value is None:
                raise ValueError("a tombstone")
            value = read_document(message.value)
            if value is None:
                raise ValueError("null")
        except ValueError as error:
            self.faults.append(f"{place}{_word(message.topic)}: no JSON value: {error}")
            return None
        return value

    def _envelope(self, place: _Place, document: Any, types: Sequence[str]) -> None:
        try:
            envelope = read_envelope(document)
        except EnvelopeError as error:
            self.faults.append(f"{place}no envelope: {error}")
            return
        if envelope.payload_type not in types:
            self.faults.append(f"{place}an envelope of {_word(envelope.payload_type)} has no business here")
            return
        fault = self._proof(envelope.signatures, envelope.verify)
        keyids = tuple(one.keyid for one in envelope.signatures)
        try:
            record = read_document(envelope.payload)
        except Refused as error:
            self.faults.append(f"{place}{_signed(fault, keyids)}the payload: {error}")
            return
        except orjson.JSONDecodeError as error:
            self.faults.append(f"{place}{_signed(fault, keyids)}the payload is not JSON: {error}")
            return
        if envelope.payload_type == CHECKPOINT_TYPE:
            self._checkpoint(place, envelope.payload, fault, keyids)
            return
        self._record(place, record, envelope.payload, fault, keyids)

    def _record(
        self, place: _Place, record: Any, payload: bytes | None, fault: Fault | None, keyids: Sequence[str]
    ) -> None:
        """One record, sealed, or (without `payload`) as older guards wrote it."""
        name = _name(record)
        where = f"{place}{name}: "
        misplaced = ""
        link = None
        if payload is None:
            self._unchained += 1
        else:
            try:
                link = Link.read(record)
                where = f"{place}partition {link.partition}, index {link.index}, {name}: "
                if place.partition is not None and place.partition != link.partition:
                    misplaced = f"reordered: it stands in partition {place.partition}"
            except ChainError as error:
                misplaced = str(error)
        self.faults += [f"{where}{_signed(fault, keyids).removesuffix('; ')}"] if fault is not None else []
        self.faults += [f"{where}{misplaced}"] if misplaced else []
        bare = {k: v for k, v in record.items() if k not in (CHAIN, SIGNATURE)} if isinstance(record, dict) else record
        claims = verify(bare)
        self.faults += [f"{where}{claim}" for claim in claims]
        if fault is None and isinstance(record, dict) and not claims:
            partition = place.partition if link is None else link.partition
            kept = _Kept(record["record"]["digest"], _claims(record), place.topic, partition)
            self._records.setdefault(record["decision_id"], []).append(kept)
        if link is not None and payload is not None and not misplaced:
            self._shown.append(Shown(link, digest(payload), max(place.line, 1), name, fault is None))

    def _checkpoint(self, place: _Place, payload: bytes, fault: Fault | None, keyids: Sequence[str]) -> None:
        try:
            checkpoint = Checkpoint.read(payload)
        except ChainError as error:
            self.faults.append(f"{place}{_signed(fault, keyids)}{error}")
            return
        if fault is not None:
            where = f"{place}checkpoint of partition {checkpoint.partition}, index {checkpoint.index}: "
            self.faults.append(where + _signed(fault, keyids).removesuffix("; "))
            return
        self._checkpoints.append(checkpoint)

    def _control(self, place: _Place, document: Any) -> None:
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            self.faults.append(f"{place}control: no {FORMAT}")
            return
        where = f"{place}control, partition {place.partition}, {_name(document)}: "
        fault, keyids = self._document_proof(document)
        if fault is not None:
            self.faults.append(where + _signed(fault, keyids).removesuffix("; "))
            return
        record = document.get("record")
        address = record.get("digest") if isinstance(record, dict) else None
        identity = document.get("decision_id")
        topic, partition = place.topic, place.partition
        if not isinstance(address, str) or not isinstance(identity, str) or topic is None or partition is None:
            self.faults.append(f"{where}it names no record")
            return
        evidence = document.get("evidence")
        own = evidence.get("partition") if isinstance(evidence, dict) else partition
        misplaced = type(own) is not int or own != partition
        if misplaced:
            self.faults.append(f"{where}misplaced: its evidence is of partition {_word(own)}")
        elif identity in self._sighted:
            self.faults.append(f"{where}duplicated: it stands at {self._sighted[identity]} as well")
        else:
            self._sighted[identity] = f"{str(place).removesuffix(': ')} (partition {partition})"
            self._sequence(where, topic, partition, document.get("sequence"))
            self._final(where, place, document)
        self._controls.append(_Control(where, topic, partition, identity, address, _claims(document), misplaced))

    def _final(self, where: str, place: _Place, document: Mapping[str, Any]) -> None:
        """A proposal has one final decision."""
        if document.get("final") is not True:
            return
        key = str(place.topic), repr(document.get("region")), repr(document.get("proposal_id"))
        first = self._finals.setdefault(key, str(place).removesuffix(": "))
        if first != str(place).removesuffix(": "):
            self.faults.append(f"{where}a second final decision of its proposal: {first} is final as well")

    def _sequence(self, where: str, topic: str, partition: int, sequence: Any) -> None:
        """The decisions of a partition are counted: each has its place."""
        last = self._sequences.get((topic, partition))
        if type(sequence) is not int:
            self.faults.append(f"{where}it has no sequence")
        elif last is not None and sequence <= last:
            self.faults.append(f"{where}duplicated or reordered: sequence {sequence} stands after {last}")
        else:
            self._sequences[topic, partition] = sequence
            if last is not None and sequence > last + 1:
                self.notes.append(f"{where}no decision with a sequence between {last} and {sequence} is shown here")

    def _document_proof(self, document: Any) -> tuple[Fault | None, tuple[str, ...]]:
        """What is wrong with the signature that a document carries itself, and who is said to have made it."""
        signature = signature_of(document) if isinstance(document, Mapping) else "unsigned"
        if isinstance(signature, Signature):
            return self._proof((signature,), lambda known: check_document(document, known)), (signature.keyid,)
        return self._proof((), lambda _: signature), ()

    def _proof(self, signatures: Sequence[Signature], check: Callable[[KnownKeys], Fault | None]) -> Fault | None:
        """What is wrong with signatures, as far as the keys at hand can tell and the caller minds."""
        fault: Fault | None
        if self.known is not None or not signatures:
            fault = check(self.known if self.known is not None else KnownKeys())
        elif any(len(one.sig) != SIGNATURE_BYTES for one in signatures):
            fault = "bad_signature"
        else:
            self._unchecked |= {one.keyid for one in signatures}
            fault = None
        if fault == "unsigned" and self.allow_unsigned:
            self._unsigned += 1
            return None
        return fault


def _is_message(document: Any) -> bool:
    """Whether a JSON document means to be a line of a recording."""
    return isinstance(document, Mapping) and "topic" in document and "offset" in document


def _is_beside(control: _Control, record: _Kept) -> bool:
    """Whether a record stands where that of this decision does: same deployment, same partition."""
    if record.partition is not None and record.partition != control.partition:
        return False
    return record.topic is None or record.topic.removesuffix("records") == control.topic.removesuffix("control")


def _told(finding: Finding) -> str:
    shown = finding.shown
    which = f"index {finding.index}" if finding.index == finding.last else f"indexes {finding.index} to {finding.last}"
    if shown is None:
        return f"partition {finding.partition}, {which}: {finding.kind}: {finding.detail}"
    if finding.kind == "begins":
        return f"partition {finding.partition} begins at index {finding.index}: {finding.detail}"
    return f"line {shown.line}: partition {finding.partition}, {which}, {shown.name}: {finding.kind}: {finding.detail}"


def _signed(fault: Fault | None, keyids: Sequence[str]) -> str:
    """A fault of signatures as the beginning of a sentence; nothing without one."""
    if fault is None:
        return ""
    by = f" ({', '.join(map(_word, keyids))})" if keyids else ""
    return f"{_SAID[fault]}{by}; "


def _name(document: Any) -> str:
    """Which decision: its ids, as far as it has any."""
    if not isinstance(document, Mapping):
        return "no decision"
    return f"decision {_word(document.get('decision_id'))}, proposal {_word(document.get('proposal_id'))}"


def _word(value: Any) -> str:
    """A stranger's text on one line of a terminal."""
    if isinstance(value, str) and value.isprintable() and len(value) <= 200:
        return value
    return ascii(value)[:200]


def _claims(document: Mapping[str, Any]) -> str:
    said = {name: document.get(name) for name in _CLAIMS}
    return digest(orjson.dumps(said, option=orjson.OPT_SORT_KEYS))


def _begins(texts: Sequence[str]) -> dict[int | None, int]:
    """Partition (None: every one) to index."""
    begins: dict[int | None, int] = {}
    for text in texts:
        partition, colon, index = text.rpartition(":")
        if not index.isdecimal() or (colon and not partition.isdecimal()):
            raise _Usage(f"--from-index {text!r}: N or PARTITION:N is needed")
        begins[int(partition) if colon else None] = int(index)
    return begins


def _complain(reason: str) -> int:
    sys.stderr.write(f"{printable(reason)}\n")
    return INVALID
