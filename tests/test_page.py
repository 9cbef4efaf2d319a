"""The operator's page in a real browser, before a real guard: what a person sees, does, and must never see."""

from __future__ import annotations

import asyncio
import copy
import itertools
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
import pytest_asyncio
from guard_rig import CONTRACT
from page_rig import Operator, before_the_page, browsing, guarded_page
from support_rig import gate_in
from web_rig import TOKEN, Page

from streams.guard import unix_ms
from xapp.contract_loading import load_contract
from xapp.model import Measurement, Report
from xapp.signing import open_envelope

THREE_SOURCES = copy.deepcopy(CONTRACT)
THREE_SOURCES["fields"]["cqi"]["sources"] = ["e2:gnb-1", "rt:north", "o1:late"]
THREE_SOURCES["control"] = {"lease_ms": 400}

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Any]:
    async with browsing() as one:
        yield one


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def guard(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Page]:
    """One guard for all tests; each has a UE of its own."""
    async with guarded_page(tmp_path_factory.mktemp("page"), document=THREE_SOURCES) as one:
        yield one


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tab(browser: Any) -> Any:
    """One for all tests: a new profile costs more than most of them."""
    return await browser.new_page()


@pytest_asyncio.fixture(loop_scope="module")
async def operator(tab: Any, guard: Page) -> AsyncIterator[Operator]:
    """Before the page, live."""
    async with before_the_page(tab, guard) as one:
        await one.open()
        yield one


async def ended(operator: Operator, proposal_id: str) -> None:
    """Denies an escalation, so that it does not stand in the queue of another test."""
    said = await operator.guard.decided(proposal_id)
    await operator.guard.post("/v1/answers", {"decision": said["id"], "verdict": "deny", "reason": "the test is over"})
    await operator.guard.final(proposal_id)


async def test_an_empty_page_says_what_to_do_next(operator: Operator) -> None:
    await operator.sees("No decision yet.")
    for key, says in (
        ("e", "No escalation waits"),
        ("w", "Nothing waits."),
        ("s", "No source has reported."),
        ("l", "No control is held."),
    ):
        await operator.tab.keyboard.press("g")
        await operator.tab.keyboard.press(key)
        await operator.sees(says)


async def test_decisions_come_in_live_and_one_opened_tells_why_on_what_evidence(operator: Operator) -> None:
    await operator.applied("opened-1")
    panel = await operator.opens("opened-1")
    rows = panel.get_by_role("region", name="Rows of the policy").get_by_role("row")
    assert "APPLY" in await rows.filter(has_text=re.compile("^taken")).inner_text()
    assert "taken where no row above applies" in await rows.last.inner_text()
    assert await panel.locator("th:empty").count() == 0
    fields = panel.get_by_role("region", name="Fields the decision rests on")
    assert re.search(r"cqi\s+8\s+e2:gnb-1\s+\d.* of 30 s\s+—\s+supported", await fields.inner_text())
    graph = panel.get_by_role("group", name="Evidence graph")
    assert await graph.get_by_role("img", name="action").count() == 1
    assert await graph.get_by_role("img", name=re.compile("field cqi, supports")).count() == 1
    await panel.get_by_text("Released: bandwidth = 8 MHz").wait_for()
    assert re.search(r"Authority ends at \d\d:\d\d:\d\d\.\d{3} UTC", await panel.inner_text())
    assert not re.search(r"(at|until) \d{13}", await operator.tab.content()), "no time is left as a number"
    assert operator.tab.url.endswith(f"#/decision/{(await operator.guard.decided('opened-1'))['id']}")


async def test_an_address_of_a_decision_leads_to_it(operator: Operator) -> None:
    await operator.applied("linked-1")
    said = await operator.guard.decided("linked-1")
    await operator.open(f"?again#/decision/{said['id']}")
    await operator.tab.locator("#panel").get_by_role("heading", name="linked-1").wait_for()
    await operator.tab.keyboard.press("Escape")
    await operator.row("linked-1").wait_for()
    await operator.tab.go_back()
    await operator.tab.locator("#panel").get_by_role("heading", name="linked-1").wait_for()
    operator.excused += ("status of 400",)
    await operator.open("?cut#/decision/%E0%A4")
    await operator.tab.locator("#panel").get_by_text("is no id of a decision").wait_for()


