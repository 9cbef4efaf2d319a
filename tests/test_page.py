"""The operator's page in a real browser, before a real guard: what a person sees, does, and must never see."""

from __future__ import annotations

import asyncio
import copy
import itertools
import re
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
import pytest_asyncio
from guard_rig import CONTRACT
from page_rig import Operator, before_the_page, browsing, guarded_page
from web_rig import TOKEN, Page

from streams.guard import unix_ms
from xapp.signing import open_envelope

THREE_SOURCES = copy.deepcopy(CONTRACT)
THREE_SOURCES["fields"]["cqi"]["sources"] = ["e2:gnb-1", "rt:north", "o1:late"]

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Any]:
    async with browsing() as one:
        yield one


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def guard(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Page]:
    """One guard for all tests; each has a UE, a tab and a profile of its own."""
    async with guarded_page(tmp_path_factory.mktemp("page"), document=THREE_SOURCES) as one:
        yield one


@pytest_asyncio.fixture(loop_scope="module")
async def operator(browser: Any, guard: Page) -> AsyncIterator[Operator]:
    """Before the page, live."""
    async with before_the_page(browser, guard) as one:
        await one.open()
        yield one


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
    taken = panel.get_by_role("region", name="Rows of the policy").get_by_role("row").filter(has_text="taken")
    assert "APPLY" in await taken.inner_text()
    fields = panel.get_by_role("region", name="Fields the decision rests on")
    assert re.search(r"cqi\s+8\s+e2:gnb-1\s+\d.* of 30 s\s+—\s+supported", await fields.inner_text())
    graph = panel.get_by_role("group", name="Evidence graph")
    assert await graph.get_by_role("img", name="action").count() == 1
    assert await graph.get_by_role("img", name=re.compile("field cqi, supports")).count() == 1
    await panel.get_by_text("Released: bandwidth = 8 MHz").wait_for()
    assert operator.tab.url.endswith(f"#/decision/{(await operator.guard.decided('opened-1'))['id']}")


async def test_an_address_of_a_decision_leads_to_it(operator: Operator) -> None:
    await operator.applied("linked-1")
    said = await operator.guard.decided("linked-1")
    await operator.open(f"?again#/decision/{said['id']}")
    await operator.tab.locator("#panel").get_by_role("heading", name="linked-1").wait_for()
    await operator.tab.keyboard.press("Escape")
    await operator.row("linked-1").wait_for()


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
    assert await operator.row("filtered-2").is_visible()
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
    assert await operator.row("paused-2").count() == 0
    await operator.tab.get_by_role("button", name="Resume").click()
    await operator.row("paused-2").wait_for()


async def test_an_approved_escalation_is_applied(operator: Operator) -> None:
    await operator.escalated("approved-1")
    panel = await operator.opens("approved-1")
    answer = panel.get_by_role("region", name="Answer this escalation")
    await answer.get_by_role("button", name="Approve").click()
    await answer.get_by_text("Say why").wait_for()
    await answer.get_by_label("Reason").fill("the drive test agrees")
    await answer.get_by_role("button", name="Approve").click()
    await answer.get_by_text("Choose a value for cqi").wait_for()
    await answer.get_by_role("radio", name="12 from rt:north").check()
    await answer.get_by_role("button", name="Approve").click()
    await operator.signs_in()
    decision = await operator.guard.final("approved-1")
    assert decision["action"] == "APPLY"
    await panel.get_by_role("link", name="open the final decision").click()
    await panel.get_by_role("region", name="Answers of operators").get_by_text("operator:alice").wait_for()
    await operator.sees("alice · sign out")


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
    operator.excused = ("401",)
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
    await operator.applied("switched-1")
    panel = await operator.opens("switched-1")
    await panel.get_by_text("the kill switch holds it").wait_for()
    await operator.throws("Live", "it was a drill")
    await banner.wait_for(state="detached")
    assert (await operator.guard.final("switched-1"))["action"] == "APPLY"


