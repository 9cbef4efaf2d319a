"""What is open is kept while an old proposal waits, so a new owner need not read all that was decided since."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import orjson
import pytest
from guard_rig import CONTRACT, Rig, contracts, proposal, report, running
from test_switching import interim

from streams import guard as guard_service
from streams import guard_books, guard_restore
from streams.broker import EmbeddedBroker
from streams.deciding import Resume
from streams.guard import Guard, unix_ms
from streams.guard_restore import Past, read_past
from streams.left_open import Left, LeftOpen, read_left_open
from streams.settings import GuardSettings
from streams.topics import Topics
from xapp.signing import KnownKeys, Signer

SIGNER = Signer.of_seed(bytes(32))
TRUSTED = KnownKeys([SIGNER.public_key])
TWO: dict[str, Any] = {
    **CONTRACT,
    "fields": {**CONTRACT["fields"], "cqi": {**CONTRACT["fields"]["cqi"], "sources": ["e2:gnb-1", "rt:north"]}},
}
EACH = 60
LEFT = LeftOpen(70, 60, 1_800_000_000_000, {3: Left(2, 1_799_999_000_000), 69: Left(0, 1_800_000_000_000)})


def test_it_is_read_as_it_was_kept_and_of_its_own_partition_only() -> None:
    document = orjson.loads(LEFT.document(2))
    assert read_left_open(document, 2) == LEFT
    assert read_left_open(document, 1) is None
    for bad in ({"open": [[3]]}, {"open": [[3, -1, 5]]}, {"sequence": None}, {"format": "wirelessops.switched/1"}):
        assert read_left_open({**document, **bad}, 2) is None


def test_what_was_kept_of_another_log_or_is_older_than_the_last_decision_tells_is_not_gone_by() -> None:
    said = [interim(n, n, final=True) for n in range(50, 80)]
    kept = replace(LEFT, decided_at_ms=said[0].decided_at_ms)
    assert guard_restore._of_this_log(kept, said) is kept
    assert guard_restore._of_this_log(replace(kept, decided_at_ms=kept.decided_at_ms + 1), said) is None
    assert guard_restore._of_this_log(kept, said[20:]) is None, "the decision before was not read"
    assert guard_restore._of_this_log(kept, said[:5]) is None, "of a log that went further"
    later = replace(said[-1], sequence=80, resume=Resume(75, 61))
    assert guard_restore._of_this_log(kept, [*said, later]) is None


@pytest.fixture
def pasts(monkeypatch: pytest.MonkeyPatch) -> list[Past]:
    """What owners read back of the region's partition, where some hundred decisions are many and all were long ago."""
    found = []

    async def long_ago(consumer: Any, names: Topics, partition: int, since_ms: int, trusted: Any) -> Past:
        past = await read_past(consumer, names, partition, unix_ms() + 1, trusted)
        if partition == Rig.partition_of_region():
            found.append(past)
        return past

    monkeypatch.setattr(guard_service, "read_past", long_ago)
    monkeypatch.setattr(guard_books, "KEEP_OPEN_EVERY", 20)
    for module in (guard_books, guard_restore):
        monkeypatch.setattr(module, "ANSWERED_LIMIT", 5)
    return found


async def test_owner_after_owner_takes_up_what_waits_for_a_person_and_nothing_that_was_answered_since(
    pasts: list[Past],
) -> None:
    with EmbeddedBroker() as broker:
        rig = Rig(broker.bootstrap_servers)
        settings = GuardSettings.embedded(broker.bootstrap_servers, hold_ms=0)
        for owner in range(4):
            guard = Guard(settings, contracts(TWO), signer=SIGNER, trusted=TRUSTED)
            async with running(guard):
                if owner == 0:
                    await rig.open()
                    for name, value, source in (("one", 3, "e2:gnb-1"), ("two", 12, "rt:north")):
                        await rig.send("telemetry", report(name, value, source=source))
                    for name in ("first", "second"):
                        await rig.send("proposals", proposal(name, deadline_ms=unix_ms() + 60_000))
                        assert (await rig.decision(name))["action"] == "ESCALATE"
                books = guard._desks[Rig.partition_of_region()].books
                assert books.resume().sequence == 0, "the first one pins it"
                if owner == 2:
                    await deny(rig, "second")
                for n in range(EACH):
                    await rig.send("proposals", proposal(f"{owner}/{n}", bindings={"cell": "1", "ue": "9"}))
                assert (await rig.decision(f"{owner}/{EACH - 1}"))["action"] == "HOLD"
                assert {one.document.proposal_id for one in books.open} == {"first", *["second"][: owner < 2]}
            if owner > 0:
                past = pasts[-1]
                assert past.left is not None
                assert len(past.said) < EACH, "of all that were made since"
                forged = replace(past.left, open={})
                where = Rig.partition_of_region()
                await rig._producer.send_and_wait(
                    "wirelessops.controls", forged.document(where), key=b"x", partition=where
                )
        async with running(Guard(settings, contracts(TWO), signer=SIGNER, trusted=TRUSTED)):
            await deny(rig, "first")
        told = Counter((d["proposal_id"], d["attempt"]) for d in rig.decisions())
        assert set(told.values()) == {1}
        finals = Counter(d["proposal_id"] for d in rig.decisions() if d["final"])
        assert finals == {"first": 1, "second": 1, **{f"{o}/{n}": 1 for o in range(4) for n in range(EACH)}}
        await rig.close()


async def deny(rig: Rig, proposal_id: str) -> None:
    answer = {"answer_id": f"a-{proposal_id}", "decision_id": "d", "proposal_id": proposal_id, "verdict": "deny",
              "operator": "alice", "reason": "seen", "at_ms": unix_ms()}  # fmt: skip
    await rig.send("answers", orjson.dumps(answer))
    done = await rig.wait_for("control", lambda d: d["proposal_id"] == proposal_id and d["final"])
    assert (done["action"], done["attempt"] > 1) == ("ABSTAIN", True)
