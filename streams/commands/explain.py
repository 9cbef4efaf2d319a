"""`wirelessops explain`: which row of the policy a decision was taken by, and which would be next, from its record."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from streams.commands.documents import Unreadable, documents, read_document
from streams.commands.printing import printable
from xapp.engine import assure, considered
from xapp.episode import EpisodeError, episode_from
from xapp.signing import EnvelopeError, is_envelope, read_envelope
from xapp.support.carried import Support, SupportVerdict
from xapp.times import utc

OK, INVALID = 0, 2


def explain_file(source: str) -> int:
    """Print why each decision of a file, or of standard input (`-`), was taken: decisions with their full records,
    plain or in the envelopes of `records`.

    Exit codes: 0; 2 where there is none, or one that cannot be explained, with the place.
    """
    told = 0
    try:
        for number, document in documents(source):
            place = f"line {number}: " if number else ""
            try:
                lines = list(_explained(document))
            except KeyError as error:
                return _complain(f"{source}: {place}is no decision with its full record: no member {error}")
            except (EnvelopeError, EpisodeError, TypeError, ValueError) as error:
                return _complain(f"{source}: {place}is no decision with its full record: {error}")
            print("\n".join(map(printable, ["", *lines] if told else lines)))
            told += 1
    except (OSError, Unreadable) as error:
        return _complain(f"{source}: {error}")
    return OK if told else _complain(f"{source}: holds no decision")


def _explained(document: Any) -> Iterator[str]:
    """The lines of one. Raises EnvelopeError, EpisodeError, KeyError, TypeError or ValueError for what is none."""
    if isinstance(document, Exception):
        raise document
    decision = read_document(read_envelope(document).payload) if is_envelope(document) else document
    episode = episode_from(decision["record"]["episode"], {}, recorded=True)
    rows = considered(episode)
    chosen = next(i for i, row in enumerate(rows) if row.applies)
    yield f"{decision['proposal_id']}: {decision['action']}"
    yield str(decision["explanation"])
    for number, row in enumerate(rows):
        mark = "→" if number == chosen else "✓" if row.applies else " "
        yield f"{mark} {number} {row.action:<8} {row.name}: {row.because}"
    following = next((row for row in rows[chosen + 1 :] if row.applies), None)
    if following is not None:
        yield f"Had that row not applied: {following.action}, {following.name}: {following.because}"
    made = assure(episode)
    if made.support is not None and episode.support is not None:
        yield from _supported(made.support, episode.support)
    supported = None if made.support is None else made.support.document()
    if rows[chosen].action != decision["action"] or supported != decision.get("support"):
        yield f"Its record gives {rows[chosen].action}, as above: `wirelessops verify` tells what is wrong with it."


def _supported(verdict: SupportVerdict, support: Support) -> Iterator[str]:
    """What the support gate says: the deficit, when it could pass, the map, the drift."""
    yield f"Support: {verdict.state}: {verdict.because}"
    for one in verdict.short:
        where = "" if one.subject is None else f" of {one.subject}"
        lacks = f"{one.visits} visits in {one.partitions} partitions"
        yield f"  {one.field}{where} ({one.component.text}) lacks {lacks}"
    if verdict.earliest_ms is not None:
        yield f"  It could pass at {utc(verdict.earliest_ms)} at the earliest."
    held, drift = support.map, support.drift
    if held is not None:
        yield f"  Reference map {held.map_id!r} version {held.version}, {held.digest}, until {utc(held.expires_at_ms)}."
    if drift is not None:
        limit = support.terms.drift_partitions
        yield f"  Drift: {drift.exceeded} partitions beyond {drift.limit:.3f}; {limit} make the map drifted."


def _complain(reason: str) -> int:
    sys.stderr.write(f"{printable(reason)}\n")
    return INVALID
