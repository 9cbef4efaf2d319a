"""Alarms in the form of O-RAN SC's alarm manager: which there are, and what of them is to be told.

Form, identity and calls are those of ric-plt-alarm-go (alarm/types.go, manager/cmd/manager.go): the manager knows an
alarm by managed object, application, specific problem and identifying information, suppresses one that is raised twice,
and one whose problem was never defined. No identity holds the name of a guard: whoever decides a proposal clears what
its predecessor raised. Pure; times are arguments.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from enum import IntEnum
from itertools import islice
from typing import Any, Final, Literal, NamedTuple

from streams.guard_restore import ProposalKey
from streams.status import PartitionStatus

MOST_ESCALATIONS: Final = 50
"""Escalations of one partition that have an alarm of their own; for the others one stands that says there are more."""
MOST_OUTAGES: Final = 50
"""Sources of one partition that have an alarm of their own."""
MOST_INFO: Final = 500
"""Characters of `additionalInfo`."""

Severity = Literal["CRITICAL", "MAJOR", "MINOR", "WARNING"]


class Problem(IntEnum):
    """`specificProblem`: what is the matter."""

    ESCALATION = 63001
    MORE_ESCALATIONS = 63002
    SWITCH = 63003
    DEAD_LETTERS = 63004
    SOURCE_OUTAGE = 63005
    DESCRIPTOR_REFUSED = 63006
    RESTART_NEEDED = 63007
    MAP_REFUSED = 63008
    REFRESH_DUE = 63009


class Definition(NamedTuple):
    """What the alarm manager is told of a problem, before any is raised."""

    severity: Severity
    text: str
    event_type: str
    instructions: str


DEFINITIONS: Final[Mapping[Problem, Definition]] = {
    Problem.ESCALATION: Definition(
        "MAJOR", "WIRELESSOPS PROPOSAL WAITS FOR AN OPERATOR", "processingError",
        "Approve or deny it on the page of the guard, or by: wirelessops answer",
    ),
    Problem.MORE_ESCALATIONS: Definition(
        "CRITICAL", "WIRELESSOPS MANY PROPOSALS WAIT FOR AN OPERATOR", "processingError",
        "Look at the queue on the page of the guard: sources that disagree, or an xApp that floods",
    ),
    Problem.SWITCH: Definition(
        "MAJOR", "WIRELESSOPS RELEASES NOTHING BY SWITCH", "processingError",
        "An operator's switch is in force: release it on the page of the guard, or by: wirelessops switch live",
    ),
    Problem.DEAD_LETTERS: Definition(
        "WARNING", "WIRELESSOPS DEAD LETTERS", "processingError",
        "Read the topic dead-letters: each says who wrote what cannot be used",
    ),
    Problem.SOURCE_OUTAGE: Definition(
        "MINOR", "WIRELESSOPS SOURCE OUTAGE", "communication",
        "A source of evidence says that it is out: see to it; proposals that need it wait",
    ),
    Problem.DESCRIPTOR_REFUSED: Definition(
        "WARNING", "WIRELESSOPS DESCRIPTOR REFUSED", "processingError",
        "The changed config-file.json has faults, the log names them: the old configuration stays in force",
    ),
    Problem.RESTART_NEEDED: Definition(
        "WARNING", "WIRELESSOPS RESTART NEEDED", "processingError",
        "Controls of the changed config-file.json come into force with a restart: restart the guards one by one",
    ),
    Problem.MAP_REFUSED: Definition(
        "WARNING", "WIRELESSOPS REFERENCE MAP REFUSED", "processingError",
        "The changed folder of support terms and maps has faults, the log names them: the old maps stay in force",
    ),
    Problem.REFRESH_DUE: Definition(
        "WARNING", "WIRELESSOPS REFERENCE MAP IS DUE FOR A REFRESH", "processingError",
        "It is missing, has drifted, expired or soon will: record the network, and wirelessops support refresh",
    ),
}  # fmt: skip


OF_GUARDS: Final = frozenset(
    {
        Problem.DEAD_LETTERS,
        Problem.DESCRIPTOR_REFUSED,
        Problem.RESTART_NEEDED,
        Problem.MAP_REFUSED,
        Problem.REFRESH_DUE,
    }
)
"""What a guard says of itself, by its name; the others are of a partition, and told by its owner."""


class Identity(NamedTuple):
    """What an alarm is known by, beside the application."""

    problem: Problem
    managed_object: str
    identifying: str


@dataclass(frozen=True, slots=True)
class Alarm:
    """One alarm. `info` is for people, and no part of what it is known by."""

    identity: Identity
    info: str


Standing = Mapping[Problem, list[Alarm]]
"""The alarms that stand, by problem; of a problem that is no key nothing is said."""


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing to tell the alarm manager: an alarm is raised, or (`info` of None) one is cleared."""

    identity: Identity
    info: str | None

    @property
    def raises(self) -> bool:
        """Whether it raises."""
        return self.info is not None

    def document(self, application: str, at_ns: int) -> dict[str, Any]:
        """As the alarm manager reads it. Its clock counts nanoseconds (manager.go: `time.Unix(0, alarmTime)`)."""
        return {
            "managedObjectId": self.identity.managed_object,
            "applicationId": application,
            "specificProblem": int(self.identity.problem),
            "perceivedSeverity": DEFINITIONS[self.identity.problem].severity if self.raises else "CLEARED",
            "additionalInfo": (self.info or "")[:MOST_INFO],
            "identifyingInfo": self.identity.identifying,
            "AlarmAction": "RAISE" if self.raises else "CLEAR",
            "AlarmTime": at_ns,
        }


