"""Decisions are opened in a child of the guard: however large one is, the guard's loop goes on meanwhile."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

import orjson
import pytest
from guard_rig import proposal, report
from web_rig import TWO_SOURCES, Page, served

from streams.guard import unix_ms
from streams.web.opening import Busy, Opener, Unreadable

MEMBERS = 600
MANY: dict[str, Any] = {
    **TWO_SOURCES,
    "fields": {**TWO_SOURCES["fields"], "cqi": {**TWO_SOURCES["fields"]["cqi"], "subject": "ue:{ue}"}},
    "constraints": [],
}


async def large(page: Page) -> dict[str, Any]:
    """The summary of an ESCALATE about all members: each has two sources that contradict each other."""
    said = [
        page.rig.send("telemetry", report(f"{ue}/{source}", value, source=source, subject=f"ue:{ue}"))
        for ue in range(MEMBERS)
        for value, source in ((3, "e2:gnb-1"), (12, "rt:north"))
    ]
    await asyncio.gather(*said)
    bindings = {"ue": [str(ue) for ue in range(MEMBERS)]}
    await page.rig.send("proposals", proposal("large", bindings=bindings, deadline_ms=unix_ms() + 60_000))
    return await page.decided("large")


async def record_of(page: Page, said: dict[str, Any]) -> bytes:
    """The record of a decision, as the page gives it to download."""
    async with page.http.get(f"/v1/decisions/{said['id']}/record") as reply:
        return await reply.read()


async def test_a_large_decision_takes_next_to_nothing_of_the_loop_that_decides() -> None:
    async with served(MANY) as page:
        said = await large(page)
        opener = Opener()
        envelope = await record_of(page, said)
        try:
            await opener.dossier(envelope, said, {})  # the child is up
            cpu_s = time.thread_time()
            made = await opener.dossier(envelope, said, {})
            cpu_s = time.thread_time() - cpu_s
        finally:
            await opener.close()
        assert cpu_s < 0.1  # made here, it takes at least three times as much
        status, opened = await page.get(f"/v1/decisions/{said['id']}")
        assert (status, opened) == (200, orjson.loads(made))
        assert len({row["member"] for row in opened["fields"]}) == MEMBERS


async def test_what_cannot_be_read_is_told_and_the_next_is_opened() -> None:
    async with served() as page:
        said = await page.escalated()
        envelope = await record_of(page, said)
        opener = Opener()
        try:
            for wrong in (b"", b"{}", b"[" * 100_000, envelope[:-9]):
                with pytest.raises(Unreadable):
                    await opener.dossier(wrong, said, {})
            assert orjson.loads(await opener.dossier(envelope, said, {}))["summary"] == said
        finally:
            await opener.close()


async def test_a_child_that_dies_or_hangs_fails_one_and_the_next_gets_another() -> None:
    async with served() as page:
        said = await page.escalated()
        envelope = await record_of(page, said)
        opener = Opener(timeout_s=5)
        try:
            await opener.dossier(envelope, said, {})
            hung = opener._child
            assert hung is not None
            os.kill(hung.pid, signal.SIGSTOP)
            opener._timeout_s = 0.2
            with pytest.raises(Busy):
                await opener.dossier(envelope, said, {})
            assert hung.returncode == -signal.SIGKILL
            opener._timeout_s = 20
            await opener.dossier(envelope, said, {})
            died = opener._child
            assert died is not None
            died.kill()
            await died.wait()
            await opener.dossier(envelope, said, {})
        finally:
            await opener.close()


async def test_no_more_than_so_many_wait_and_none_is_told_of_another() -> None:
    async with served() as page:
        said = await page.escalated()
        envelope = await record_of(page, said)
        opener = Opener()
        try:
            asked = [opener.dossier(envelope, {**said, "id": str(n)}, {}) for n in range(25)]
            made = await asyncio.gather(*asked, return_exceptions=True)
            assert [type(one) for one in made] == [bytes] * 20 + [Busy] * 5
            assert [orjson.loads(one)["summary"]["id"] for one in made[:20] if isinstance(one, bytes)] == [
                str(n) for n in range(20)
            ]
        finally:
            await opener.close()


async def test_the_child_knows_no_key_and_ends_with_the_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIRELESSOPS_SIGNING_KEY", "secret")
    opener = Opener()
    with pytest.raises(Unreadable):
        await opener.dossier(b"{}", {}, {})
    child = opener._child
    assert child is not None
    environ = await asyncio.to_thread(Path(f"/proc/{child.pid}/environ").read_bytes)
    assert b"WIRELESSOPS_SIGNING_KEY" not in environ
    assert child.stdin is not None
    child.stdin.close()  # as the system does when we are killed
    assert await asyncio.wait_for(child.wait(), 5) == 0
    await opener.close()
