"""`wirelessops optbench audit`: what it says of a suite that holds, and of one that does not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from optbench_suites import suite as whole

from simulators.optbench.suite import subset
from streams.commands import optbench_audit
from streams.commands.optbench_suites import SuiteOptions


def test_an_audit_says_what_was_checked_and_fails_where_a_claim_does(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    part = subset(whole(), whole().cases[::20])
    monkeypatch.setattr(optbench_audit, "suite_of", lambda options: part)
    nothing_said = SuiteOptions(None, None, None, None)
    assert optbench_audit.audit(nothing_said) == 0
    told = capsys.readouterr().out
    assert "30 episodes" in told
    assert "60, of which 0 show" in told
    first = part.cases[0]
    wrong = "HOLD" if first.sealed.reference != "HOLD" else "RETRY"
    relabelled = replace(first, sealed=replace(first.sealed, reference=wrong))
    monkeypatch.setattr(
        optbench_audit, "suite_of", lambda options: replace(part, cases=(relabelled, *part.cases[1:]))
    )
    assert optbench_audit.audit(nothing_said) == 1
    told = capsys.readouterr().out
    assert "does not bear out: 1" in told
    assert f"{first.episode_id}: its label is {wrong}" in told
