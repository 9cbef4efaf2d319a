"""Reports of the benchmark and of the verifier study: what each format shares, whatever it reports on."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from simulators.report.document import Document
from simulators.report.markdown import markdown
from simulators.report.page import page


def write(document: Document, drawn: Iterable[tuple[str, bytes, bytes]], directory: Path) -> list[Path]:
    """Writes `report.md`, `report.html` and each figure, (name, PNG, SVG) of `drawn`; the same is written alike.

    Returns what was written, the page first. Raises OSError.
    """
    directory.mkdir(parents=True, exist_ok=True)
    drawings: dict[str, bytes] = {}
    written: list[Path] = []
    for name, png, svg in drawn:
        drawings[name] = svg
        for suffix, content in (("png", png), ("svg", svg)):
            written.append(directory / f"{name}.{suffix}")
            written[-1].write_bytes(content)
    texts = {"report.html": page(document, drawings), "report.md": markdown(document)}
    for name, text in texts.items():
        (directory / name).write_text(text, encoding="utf-8")
    return [*(directory / name for name in texts), *written]
