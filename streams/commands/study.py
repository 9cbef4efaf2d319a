"""`wirelessops study run`: the formal grid under a frozen protocol, as a folder of files."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Final

import orjson

from simulators.closedloop import draws, protocol
from simulators.closedloop.derived import derive
from simulators.closedloop.files import of_rows, of_seeds
from simulators.closedloop.leakage import audit_document
from simulators.closedloop.loop import EPISODES, PARTITIONS
from simulators.closedloop.protocol import FREEZE, Protocol
from simulators.closedloop.rows import Block, Rows
from simulators.closedloop.running import Prepared, execute, prepare
from simulators.closedloop.tables import FileFault, document
from streams.commands.answering import NotRun, answering, check_output, put
from streams.commands.study_environment import commit, environment
from streams.commands.study_folder import (
    NAMES,
    faults_told,
    finished,
    held,
    manifest,
    put_file,
    put_manifest,
    state,
)  # fmt: skip

_SHORT: Final = len("sha256:") + 12


def run(out: Path, threads: int, protocol_file: Path | None) -> int:
    """Runs the study into `out`, or again beside the finished one that is there: then only hashes are compared.

    Exit codes: 0; 2 with the reason in one line, and a line for each difference; 130.
    """
    with answering(f"{out} is a finished study only if it was one before; the same command makes it one") as answer:
        check_output()
        started = perf_counter()
        frozen = _protocol(protocol_file)
        _refuse(protocol.differences(frozen))
        told = protocol.of_run(frozen, environment(), commit())
        state(out, told)
        put(_told_of(told, protocol_file))
        prepared = _prepared(frozen)
        _refuse(protocol.prepared_differences(frozen, prepared))
        put(f"{len(prepared.policies)} policies and {len(prepared.masks)} masks, as frozen; no fault was run yet\n")
        with held(out):
            there = state(out, told)  # again: another run may have ended there meanwhile
            before = finished(out) if there == "finished" else None
            if before is None:
                with faults_told(out):
                    put_file(out, protocol.FILE, told.content())
            rows = execute(prepared, frozen.master_seed, frozen.blocks, threads)
            put(_counts_of(rows, perf_counter() - started))
            contents = _contents(told, rows, prepared)
            if before is None:
                with faults_told(out):
                    for name in NAMES:
                        put_file(out, name, contents[name])
                    put_manifest(out, contents)
            else:
                _compare(out, before, contents)
        put(_ended(out, there, perf_counter() - started))
    return answer.code


def _protocol(file: Path | None) -> Protocol:
    """Raises NotRun where it cannot be read."""
    try:
        return protocol.shipped() if file is None else protocol.read(str(file), file.read_bytes())
    except FileFault as error:
        raise NotRun(str(error)) from None
    except OSError as error:
        raise NotRun(f"{error.filename or file}: {error.strerror or error}") from None


def _prepared(frozen: Protocol) -> Prepared:
    """Raises NotRun where development episodes of these seeds bear out no cutoff."""
    try:
        return prepare(frozen.master_seed, frozen.blocks)
    except ValueError as error:
        raise NotRun(f"refused: {error}") from None


def _refuse(differences: list[str]) -> None:
    """Raises NotRun where there are any."""
    if differences:
        why = f"refused: the protocol is not this software's; `{FREEZE}` prints the one that is"
        raise NotRun("\n  ".join((why, *differences)))


def _contents(told: Protocol, rows: Rows, prepared: Prepared) -> dict[str, bytes]:
    """All files of the run but the manifest, by name, in the order of `NAMES`."""
    pilot, development = _drawn(told, "pilot"), _drawn(told, "development")
    try:
        leakage = document(audit_document(prepared.policies, pilot, development, told.master_seed, told.cutoff))
    except ValueError as error:  # other seeds may support too few components
        raise NotRun(f"the seeds of this protocol leave nothing to audit: {error}") from None
    contents = {
        protocol.FILE: told.content(),
        "seeds.csv": of_seeds(told.blocks),
        **of_rows(rows),
        "leakage.json": leakage,
        **derive(rows, told.document, orjson.loads(leakage)),
    }
    return {name: contents[name] for name in NAMES}


def _drawn(told: Protocol, block: Block) -> draws.Uniforms:
    seeds = told.blocks[block]
    return draws.uniforms(told.master_seed, seeds.first, seeds.count)


def _compare(out: Path, before: dict[str, bytes], contents: dict[str, bytes]) -> None:
    """Raises NotRun where the same protocol gave other files; its own may say another commit."""
    there, here = manifest(before), manifest(contents)
    differ = [name for name in NAMES if name != protocol.FILE and there[name] != here[name]]
    if differ:
        raise NotRun(f"{out}: the same protocol gives others here: {', '.join(differ)}; nothing there is overwritten")


def _told_of(told: Protocol, file: Path | None) -> str:
    made = told.document["commit"]
    where = f"commit {made['id'][:12]}{', with changes' if made['dirty'] else ''}" if made["id"] else made["reason"]
    return f"protocol {told.digest[:_SHORT]} ({file or 'preregistered'}), cutoff {told.cutoff}; {where}\n"


def _counts_of(rows: Rows, seconds: float) -> str:
    cases = len(rows.cases)
    return (
        f"{cases:,} cases, {cases * PARTITIONS:,} rows, {cases * PARTITIONS * EPISODES:,} episodes under faults,"
        f" {seconds:.1f} s\n"
    )


def _ended(out: Path, there: str, seconds: float) -> str:
    ends = {
        "new": f"{len(NAMES) + 1} files in {out}, {seconds:.1f} s",
        "unfinished": f"{len(NAMES) + 1} files in {out}, where a run had not ended, {seconds:.1f} s",
        "finished": f"{out} holds this run already: every file has the same hash again, {seconds:.1f} s",
    }
    return f"{ends[there]}\nnext: wirelessops study validate {out}; wirelessops study report {out}\n"
