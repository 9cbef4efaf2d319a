"""Strangers' text on a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """Text that holds a stranger's as one line of a terminal, which does nothing but show it."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)
