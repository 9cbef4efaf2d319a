"""Violations of one member while they are gathered, and what it is filed under (section 5)."""

from __future__ import annotations

from collections.abc import Mapping

from xapp.contract import Member
from xapp.integrity.fault import GROUPS, Filing, Verdict
from xapp.model import UP, Observation, SourceState, Violation


class Findings:
    """Violations of one member while they are gathered; the filing is the least rank among those that count."""

    def __init__(self, member: Member, blocked: bool) -> None:
        self.member = member
        self.blocked_ids: set[str] = set()
        self._blocked = blocked
        self._found: list[Violation] = []
        self._filings: list[Filing] = []

    def add(
        self, code: str, detail: str, ids: tuple[str, ...], source: str, rank: int, *, counts: bool,
        group: int | None = None, of_field: bool = False,
    ) -> None:  # fmt: skip
        """File a violation. One that counts blocks where the member is blocked and critical, else it is resolved."""
        field = self.member.field
        if counts:
            filed = () if of_field else ids[:1]
            self._filings.append(Filing(code, GROUPS[code] if group is None else group, source, rank, filed))
        blocking = counts and self._blocked and field.critical
        resolved = not self._blocked or (code == "out_of_order" and not counts)
        self._found.append(Violation(code, field.name, None, ids, resolved, blocking, self._told(detail)))

    def note(self, code: str, detail: str, ids: tuple[str, ...]) -> None:
        """Record something that never counts."""
        self._found.append(
            Violation(code, self.member.field.name, None, ids, not self._blocked, False, self._told(detail))
        )

    def add_strangers(
        self, strangers: list[Observation], heads: Mapping[str, Verdict], states: Mapping[str, SourceState]
    ) -> None:
        """`unknown_source` counts only where no source of the field has an observation for it, or is in outage."""
        if not strangers:
            return
        ids = tuple(sorted(o.id for o in strangers))
        self.blocked_ids.update(ids)
        known = bool(heads) or any(states.get(s, UP).status == "outage" for s in self.member.sources)
        names = ", ".join(sorted({f"'{o.source}'" for o in strangers}))
        detail = f"{names}: no source of {self.member.field.name}"
        first = min(strangers, key=lambda o: (o.source, o.id))
        if known:
            self.note("unknown_source", detail, ids)
        else:
            self.add("unknown_source", detail, ids, first.source, len(self.member.sources), counts=True)

    def empty(self) -> bool:
        return not self._filings

    def filing(self) -> Filing | None:
        return min(self._filings, key=lambda f: (f.rank, f.observations), default=None)

    def closed(self) -> tuple[Violation, ...]:
        return tuple(self._found)

    def _told(self, detail: str) -> str:
        return detail if self.member.key is None else f"{self.member.key}: {detail}"
