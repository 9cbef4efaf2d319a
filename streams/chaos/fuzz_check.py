"""What became of each fuzzed message: decided, answered, taken in as documented, or a dead letter. Nothing vanishes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Final

from pydantic import ValidationError

from streams.chaos.history import Message, read_object, region_name
from streams.chaos.verdict import Findings
from streams.messages import OutcomeMessage
from streams.telemetry import Decoder, Undecodable
from streams.topics import NoRegion, partition_of, region_of
from streams.wire import parse_object

LAWS: Final = ("fuzz_vanished",)
NEEDED: Final = ("fuzzed", "fuzz_dead_letters")


@dataclass(frozen=True, slots=True)
class Written:
    """What the guards wrote: (topic, partition, offset) of dead letters, (region, id) decided, ids of questions.

    An interim decision counts: a mutated deadline may lie days ahead, and that proposal is still open.
    """

    dead: Set[tuple[str, int, int]]
    decided: Set[tuple[str, str]]
    answered: Set[str]


def dead_places(letters: Iterable[Message]) -> set[tuple[str, int, int]]:
    """(topic, partition, offset) of all that dead letters name."""
    found: set[tuple[str, int, int]] = set()
    for letter in letters:
        document = read_object(letter.value)
        if document is None:
            continue
        first = document["offset"]
        last = document.get("last_offset")
        for offset in range(first, (first if last is None else last) + 1):
            found.add((document["topic"], document["partition"], offset))
    return found


def check_fuzzed(
    topic: str,
    full_topic: str,
    partition: int,
    partitions: int,
    messages: Iterable[Message],
    written: Written,
    models: Mapping[str, Callable[[bytes | None], object]],
) -> Findings:
    """Judge the fuzzed messages of one partition of a topic. `models`: by topic, what raises for what no one can read.

    A message that a model takes, under a key that belongs to its partition, may be taken in and leave no trace (of
    telemetry, outcomes and answers); everything else must be decided, answered, or be named by a dead letter.
    """
    found = Findings(LAWS, NEEDED)
    for message in messages:
        found.count("fuzzed")
        place = (full_topic, partition, message.offset)
        dead = place in written.dead
        document = read_object(message.value) or {}
        named = (region_name(message.key), str(document.get("proposal_id")))
        decided = topic == "proposals" and named in written.decided
        answered = topic == "queries" and str(document.get("query_id")) in written.answered
        if dead:
            found.count("fuzz_dead_letters")
        if decided or answered:
            found.count("fuzz_decided" if decided else "fuzz_answered")
        elif not dead and topic in models and _readable(message, partition, partitions, models[topic]):
            found.count("fuzz_taken_in")
        elif not dead:
            found.broken("fuzz_vanished", f"{topic} {partition}@{message.offset}: {(message.value or b'null')[:80]!r}")
    return found


def _readable(message: Message, partition: int, partitions: int, read: Callable[[bytes | None], object]) -> bool:
    try:
        if partition_of(region_of(message.key), range(partitions)) != partition:
            return False
        read(message.value)
    except (NoRegion, Undecodable, ValidationError, ValueError):
        return False
    return True


def models() -> dict[str, Callable[[bytes | None], object]]:
    """Of the topics whose messages leave no trace when they are taken in."""
    import streams.messages

    found: dict[str, Callable[[bytes | None], object]] = {
        "telemetry": Decoder().decode,
        "outcomes": lambda value: OutcomeMessage.model_validate(parse_object(value)),
    }
    answer = getattr(streams.messages, "AnswerMessage", None)
    if answer is not None:
        found["answers"] = lambda value: answer.model_validate(parse_object(value))
    return found
