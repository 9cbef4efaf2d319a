"""`wirelessops study analyse`: verdicts and claims made again from the saved rows, and held against the saved ones."""

from __future__ import annotations

from pathlib import Path

from simulators.closedloop import protocol
from simulators.closedloop.derived import DERIVED, derive
from simulators.closedloop.files import ROWS, rows_of
from simulators.closedloop.tables import read_document
from streams.commands.answering import FAILED, answering, check_output, put
from streams.commands.study_folder import documents_told, faults_told, finished


def analyse(folder: Path) -> int:
    """Says of each derived file whether it comes out with the same bytes; no trajectory is generated.

    Exit codes: 0 where all do; 1 where one does not; 2 with the reason where the folder holds no finished study.
    """
    with answering() as answer:
        check_output()
        contents = finished(folder)
        with faults_told(folder):
            frozen = protocol.read(protocol.FILE, contents[protocol.FILE])
            rows = rows_of({name: contents[name] for name in ROWS})
            leakage = read_document("leakage.json", contents["leakage.json"])
        with documents_told(folder):
            again = derive(rows, frozen.document, leakage)
        differ = [name for name in DERIVED if again[name] != contents[name]]
        told = [f"{name}: {'other bytes' if name in differ else 'the same bytes'}\n" for name in DERIVED]
        put(f"from {len(ROWS)} files of rows, the frozen cutoff {frozen.cutoff}, and the audit\n" + "".join(told))
        if differ:
            answer.code = FAILED
    return answer.code
