"""Sanity rows: one action, whatever the evidence. Neither may be worth anything on this benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from simulators.optbench.agents import Backbone, Bundle
from simulators.optbench.methods.asking import ask
from simulators.optbench.methods.claims import as_proposed
from simulators.optbench.prompts import propose


@dataclass(slots=True)
class Always:
    """Always `action`, with the proposer's answer and plan."""

    name: str
    backbone: Backbone
    action: str

    def decide(self, view: Mapping[str, Any]) -> Bundle:
        """The proposal under the one action, whatever its own; invalid where there is none."""
        return as_proposed(view, ask(self.backbone, propose(view, "direct")), action=self.action)