async def test_an_escalation_can_be_answered_at_its_address_before_the_board_is_there(operator: Operator) -> None:
    await operator.escalated("linked-2")
    said, late = await operator.guard.decided("linked-2"), asyncio.Event()

    async def held_back(route: Any) -> None:
        await late.wait()
        await route.continue_()

    await operator.tab.route("**/v1/board", held_back)
    await operator.tab.goto(f"http://127.0.0.1:{operator.guard.port}/?late#/decision/{said['id']}")
    await operator.tab.locator("#panel").get_by_role("heading", name="linked-2").wait_for()
    late.set()
    await operator.tab.get_by_role("region", name="Answer this escalation").wait_for()
    await ended(operator, "linked-2")


async def test_the_record_downloads_as_it_stands_in_the_log(operator: Operator) -> None:
    await operator.applied("record-1")
    panel = await operator.opens("record-1")
    async with operator.tab.expect_download() as awaited:
        await panel.get_by_role("link", name="Download the record").click()
    path = await (await awaited.value).path()
    envelope = open_envelope(await asyncio.to_thread(path.read_bytes))
    assert orjson.loads(envelope.payload)["proposal_id"] == "record-1"


async def test_the_list_shows_what_the_filter_lets_through(operator: Operator) -> None:
    await operator.applied("filtered-1")
    await operator.held("filtered-2")
    tab = operator.tab
    await tab.get_by_role("button", name="HOLD").click()
    await operator.row("filtered-1").wait_for(state="hidden")
    assert "missing cqi" in await operator.row("filtered-2").inner_text()
    assert "action=HOLD" in tab.url
    await tab.get_by_role("button", name="Clear filter").click()
    await operator.row("filtered-1").wait_for()
    for label, value in (("xApp", "xapp:other"), ("cell", "2"), ("text", "FILTERED-2 missing")):
        await tab.get_by_label(f"Filter by {label}").fill(value)
        await operator.row("filtered-1").wait_for(state="hidden")
        assert await operator.row("filtered-2").is_visible()
        await tab.get_by_role("button", name="Clear filter").click()
        await operator.row("filtered-1").wait_for()
    await tab.get_by_label("Filter by text").fill("nothing like it")
    await operator.sees("No decision passes this filter.")


async def test_a_paused_list_stands_still_and_says_how_many_are_newer(operator: Operator) -> None:
    await operator.applied("paused-1")
    await operator.tab.keyboard.press("p")
    await operator.sends("paused-2")
    await operator.sees("Paused. 1 newer")
    await operator.tab.eval_on_selector("#said", "e => { e.textContent = 'said' }")
    said, newer = [await operator.tab.locator(each).bounding_box() for each in ("#said", ".newer")]
    assert said["y"] + said["height"] <= newer["y"]
    assert await operator.row("paused-2").count() == 0
    await operator.tab.get_by_role("button", name="Resume").click()
    await operator.row("paused-2").wait_for()


async def test_an_approved_escalation_is_applied(operator: Operator) -> None:
    await operator.escalated("approved-1")
    panel = await operator.opens("approved-1")
    answer = panel.get_by_role("region", name="Answer this escalation")
    await answer.get_by_text("Sign in to act").wait_for()
    await answer.get_by_text(re.compile(r"measured \d+ ms before the decision")).first.wait_for()
    await answer.get_by_role("button", name="Approve").click()
    await answer.get_by_text("Say why").wait_for()
    await answer.get_by_label("Reason").fill("the drive test agrees")
    await answer.get_by_role("button", name="Approve").click()
    await answer.get_by_text(f"Choose a value for cqi@cell:1/ue:{operator.ue}").wait_for()
    await answer.get_by_text("If you do nothing, nothing is applied").wait_for()
    await answer.get_by_role("radio", name="12 from rt:north").check()
    await answer.get_by_role("button", name="Approve").click()
    await operator.signs_in()
    decision = await operator.guard.final("approved-1")
    assert decision["action"] == "APPLY"
    outcome = panel.locator(".outcome").filter(has_text="APPLY, final.")
    await outcome.wait_for()
    assert f"Approved with cqi = 12 of cell:1/ue:{operator.ue}, as alice said" in await outcome.inner_text()
    await panel.get_by_role("link", name="open the final decision").click()
    said = panel.get_by_role("region", name="Answers of operators").get_by_role("row").filter(has_text="operator:alice")
    assert re.search(r"cqi of .* = 12\s+this one\s.*\ssettled", await said.inner_text())
    before = operator.row("approved-1").filter(has_text="ESCALATE").filter(has_text="→ APPLY")
    assert await before.get_attribute("data-state") == "over"
    await operator.sees("alice · sign out")


