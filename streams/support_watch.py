"""The reference maps in force in a running guard, and the folder they come from, watched.

A map is replaced by another content of its folder (a mounted ConfigMap is swapped by a link); terms are those of the
start. Which map a decision rests on stands in the decision, by its digest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Final

import structlog

from streams.settings_errors import SettingsError
from streams.support_folder import Contents, SupportFolder, load_support, read_folder, read_support
from xapp.support.reference_map import ReferenceMap
from xapp.support.terms import Terms

LOOK_S: Final = 2.0
"""How often the folder is looked at."""

log = structlog.get_logger(__name__)


class MapsInForce:
    """Of one guard. Whoever is given it reads `now` each time, and keeps no copy.

    `folder` None: no gate. `contracts`: ids of the guard's contracts. `refused`: what is wrong with the folder as it
    stands now, None where nothing is. Raises SettingsError for what a guard must not be started with.
    """

    def __init__(self, folder: Path | None = None, contracts: Container[str] = ()) -> None:
        self.refused: str | None = None
        self._folder = folder
        self._contracts = contracts
        self._support = load_support(folder, contracts)
        self._now = self._support.newest
        self._taken: Contents | None = None
        self._seen: Contents | None = None
        self._unread: str | None = None

    @property
    def terms(self) -> Mapping[str, Terms]:
        """The terms in force, by contract id."""
        return self._support.terms

    @property
    def now(self) -> Mapping[str, ReferenceMap | None]:
        """The map in force of each contract that has terms; None where there is none."""
        return self._now

    async def watch(self) -> None:
        """Look at the folder again and again, until cancelled; returns at once where there is none."""
        for contract_id, found in sorted(self._now.items(), key=lambda item: item[0]):
            log.info("support gate in force", contract=contract_id, map=_named(found))
        while self._folder is not None:
            await asyncio.sleep(LOOK_S)
            await asyncio.to_thread(self._look_at, self._folder)  # decisions are made meanwhile

    def _look_at(self, folder: Path) -> None:
        try:
            contents = read_folder(folder)
        except SettingsError as error:
            self.unreadable(str(error))
        else:
            self.look(contents)

    def unreadable(self, why: str) -> None:
        """It cannot be read now. That counts when it was so twice in a row: then it is not being replaced."""
        if self._unread == why:
            self._refuse(why)
        self._unread, self._seen, self._taken = why, None, None

    def look(self, contents: Contents) -> None:
        """What the folder holds now. It counts when it was seen twice in a row: then nothing is half written."""
        self._unread = None
        stable, self._seen = contents == self._seen, contents
        if not stable or contents == self._taken:
            return
        self._taken = contents
        try:
            self._take(read_support(contents, self._contracts, self._support))
        except SettingsError as error:
            self._refuse(str(error))

    def _take(self, support: SupportFolder) -> None:
        """Bring its maps into force, where its terms are those in force."""
        changed = [
            contract_id
            for contract_id in sorted(support.terms.keys() | self.terms.keys())
            if _digest(support.terms.get(contract_id)) != _digest(self.terms.get(contract_id))
        ]
        if changed:
            self._refuse(f"support terms of {', '.join(changed)} changed: they come into force with a restart")
            return
        self.refused = None
        for contract_id, after in support.newest.items():
            before = self._now[contract_id]
            if _digest(before) != _digest(after):
                log.warning("reference map changed", contract=contract_id, before=_named(before), after=_named(after))
        self._support, self._now = support, support.newest

    def _refuse(self, why: str) -> None:
        if why != self.refused:
            log.error("reference maps refused: the old ones stay in force", why=why)
        self.refused = why


def _digest(one: Terms | ReferenceMap | None) -> str | None:
    return None if one is None else one.digest


def _named(one: ReferenceMap | None) -> str | None:
    return None if one is None else f"{one.map_id} version {one.version}, {one.digest}"
