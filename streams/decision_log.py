"""A line in the log for every published decision: final ones at level info, interim ones at debug."""

from __future__ import annotations

from typing import Any, Final

import structlog

from streams.observing import Published

LONGEST_NAME: Final = 200

log = structlog.get_logger(__name__)


class DecisionLog:
    """An observer (streams.observing). A line names what was decided, why, and how long it took: no evidence, no plan,
    no header: what a proposer put there may be secret.
    """

    def published(self, published: Published) -> None:
        """A decision stands."""
        decision = published.decision
        (log.info if published.final else log.debug)(
            "decision",
            decision_id=decision.decision_id,
            proposal_id=decision.proposal_id,
            region=published.region,
            partition=published.partition,
            action=decision.action,
            final=published.final,
            attempt=published.attempt,
            codes=published.codes,
            proposer=_name(published.proposal.get("proposer")),
            contract=_name(published.proposal.get("contract_ref")),
            waited_ms=round(published.waited_s * 1000),
            decide_ms=round(published.decide_s * 1000, 3),
            publish_ms=round(published.publish_s * 1000, 3),
        )


def _name(given: Any) -> str | None:
    """What a proposal names, as far as a line holds it; None for what is no name: it may be anything of any size."""
    return given[:LONGEST_NAME] if isinstance(given, str) else None