async def test_what_an_operator_approves_is_vetoed_for_want_of_support_and_the_page_says_so(
    tab: Any, tmp_path: Path
) -> None:
    def measured(at_ms: int) -> Report:
        return Report(f"r@{at_ms}", "e2:gnb-1", at_ms, (Measurement("cqi", 9, "1", "cell:1/ue:7"),))

    gate = gate_in(tmp_path / "gate", load_contract(THREE_SOURCES), measured, unix_ms())
    async with (
        guarded_page(tmp_path, document=THREE_SOURCES, support_dir=gate) as one,
        before_the_page(tab, one) as operator,
    ):
        await operator.open()
        await operator.escalated("vetoed-1")
        panel = await operator.opens("vetoed-1")
        asked = panel.get_by_role("region", name="Support", exact=True)
        assert "RUNTIME_ABSTAIN" in await asked.inner_text(), "it is known before anybody approves"
        answer = panel.get_by_role("region", name="Answer this escalation")
        await answer.get_by_role("radio", name="12 from rt:north").check()
        await answer.get_by_label("Reason").fill("the drive test agrees")
        await answer.get_by_role("button", name="Approve").click()
        await operator.signs_in()
        decision = await one.final("vetoed-1")
        assert (decision["action"], decision["released"]) == ("ABSTAIN", None)
        assert [v["code"] for v in decision["violations"] if v["blocking"]] == ["support"]
        await panel.get_by_role("link", name="open the final decision").click()
        await panel.get_by_role("region", name="Answers of operators").wait_for()
        support = await panel.get_by_role("region", name="Support", exact=True).inner_text()
        said = decision["support"]
        at = datetime.fromtimestamp(said["earliest_ms"] / 1000, UTC)
        for wanted in ("RUNTIME_ABSTAIN", f"{at:%H:%M:%S}", "north, version 1", said["map"]["digest"]):
            assert wanted in support
        assert re.search(rf"cqi of cell:1/ue:{operator.ue}\s+cell:1, quarter \d, load any, cqi any\s+4\s+8", support)


async def test_an_approval_that_ends_no_dispute_says_so_and_leads_to_the_newest(operator: Operator) -> None:
    await operator.escalated("moved-1")
    panel = await operator.opens("moved-1")
    for value, source in ((5, "e2:gnb-1"), (14, "rt:north")):
        await operator.reported(value, source)
    await operator.rig.ask(kind="as_of", query_id="moved", name="cqi", subject=f"cell:1/ue:{operator.ue}")
    for reason, value in (("as it was", "12 from rt:north"), ("as it is", "14 from rt:north")):
        await panel.get_by_role("radio", name=value).check()
        await panel.get_by_label("Reason").fill(reason)
        await panel.get_by_role("button", name="Approve").click()
        if reason == "as it was":
            await operator.signs_in()
            await panel.get_by_text("The answer did not end the dispute").wait_for()
            await panel.get_by_role("link", name="open the newest, and answer that").click()
    assert (await operator.guard.final("moved-1"))["action"] == "APPLY"


