"""The agent's bundles without the nominal answer that fills what its evidence does not support."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from simulators.optbench.agents import Bundle
from simulators.optbench.model import Case
from simulators.optbench.tools import answer_of, contract_of, vouched


def without_nominal(case: Case, bundle: Bundle) -> Bundle:
    """A bundle of WirelessOpsAgent whose answer is what its own evidence supports, else the proposer's word.

    The supported fields of its record, and the fields of its plan all of whose inputs are supported; see
    `methods.wirelessopsagent` for the answer as released. A bundle without a record is returned as it is.
    """
    if bundle.record is None:
        return bundle
    contract = contract_of(case.view["episode"])
    supported = {
        name: claim.get("value") for name, claim in bundle.record["fields"].items() if claim["state"] == "supported"
    }
    proposed = None if bundle.proposed is None else bundle.proposed.answer
    said = proposed if isinstance(proposed, Mapping) else {}
    task = case.sealed.item.task
    unit = contract.fields["answer"].unit if task == "WCHW" else ""
    return replace(bundle, answer={**said, **answer_of(task, vouched(contract, supported, bundle.plan), unit)})