def definitions_document() -> dict[str, Any]:
    """All problems, as the alarm manager's `/define` takes them; what it knows already it leaves as it is."""
    return {
        "alarmdefinitions": [
            {
                "alarmId": int(problem),
                "alarmText": definition.text,
                "eventType": definition.event_type,
                "operationInstructions": definition.instructions,
                "raiseDelay": 0,
                "clearDelay": 0,
                "timeToLive": 0,
            }
            for problem, definition in DEFINITIONS.items()
        ]
    }


class AlarmBook:
    """Which alarms stand, and which of that the alarm manager is still to be told.

    It holds one notice an alarm, the latest: what is raised and cleared before it could be told is never told. Its
    size is bounded by the alarms that stand, and those that the manager may still believe to stand.
    """

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self._standing: dict[Identity, str] = {}
        self._believed: set[Identity] = set()  # the manager may have them
        self._known: set[Identity] = set()  # it has them
        self._due: OrderedDict[Identity, None] = OrderedDict()
        self._changed = changed

    def __len__(self) -> int:
        """How many notices are due."""
        return len(self._due)

    @property
    def standing(self) -> Mapping[Identity, str]:
        """The alarms that stand, and what is said of each."""
        return self._standing

    def put(self, alarm: Alarm) -> None:
        """It stands. Nothing is told where it stood before, whatever it says now."""
        new = alarm.identity not in self._standing
        self._standing[alarm.identity] = alarm.info
        if alarm.identity in self._known:
            self._due.pop(alarm.identity, None)
        elif new:
            self._tell(alarm.identity)

    def clear(self, identity: Identity) -> None:
        """It stands no longer. Nothing is told of one that the manager cannot believe to stand."""
        if self._standing.pop(identity, None) is not None or identity in self._believed:
            self._tell(identity)

    def has(self, identity: Identity) -> None:
        """The manager has it as active, whoever raised it."""
        self._believed.add(identity)
        self._known.add(identity)
        if identity in self._standing:
            self._due.pop(identity, None)
        else:
            self._tell(identity)

    def forget(self, identities: Iterable[Identity]) -> None:
        """They are another guard's now: nothing more is told of them."""
        for identity in identities:
            self._standing.pop(identity, None)
            self._believed.discard(identity)
            self._known.discard(identity)
            self._due.pop(identity, None)

    def remind(self, known: Set[Identity] = frozenset()) -> None:
        """Tell all that stand once more, but what the manager is known to have: it may have lost its memory."""
        for identity in self._standing.keys() - known:
            self._known.discard(identity)
            self._tell(identity)

    def next(self) -> Notice | None:
        """What is to be told next, None where the manager knows all. It is told anew until it was `told`."""
        while self._due:
            identity = next(iter(self._due))
            info = self._standing.get(identity)
            if info is not None:
                self._believed.add(identity)  # from the first try on: one that timed out may have been read
                return Notice(identity, info)
            if identity in self._believed:
                self._known.discard(identity)
                return Notice(identity, None)
            del self._due[identity]
        return None

    def told(self, notice: Notice) -> None:
        """The manager took it."""
        if notice.raises:
            self._known.add(notice.identity)
        else:
            self._believed.discard(notice.identity)
        if notice.raises == (notice.identity in self._standing):
            self._due.pop(notice.identity, None)

    def _tell(self, identity: Identity) -> None:
        self._due[identity] = None
        self._changed()


