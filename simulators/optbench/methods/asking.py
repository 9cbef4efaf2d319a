"""Asking a backbone: one call, its reply read, and what it cost so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from simulators.optbench.agents import Backbone, Bundle, Prompt, RawProposal
from simulators.optbench.replies import Unreadable, read_reply


@dataclass(frozen=True, slots=True)
class Reply:
    """What a backbone said last, and the calls, tokens and cost of everything it said on this episode.

    `proposal` is None where there is none, and `fault` says why. `cost_usd` is None where one of the calls had no known
    cost.
    """

    text: str
    proposal: RawProposal | None
    fault: str | None
    calls: int
    tokens_in: int
    tokens_out: int
    cost_usd: float | None

    def bundle(
        self,
        view: Mapping[str, Any],
        action: str | None,
        *,
        answer: Any = None,
        plan: Mapping[str, Any] | None = None,
        record: Mapping[str, Any] | None = None,
        proposed: RawProposal | None = None,
    ) -> Bundle:
        """A bundle with this reply's counts; `invalid` says why where there is no action."""
        unnamed = "the reply names no action" if self.fault is None else self.fault
        return Bundle(
            str(view["episode_id"]),
            action,
            answer=answer,
            plan={} if plan is None else plan,
            record=record,
            proposed=proposed,
            invalid=unnamed if action is None else None,
            calls=self.calls,
            tokens_in=self.tokens_in,
            tokens_out=self.tokens_out,
            cost_usd=self.cost_usd,
        )


def ask(backbone: Backbone, prompt: Prompt, before: Reply | None = None) -> Reply:
    """One call, counted on top of what `before` counts."""
    said = backbone.complete(prompt)
    read = Unreadable(said.error) if said.error is not None else read_reply(said.text)
    cost = said.cost_usd
    if before is not None:
        cost = None if cost is None or before.cost_usd is None else before.cost_usd + cost
    return Reply(
        said.text,
        read if isinstance(read, RawProposal) else None,
        None if isinstance(read, RawProposal) else read.reason,
        (0 if before is None else before.calls) + 1,
        (0 if before is None else before.tokens_in) + said.tokens_in,
        (0 if before is None else before.tokens_out) + said.tokens_out,
        cost,
    )
