"""The contracts that come with the product. Each YAML file is one, its thresholds commented where they stand."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final

from xapp.contract import Contract
from xapp.contract_loading import read_contract

NAMES: Final = ("wireless-calculation-1", "slicing-1", "slicing-multi-1", "handover-1")


def text(name: str) -> str:
    """The YAML text of one shipped contract, by its file name without the ending (one of `NAMES`)."""
    return files(__name__).joinpath(f"{name}.yaml").read_text(encoding="utf-8")


@cache
def shipped() -> Mapping[str, Contract]:
    """contract_id → contract, read once."""
    contracts = (read_contract(text(name)) for name in NAMES)
    return MappingProxyType({contract.contract_id: contract for contract in contracts})
