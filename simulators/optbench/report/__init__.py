"""The report of WirelessOptBench: tables I and III to VI and figures 4 to 7, beside the published values."""

from __future__ import annotations

from pathlib import Path

from simulators.optbench.report.figures import drawn
from simulators.optbench.report.markdown import markdown
from simulators.optbench.report.measured import Measured
from simulators.optbench.report.page import page
from simulators.optbench.report.sections import document


def write(measured: Measured, directory: Path) -> list[Path]:
    """Writes `report.md`, `report.html` and each figure as PNG and SVG; what is measured alike is written alike.

    Returns what was written, the page first. Raises OSError.
    """
    directory.mkdir(parents=True, exist_ok=True)
    drawings: dict[str, bytes] = {}
    written: list[Path] = []
    for name, png, svg in drawn(measured):
        drawings[name] = svg
        for suffix, content in (("png", png), ("svg", svg)):
            written.append(directory / f"{name}.{suffix}")
            written[-1].write_bytes(content)
    report = document(measured)
    texts = {"report.html": page(report, drawings), "report.md": markdown(report)}
    for name, text in texts.items():
        (directory / name).write_text(text, encoding="utf-8")
    return [*(directory / name for name in texts), *written]
