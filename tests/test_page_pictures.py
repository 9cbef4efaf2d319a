"""The pictures of the page in the README: the guard as `wirelessops run` starts it, the RAN as `wirelessops simulate`.

They go to the folder that WIRELESSOPS_PICTURES names (`make screenshots`), else into the test's own.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
from guard_rig import Rig, proposal, report
from page_rig import browsing
from web_rig import TOKEN, free_port, tokens_file

from streams.guard import unix_ms

ROOT = Path(__file__).parent.parent
LARGEST = 300_000
WAIT_S = 30
PERIOD_S = 0.5
DESK = {"width": 1440, "height": 810}
PHONE = {"width": 390, "height": 844}


@asynccontextmanager
async def command(*words: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """`wirelessops` with these words, until the end."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", "from streams.cli import main; main()", *words,
        cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


@asynccontextmanager
async def network(folder: Path) -> AsyncIterator[tuple[str, Rig]]:
    """The page's address, and a way to send more; a simulated network is at work."""
    port = free_port()
    run = ("run", "--web-port", str(port), "--operator-tokens", str(tokens_file(folder)), "--guard-name", "w1",
           "--contracts", "docs/examples/contracts")  # fmt: skip
    async with command(*run) as guard:
        async with asyncio.timeout(WAIT_S):
            assert guard.stdout is not None
            ready = (await guard.stdout.readline()).decode()
        servers = ready.removeprefix("ready: Kafka at ").partition(",")[0]
        async with command("simulate", "--bootstrap-servers", servers, "--seed", "7"):
            rig = Rig(servers)
            await rig.open()
            try:
                yield f"http://127.0.0.1:{port}/", rig
            finally:
                await rig.close()


@asynccontextmanager
async def disagreeing(rig: Rig) -> AsyncIterator[None]:
    """Two sources contradict each other on the load of cell 7, again and again: a dispute of old reports is none."""

    async def report_on() -> None:
        for n in itertools.count():
            for source, value in (("e2:7", 41), ("o1:7", 68)):
                said = [{"name": "RRU.PrbTotDl", "value": value, "unit": "%"}]
                await rig.send(
                    "telemetry", report(f"{source}/{n}", 0, source=source, measurements=said, subject="cell:7")
                )
            await asyncio.sleep(PERIOD_S)

    sources = asyncio.create_task(report_on())
    try:
        yield
    finally:
        sources.cancel()
        await asyncio.gather(sources, return_exceptions=True)


async def quota_asked(rig: Rig) -> None:
    """A policy, and a proposal that rests on it and on the load of cell 7."""
    floor = [{"name": "floor", "value": 24, "unit": "PRB"}]
    await rig.send("telemetry", report("a1/1", 0, source="a1:policy", measurements=floor, subject="cell:7/slice:2"))
    asked = proposal(
        "quota-of-slice-2", proposer="xapp:quota", contract_ref="prb-quota/1", bindings={"cell": "7", "slice": "2"},
        control_key="cell:7/slice:2/prb", deadline_ms=unix_ms() + 300_000, plan={"quota": {"value": 60, "unit": "PRB"}},
    )  # fmt: skip
    await rig.send("proposals", asked)


class Photographer:
    def __init__(self, tab: Any, folder: Path) -> None:
        self.tab = tab
        self.folder = folder

    async def take(self, name: str) -> None:
        """One picture, as small as it must be."""
        path = self.folder / f"page-{name}.png"
        await self.tab.screenshot(path=path)
        assert 5_000 < path.stat().st_size < LARGEST, path

    async def look(self, scheme: str, size: dict[str, int]) -> None:
        await self.tab.emulate_media(color_scheme=scheme)
        await self.tab.set_viewport_size(size)

    async def go(self, route: str) -> None:
        await self.tab.evaluate("route => { location.hash = route }", f"#/{route}")

    async def opens_with_graph(self, row: Any) -> None:
        await row.first.click()
        await self.tab.locator("#panel .graph svg[role=group]").wait_for()


async def test_pictures_of_the_page_are_made_from_a_guard_at_work(tmp_path: Path) -> None:
    folder = Path(os.environ.get("WIRELESSOPS_PICTURES", tmp_path))
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    async with browsing() as browser, network(tmp_path) as (address, rig):
        tab = await browser.new_page(viewport=DESK, reduced_motion="reduce", color_scheme="dark")
        tab.set_default_timeout(WAIT_S * 1_000)
        photographer = Photographer(tab, folder)
        rows = tab.locator(".rows-sizer .row:visible")
        await tab.goto(address)
        await tab.locator(".shown").filter(has_text=re.compile(r"^\d{3}")).wait_for()
        await tab.keyboard.press("p")
        await photographer.take("decisions")
        await tab.get_by_label("Filter by text").fill("slicing/1 apply rename")
        await photographer.opens_with_graph(rows.filter(has_text="bandwidth"))
        await photographer.take("decision")
        await tab.locator("#panel").get_by_role("heading", name="Fields").evaluate("e => e.scrollIntoView()")
        await photographer.take("evidence")
        await photographer.look("light", DESK)
        await photographer.go("sources")
        await rows.filter(has_text="stale").first.wait_for()
        await photographer.take("sources")
        async with disagreeing(rig):
            await quota_asked(rig)
            await photographer.go("escalations")
            await rows.filter(has_text="quota-of-slice-2").first.click()
            await tab.get_by_role("radio", name="41 % from e2:7").check()
            await tab.get_by_label("Reason").fill("O1 averages over 15 minutes; the load fell since")
            await photographer.take("escalation")
        await tab.keyboard.press("Escape")
        await tab.keyboard.press("Escape")
        await tab.locator("#kill").click()
        await tab.get_by_label("Token").fill(TOKEN)
        await tab.keyboard.press("Enter")
        await tab.get_by_role("dialog", name="Kill switch").get_by_label("Reason").fill("unplanned works at site 4")
        await tab.get_by_role("button", name="Throw the switch").click()
        await tab.get_by_role("alert").filter(has_text="KILL SWITCH").wait_for()
        await photographer.look("dark", DESK)
        await photographer.go("decisions?action=HOLD&q=kill_switch")
        await tab.get_by_role("button", name="Resume").click()
        await rows.filter(has_text="kill_switch").nth(3).wait_for()
        await photographer.take("kill-switch")
        await photographer.look("dark", PHONE)
        await photographer.take("phone")
        board = await (await tab.request.get(f"{address}v1/board")).body()
        assert orjson.loads(board)["switches"][0]["operator"] == "alice"
