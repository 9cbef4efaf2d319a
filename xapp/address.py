"""Content addresses: what a document is called by what it says."""

from __future__ import annotations

import hashlib


def digest(body: bytes) -> str:
    """The content address of canonical bytes: `sha256:` and 64 hex digits."""
    return "sha256:" + hashlib.sha256(body).hexdigest()
