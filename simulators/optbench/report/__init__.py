"""The report of WirelessOptBench: tables I and III to VI and figures 4 to 7, beside the published values."""

from __future__ import annotations

from pathlib import Path

from simulators import report
from simulators.optbench.report.figures import drawn
from simulators.optbench.report.measured import Measured
from simulators.optbench.report.sections import document


def write(measured: Measured, directory: Path) -> list[Path]:
    """Writes `report.md`, `report.html` and each figure as PNG and SVG; what is measured alike is written alike.

    Returns what was written, the page first. Raises OSError.
    """
    return report.write(document(measured), drawn(measured), directory)
