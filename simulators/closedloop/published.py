"""What the paper published of its own study, to be shown beside ours: abstract, sections 6, 7.1 to 7.3 and 9.

Another simulator, policy and verifier: to be read side by side. The audit's figures are beside ours in `leakage.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

CASES, ROWS, EPISODES = 1440, 21600, 3456000
UNITS: Final = 72
REFERENCE_ADMITTED: Final = 55
RUNTIME_ADMITTED: Final = 54
COMPONENTS: Final = 24
REPRESENTED: Final = 20
FALSE_ADMISSIONS: Final = 0
FALSE_ADMISSION_BOUND: Final = 0.1391
CUTOFF: Final = 1.5
DETECTIONS: Final[Mapping[str, tuple[int, ...]]] = {
    "uniform": (0, 17, 37, 52, 54),
    "flow_weighted": (0, 13, 35, 49, 54),
}
"""Family → units detected at each target, of the runtime-admitted ones."""
DIFFERENCE: Final = 0.1264
"""NLL a unit-arm row of nominal fraction less that of affected clean traffic, nats."""
DIFFERENCE_INTERVAL: Final = (0.0593, 0.1918)
FAMILY_GAIN: Final = 0.0015
FAMILY_BOUND: Final = 0.0066
