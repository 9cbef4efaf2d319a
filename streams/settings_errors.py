"""What must not be started with, said one line per fault."""

from __future__ import annotations

from typing import Self

from pydantic import ValidationError


class SettingsError(ValueError):
    """Options or files that must not be started with: one line per fault, each beginning with the option's name."""

    @classmethod
    def of(cls, error: ValidationError) -> Self:
        """What pydantic found; never what was given, which may be a password."""
        found = []
        for fault in error.errors(include_input=False):
            place, said = ".".join(map(str, fault["loc"])), fault["msg"].removeprefix("Value error, ")
            found.append(f"{place}: {said}" if place else said)
        return cls("\n".join(found))
