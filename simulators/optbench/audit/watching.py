"""Watching methods decide: which sealed code runs meanwhile, and by what they reach beyond what they were handed."""

from __future__ import annotations

import sys
from _thread import start_new_thread
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import Any, Final

REACHING: Final = frozenset(
    {
        "open", "os.listdir", "os.scandir", "mmap.__new__", "sqlite3.connect", "socket.connect",
        "import", "exec",
        "gc.get_objects", "gc.get_referrers", "gc.get_referents",
        "sys._getframe", "sys._current_frames", "sys._current_exceptions", "sys.setprofile", "sys.settrace",
        "os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "os.system", "subprocess.Popen",
    }
)  # fmt: skip
"""Audit events of the interpreter (Python, `audit events table`) that no method has a use for while it decides."""

_FRAMES: Final = frozenset({"tb_frame", "gi_frame", "cr_frame", "ag_frame"})
_EVENTS: Final[list[set[str]]] = []
"""Where events are noted: of who watches now, the last."""


@contextmanager
def watched(is_sealed: Callable[[str], bool]) -> Iterator[set[str]]:
    """Meanwhile, what is noted: `module.function ran` for each sealed one, and `EVENT ARGUMENT` for what is `REACHING`.

    Functions are seen in this thread alone; a method that starts another is noted for that. What is read of a module
    that is loaded, without a call, is not seen.
    """
    _hooked()
    noted: set[str] = set()
    before = sys.getprofile()

    def note(frame: FrameType, event: str, called: Any) -> None:
        if event == "call":
            module = frame.f_globals.get("__name__", "")
            if is_sealed(module):
                noted.add(f"{module}.{frame.f_code.co_qualname} ran")
        elif event == "c_call" and called is start_new_thread:
            noted.add("a thread started")

    sys.setprofile(note)
    _EVENTS.append(noted)
    try:
        yield noted
    finally:
        _EVENTS.remove(noted)
        sys.setprofile(before)


@cache
def _hooked() -> None:
    """Once: the interpreter takes no hook back. While nobody watches it does nothing."""
    sys.addaudithook(_heard)


def _heard(event: str, arguments: tuple[Any, ...]) -> None:
    if not _EVENTS:
        return
    if event in REACHING or event.startswith("ctypes."):
        _EVENTS[-1].add(" ".join([event, *(one for one in arguments[:1] if isinstance(one, str))]))
    elif event == "object.__getattr__" and arguments[1] in _FRAMES:
        _EVENTS[-1].add(f"{event} {arguments[1]}")
