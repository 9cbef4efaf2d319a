"""The files of the page, read once when the server is made: what stands in this table is served, and nothing else."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

PAGE: Final = "index.html"

_TYPES: Final[Mapping[str, str]] = {
    "css": "text/css",
    "html": "text/html",
    "js": "text/javascript",
    "json": "application/json",
    "png": "image/png",
    "svg": "image/svg+xml",
    "webmanifest": "application/manifest+json",
    "woff2": "font/woff2",
}
_PACKED: Final = frozenset({"image/png", "font/woff2"})
"""Types that are compressed as they are."""


@dataclass(frozen=True, slots=True)
class Asset:
    """One file. `etag`: of its bytes, without quotes; `packed`: the same bytes by gzip, None where that is no help."""

    content_type: str
    body: bytes
    packed: bytes | None
    etag: str


def load_assets() -> dict[str, Asset]:
    """The files of `streams/web/static` by their path in it, with `/`. Files of unknown types are not served."""
    return dict(_found(files("streams.web") / "static", ""))


def _found(folder: Traversable, prefix: str) -> list[tuple[str, Asset]]:
    if not folder.is_dir():
        return []
    found = []
    for entry in sorted(folder.iterdir(), key=lambda each: each.name):
        if entry.is_dir():
            found += _found(entry, f"{prefix}{entry.name}/")
            continue
        content_type = _TYPES.get(entry.name.rpartition(".")[2])
        if content_type is not None:
            found.append((prefix + entry.name, _asset(content_type, entry.read_bytes())))
    return found


def _asset(content_type: str, body: bytes) -> Asset:
    packed = None if content_type in _PACKED else gzip.compress(body, mtime=0)
    smaller = packed if packed is not None and len(packed) < len(body) else None
    return Asset(content_type, body, smaller, hashlib.sha256(body).hexdigest()[:32])
