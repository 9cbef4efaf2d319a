"""One pass: the proposer's action and plan stand (the Direct baseline, and its sensitivity variants)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from simulators.optbench.agents import Backbone, Bundle
from simulators.optbench.methods.asking import ask
from simulators.optbench.methods.claims import as_proposed
from simulators.optbench.prompts import Style, propose


@dataclass(slots=True)
class Direct:
    """Asks once in `style`, and hands on what it is told."""

    name: str
    backbone: Backbone
    style: Style

    def decide(self, view: Mapping[str, Any]) -> Bundle:
        """The proposal as it is; invalid where there is none, or no action in it."""
        return as_proposed(view, ask(self.backbone, propose(view, self.style)))
