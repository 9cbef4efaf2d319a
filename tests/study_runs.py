"""A run of the verifier study that tests of several files read; whoever changes a file of it copies the folder first.

It is run under a protocol frozen now: whether the preregistered one is still this software's is a test of its own, and
the only one that a change of the study's code must fail.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result


def study_run(*words: object) -> Result:
    """`wirelessops study run …` in this process."""
    from streams.cli import app

    return CliRunner().invoke(app, ["study", "run", *map(str, words)])


@pytest.fixture(scope="session")
def study_protocol(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the protocol of this software."""
    from simulators.closedloop.freezing import freeze

    file = tmp_path_factory.mktemp("protocol") / "frozen.json"
    file.write_bytes(freeze().content())
    return file


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory, study_protocol: Path) -> Path:
    """The folder of a finished study."""
    folder = tmp_path_factory.mktemp("study") / "study"
    ran = study_run("--out", folder, "--protocol", study_protocol)
    assert ran.exit_code == 0, ran.output
    return folder
