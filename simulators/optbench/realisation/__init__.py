"""What is done to the evidence of an episode: 32 families over five stress domains, and facts rendered into a ledger.

A family disturbs a `Scene` and returns `Facts`, with clutter beside; `render` turns those into observations. None of
them is told an action.
"""

from __future__ import annotations

from typing import Final

from simulators.optbench.realisation import (
    availability_brownout,
    conflict_provenance,
    freshness_order,
    mixed_evidence,
    schema_unit,
)
from simulators.optbench.realisation.family import Family
from simulators.optbench.realisation.rendering import render
from simulators.optbench.realisation.scene import Scene

FAMILIES: Final[tuple[Family, ...]] = (
    *schema_unit.FAMILIES,
    *freshness_order.FAMILIES,
    *availability_brownout.FAMILIES,
    *conflict_provenance.FAMILIES,
    *mixed_evidence.FAMILIES,
)
"""The 32 realisation families, domain by domain."""

__all__ = ["FAMILIES", "Family", "Scene", "render"]
