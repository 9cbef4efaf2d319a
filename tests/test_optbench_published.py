"""The published values, against the handed copy of them where there is one."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from simulators.optbench import published

HANDED = Path(__file__).parents[2] / "shared" / "data" / "published.json"


@pytest.mark.skipif(not HANDED.exists(), reason="the handed copy of the published values is not here")
def test_every_published_value_is_the_handed_one() -> None:
    handed = json.loads(HANDED.read_text())
    assert handed["table_iii"] == published.TABLE_III
    assert handed["table_iv"] == published.TABLE_IV
    assert handed["table_v_gpt"] == published.TABLE_V
    assert handed["table_vi_gpt"] == published.TABLE_VI
    assert handed["figure_7_gain_pp"] == published.FIGURE_7
    audit, marked, elsewhere = handed["audit"], published.MARKED_UNSAFE, published.UNSAFE_ELSEWHERE
    assert audit["conflict_provenance_apply_marked_unsafe"] == _told(marked, " of 40")
    assert audit["unsafe_in_the_other_four_domains"] == _told(elsewhere, "")
    assert {(audit["apply_on_80_material_conflicts"], 80)} == set(published.APPLIED_ON_CONFLICTS.values())
    survival = dict(handed["figure_4_survival_at_0_8"])
    assert survival.pop("every_baseline") == 0
    assert survival == published.FIGURE_4_SURVIVAL


def _told(counts: Mapping[str, tuple[int, int]], of: str) -> str:
    ours, theirs = counts["wirelessopsagent"], counts["critic"]
    return f"{ours[0]} of {ours[1]} (CRITIC style {theirs[0]}{of})"


def test_tables_agree_with_each_other() -> None:
    for backbone, stages in published.TABLE_IV.items():
        for counts in stages.values():
            assert (sum(counts.values()), counts["tp"] + counts["fn"]) == (600, 200)
        assert backbone in published.BACKBONES
    full = published.TABLE_III["GPT-5.4-mini"]["wirelessopsagent"]
    for metric in ("safe_apply_recall", "unsafe_apply_rate"):
        assert published.TABLE_VI["full"][metric] == full[metric]
    unsafe = sum(row["unsafe_apply_rate"] or 0 for row in published.TABLE_V.values()) / len(published.TABLE_V)
    assert abs(unsafe - full["unsafe_apply_rate"]) < 0.001
    of_120 = {domain: 120 * (row["unsafe_apply_rate"] or 0) for domain, row in published.TABLE_V.items()}
    marked = published.MARKED_UNSAFE["wirelessopsagent"][0]
    assert abs(of_120.pop("conflict_provenance") - marked) < 0.1
    assert abs(sum(of_120.values()) - published.UNSAFE_ELSEWHERE["wirelessopsagent"][0]) < 0.1
    for method in published.AUDITED:
        of_600 = 600 * published.TABLE_III["GPT-5.4-mini"][method]["unsafe_apply_rate"]
        audited = published.MARKED_UNSAFE[method][0] + published.UNSAFE_ELSEWHERE[method][0]
        assert -0.3 < of_600 - audited < 1.3, method  # three decimals; the audit leaves one of the critic's out
