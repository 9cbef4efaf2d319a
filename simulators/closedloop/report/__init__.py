"""The report of the verifier study: tables and figures beside the published ones, from the files of a run alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from simulators import report
from simulators.closedloop.report.figures import drawn
from simulators.closedloop.report.sections import document
from simulators.closedloop.report.study import study


def write(files: Mapping[str, bytes], directory: Path) -> list[Path]:
    """Writes `report.md`, `report.html` and each figure as PNG and SVG; the same files are written alike.

    `files`: of a run, by name. Returns what was written, the page first. Raises OSError, and FileFault for a file that
    a run would not write so.
    """
    found = study(files)
    return report.write(document(found), drawn(found), directory)
