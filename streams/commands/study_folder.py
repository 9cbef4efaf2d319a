"""The folder of a study: what is in it, and files that are there whole or not at all. The manifest comes last."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

from simulators.closedloop import protocol
from simulators.closedloop.derived import DERIVED
from simulators.closedloop.files import ROWS
from simulators.closedloop.protocol import Protocol
from simulators.closedloop.tables import FileFault, document, read_document
from streams.commands.answering import NotRun
from streams.whole_file import replace_file
from xapp.address import digest

MANIFEST: Final = "manifest.json"
NAMES: Final = (protocol.FILE, "seeds.csv", *ROWS, "leakage.json", *DERIVED)
"""All files of a run that the manifest names, in the order in which they are written."""
_PART: Final = ".part"
"""At the end of the name of a file that is being written."""

State = Literal["new", "unfinished", "finished"]


@contextmanager
def faults_told(folder: Path) -> Iterator[None]:
    """Within it, what goes wrong with files of the folder is NotRun, with the file."""
    try:
        yield
    except FileFault as error:
        raise NotRun(f"{folder}: {error}") from None
    except OSError as error:
        raise NotRun(f"{error.filename or folder}: {error.strerror or error}") from None


def state(folder: Path, told: Protocol) -> State:
    """What a folder holds: nothing, a run of this protocol that did not end, or one that did.

    Raises NotRun for a folder that holds anything else. The commit may be another one: the hash of the code is what
    decides.
    """
    with faults_told(folder):
        there = {path.name for path in folder.iterdir()} if folder.exists() else set()
        if there <= {name + _PART for name in (*NAMES, MANIFEST)}:
            return "new"
        if protocol.FILE not in there:
            raise NotRun(f"{folder}: is not empty, and holds no study; nothing there is overwritten")
        before = protocol.read(protocol.FILE, (folder / protocol.FILE).read_bytes())
    differences = [line for line in protocol.between(before, told) if not line.startswith("commit.")]
    if differences:
        raise NotRun(
            "\n  ".join((f"{folder}: holds a study of another protocol; nothing there is overwritten", *differences))
        )
    return "finished" if MANIFEST in there else "unfinished"


@contextmanager
def documents_told(folder: Path) -> Iterator[None]:
    """Within it, what is done with documents of a finished study; one of another shape than a run's is NotRun."""
    try:
        yield
    except (LookupError, TypeError, AttributeError) as error:
        why = f"a document is not as a run writes it ({type(error).__name__}: {error})"
        raise NotRun(f"{folder}: {why}; `wirelessops study validate` says which") from error


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Makes the folder where it is not there; within it, no other run writes there. Raises NotRun where one does."""
    with faults_told(folder):
        folder.mkdir(parents=True, exist_ok=True)
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with faults_told(folder):
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise NotRun(f"{folder}: another run is writing there") from None
        yield
    finally:
        os.close(opened)


def put_file(folder: Path, name: str, content: bytes) -> None:
    """Writes a file of the folder, whole or not at all. Raises OSError."""
    replace_file(folder / name, content, part=folder / (name + _PART))


def manifest(contents: Mapping[str, bytes]) -> dict[str, str]:
    """File → `sha256:…` of these contents."""
    return {name: digest(content) for name, content in contents.items()}


def put_manifest(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Writes the manifest of these contents: with it the study is finished. Raises OSError."""
    put_file(folder, MANIFEST, document(manifest(contents)))


def finished(folder: Path) -> dict[str, bytes]:
    """The files of a finished study by name, as its manifest pins them. Raises NotRun where they are not so."""
    with faults_told(folder):
        if not (folder / MANIFEST).is_file():
            raise NotRun(f"{folder}: holds no finished study: {MANIFEST} is not there")
        pinned = read_document(MANIFEST, (folder / MANIFEST).read_bytes())
        if set(pinned) != set(NAMES):
            raise NotRun(f"{folder / MANIFEST}: must name {', '.join(NAMES)}, and nothing else")
        contents = {name: (folder / name).read_bytes() for name in NAMES}
    changed = [name for name, found in manifest(contents).items() if found != pinned[name]]
    if changed:
        raise NotRun(f"{folder}: {', '.join(changed)}: not as {MANIFEST} pins it")
    return contents
