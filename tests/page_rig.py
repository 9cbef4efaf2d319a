"""The operator's page in a real headless Chromium, before a real guard."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from guard_rig import proposal, report
from web_rig import TOKEN, Page, served, tokens_file

from streams.guard import unix_ms

playwright = pytest.importorskip("playwright.async_api", reason="playwright is not installed")

WAIT_MS = 10_000
CHANGED = "ERR_NETWORK_CHANGED"
"""A container that begins or ends here takes what a browser is loading: the page has to come back from it."""
SIZE = {"width": 1280, "height": 720}
_UES = itertools.count(100)
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def chromium() -> str | None:
    """A Chromium: $CHROMIUM, one of the distribution, or None for Playwright's own."""
    found = (shutil.which(name) for name in _NAMES)
    return os.environ.get("CHROMIUM") or next((path for path in found if path), None)


@asynccontextmanager
async def browsing() -> AsyncIterator[Any]:
    """A browser; the test is skipped where there is none."""
    async with playwright.async_playwright() as started:
        path = chromium() or started.chromium.executable_path
        if not os.path.exists(path):  # noqa: ASYNC240 - once
            pytest.skip("no Chromium: set CHROMIUM, install one, or run `playwright install chromium`")
        browser = await started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            await browser.close()


class Operator:
    """What a person before the page sees and does. `faults`: what a console says, and requests to other hosts."""

    def __init__(self, tab: Any, guard: Page) -> None:
        self.ue = str(next(_UES))
        """Of whom this operator's proposals are: what others did before, on the same guard, is evidence of others."""
        self.tab = tab
        self.guard = guard
        self.rig = guard.rig
        self.faults: list[str] = []
        self.excused: tuple[str, ...] = (CHANGED,)
        tab.set_default_timeout(WAIT_MS)
        self._watches = {
            "console": lambda said: said.type in ("error", "warning") and self._fault(said.text),
            "pageerror": lambda error: self._fault(str(error)),
            "request": lambda request: self._requested(request.url),
        }
        for event, watch in self._watches.items():
            tab.on(event, watch)

    def _fault(self, text: str) -> None:
        if not any(excuse in text for excuse in self.excused):
            self.faults.append(text)

    def _requested(self, url: str) -> None:
        if urlsplit(url).netloc != f"127.0.0.1:{self.guard.port}":
            self.faults.append(f"a request to another host: {url}")

    async def leaves(self) -> None:
        """The tab is for the next one."""
        for event, watch in self._watches.items():
            self.tab.remove_listener(event, watch)
        await self.tab.unroute_all(behavior="ignoreErrors")
        await self.tab.context.set_offline(False)

    async def open(self, route: str = "") -> None:
        """Load the page; it is connected then."""
        await self.tab.goto(f"http://127.0.0.1:{self.guard.port}/{route}")
        await self.live()

    async def live(self) -> None:
        await self.tab.wait_for_selector("body[data-connection=connected]")

    async def sees(self, text: str) -> None:
        """Waits until the text is on the page, to be seen."""
        await self.tab.get_by_text(text).first.wait_for()

    async def reported(self, value: float, source: str = "e2:gnb-1", age_ms: int = 0) -> None:
        """A report of the UE's cqi."""
        identity = f"{source}/{next(_UES)}"
        subject = f"cell:1/ue:{self.ue}"
        await self.rig.send("telemetry", report(identity, value, unix_ms() - age_ms, source=source, subject=subject))

    async def sends(self, proposal_id: str, **over: Any) -> None:
        """A proposal on the UE."""
        bindings = {"bindings": {"cell": "1", "ue": self.ue}, "control_key": f"cell:1/ue:{self.ue}/prb"}
        await self.rig.send("proposals", proposal(proposal_id, deadline_ms=unix_ms() + 60_000, **{**bindings, **over}))

    async def proposes(self, proposal_id: str, **over: Any) -> None:
        """A proposal on the UE, until the page shows a decision on it."""
        await self.sends(proposal_id, **over)
        await self.row(proposal_id).first.wait_for()

    async def applied(self, proposal_id: str, **over: Any) -> None:
        """A proposal on fresh evidence."""
        await self.reported(8)
        await self.proposes(proposal_id, **over)

    async def held(self, proposal_id: str) -> None:
        """A proposal without evidence, which waits, of another xApp for another cell."""
        bindings = {"cell": "2", "ue": self.ue}
        await self.proposes(
            proposal_id, bindings=bindings, control_key=f"cell:2/ue:{self.ue}/prb", proposer="xapp:other"
        )

    async def escalated(self, proposal_id: str) -> None:
        """A proposal on which two sources contradict each other."""
        await self.reported(3)
        await self.reported(12, "rt:north")
        await self.proposes(proposal_id)

    def row(self, proposal_id: str) -> Any:
        return self.tab.get_by_role("row").filter(has_text=proposal_id)

    async def opens(self, proposal_id: str) -> Any:
        """Clicks the newest row of a proposal; gives the panel, filled."""
        await self.row(proposal_id).first.click()
        panel = self.tab.locator("#panel")
        await panel.get_by_role("heading", name=proposal_id).wait_for()
        return panel

    async def signs_in(self, token: str = TOKEN) -> None:
        """Fills the dialog that asks who one is."""
        await self.tab.get_by_role("dialog").get_by_label("Token").fill(token)
        await self.tab.get_by_role("button", name="Continue").click()

    async def throws(self, mode: str, reason: str) -> None:
        """The switch, once signed in: mode is the beginning of its line in the dialog."""
        await self.tab.locator("#kill").click()
        if await self.tab.get_by_role("dialog", name="Who are you?").is_visible():
            await self.signs_in()
        dialog = self.tab.get_by_role("dialog", name="Kill switch")
        await dialog.get_by_role("radio", name=mode).check()
        await dialog.get_by_label("Reason").fill(reason)
        await dialog.get_by_role("button", name="Throw the switch").click()
        await dialog.wait_for(state="detached")


@asynccontextmanager
async def before_the_page(tab: Any, guard: Page) -> AsyncIterator[Operator]:
    """A tab as if nobody had used it: nothing kept, and what is shown is to be loaded. Ends with: no fault was seen."""
    origin = f"http://127.0.0.1:{guard.port}/"
    if not tab.url.startswith(origin):
        await tab.goto(f"{origin}static/icon.svg")
    await tab.evaluate("sessionStorage.clear(), localStorage.clear()")
    await tab.set_viewport_size(SIZE)
    await tab.emulate_media(color_scheme="light", reduced_motion="reduce")
    operator = Operator(tab, guard)
    try:
        yield operator
        assert not operator.faults, operator.faults
    finally:
        await operator.leaves()


@asynccontextmanager
async def guarded_page(folder: Path, **options: Any) -> AsyncIterator[Page]:
    """Broker, guard, and web server, with operators."""
    async with served(operator_tokens=tokens_file(folder), **options) as guard:
        yield guard
