"""Telling the alarm manager: its REST interface, its outages, and what it may have forgotten.

The calls are those of ric-plt-alarm-go (docs/user-guide.rst): `POST` raises and `DELETE` clears at `/ric/v1/alarms`,
`POST …/define` defines problems, `GET …/active` lists what is active. Deciding never waits for any of it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from math import inf
from typing import Any, Final

import aiohttp
import orjson
import structlog

from streams.alarms import Alarms, Notice, definitions_document

REQUEST_S: Final = 5.0
"""How long the alarm manager may take for one answer."""
FIRST_WAIT_S: Final = 0.5
LONGEST_WAIT_S: Final = 30.0
"""The wait after a failure doubles from the first to the longest."""
LOOK_S: Final = 1.0
PAUSE_S: Final = 0.1
"""Between two rounds: a storm of decisions is looked at so often, and no oftener."""
AGAIN_S: Final = 2 * REQUEST_S
"""How long after a partition was taken up nothing of its former owner can come any more."""
REMIND_S: Final = 60.0
"""How often what stands is compared with what the manager has: it may have been restarted without its memory."""
FLUSH_S: Final = 1.0
"""How long stopping waits for what is still to be told; what is not told then, the next owner tells."""

_REDIRECTS: Final = 300
_NO_SUCH_CALL: Final = frozenset({404, 405, 501})
_REFUSED: Final = frozenset({400, 413, 415, 422})

log = structlog.get_logger(__name__)


class NotTaken(Exception):
    """The alarm manager does not answer, or not as it should: it is asked again later."""


class AlarmPoster:
    """Tells what stands in `alarms`, until `stop`. `url` is that of raising: `http://HOST:8080/ric/v1/alarms`.

    `look` is called before each round, every `LOOK_S` or after `wake`, and brings what stands.
    """

    def __init__(self, url: str, application: str, guard: str, partition_of: Callable[[str], int | None]) -> None:
        self.alarms = Alarms(application, guard, partition_of, self.wake)
        self.look: Callable[[], None] = lambda: None
        self._url = url.rstrip("/")
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._session: aiohttp.ClientSession | None = None
        self._compare_at_s = 0.0  # monotonic
        self._again_at_s = inf
        self._failures = 0
        self._stopping = asyncio.Event()

    def wake(self) -> None:
        """There is something to tell."""
        self._changed.set()

    def compare(self) -> None:
        """Compare what stands with what the manager has: a partition was taken up. Now, and once more when nothing of
        its former owner can be on the way any longer.
        """
        self._compare_at_s = 0.0
        self._again_at_s = time.monotonic() + AGAIN_S
        self.wake()

    async def start(self) -> None:
        """Begin to tell."""
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=REQUEST_S))
        self._task = asyncio.create_task(self._run(), name="alarms")

    async def stop(self) -> None:
        """Tell what is left, as far as `FLUSH_S` goes, and end."""
        self._stopping.set()
        self.wake()
        if self._task is not None:
            _, late = await asyncio.wait({self._task}, timeout=FLUSH_S)
            for task in late:
                task.cancel()
                log.warning("alarms not told before the end: the next owner tells them", left=len(self.alarms.book))
            await asyncio.gather(self._task, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    async def _run(self) -> None:
        while True:
            self._changed.clear()
            ending = self._stopping.is_set()
            try:
                self.look()
                if ending:
                    self.alarms.say_no_more()
                await self._tell_all()
            except Exception as error:  # of whatever kind: without alarms the guard decides on
                wait_s = self._note_failure(error)
                self._compare_at_s = 0.0  # who comes back may have forgotten
                await _set_within(self._stopping, wait_s)
            else:
                self._note_success()
                if not self._stopping.is_set():
                    await _set_within(self._changed, LOOK_S)
                    await _set_within(self._stopping, PAUSE_S)
            if ending:
                return

    async def _tell_all(self) -> None:
        now_s = time.monotonic()
        if now_s >= min(self._compare_at_s, self._again_at_s):
            await self._request("POST", "/define", definitions_document(), optional=True)
            active = await self._request("GET", "/active", None, optional=True)
            if isinstance(active, list):
                self.alarms.compare(item for item in active if isinstance(item, dict))
            else:
                self.alarms.book.remind()
            self._compare_at_s = now_s + REMIND_S
            if now_s >= self._again_at_s:
                self._again_at_s = inf
        while (notice := self.alarms.book.next()) is not None:
            await self._tell(notice)

    async def _tell(self, notice: Notice) -> None:
        document = notice.document(self.alarms.application, time.time_ns())
        taken = await self._request("POST" if notice.raises else "DELETE", "", document, optional=False)
        self.alarms.book.told(notice)
        if taken is not None:
            log.info("alarm raised" if notice.raises else "alarm cleared", **notice.identity._asdict())

    async def _request(self, method: str, path: str, document: Any, *, optional: bool) -> Any:
        """What is answered; None where it is refused for good, or where the receiver has no such call."""
        assert self._session is not None
        url = self._url + path
        async with self._session.request(method, url, json=document, allow_redirects=False) as reply:
            if reply.status < _REDIRECTS:
                return orjson.loads(await reply.read() or b"null") if method == "GET" else True
            if optional and reply.status in _NO_SUCH_CALL:
                return None
            if reply.status in _REFUSED:
                log.error("the alarm manager refuses an alarm: it is not told again", status=reply.status)
                return None
            raise NotTaken(f"status {reply.status}")

    def _note_failure(self, error: Exception) -> float:
        """Gives the seconds to wait; an outage is logged once."""
        if self._failures == 0:
            ours = not isinstance(error, (NotTaken, aiohttp.ClientError, OSError, TimeoutError))
            why = str(error) or type(error).__name__
            log.warning("the alarm manager does not take alarms: they are kept", why=why, exc_info=ours)
        self._failures += 1
        return min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(self._failures - 1, 16))

    def _note_success(self) -> None:
        if self._failures:
            log.info("the alarm manager takes alarms again", after_failures=self._failures)
        self._failures = 0


async def _set_within(event: asyncio.Event, wait_s: float) -> None:
    """Wait until it is set, or the time is over."""
    try:
        async with asyncio.timeout(wait_s):
            await event.wait()
    except TimeoutError:
        return