async def test_shadow_mode_releases_nothing_and_says_what_it_would_have(operator: Operator) -> None:
    await operator.throws("Shadow", "first week")
    await operator.tab.get_by_role("alert").filter(has_text="SHADOW").wait_for()
    await operator.applied("shadowed-1")
    panel = await operator.opens("shadowed-1")
    await panel.get_by_text("shadow mode released nothing").wait_for()
    decision = await operator.guard.final("shadowed-1")
    assert (decision["action"], decision["released"]) == ("HOLD", None)
    await operator.throws("Live", "the week is over")
    await operator.tab.get_by_role("alert").filter(has_text="SHADOW").wait_for(state="detached")


async def test_a_lost_connection_is_said_at_once_and_nothing_old_looks_live(operator: Operator) -> None:
    await operator.applied("cut-1")
    operator.excused = ("Failed to load resource", "ERR_INTERNET_DISCONNECTED")
    await operator.tab.context.set_offline(True)
    await operator.sees("NOT LIVE")
    await operator.tab.wait_for_selector("body[data-connection=lost]")
    assert "grayscale" in await operator.tab.eval_on_selector(".stage", "e => getComputedStyle(e).filter")
    assert await operator.tab.locator("#connection").inner_text() == "connection lost"
    await operator.sends("cut-2")
    await operator.rig.decision("cut-2")
    assert await operator.row("cut-2").count() == 0
    await operator.tab.context.set_offline(False)
    await operator.live()
    await operator.row("cut-2").wait_for()
    assert await operator.tab.get_by_text("NOT LIVE").count() == 0


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
    await operator.row(f"cell:1/ue:{operator.ue}/prb").wait_for()
    await tab.get_by_role("link", name=re.compile("^Guards")).click()
    assert await tab.get_by_role("row").filter(has_text="decides").count() == 4
    await tab.get_by_role("link", name=re.compile("^Contracts")).click()
    await tab.get_by_role("link", name="test/1").click()
    await tab.locator("#panel").get_by_text("bandwidth >= cqi / 10").first.wait_for()


async def test_everything_can_be_done_from_the_keyboard(operator: Operator) -> None:
    await operator.applied("typed-1")
    await operator.escalated("typed-2")
    await operator.row("typed-2").wait_for()
    keys = operator.tab.keyboard
    panel = operator.tab.locator("#panel")
    await keys.press("?")
    await operator.tab.get_by_role("dialog", name="Keys").wait_for()
    await keys.press("Escape")
    await keys.press("/")
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


@pytest.mark.parametrize("width", [390, 1280, 1920])
async def test_nothing_is_wider_than_the_screen(operator: Operator, width: int) -> None:
    await operator.tab.set_viewport_size({"width": width, "height": 800})
    await operator.escalated(f"wide-{width}")
    for key in "dewslcp":
        await operator.tab.keyboard.press("g")
        await operator.tab.keyboard.press(key)
        assert await operator.tab.evaluate("document.documentElement.scrollWidth") <= width
    await operator.tab.keyboard.press("g")
    await operator.tab.keyboard.press("d")
    await operator.opens(f"wide-{width}")
    assert await operator.tab.evaluate("document.querySelector('.panel-body').scrollWidth") <= width


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
    """So many of them, four thousand a second, until the page shows the last."""
    for n in range(first, first + count):
        put(operator, decision, n)
        if n % 1_000 == 999:
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
    held = len((await operator.guard.board())["decisions"])
    assert await operator.tab.locator(".shown").inner_text() == str(held)


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
    await operator.sees("newest 10000")
    full, heap = await weight(cdp)
    assert full == nodes
    assert await operator.tab.locator(".rows-decisions").get_attribute("aria-rowcount") == "10001"
    await operator.row("p-10499").wait_for()
    await feed(operator, decision, 10_500, 3_000)
    again, after = await weight(cdp)
    assert again == nodes
    assert after < heap * 1.25, "the heap does not grow once the ring is full"
    await operator.tab.keyboard.press("End")
    await operator.row("p-3500").wait_for()
    assert (await weight(cdp))[0] == nodes