async def test_what_was_typed_is_kept_where_the_decision_changes_meanwhile(operator: Operator) -> None:
    await operator.escalated("kept-1")
    said = await operator.guard.decided("kept-1")
    panel = await operator.opens("kept-1")
    await panel.get_by_role("radio", name="12 from rt:north").check()
    await panel.get_by_label(": the value").fill("11")
    await panel.get_by_label("Reason").fill("half of a reas")
    for value, source in ((5, "e2:gnb-1"), (14, "rt:north")):
        await operator.reported(value, source)
    await operator.rig.ask(kind="as_of", query_id="kept", name="cqi", subject=f"cell:1/ue:{operator.ue}")
    settles = [f"cqi@cell:1/ue:{operator.ue}=12"]
    answer = {"decision": said["id"], "verdict": "approve", "reason": "as it was", "settles": settles}
    await operator.guard.post("/v1/answers", answer)
    await panel.get_by_text("What you typed is kept for it.").wait_for()
    await panel.get_by_role("link", name="open the newest, and answer that").click()
    await panel.get_by_role("radio", name=re.compile("14 from rt:north.* when you opened this it said 14")).wait_for()
    assert await panel.get_by_label("Reason").input_value() == "half of a reas"
    assert await panel.get_by_label(": the value").input_value() == "11"
    assert await panel.get_by_role("radio", name="another value").is_checked()
    assert not await panel.get_by_role("radio", name="14 from rt:north").is_checked(), "it is another value"
    await ended(operator, "kept-1")


async def test_a_field_disputed_of_two_subjects_is_settled_of_each(operator: Operator) -> None:
    first, second = operator.ue, f"{operator.ue}b"
    for operator.ue in (second, first):
        await operator.reported(3)
        await operator.reported(12, "rt:north")
    await operator.proposes("two-1", bindings={"cell": "1", "ue": [first, second]})
    panel = await operator.opens("two-1")
    for ue, value in ((first, "12 from rt:north"), (second, "3 from e2:gnb-1")):
        choices = panel.get_by_role("group", name=f"cqi of cell:1/ue:{ue}", exact=True)
        await choices.get_by_role("radio", name=value).check()
    await panel.get_by_label("Reason").fill("measured both")
    await panel.get_by_role("button", name="Approve").click()
    await operator.signs_in()
    await panel.get_by_text(f"cqi = 12 of cell:1/ue:{first}, cqi = 3 of cell:1/ue:{second}").wait_for()
    assert len((await operator.guard.final("two-1"))["used"]["cqi"]) == 2


async def test_a_denied_escalation_ends(operator: Operator) -> None:
    await operator.escalated("denied-1")
    await operator.tab.get_by_role("link", name=re.compile("^Escalations")).click()
    panel = await operator.opens("denied-1")
    await panel.get_by_label("Reason").fill("maintenance")
    await panel.get_by_role("button", name="Deny").click()
    await operator.signs_in()
    decision = await operator.guard.final("denied-1")
    assert (decision["action"], [v["code"] for v in decision["violations"] if v["code"] == "denied"]) == (
        "ABSTAIN",
        ["denied"],
    )
    await operator.row("denied-1").wait_for(state="hidden")


async def test_a_token_that_nobody_has_acts_nothing(operator: Operator) -> None:
    operator.excused += ("401",)
    await operator.tab.locator("#kill").click()
    await operator.signs_in("a guess")
    await operator.sees("The guard does not know this token.")
    await operator.tab.keyboard.press("Escape")
    await operator.sees("Sign in")
    assert (await operator.guard.board())["switches"] == []


async def test_the_kill_switch_holds_the_next_apply_and_says_so_across_the_page(operator: Operator) -> None:
    tab = operator.tab
    await tab.locator("#kill").click()
    await operator.signs_in()
    dialog = tab.get_by_role("dialog", name="Kill switch")
    assert await dialog.get_by_role("button", name="Throw the switch").is_disabled(), "a reason is required"
    await tab.keyboard.press("Escape")
    await operator.throws("Kill switch", "smoke in site 4")
    banner = tab.get_by_role("alert").filter(has_text="KILL SWITCH")
    await banner.wait_for()
    said = await banner.inner_text()
    assert all(each in said for each in ("every APPLY is held in all regions", "by alice", "smoke in site 4"))
    assert await tab.locator("#connection").inner_text() == "connected", "and not the name of the mode that releases"
    await operator.applied("switched-1")
    panel = await operator.opens("switched-1")
    await panel.get_by_text("the kill switch holds it").wait_for()
    await operator.throws("Live", "it was a drill")
    await banner.wait_for(state="detached")
    assert (await operator.guard.final("switched-1"))["action"] == "APPLY"


