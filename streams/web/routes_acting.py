"""What operators do: each act with a bearer token, each in the log, each a message that others can read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Final, Literal, TypeVar
from uuid import uuid4

from aiohttp import hdrs, web
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from streams.escalations import NotSettled
from streams.guard import Guard
from streams.messages import SwitchMessage
from streams.topics import MAX_REGION_LENGTH, NoRegion, region_of
from streams.web.acting import Writer
from streams.web.board import Board
from streams.web.operators import Operators
from streams.web.records import Unanswered
from streams.web.replies import ACT, OPERATOR, Refused, read_object, refusal, reply
from streams.web.routes_board import Decisions
from xapp.contract_loading import document_errors

_SCHEME: Final = "bearer "
_ASK: Final[Mapping[str, str]] = {hdrs.WWW_AUTHENTICATE: 'Bearer realm="wirelessops"'}
_MAX_REASON: Final = 500
_MAX_SETTLES: Final = 100

Reason = Annotated[str, Field(pattern=r"\S", max_length=_MAX_REASON)]
Body = TypeVar("Body", bound=BaseModel)


class _Asked(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class AnswerAsked(_Asked):
    """The body of `POST /v1/answers`."""

    decision: Annotated[str, Field(max_length=100)]
    verdict: Literal["approve", "deny"]
    reason: Reason
    settles: Annotated[list[Annotated[str, Field(max_length=1_000)]], Field(max_length=_MAX_SETTLES)] = []


class SwitchAsked(_Asked):
    """The body of `POST /v1/switch`."""

    mode: Literal["live", "hold", "shadow"]
    reason: Reason
    region: Annotated[str, Field(min_length=1, max_length=MAX_REGION_LENGTH)] | None = None


class Doorkeeper:
    """Tells who acts. `operators` of None: nobody can."""

    def __init__(self, operators: Operators | None) -> None:
        self._operators = operators

    @property
    def open(self) -> bool:
        """Whether anybody can act here."""
        return self._operators is not None

    def operator(self, request: web.Request) -> str:
        """Whom the bearer token of a request belongs to. Raises Refused: 403 where nobody can act here, 401."""
        if self._operators is None:
            raise Refused(403, "nobody can act here: the guard was started without --operator-tokens")
        given = request.headers.get(hdrs.AUTHORIZATION, "")
        if not given:
            raise Refused(401, "a bearer token is required", _ASK)
        token = given[len(_SCHEME) :].strip() if given[: len(_SCHEME)].lower() == _SCHEME else ""
        operator = self._operators.bearer(token) if token else None
        if operator is None:
            raise Refused(401, "this token belongs to no operator", _ASK)
        request[OPERATOR] = operator
        return operator

    def authenticate(self, request: web.Request) -> str | web.Response:
        """The same for `streams.web.config`: the reply to who may not act, instead of Refused."""
        try:
            return self.operator(request)
        except Refused as error:
            return refusal(error)


def acting_routes(
    doorkeeper: Doorkeeper, guard: Guard, board: Callable[[], Board], decisions: Decisions, writer: Writer,
    clock: Callable[[], int],
) -> list[web.RouteDef]:  # fmt: skip
    """Answers, the switch, and who one is."""

    async def who(request: web.Request) -> web.Response:
        return reply({"operator": doorkeeper.operator(request)})

    async def answer(request: web.Request) -> web.Response:
        operator = doorkeeper.operator(request)
        asked = await _read(request, AnswerAsked)
        request[ACT] = asked.model_dump()
        said = await decisions.summary(asked.decision)
        region, proposal_id = said["region"], said["proposal_id"]
        request[ACT] |= {"decision_id": said["decision_id"], "proposal_id": proposal_id, "region": region}
        for why in _why_not(board(), said, asked.decision):
            raise Refused(409, why)
        record = await decisions.record(said)
        try:
            written = await writer.answer(
                record, region, said["partition"], operator=operator, verdict=asked.verdict, reason=asked.reason,
                settles=asked.settles,
            )  # fmt: skip
        except NotSettled as error:
            raise Refused(422, str(error)) from error
        except ValidationError as error:
            raise Refused(422, _told(error)) from error
        except Unanswered as error:
            raise Refused(503, str(error)) from error
        request[ACT] |= {"answer_id": written.answer_id}
        return reply(written.model_dump())

    async def switch(request: web.Request) -> web.Response:
        operator = doorkeeper.operator(request)
        asked = await _read(request, SwitchAsked)
        request[ACT] = asked.model_dump()
        if not guard.partitions:
            raise Refused(503, "the guard has not found its topics yet")
        try:
            if asked.region is not None:
                region_of(asked.region.encode())
            message = SwitchMessage(
                switch_id=uuid4().hex, mode=asked.mode, operator=operator, reason=asked.reason, at_ms=clock(),
                region=asked.region,
            )  # fmt: skip
            written = await writer.switch(message)
        except (NoRegion, UnicodeEncodeError) as error:
            raise Refused(422, "region: at most 249 printable characters") from error
        except ValidationError as error:
            raise Refused(422, _told(error)) from error
        except Unanswered as error:
            raise Refused(503, str(error)) from error
        request[ACT] |= {"switch_id": message.switch_id, "partitions": written.partitions, "failed": written.failed}
        document = {"switch": message.model_dump(), "partitions": written.partitions, "failed": written.failed}
        if not written.partitions:
            raise Refused(503, f"the switch is not known to be written anywhere, and may be yet: {written.why}")
        return reply(document)

    return [
        web.get("/v1/operator", who),
        web.post("/v1/answers", answer),
        web.post("/v1/switch", switch),
    ]


def _why_not(board: Board, said: dict[str, object], asked: str) -> Iterator[str]:
    """Why a decision does not wait for an answer, if it does not."""
    region, proposal_id = str(said["region"]), str(said["proposal_id"])
    newest = board.newest(region, proposal_id)
    if newest is None:
        yield "it no longer waits for an answer: the proposal has its final decision, or this guard has not read it yet"
    elif str(newest.where) != asked:
        yield f"it no longer waits for an answer: {newest.where} has been decided since"
    elif said["action"] != "ESCALATE":
        yield f"it does not wait for an answer: the guard said {said['action']}"
    elif (by := board.denied_by(region, proposal_id)) is not None:
        yield f"it no longer waits for an answer: {by} has denied it"


async def _read(request: web.Request, body: type[Body]) -> Body:
    document = await read_object(request)
    try:
        return body.model_validate(document)
    except ValidationError as error:
        raise Refused(400, _told(error)) from error


def _told(error: ValidationError) -> str:
    return "; ".join(f"{path}: {reason}" for path, reason in document_errors(error))
