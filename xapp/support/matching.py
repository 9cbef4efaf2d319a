"""Which measurements of a report may count as visits, and of what: a contract's subjects and sources are templates.

A measurement is bound to a field with the bindings that its subject and its source give; a binding fills one segment of
a subject, and where it ends the subject all that are left: `ue:{ue}` has `ue:imsi-1/rnti-70`, as SCOPE recordings name
an attachment. What of a valid sample does not depend on value and time is checked here, once for each shape of report,
by the engine's own checks (`xapp.integrity`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from xapp.contract import PLACEHOLDER, Contract, Field, Member, fill
from xapp.evidence.series import Key, Shape
from xapp.integrity.quality import check_quality
from xapp.integrity.schema import check_schema
from xapp.integrity.source import check_source
from xapp.model import Observation
from xapp.plan import unit_fault

_BETWEEN: Final = "\0"  # subject and source; in neither


class Matched(NamedTuple):
    """A measurement that counts as a visit of a field where its value and time do. `at`: its place in its report."""

    at: int
    member: Member
    unit: str | None


class Matching:
    """The critical observed fields of a contract, as patterns of what reports say."""

    def __init__(self, contract: Contract) -> None:
        self._contract = contract
        self._patterns: dict[str, tuple[re.Pattern[str], ...]] = {
            f.name: tuple(_pattern(f.subject, source) for source in f.sources)
            for f in contract.fields.values() if f.kind == "observed"
        }  # fmt: skip

    def of(self, shape: Shape) -> tuple[Matched, ...]:
        """The measurements of a shape of report that may count, in their order."""
        return tuple(
            Matched(index, member, key.unit)
            for index, (key, name) in enumerate(zip(shape.keys, shape.names, strict=True))
            for member in self._members(shape.source, key, name)
        )

    def _members(self, source: str, key: Key, name: str) -> Iterator[Member]:
        fields = [self._contract.fields[n] for n in self._contract.by_name.get(name, ())]
        observed = [f for f in fields if f.kind == "observed"]
        probe = _probe(source, key)
        if key.origin != "live" or check_quality(probe) is not None:
            return
        for f in observed:
            bindings = self._bindings(f, source, key.subject) if f.critical else None
            if bindings is None or unit_fault(key.unit, f.unit)[0] is not None:
                continue
            member = Member(f, None, key.subject, (source,))
            bound = [member, *(m for g in observed if g is not f and (m := _always(g, bindings, key.subject)))]
            if check_source(probe, member) is None and check_schema(probe, member, bound) is None:
                yield member

    def _bindings(self, f: Field, source: str, subject: str | None) -> Mapping[str, str] | None:
        """What subject and source say the bindings are; None where it is no sample of the field."""
        if (subject is None) != (f.subject is None):
            return None
        said = f"{subject or ''}{_BETWEEN}{source}"
        return next((m.groupdict() for p in self._patterns[f.name] if (m := p.fullmatch(said))), None)


def _always(f: Field, bindings: Mapping[str, str], subject: str | None) -> Member | None:
    """The member of another field that these bindings alone bind to the same subject, where they do."""
    if f.subject is None:
        return Member(f, None, None, ()) if subject is None else None
    names = PLACEHOLDER.findall(f.subject)
    if all(name in bindings for name in names) and fill(f.subject, bindings) == subject:
        return Member(f, None, subject, ())
    return None


def _probe(source: str, key: Key) -> Observation:
    """A measurement of the key whose value and times are of no matter."""
    return Observation("", key.name, True, key.unit, source, 0, 0, None, key.quality, key.schema, key.subject)


def _pattern(subject: str | None, source: str) -> re.Pattern[str]:
    """Both templates at once, so that a binding that they share is one."""
    seen: set[str] = set()

    def part(name: str, last: bool) -> str:
        if name in seen:
            return f"(?P={name})"
        seen.add(name)
        segment, plain = f"[^/{_BETWEEN}]+", f"(?:/[^/:{_BETWEEN}]+)*"
        return f"(?P<{name}>{segment}{plain})" if last else f"(?P<{name}>{segment})"

    pattern = ""
    pieces = PLACEHOLDER.split(f"{subject or ''}{_BETWEEN}{source}")
    for index, piece in enumerate(pieces):
        ends = index % 2 == 1 and pieces[index + 1].startswith(_BETWEEN)
        pattern += part(piece, ends) if index % 2 else re.escape(piece)
    return re.compile(pattern)