async def test_a_switch_that_did_not_reach_every_partition_says_where_apply_goes_on(operator: Operator) -> None:
    tab = operator.tab
    switch = {
        "format": "wirelessops.switch/1", "switch_id": "half", "mode": "hold", "operator": "eve", "reason": "half",
        "at_ms": unix_ms(),
    }  # fmt: skip
    await operator.rig.send("answers", orjson.dumps(switch), key=None, partition=1)
    banner = tab.get_by_role("alert").filter(has_text="KILL SWITCH").first
    await banner.filter(has_text="NOT in force in partition 0, 2, 3, where APPLY goes on").wait_for()
    await operator.throws("Kill switch", "all of it")
    await banner.filter(has_text="every APPLY is held in all regions").filter(has_text="by alice").wait_for()
    await operator.throws("Live", "whole again")
    await operator.sees("No switch is in force any more")
    assert await banner.count() == 0


async def test_a_region_alone_is_held_and_live_everywhere_does_not_release_it(operator: Operator) -> None:
    tab = operator.tab
    await operator.reported(8)
    await tab.locator("#kill").click()
    await operator.signs_in()
    dialog = tab.get_by_role("dialog", name="Kill switch")
    await dialog.get_by_label("Where").select_option("north")
    await dialog.get_by_label("Reason").fill("north alone")
    await dialog.get_by_role("button", name="Throw the switch").click()
    banner = tab.get_by_role("alert").filter(has_text="every APPLY is held in region north")
    await banner.wait_for()
    assert await tab.locator("#kill").inner_text() == "Kill switch", "all can still be stopped"
    await operator.throws("Live", "of all")
    await operator.sees("still in force besides: hold in region north")
    await banner.get_by_role("button", name="Release").click()
    assert await dialog.get_by_role("radio", name="Live").is_checked()
    await dialog.get_by_label("Reason").fill("over")
    await dialog.get_by_role("button", name="Throw the switch").click()
    await banner.wait_for(state="detached")


async def test_shadow_mode_releases_nothing_and_says_what_it_would_have(operator: Operator) -> None:
    await operator.throws("Shadow", "first week")
    await operator.tab.get_by_role("alert").filter(has_text="SHADOW").wait_for()
    await operator.applied("shadowed-1")
    panel = await operator.opens("shadowed-1")
    await panel.get_by_text("shadow mode released nothing").wait_for()
    lease = panel.get_by_role("region", name="Lease and other controls")
    assert "Not granted; would have been held until" in await lease.inner_text()
    decision = await operator.guard.final("shadowed-1")
    assert (decision["action"], decision["released"]) == ("HOLD", None)
    await operator.tab.keyboard.press("K")
    dialog = operator.tab.get_by_role("dialog", name="Kill switch")
    assert await dialog.get_by_role("radio", name="Kill switch").is_checked(), "no reflex releases to the network"
    await operator.tab.keyboard.press("Escape")
    await operator.throws("Live", "the week is over")
    await operator.tab.get_by_role("alert").filter(has_text="SHADOW").wait_for(state="detached")


async def test_a_lost_connection_is_said_at_once_and_nothing_old_looks_live(operator: Operator) -> None:
    await operator.applied("cut-1")
    operator.excused += ("Failed to load resource", "ERR_INTERNET_DISCONNECTED")
    await operator.tab.context.set_offline(True)
    await operator.sees("NOT CONNECTED")
    await operator.tab.wait_for_selector("body[data-connection=lost]")
    assert "grayscale" in await operator.tab.eval_on_selector(".stage", "e => getComputedStyle(e).filter")
    assert await operator.tab.locator("#connection").inner_text() == "connection lost"
    await operator.sends("cut-2")
    await operator.rig.decision("cut-2")
    assert await operator.row("cut-2").count() == 0
    await operator.tab.context.set_offline(False)
    await operator.live()
    await operator.row("cut-2").wait_for()
    assert await operator.tab.get_by_text("NOT CONNECTED").count() == 0


async def test_a_page_of_which_a_part_did_not_load_says_so_and_loads_again(operator: Operator) -> None:
    operator.excused += ("Failed to load resource",)
    await operator.tab.route("**/static/graph.js", lambda route: route.abort(), times=1)
    await operator.tab.reload()
    await operator.sees("the page did not load; trying again")
    await operator.live()


