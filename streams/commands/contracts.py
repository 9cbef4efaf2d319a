"""`wirelessops contract check`: may these contracts be loaded, together?"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from streams.commands.documents import STDIN
from streams.settings import SettingsError, contract_files, read_contract_file, read_named_contract
from xapp.contract import Contract
from xapp.contracts import shipped

OK, INVALID = 0, 2
_STDIN_NAME: Final = "standard input"


def check_contracts(sources: Sequence[str]) -> int:
    """A line for each contract of files and folders (`-`: standard input). 0 where all may be loaded, together; else 2,
    with file, JSON path and reason of each fault on stderr. An id that a shipped contract has is noted there.
    """
    taken: dict[str, str] = {}
    faults: list[str] = []
    for found in _contracts(sources):
        if isinstance(found, SettingsError):
            faults.append(str(found))
            continue
        name, contract = found
        other = taken.setdefault(contract.contract_id, name)
        if other != name:
            faults.append(f"{name}: $.contract_id: {contract.contract_id!r} is taken by {other}")
            continue
        observed = sum(1 for f in contract.fields.values() if f.kind == "observed")
        print(f"{contract.contract_id}: {len(contract.fields)} fields ({observed} observed), {contract.digest}")
    for contract_id in sorted(taken.keys() & shipped().keys()):
        sys.stderr.write(f"note: {contract_id!r} is shipped, too: a guard needs --no-shipped-contracts for this one\n")
    sys.stderr.writelines(f"{fault}\n" for fault in faults)
    return INVALID if faults else OK


def _contracts(sources: Sequence[str]) -> Iterator[tuple[str, Contract] | SettingsError]:
    """Each contract and what its file is called, or what is wrong with it; of a folder without any, that."""
    for source in sources:
        try:
            if source == STDIN:
                yield _STDIN_NAME, read_named_contract(sys.stdin.buffer.read(), _STDIN_NAME)
                continue
            files = contract_files(Path(source)) if Path(source).is_dir() else [Path(source)]
        except SettingsError as error:
            yield error
            continue
        if not files:
            yield SettingsError(f"{source}: no contract in this folder (*.json, *.yaml, *.yml)")
        for path in files:
            try:
                yield str(path), read_contract_file(path)
            except SettingsError as error:
                yield error
