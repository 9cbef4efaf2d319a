"""An agent of one's own: `wirelessops optbench run --method docs/examples/optbench_agent.py:Careful`.

It asks the backbone once, and holds whatever rests on an observation that is older than its field allows. It sees the
public view of an episode and nothing else; it is scored on the bundle that it returns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulators.optbench.agents import Backbone, Bundle
from simulators.optbench.prompts import propose
from simulators.optbench.replies import Unreadable, read_reply


class Careful:
    """Trusts the proposal, but not old evidence."""

    name = "careful"

    def __init__(self, backbone: Backbone) -> None:
        self._backbone = backbone

    def decide(self, view: Mapping[str, Any]) -> Bundle:
        """The bundle for one episode. An exception here would be an invalid output of this episode, and no more."""
        episode = view["episode"]
        reply = read_reply(self._backbone.complete(propose(view, "direct")).text)
        if isinstance(reply, Unreadable):
            return Bundle(view["episode_id"], None, invalid=reply.reason)
        ledger = {observation["id"]: observation for observation in episode["observations"]}
        limits = {name: field.get("freshness_ms") for name, field in episode["contract"]["fields"].items()}
        action, record = reply.action, {}
        for name, claim in reply.fields.items():
            cited = ledger.get(claim["observation"], {})
            age_ms = episode["decided_at_ms"] - cited.get("event_time_ms", 0)
            old = bool(cited) and limits.get(name) is not None and age_ms > limits[name]
            if old and action == "APPLY":
                action = "HOLD"
            record[name] = {
                "state": "blocked" if old else claim["state"],
                "observation": claim["observation"],
                "value": cited.get("value"),
                "unit": cited.get("unit"),
            }
        return Bundle(
            view["episode_id"],
            action,
            answer=reply.answer,
            plan=reply.plan,
            record={"fields": record, "blocked": [], "repairs": []},
            proposed=reply,
        )
