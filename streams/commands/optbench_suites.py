"""The suite that a command of `wirelessops optbench` is about: a folder of one, or one that is built."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from streams.commands.answering import NotRun

if TYPE_CHECKING:
    from simulators.optbench.model import Split
    from simulators.optbench.suite import Suite

DEFAULT_SEED: Final = 0


@dataclass(frozen=True, slots=True)
class SuiteOptions:
    """A folder that `build` wrote, or what to build; None: not said."""

    directory: Path | None
    split: str | None
    seed: int | None
    base: Path | None


def suite_of(options: SuiteOptions) -> Suite:
    """The suite of a folder, or a new one. Raises NotRun, for a folder that is not as its manifest says, too.

    A folder's suite that another version made is told on standard error, and taken as it is; a new one that differs
    from the frozen suite of its split and seed is refused.
    """
    built_by = {"--split": options.split, "--seed": options.seed, "--base": options.base}
    given = [name for name, value in built_by.items() if value is not None]
    if options.directory is not None and given:
        raise NotRun(f"--suite is a suite as it was built; {', '.join(given)} would ask for another")
    try:
        return _built(options) if options.directory is None else _read(options.directory)
    except OSError as error:
        where = error.filename or options.directory or options.base
        raise NotRun(f"{where}: {error.strerror or error}") from error
    except ValueError as error:
        raise NotRun(str(error)) from error


def _built(options: SuiteOptions) -> Suite:
    from simulators.optbench.frozen import fault
    from simulators.optbench.suite import build

    seed = DEFAULT_SEED if options.seed is None else options.seed
    suite = build(cast("Split", options.split or "final"), seed, options.base)
    if (differs := fault(suite)) is not None:
        raise NotRun(differs)
    return suite


def _read(directory: Path) -> Suite:
    from simulators.optbench.frozen import fault
    from simulators.optbench.sources import generator_digest
    from simulators.optbench.suite import load

    suite = load(directory)
    if suite.manifest["generator"] != generator_digest():
        sys.stderr.write(f"{directory}: made by another version of this software; its labels are taken as they are\n")
    elif (differs := fault(suite)) is not None:
        sys.stderr.write(f"{directory}: {differs}\n")
    return suite
