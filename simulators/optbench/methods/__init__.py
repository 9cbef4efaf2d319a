"""The methods: workflows from shared parts, each an `agents.Agent` over a backbone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from simulators.optbench.ablations import ABLATIONS
from simulators.optbench.agents import Agent, Backbone
from simulators.optbench.methods.critic import Critic
from simulators.optbench.methods.direct import Direct
from simulators.optbench.methods.sanity import Always
from simulators.optbench.methods.wirelessagent import WirelessAgentContract
from simulators.optbench.methods.wirelessopsagent import WirelessOpsAgent

__all__ = ["ABLATIONS", "METHODS", "build"]

METHODS: Final[Mapping[str, Callable[[str, Backbone], Agent]]] = {
    "direct": partial(Direct, style="direct"),
    "direct-minimal": partial(Direct, style="direct-minimal"),
    "direct-nocontract": partial(Direct, style="direct-nocontract"),
    "wirelessagent-contract": WirelessAgentContract,
    "critic": Critic,
    "wirelessopsagent": WirelessOpsAgent,
    "always-apply": partial(Always, action="APPLY"),
    "always-block": partial(Always, action="HOLD"),
}
"""Name → what makes the agent of that name over a backbone."""


def build(name: str, backbone: Backbone) -> Agent:
    """The agent of a method or an ablation. Raises KeyError for a name that is neither."""
    if name in ABLATIONS:
        return WirelessOpsAgent(name, backbone, ABLATIONS[name])
    return METHODS[name](name, backbone)