async def test_sources_are_told_in_words_the_worst_first(operator: Operator) -> None:
    await operator.reported(8)
    await operator.reported(8, "o1:late", age_ms=40_000)
    await operator.tab.keyboard.press("g")
    await operator.tab.keyboard.press("s")
    rows = operator.tab.get_by_role("grid", name="Sources").get_by_role("row")
    await rows.filter(has_text="o1:late").filter(has_text="% stale").wait_for()
    await rows.filter(has_text="e2:gnb-1").filter(has_text="% fresh").wait_for()
    shown = [text.split()[0] for text in await rows.all_inner_texts() if text]
    assert shown.index("o1:late") < shown.index("e2:gnb-1")


async def test_contracts_leases_waiting_and_guards_are_shown(operator: Operator) -> None:
    tab = operator.tab
    await operator.applied("listed-1")
    await operator.held("listed-2")
    await tab.get_by_role("link", name=re.compile("^Waiting")).click()
    assert re.search(r"\d+ s", await operator.row("listed-2").inner_text())
    await tab.get_by_role("link", name=re.compile("^Leases")).click()
    lease = operator.row(f"cell:1/ue:{operator.ue}/prb")
    await lease.filter(has_text="released").wait_for()
    assert await lease.get_attribute("data-state") == "over"
    await tab.get_by_role("link", name=re.compile("^Guards")).click()
    rows = tab.locator(".rows-partitions .rows-sizer .row:visible").filter(has_text="decides")
    told = [(await row.locator("span").all_inner_texts())[3:5] for row in await rows.all()]
    assert len(told) == 4
    assert all(number.isdigit() for row in told for number in row), told
    await tab.get_by_role("link", name=re.compile("^Contracts")).click()
    await tab.get_by_role("link", name="test/1").click()
    await tab.locator("#panel").get_by_text("bandwidth >= cqi / 10").first.wait_for()


async def test_a_partition_without_an_owner_is_said_across_the_page(operator: Operator) -> None:
    board = operator.guard.server.feed.board
    assert board.take("status", _Status(9, unix_ms() - 60_000))
    banner = operator.tab.get_by_role("alert").filter(has_text="NOBODY DECIDES")
    await banner.filter(has_text="partition 9 (gone").wait_for()
    assert board.take("status", _Status(9, unix_ms() + 3_600_000))
    await banner.wait_for(state="hidden")


async def test_what_only_counts_down_is_not_read_out(operator: Operator) -> None:
    await operator.escalated("silent-1")
    panel = await operator.opens("silent-1")
    await panel.get_by_role("region", name="Answer this escalation").wait_for()
    spoken = await operator.tab.evaluate(READ_OUT)
    assert spoken == []
    await ended(operator, "silent-1")


async def test_keys_of_one_letter_can_be_switched_off(operator: Operator) -> None:
    keys = operator.tab.keyboard
    await keys.press("?")
    await operator.tab.get_by_role("checkbox", name="Keys of one letter act").uncheck()
    await keys.press("Escape")
    await operator.tab.get_by_role("dialog").wait_for(state="detached")
    await keys.press("p")
    await keys.press("K")
    assert await operator.tab.get_by_role("button", name="Pause").get_attribute("aria-pressed") == "false"
    assert await operator.tab.get_by_role("dialog").count() == 0


async def test_everything_can_be_done_from_the_keyboard(operator: Operator) -> None:
    await operator.applied("typed-1")
    await operator.escalated("typed-2")
    await operator.row("typed-2").wait_for()
    keys = operator.tab.keyboard
    panel = operator.tab.locator("#panel")
    await keys.press("?")
    await operator.tab.get_by_role("dialog", name="Keys").wait_for()
    await keys.press("Escape")
    await operator.tab.get_by_role("dialog").wait_for(state="detached")
    await keys.press("/")
    await operator.tab.wait_for_selector("input[type=search]:focus")
    await keys.type("typed-1")
    await operator.row("typed-2").wait_for(state="hidden")
    await keys.press("Escape")
    for key in ("j", "Enter"):
        await keys.press(key)
    await panel.get_by_role("heading", name="typed-1").wait_for()
    await keys.press("Escape")
    for key in ("g", "e", "j", "Enter"):
        await keys.press(key)
    await panel.get_by_role("heading", name="typed-2").wait_for()
    await panel.get_by_role("radio").first.focus()
    await keys.press("Space")
    await panel.get_by_label("Reason").focus()
    await keys.type("as measured by hand")
    await keys.press("Tab")
    await keys.press("Enter")
    await operator.tab.get_by_role("dialog", name="Who are you?").wait_for()
    await keys.type(TOKEN)
    await keys.press("Enter")
    assert (await operator.guard.final("typed-2"))["action"] == "APPLY"


