"""`wirelessops study report`: tables and figures of a finished study, published figures beside ours."""

from __future__ import annotations

from pathlib import Path

from simulators.closedloop.report import write
from streams.commands.answering import answering, check_output, put
from streams.commands.study_folder import documents_told, faults_told, finished


def report(folder: Path, out: Path | None) -> int:
    """Writes the report to `out`, or to `report` in the folder, and says what was written; nothing is run.

    Exit codes: 0; 2 with the reason where the folder holds no finished study, or OUT cannot be written.
    """
    with answering() as answer:
        check_output()
        contents = finished(folder)
        with faults_told(folder), documents_told(folder):
            written = write(contents, out or folder / "report")
        put("".join(f"{path}\n" for path in written))
    return answer.code
