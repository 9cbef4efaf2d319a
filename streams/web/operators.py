"""Who may act by the web: names and digests of bearer tokens in a file, read again when it changes.

A line is a name, a blank, and the SHA-256 of the token in hex; `#` begins a comment. Tokens are drawn at random by
`wirelessops keys token`, so a plain digest of one gives nothing away and needs no salt.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import structlog

from streams.settings_errors import SettingsError

TOKEN_BYTES: Final = 32
_MAX_BYTES: Final = 1_000_000
_MAX_TOKEN: Final = 1_000
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,99}")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_WRITABLE: Final = stat.S_IWGRP | stat.S_IWOTH

log = structlog.get_logger(__name__)


class Entry(NamedTuple):
    """An operator, and the SHA-256 of a token of his in hex."""

    operator: str
    digest: str


def new_token() -> str:
    """A new random token."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def line_of(operator: str, token: str) -> str:
    """The line of the tokens file for an operator's token. Raises ValueError for a bad name."""
    if not _NAME.fullmatch(operator):
        raise ValueError(
            f"operator {operator!r}: letters, digits, '.', '_', '@' and '-', at most 100, the first a letter or a digit"
        )
    return f"{operator} {_digest(token)}"


def read_entries(text: str) -> tuple[Entry, ...]:
    """The entries of a tokens file. Raises ValueError naming each line at fault, and never what stands in it."""
    entries: list[Entry] = []
    faults: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if len(words) != 2:
            faults.append(f"line {number}: a name and the SHA-256 of a token are required")
        elif not _NAME.fullmatch(words[0]):
            faults.append(f"line {number}: no name of an operator")
        elif not _DIGEST.fullmatch(words[1].lower()):
            faults.append(f"line {number}: no SHA-256 in hex")
        else:
            entries.append(Entry(words[0], words[1].lower()))
    digests = [entry.digest for entry in entries]
    if len(set(digests)) != len(digests):
        faults.append("two lines have the same token: who acted could not be told")
    if faults:
        raise ValueError("; ".join(faults))
    return tuple(entries)


class Operators:
    """The operators of a tokens file. Raises SettingsError where it cannot be read at first.

    Later a file that cannot be read, or that has a fault, changes nothing: the fault is logged, the entries read last
    stay in force.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._entries, self._seen = self._read()
        except (OSError, ValueError) as error:
            raise SettingsError(f"operator_tokens: {path}: {_reason(error)}") from error

    def bearer(self, token: str) -> str | None:
        """Whom a token belongs to; None for an unknown one. Every entry is compared, in constant time."""
        self._refresh()
        if len(token) > _MAX_TOKEN:
            return None
        digest = _digest(token)
        found = None
        for entry in self._entries:
            if hmac.compare_digest(entry.digest, digest):
                found = entry.operator
        return found

    def names(self) -> Iterator[str]:
        """The operators there are, each once."""
        self._refresh()
        return iter(dict.fromkeys(entry.operator for entry in self._entries))

    def _refresh(self) -> None:
        try:
            if _state(os.stat(self._path)) == self._seen:
                return
            self._entries, self._seen = self._read()
            log.info("operator tokens read again", file=str(self._path), operators=len(self._entries))
        except (OSError, ValueError) as error:
            fault = _reason(error)
            if self._seen != fault:  # told once, not at every request
                log.error("operator tokens not read: the former ones stay in force", file=str(self._path), why=fault)
            self._seen = fault

    def _read(self) -> tuple[tuple[Entry, ...], object]:
        with self._path.open("rb") as file:
            status = os.fstat(file.fileno())
            data = file.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise ValueError(f"more than {_MAX_BYTES} bytes")
        if status.st_mode & _WRITABLE:
            log.warning("others may write the operator tokens, and so act as anybody", file=str(self._path))
        return read_entries(data.decode()), _state(status)


def _state(status: os.stat_result) -> tuple[int, int, int, int]:
    """What changes with the file; a mounted secret is another file each time."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode(errors="surrogateescape")).hexdigest()


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return "not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