async def test_text_of_a_message_is_never_markup(operator: Operator) -> None:
    evil = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"
    await operator.reported(8)
    await operator.sends(evil, proposer=evil)
    row = operator.tab.locator(".rows-sizer .row").filter(has_text="onerror").first
    await row.wait_for()
    await row.click()
    heading = operator.tab.locator("#panel").get_by_role("heading", level=2)
    await heading.wait_for()
    assert evil in await heading.inner_text()
    assert await operator.tab.locator("img").count() == 0
    assert "taken" not in await operator.tab.title()


async def test_a_theme_chosen_stays_and_differs(operator: Operator) -> None:
    grounds = {}
    for _ in range(3):
        name = await operator.tab.locator("html").get_attribute("data-theme")
        grounds[name] = await operator.tab.eval_on_selector("body", "e => getComputedStyle(e).backgroundColor")
        await operator.tab.keyboard.press("t")
    assert grounds["dark"] != grounds["light"]
    await operator.tab.emulate_media(color_scheme="dark")
    assert await operator.tab.eval_on_selector("body", "e => getComputedStyle(e).backgroundColor") == grounds["dark"]
    await operator.tab.keyboard.press("t")
    await operator.tab.reload()
    await operator.live()
    assert await operator.tab.locator("html").get_attribute("data-theme") == "dark"


READ_OUT = """async () => {
    const spoken = [];
    const live = (node) => node.closest?.("[role=status], [role=alert], [aria-live]");
    new MutationObserver((changes) => changes.forEach(({ target }) => {
        const region = live(target.nodeType === Node.TEXT_NODE ? target.parentElement : target);
        if (region && region.getAttribute("aria-live") !== "off") spoken.push(region.textContent);
    })).observe(document.body, { subtree: true, childList: true, characterData: true });
    await new Promise((done) => setTimeout(done, 1_200));
    return spoken;
}"""
CONTROLS = {"button", "link", "textbox", "searchbox", "combobox", "radio", "grid", "dialog", "checkbox", "StaticText"}


async def test_every_control_has_a_name_for_a_screen_reader(operator: Operator) -> None:
    await operator.escalated("named-1")
    await operator.opens("named-1")
    cdp = await operator.tab.context.new_cdp_session(operator.tab)
    await operator.tab.get_by_role("button", name="Keys").click()
    nameless = []
    for _ in range(2):
        tree = await cdp.send("Accessibility.getFullAXTree")
        found = [n for n in tree["nodes"] if not n["ignored"] and n.get("role", {}).get("value") in CONTROLS]
        assert len(found) > 5
        nameless += [n["role"]["value"] for n in found if not n.get("name", {}).get("value", "").strip()]
        await operator.tab.keyboard.press("Escape")
    assert [role for role in nameless if role != "StaticText"] == []


async def test_nothing_is_wider_than_the_screen(operator: Operator) -> None:
    tab = operator.tab
    await operator.escalated("wide-1")
    for width in (390, 640, 1280, 1920):
        await tab.set_viewport_size({"width": width, "height": 800})
        for key in "ewslcpd":
            await tab.keyboard.press("g")
            await tab.keyboard.press(key)
            assert await tab.evaluate("document.documentElement.scrollWidth") <= width
        await operator.opens("wide-1")
        assert await tab.evaluate("document.querySelector('.panel-body').scrollWidth") <= width
        await tab.keyboard.press("Escape")
        await tab.keyboard.press("Escape")


