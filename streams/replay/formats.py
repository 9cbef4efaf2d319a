"""The formats that `replay` reads: how each is recognised, read, guarded and proposed on."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Final

from streams.replay import flexric, perf3gpp, proposers, scope
from streams.replay.lines import open_recording
from streams.replay.proposers import Sight, Wish
from streams.replay.recorded import Arrival, Tally, UnreadableRecording
from xapp.contract import Contract
from xapp.contract_loading import read_contract
from xapp.model import Report

RECORDING: Final = "recording"
"""The project's own recordings of topics: decided again, not proposed on."""


@dataclass(frozen=True, slots=True)
class Format:
    """A foreign format. `cadence_ms`: how often its proposer proposes for one thing on the recorded clock."""

    name: str
    read: Callable[[Path, int, Tally], Iterator[Arrival]]
    see: Callable[[Report], Iterator[Sight]]
    wish: Callable[[Sight], Wish]
    contracts: tuple[str, ...]
    cadence_ms: int

    def load_contracts(self) -> Mapping[str, Contract]:
        """contract id → contract, as shipped with this package."""
        folder = files("streams.replay") / "contracts"
        loaded = [read_contract((folder / f"{name}.yaml").read_bytes()) for name in self.contracts]
        return {contract.contract_id: contract for contract in loaded}


FORMATS: Final[Mapping[str, Format]] = {
    form.name: form
    for form in (
        Format(
            name="scope",
            read=scope.read,
            see=proposers.see_scope,
            wish=proposers.wish_scope,
            contracts=("scope-slice", "scope-scheduling"),
            cadence_ms=1_000,
        ),
        Format(
            name="flexric",
            read=flexric.read,
            see=proposers.see_flexric,
            wish=proposers.wish_flexric,
            contracts=("flexric-share",),
            cadence_ms=2_000,
        ),
        Format(
            name="perf3gpp",
            read=perf3gpp.read,
            see=proposers.see_perf3gpp,
            wish=proposers.wish_perf3gpp,
            contracts=("perf3gpp-admission",),
            cadence_ms=300_000,
        ),
    )
}
NAMES: Final = (*FORMATS, RECORDING)


def guess(path: Path) -> str:
    """The format of a file by how it begins. Raises UnreadableRecording where it begins like none of them."""
    with open_recording(path) as stream:
        try:
            begin = stream.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()
        except (OSError, EOFError, zlib.error) as error:
            raise UnreadableRecording(f"{path.name}: damaged gzip: {error}") from error
    first = begin.partition(b"\n")[0]
    if b"IMSI" in first and b"Timestamp" in first:
        return "scope"
    if b"E2 Node ID" in first:
        return "flexric"
    if first.startswith(b'{"topic":'):
        return RECORDING
    if begin.startswith(b"{") and b'"event"' in begin:
        return "perf3gpp"
    raise UnreadableRecording(f"{path.name}: begins like none of {', '.join(NAMES)}: name its --format")
