"""The support gate: what an episode carries, and what follows from it (docs/support-gate.md, "Verdict")."""

from __future__ import annotations

from xapp.contract import Contract, Resolution
from xapp.support.book import Window
from xapp.support.carried import Support, SupportVerdict
from xapp.support.reference_map import ReferenceMap
from xapp.support.terms import Terms

__all__ = ["Support", "SupportGate", "SupportVerdict", "judge"]


class SupportGate:
    """The gate of one contract in front of live control."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms

    def carried(
        self, contract: Contract, reference_map: ReferenceMap | None, window: Window, resolution: Resolution
    ) -> Support:
        """What an episode carries: all that the verdict follows from."""
        raise NotImplementedError

    def evaluate(
        self,
        contract: Contract,
        reference_map: ReferenceMap | None,
        window: Window,
        resolution: Resolution,
        t_ms: int,
    ) -> SupportVerdict:
        """The verdict at t, by the same path as the engine's."""
        return judge(self.carried(contract, reference_map, window, resolution), contract, resolution, t_ms)


def judge(support: Support, contract: Contract, resolution: Resolution, t_ms: int) -> SupportVerdict:
    """The verdict that follows from an episode's `support` alone, which is not trusted."""
    raise NotImplementedError