class _Status:
    """What the owner of a partition says of it, as the board reads it."""

    def __init__(self, partition: int, at_ms: int) -> None:
        document = {
            "guard": "gone", "partition": partition, "at_ms": at_ms, "started_at_ms": at_ms, "warm": True,
            "why_not_ready": None, "open": {"HOLD": 0, "RETRY": 0, "ESCALATE": 0, "ready": 0}, "behind": {},
            "decisions": 0, "records": 0, "leases": 0, "sources": [],
            "source_counts": {"up": 0, "outage": 0, "stale": 0}, "omitted": 0, "switches": [],
        }  # fmt: skip
        self.partition, self.offset, self.key = partition, 0, str(partition).encode()
        self.value = orjson.dumps(document)


class _Message:
    """A message on `control`, as the board reads it."""

    def __init__(self, document: dict[str, Any], offset: int, region: str) -> None:
        self.partition, self.offset, self.key, self.value = 0, offset, region.encode(), orjson.dumps(document)


def put(operator: Operator, decision: dict[str, Any], n: int) -> None:
    """One more decision like the given one into the guard's board, as its feed does."""
    over = {"proposal_id": f"p-{n}", "decision_id": f"d-{n}", "decided_at_ms": unix_ms(), "final": True}
    message = _Message({**decision, **over}, 1_000_000 + n, decision["region"])
    assert operator.guard.server.feed.board.take("control", message)


async def feed(operator: Operator, decision: dict[str, Any], first: int, count: int) -> None:
    """So many of them, as many in a pulse as need no new board, until the page shows the last."""
    for n in range(first, first + count):
        put(operator, decision, n)
        if n % 1_900 == 1_899:
            await asyncio.sleep(0.25)
    await operator.row(f"p-{first + count - 1}").wait_for()


async def test_a_page_loaded_amid_a_stream_of_decisions_shows_each_of_them_once(operator: Operator) -> None:
    await operator.applied("amid-1")
    decision, numbers = operator.rig.decisions("amid-1")[0], itertools.count(100_000)

    async def stream() -> None:
        while True:
            put(operator, decision, next(numbers))
            await asyncio.sleep(0.005)

    streaming = asyncio.create_task(stream())
    for _ in range(2):
        await operator.tab.reload()
        await operator.live()
    streaming.cancel()
    await asyncio.gather(streaming, return_exceptions=True)
    await operator.row(f"p-{next(numbers) - 1}").wait_for()
    last = f"p-{next(numbers) - 2}"
    board = await operator.guard.board(lambda b: any(d["proposal_id"] == last for d in b["decisions"]))
    held = len(board["decisions"])
    assert await operator.tab.locator(".shown").inner_text() == f"{held} decisions"


async def weight(cdp: Any) -> tuple[int, int]:
    """Nodes in the document, and bytes of heap after a collection."""
    await cdp.send("HeapProfiler.collectGarbage")
    metrics = {m["name"]: m["value"] for m in (await cdp.send("Performance.getMetrics"))["metrics"]}
    counted = await cdp.send("Runtime.evaluate", {"expression": "document.querySelectorAll('*').length"})
    return counted["result"]["value"], metrics["JSHeapUsedSize"]


async def test_ten_thousand_decisions_weigh_on_the_page_no_more_than_a_thousand(operator: Operator) -> None:
    await operator.applied("p-first")
    decision = operator.rig.decisions("p-first")[0]
    cdp = await operator.tab.context.new_cdp_session(operator.tab)
    await cdp.send("Performance.enable")
    await feed(operator, decision, 0, 1_000)
    nodes, _ = await weight(cdp)
    await feed(operator, decision, 1_000, 9_500)
    await operator.sees("the newest 10000 decisions")
    full, heap = await weight(cdp)
    assert full == nodes
    assert await operator.tab.locator(".rows-decisions").get_attribute("aria-rowcount") == "10001"
    await operator.row("p-10499").wait_for()
    await feed(operator, decision, 10_500, 3_000)
    again, after = await weight(cdp)
    assert again == nodes
    assert after < heap * 1.25, "the heap does not grow once the ring is full"
    await operator.tab.keyboard.press("End")
    await operator.tab.locator('.rows-sizer .row[aria-rowindex="10001"]').filter(has_text="p-").wait_for()
    assert (await weight(cdp))[0] == nodes