class Alarms:
    """What stands of a guard, brought by `hold` a problem and partition at a time, and what of it is to be told.

    `application` is what the alarm manager calls this deployment, `guard` the name of this guard; `partition_of` gives
    the partition of a region; `changed` is called when there is something to tell.
    """

    def __init__(
        self, application: str, guard: str, partition_of: Callable[[str], int | None], changed: Callable[[], None]
    ) -> None:
        self.application = application
        self.guard = guard
        self.book = AlarmBook(changed)
        self._partition_of = partition_of
        self._held: dict[tuple[Problem, int | None], frozenset[Identity]] = {}

    def hold(self, problem: Problem, partition: int | None, alarms: Iterable[Alarm]) -> None:
        """Of a problem exactly these stand in a partition of ours; None: in this guard."""
        found = {alarm.identity: alarm for alarm in alarms}
        gone = self._held.get((problem, partition), frozenset()) - found.keys()
        self._held[problem, partition] = frozenset(found)
        for identity in gone - self._all_held(problem):
            self.book.clear(identity)
        for alarm in found.values():
            self.book.put(alarm)

    def say(self, problem: Problem, info: str | None) -> None:
        """A condition of this guard itself stands; None: it does not."""
        identity = Identity(problem, self.application, f"guard {self.guard}")
        self.hold(problem, None, [] if info is None else [Alarm(identity, info)])

    def say_no_more(self) -> None:
        """This guard ends, and with it whatever it said of itself."""
        for problem in OF_GUARDS:
            self.say(problem, None)

    def give_up(self, partition: int) -> None:
        """A partition is ours no longer: its next owner tells what there is to tell."""
        for problem in [problem for problem, where in self._held if where == partition]:
            gone = self._held.pop((problem, partition))
            self.book.forget(gone - self._all_held(problem))

    def compare(self, active: Iterable[Mapping[str, Any]]) -> None:
        """Hold what stands against what the alarm manager says is active (its `/active`).

        What stands and is not there is told once more; what is there, is ours to tell, and does not stand, is cleared.
        """
        there = {identity for document in active if (identity := self._identity(document)) is not None}
        self.book.remind(there)
        for identity in there:
            if identity in self.book.standing or self._is_ours(identity):
                self.book.has(identity)

    def _identity(self, document: Mapping[str, Any]) -> Identity | None:
        """Of an alarm of this application; None for another."""
        try:
            problem = Problem(document["specificProblem"])
            identity = Identity(problem, str(document["managedObjectId"]), str(document["identifyingInfo"]))
        except (KeyError, ValueError):
            return None
        return identity if document.get("applicationId") == self.application else None

    def _is_ours(self, identity: Identity) -> bool:
        """Whether we know all that can make it stand: it is of a partition of ours, or of this guard."""
        if identity.problem in OF_GUARDS:
            return identity.identifying == f"guard {self.guard}"
        if identity.managed_object != self.application:
            return (identity.problem, self._partition_of(identity.managed_object)) in self._held
        owned = (partition for problem, partition in self._held if problem is identity.problem)
        return identity.identifying in map(_place, owned)

    def _all_held(self, problem: Problem) -> frozenset[Identity]:
        return frozenset().union(*(held for (of, _), held in self._held.items() if of is problem))


def escalations(waiting: Iterable[tuple[ProposalKey, Iterable[str]]], partition: int, application: str) -> Standing:
    """The alarms of proposals that wait for a person, oldest first, each with the codes of what blocks it."""
    found = list(islice(waiting, MOST_ESCALATIONS + 1))
    own = [
        Alarm(Identity(Problem.ESCALATION, key.region, key.proposal_id), ", ".join(sorted(codes)))
        for key, codes in found[:MOST_ESCALATIONS]
    ]
    more = Identity(Problem.MORE_ESCALATIONS, application, _place(partition))
    many = [Alarm(more, f"{MOST_ESCALATIONS} have an alarm of their own")] if len(found) > MOST_ESCALATIONS else []
    return {Problem.ESCALATION: own, Problem.MORE_ESCALATIONS: many}


def conditions(status: PartitionStatus, application: str) -> Standing:
    """The alarms that the status of a partition makes: sources in outage, and the switches in force."""
    outages = [
        Alarm(Identity(Problem.SOURCE_OUTAGE, view.region, view.source), f"its evidence counts for {view.limit_ms} ms")
        for view in status.sources
        if view.state == "outage"
    ]
    switches = [
        Alarm(
            Identity(Problem.SWITCH, switch["region"] or application, _place(status.partition)),
            f"{switch['mode']}: {switch['operator']}: {switch['reason']}",
        )
        for switch in status.switches
    ]
    return {Problem.SOURCE_OUTAGE: outages[:MOST_OUTAGES], Problem.SWITCH: switches}


def _place(partition: int | None) -> str:
    return f"partition {partition}"
