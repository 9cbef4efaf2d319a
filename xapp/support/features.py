"""What the drift alarm looks at in one partition (docs/support-gate.md, "Drift")."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from xapp.support.book import Profile
from xapp.support.component import Component

BESIDE_SHARES: Final = 4
"""Features after the shares of the components: the share of all others, load, CQI, visits."""


def features(profile: Profile, components: Sequence[Component]) -> tuple[float, ...]:
    """The share of the visits that each component has, then that of all others; the means of load and CQI, in multiples
    of their (upper) split; and ln(1 + visits). All are of the order of 1. A share is 0 where there are no visits.
    """
    total = sum(profile.visits.values())
    shares = [profile.visits.get(component, 0) / total if total else 0.0 for component in components]
    known = sum(profile.visits.get(component, 0) for component in components)
    return (*shares, (total - known) / total if total else 0.0, profile.load, profile.cqi, math.log1p(total))
