"""Where a study ran: the versions that its numbers may hang on, and the commit of the software."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
_SECONDS: Final = 30


def environment() -> dict[str, str]:
    """Versions of Python, NumPy and SciPy, the system and the machine."""
    import numpy
    import scipy

    return {
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "system": platform.system(),
        "machine": platform.machine(),
    }


def commit(root: Path = ROOT) -> dict[str, Any]:
    """The commit checked out at `root`, and whether tracked files differ from it; null, and why, where unknown."""
    if not (root / ".git").exists():
        return _unknown("the software is no git checkout")
    try:
        head = _git(root, "rev-parse", "--verify", "HEAD")
        changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.TimeoutExpired) as error:
        return _unknown(f"git cannot be run: {getattr(error, 'strerror', None) or error}")
    except subprocess.CalledProcessError as error:
        return _unknown(f"git says: {' '.join(str(error.stderr).split())[:200]}")
    return {"id": head, "dirty": bool(changed), "reason": None}


def _unknown(reason: str) -> dict[str, Any]:
    return {"id": None, "dirty": None, "reason": reason}


def _git(root: Path, *words: str) -> str:
    # Where git runs this itself, as in a hook, its variables name another repository than the one at `root`.
    without = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command, environment = ["git", "-C", str(root), *words], {**without, "LC_ALL": "C"}
    told = subprocess.run(  # noqa: S603 our own words
        command, env=environment, capture_output=True, check=True, timeout=_SECONDS, text=True
    )
    return told.stdout.strip()
