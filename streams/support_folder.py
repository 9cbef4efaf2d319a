"""The folder of the support gate (docs/support-gate.md): terms and reference maps, with the place of every fault."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISREG
from typing import Any, Final

from streams.settings_errors import SettingsError
from xapp.contract import DocumentFaults
from xapp.contract_loading import json_or_yaml
from xapp.support.reference_map import FORMAT as MAP_FORMAT
from xapp.support.reference_map import ReferenceMap, read_map
from xapp.support.terms import FORMAT as TERMS_FORMAT
from xapp.support.terms import Terms, read_terms

_SUFFIXES: Final = frozenset({".json", ".yaml", ".yml"})
Contents = Mapping[Path, bytes]
"""What stands in the files of a folder."""
Document = Terms | ReferenceMap


@dataclass(frozen=True, slots=True)
class SupportFolder:
    """What a folder holds, by contract id: its terms, and its maps, the highest version first. Empty: no gate.

    `read`: each of them by the bytes that it was read from.
    """

    terms: Mapping[str, Terms] = field(default_factory=dict)
    maps: Mapping[str, Sequence[ReferenceMap]] = field(default_factory=dict)
    read: Mapping[bytes, Document] = field(default_factory=dict)

    @property
    def newest(self) -> Mapping[str, ReferenceMap | None]:
        """Of each contract that has terms the map that counts; None where there is none."""
        return {contract_id: next(iter(self.maps.get(contract_id, ())), None) for contract_id in self.terms}

    def of_digest(self, contract_id: str, digest: str) -> ReferenceMap | None:
        """The map of a contract that has a digest."""
        return next((one for one in self.maps.get(contract_id, ()) if one.digest == digest), None)


NO_SUPPORT: Final = SupportFolder()
"""Of no folder: no contract is gated."""


def load_support(folder: Path | None, contracts: Container[str]) -> SupportFolder:
    """The support of a folder; empty without one. Raises SettingsError as `read_folder` and `read_support` do."""
    return NO_SUPPORT if folder is None else read_support(read_folder(folder), contracts)


def read_folder(folder: Path) -> Contents:
    """The files `*.json`, `*.yaml`, `*.yml` of a folder, in whatever case. Raises SettingsError naming what cannot be
    read, or is no file: of a pipe nobody knows when it ends.
    """
    found: dict[Path, bytes] = {}
    faults: list[str] = []
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in _SUFFIXES)
    except OSError as error:
        raise SettingsError(f"{folder}: no folder of support terms: {error.strerror or error}") from error
    for path in paths:
        try:
            if not S_ISREG(path.stat().st_mode):
                faults.append(f"{path}: no file")
                continue
            found[path] = path.read_bytes()
        except OSError as error:
            faults.append(f"{path}: {error.strerror or error}")
    if faults:
        raise SettingsError("\n".join(faults))
    return found


def read_support(contents: Contents, contracts: Container[str], before: SupportFolder = NO_SUPPORT) -> SupportFolder:
    """The terms and maps in these files. `contracts`: ids of those that are here; `before`: what was read before, of
    which nothing is read again: a map of many cells takes a second.

    Raises SettingsError with file, JSON path and reason of each fault: what cannot be read, a contract that is not
    here, two terms of one contract, a map whose contract has no terms, two maps of one contract and version; and where
    there are no terms at all.
    """
    faults: list[str] = []
    read: dict[bytes, Document] = {}
    terms: dict[str, tuple[Path, Terms]] = {}
    maps: dict[tuple[str, int], tuple[Path, ReferenceMap]] = {}
    for path, content in contents.items():
        try:
            one = read[content] = before.read.get(content) or read_support_document(content)
        except DocumentFaults as error:
            faults += [f"{path}: {where}: {reason}" for where, reason in error.errors]
            continue
        if one.contract_id not in contracts:
            faults.append(f"{path}: $.contract_id: no contract {one.contract_id!r} is here")
        elif isinstance(one, Terms):
            other = terms.setdefault(one.contract_id, (path, one))[0]
            if other != path:
                faults.append(f"{path}: $.contract_id: {one.contract_id!r} has terms in {other}")
        else:
            other = maps.setdefault((one.contract_id, one.version), (path, one))[0]
            if other != path:
                faults.append(f"{path}: $.version: {other} is version {one.version} of the same contract, too")
    faults += [
        f"{path}: $.contract_id: no terms of {one.contract_id!r} are here"
        for path, one in maps.values()
        if one.contract_id not in terms and one.contract_id in contracts
    ]
    if not faults and not terms:
        faults.append("support: no terms in the folder (*.json, *.yaml, *.yml)")
    if faults:
        raise SettingsError("\n".join(faults))
    newest_first = sorted(maps.items(), key=lambda item: -item[0][1])
    return SupportFolder(
        {contract_id: one for contract_id, (_, one) in sorted(terms.items())},
        {
            contract_id: tuple(one for (of, _), (_, one) in newest_first if of == contract_id)
            for contract_id in sorted({of for of, _ in maps})
        },
        read,
    )


def read_support_document(content: bytes) -> Document:
    """The terms or the map in these bytes, as their `format` says. Raises DocumentFaults with each fault's place."""
    document: Any = json_or_yaml(content, DocumentFaults)
    said = document.get("format") if isinstance(document, dict) else None
    if said == TERMS_FORMAT:
        return read_terms(content)
    if said == MAP_FORMAT:
        return read_map(content)
    raise DocumentFaults([("$.format", f"must be {TERMS_FORMAT!r} or {MAP_FORMAT!r}")])
