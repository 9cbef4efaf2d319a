"""The library of formula tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from simulators.optbench.base.formula import Formula
from simulators.optbench.base.formulas_detection import DETECTION
from simulators.optbench.base.formulas_link import LINK
from simulators.optbench.base.formulas_signals import SIGNALS

FORMULAS: Final[Mapping[str, Formula]] = {f.name: f for f in (*LINK, *DETECTION, *SIGNALS)}
"""Name → formula."""
