"""A file that is replaced as a whole."""

from __future__ import annotations

import errno
import os
import secrets
from pathlib import Path


def replace_file(path: Path, content: bytes, mode: int = 0o666, *, part: Path | None = None) -> None:
    """Write a file: after a crash at any point the old one is there, or the new one, whole. Raises OSError, for a path
    too where something other than a file stands: a device would be replaced.

    `mode`: of the new file, less the process's umask. `part`: where it is written first, beside `path`, for a writer
    that is alone there and must know a file that a crash left; None: under a name that nothing has.
    """
    if path.exists() and not path.is_file():
        raise OSError(errno.EEXIST, "no file, and not to be replaced by one")
    beside = path.parent / f".{path.name}.{secrets.token_hex(8)}" if part is None else part
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | (os.O_EXCL if part is None else os.O_TRUNC), mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
