"""Files of proposals and decision bundles that a user hands in, line by line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from simulators.optbench.agents import Bundle
from simulators.optbench.bundles import BundleError, ProposalLine, bundle_from, invalid_output, proposal_from, read_line
from simulators.optbench.results import FORMAT
from streams.commands.answering import NotRun
from streams.commands.documents import STDIN, Unreadable, documents

if TYPE_CHECKING:
    from simulators.optbench.suite import Suite

SHOWN: Final = 20
"""Wrong lines of a file that are told; all are counted."""


def read_lines(
    file: str, suite: Suite, read: Callable[[Any], Bundle | ProposalLine] = read_line
) -> tuple[dict[str, Any], list[Bundle | ProposalLine]]:
    """(the first line where it is that of a results file, what each line holds).

    Episodes are those of `suite`, each at most once. `read`: reads a line of what is no results file. Raises NotRun,
    with each wrong line.
    """
    known = {case.episode_id for case in suite.cases}
    head: dict[str, Any] = {}
    seen: dict[str, int] = {}
    found: list[Bundle | ProposalLine] = []
    wrong: list[str] = []
    if file == STDIN and sys.stdin is None:
        raise NotRun("standard input is closed")
    try:
        for number, document in _numbered(file):
            try:
                if isinstance(document, dict) and document.get("format") == FORMAT and number == 1:
                    head = _head(document, suite)
                    continue
                line = bundle_from(_readable(document)) if head else read(_readable(document))
                if line.episode_id not in known:
                    raise BundleError("$.episode_id", f"no episode {line.episode_id!r} in this suite")
                if line.episode_id in seen:
                    raise BundleError("$.episode_id", f"{line.episode_id} was answered in line {seen[line.episode_id]}")
                seen[line.episode_id] = number
                found.append(line)
            except BundleError as error:
                wrong.append(f"{file}: line {number}: {error}")
    except OSError as error:
        raise NotRun(f"{file}: {error.strerror or error}") from error
    except Unreadable as error:
        raise NotRun(f"{file}: {error}") from error
    if wrong:
        more = [f"{file}: and {len(wrong) - SHOWN} wrong lines more"] if len(wrong) > SHOWN else []
        raise NotRun("\n".join((*wrong[:SHOWN], *more)))
    return head, found


def read_proposals(file: str, suite: Suite) -> dict[str, str]:
    """Episode id → what a backbone would have said, of a file that must hold proposals. Raises NotRun as `read_lines`,

    and for a file of decision bundles.
    """
    decided = NotRun(f"{file}: holds decision bundles, which `optbench score` takes; proposals are wanted")

    def proposal(document: Any) -> ProposalLine:
        if isinstance(document, dict) and "action" in document and "proposal" not in document:
            raise decided
        return proposal_from(document)

    head, lines = read_lines(file, suite, proposal)
    if head:
        raise decided
    return {line.episode_id: line.reply for line in lines if isinstance(line, ProposalLine)}


def _numbered(file: str) -> Iterator[tuple[int, Any]]:
    """(line, document); a file of one line counts as line 1."""
    return ((max(number, 1), document) for number, document in documents(file))


def _readable(document: Any) -> Any:
    """What a line holds. Raises BundleError where it could not be read."""
    if isinstance(document, ValueError):
        raise BundleError("$", str(document)) from document
    return document


def _head(document: Mapping[str, Any], suite: Suite) -> dict[str, Any]:
    if document.get("suite") != suite.digest:
        raise BundleError("$.suite", f"results on another suite: {document.get('suite')}, not {suite.digest}")
    for name in ("method", "backbone"):
        if not isinstance(document.get(name, ""), str):
            raise BundleError(f"$.{name}", "a text is wanted")
    return dict(document)


def left_out(suite: Suite, answered: Iterable[str], file: str) -> dict[str, Bundle]:
    """An invalid output for each episode that a file leaves out, which is told."""
    left = {case.episode_id for case in suite.cases}.difference(answered)
    if left:
        sys.stderr.write(
            f"{file}: {len(left)} of {len(suite.cases)} episodes are missing and count as invalid outputs, "
            f"{min(left)} the first\n"
        )
    return {episode_id: invalid_output(episode_id, f"not in {stem(file)}") for episode_id in left}


def stem(file: str) -> str:
    """What a file is called in a row."""
    return "stdin" if file == STDIN else Path(file).stem
