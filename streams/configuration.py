"""The configuration of a running guard: what is in force, and who may change what of it, how.

It comes from the command line, then the descriptor (`streams.descriptor`), then defaults. While the guard runs, a
changed descriptor and an operator's request reach what `streams.tuning.LIVE` names; all else needs a restart, and that
is said. A change is made as a whole or not at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Set
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import structlog

from streams.descriptor import CONTROLS, KAFKA_CONFIG, XAPP_NAME, Descriptor, read_controls, read_descriptor
from streams.settings import GuardSettings
from streams.settings_errors import SettingsError
from streams.tuning import LIVE, LiveTuning

LOOK_S: Final = 1.0
"""How often the descriptor is looked at: a mounted ConfigMap is swapped by a link, which the path then follows."""

log = structlog.get_logger(__name__)


class ChangeRefused(ValueError):
    """A change that was read and is not made; the message has one line a fault: JSON path and reason."""


class Configuration:
    """Of one guard. `options`: names of settings that the command line gave; `path`: of the descriptor that was read.

    `refused`: what is wrong with the descriptor as it stands now, None where nothing is; `restart_for`: the controls
    in it that need a restart to come into force.
    """

    def __init__(
        self,
        settings: GuardSettings,
        tuning: LiveTuning,
        descriptor: Descriptor | None = None,
        path: Path | None = None,
        options: Set[str] = frozenset(),
    ) -> None:
        self._settings = settings
        self._tuning = tuning
        self._started = descriptor or Descriptor(XAPP_NAME, {}, {})
        self._read = self._started
        self._path = path
        self._options = options
        self._taken: bytes | None = None
        self._seen: bytes | None = None
        self._unread: str | None = None
        self.refused: str | None = None
        self.restart_for: tuple[str, ...] = ()

    # Reading.

    def document(self) -> list[dict[str, Any]]:
        """The xApp framework's XappConfigList (ric-plt-xapp-frame, api/xapp_rest_api.yaml), without secrets."""
        settings = self._settings.model_dump(mode="json", include=set(CONTROLS))
        settings["alarm_url"] = _without_user(self._settings.alarm_url)
        kafka_config = self._started.controls.get(KAFKA_CONFIG)
        settings[KAFKA_CONFIG] = None if kafka_config is None else str(kafka_config)
        settings |= {name: getattr(self._tuning.now, name) for name in LIVE}
        metadata = {"xappName": self._started.name, "configType": "json"}
        config = {**self._started.platform, "controls": dict(sorted(settings.items()))}
        return [{"metadata": metadata, "config": config}]

    # An operator's request.

    def change(self, controls: Mapping[str, Any], place: str, *, operator: str, reason: str) -> None:
        """Bring controls into force, in their JSON form. Those that are as they were may be among them.

        `place` is their JSON path. Raises ChangeRefused naming every fault, and every control that needs a restart;
        then nothing is changed.
        """
        as_shown = self.document()[0]["config"]["controls"]
        asked = {name: value for name, value in controls.items() if name not in as_shown or as_shown[name] != value}
        read, faults = read_controls(asked, Path(), place)
        faults += [
            (f"{place}.{name}", "needs a restart: change the descriptor or the options of `wirelessops run`")
            for name in read
            if name not in LIVE
        ]
        if faults:
            raise ChangeRefused("\n".join(f"{where}: {why}" for where, why in faults))
        self._retune(read, operator=operator, reason=reason)

    # The descriptor's file.

    async def watch(self) -> None:
        """Look at the descriptor again and again, until cancelled; returns at once where there is none."""
        while self._path is not None:
            try:
                content = await asyncio.to_thread(self._path.read_bytes)
            except OSError as error:
                self.unreadable(f"{self._path}: {error.strerror or error}")
            else:
                self.look(content)
            await asyncio.sleep(LOOK_S)

    def unreadable(self, why: str) -> None:
        """It cannot be read now. That counts when it was so twice in a row: then it is not being replaced."""
        if self._unread == why:
            self._refuse(why)
        self._unread, self._seen, self._taken = why, None, None

    def look(self, content: bytes) -> None:
        """What the descriptor holds now. It counts when it was seen twice in a row: then it is not half written."""
        assert self._path is not None
        self._unread = None
        stable, self._seen = content == self._seen, content
        if not stable or content == self._taken:
            return
        self._taken = content
        try:
            descriptor = read_descriptor(content, self._path)
            self._take(descriptor)
        except SettingsError as error:
            self._refuse(str(error))
        else:
            self.refused = None

    def _take(self, descriptor: Descriptor) -> None:
        """Bring what changed into force as far as it may. A control that an operator changed since stays as it is until
        the descriptor says something new of it.
        """
        changed = {name for name in CONTROLS if _control(descriptor, name) != _control(self._read, name)}
        for name in sorted(changed & self._options):
            log.warning("the descriptor's control does not count: the command line gave it", control=name)
        changed -= self._options
        self._retune({name: _control(descriptor, name) for name in changed & set(LIVE)}, descriptor=str(self._path))
        self._read = descriptor
        restart_for = tuple(
            name
            for name in CONTROLS
            if name not in LIVE and name not in self._options
            if _control(descriptor, name) != _control(self._started, name)
        )
        if restart_for != self.restart_for and restart_for:
            log.warning("controls of the descriptor need a restart: the old ones stay in force", controls=restart_for)
        self.restart_for = restart_for

    def _refuse(self, why: str) -> None:
        if why != self.refused:
            log.error("descriptor refused: the configuration stays as it is", why=why)
        self.refused = why

    def _retune(self, values: Mapping[str, Any], **by: str) -> None:
        before = self._tuning.now
        after = replace(before, **values)
        if after == before:
            return
        self._tuning.change(after)
        changed = {
            name: [getattr(before, name), getattr(after, name)]
            for name in LIVE
            if getattr(before, name) != getattr(after, name)
        }
        log.warning("configuration changed", changed=changed, **by)


def _control(descriptor: Descriptor, name: str) -> Any:
    """A control as a descriptor gives it, or its default."""
    if name in descriptor.controls or name == KAFKA_CONFIG:
        return descriptor.controls.get(name)
    field = GuardSettings.model_fields[name]
    return None if field.is_required() else field.default


def _without_user(url: str | None) -> str | None:
    """A URL without a name and password in it."""
    if url is None:
        return None
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
