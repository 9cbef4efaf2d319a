"""`wirelessops replay`: recordings in, decisions out, on recorded clocks.

Foreign recordings (SCOPE/ColO-RAN CSV, NIST FlexRIC CSV, VES `perf3gpp` JSON) are played to the guard's decision path
under a proposer that fits on top; the project's own recordings are decided again and compared with what was decided
live. The same recording gives the same bytes, in any process and on any day.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path


def replay(
    paths: Sequence[Path],
    *,
    form: str | None = None,
    out: Path | None = None,
    as_json: bool = False,
    contracts_dir: Path | None = None,
    shipped_contracts: bool = True,
    history_ms: int = 60_000,
    history_count: int = 4096,
    support_dir: Path | None = None,
) -> int:
    """Replay files; print the summary, write decisions (full records, JSON Lines) to `out`.

    `form`: one of `scope`, `flexric`, `perf3gpp`, `recording`; guessed from how the first file begins when None.
    `as_json`: the summary as one JSON document. `contracts_dir`, `shipped_contracts`, `history_ms`,
    `history_count`: what the guard of an own recording was started with (`wirelessops run`); foreign recordings have
    contracts of their own. `support_dir`: the folder of support terms and maps that an own recording was gated by; what
    is not gated is decided as it was, and what the folder would have vetoed is counted.

    Returns the exit code: 0; 1 where a decision of an own recording differs from the live one; 2 where nothing can be
    read or `out` not be written, with the reason on stderr.
    """
    from streams.replay.recorded import UnreadableRecording
    from streams.replay.run import LiveGuard, run

    try:
        live = LiveGuard(contracts_dir, shipped_contracts, history_ms, history_count, support_dir)
        return run(paths, form, out, as_json, live)
    except UnreadableRecording as error:
        print(f"wirelessops replay: {error}", file=sys.stderr)
        return 2
