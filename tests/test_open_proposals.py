"""Laws of what waits: nearest deadline first, nobody starves or is lost, the first open offset never runs ahead."""

from __future__ import annotations

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from streams.deciding import ProposalDocument
from streams.open_proposals import OpenProposal, OpenProposals

T0 = 1_790_000_000_000


def proposal(offset: int, deadline_ms: int | None = None, until_ms: int = T0 + 10_000) -> OpenProposal:
    document = ProposalDocument(f"p{offset}", {}, "d")
    return OpenProposal(SimpleNamespace(offset=offset), "north", document, deadline_ms, until_ms, until_ms)


def filled(*deadlines: int | None) -> OpenProposals:
    book = OpenProposals()
    for offset, deadline in enumerate(deadlines):
        book.add(proposal(offset, deadline))
    return book


def offsets(taken: list[OpenProposal]) -> list[int]:
    return [one.message.offset for one in taken]


def test_the_nearest_deadline_is_taken_first_and_no_deadline_last() -> None:
    book = filled(None, T0 + 30, T0 + 10, None, T0 + 20)
    assert offsets(book.take(5, T0)) == [2, 4, 1, 0, 3]


def test_equal_deadlines_are_taken_in_the_order_they_came() -> None:
    assert offsets(filled(*[T0 + 5] * 6).take(6, T0)) == list(range(6))


@given(st.lists(st.one_of(st.none(), st.integers(T0 - 50, T0 + 50)), max_size=80), st.integers(1, 16))
def test_all_that_is_added_is_taken_once_and_the_passed_do_not_keep_out_the_live(
    deadlines: list[int | None], number: int
) -> None:
    book = filled(*deadlines)
    seen: list[int] = []
    while batch := book.take(number, T0):
        live_left = sum(d is None or d >= T0 for n, d in enumerate(deadlines) if n not in seen)
        live_taken = sum(one.deadline_ms is None or one.deadline_ms >= T0 for one in batch)
        assert len(batch) <= number
        assert live_taken >= min(live_left, number - max(1, number // 4))
        seen += offsets(batch)
        for one in batch:
            book.close(one)
    assert sorted(seen) == list(range(len(deadlines)))
    assert len(book) == 0


def test_the_passed_get_a_quarter_of_a_batch_and_what_the_live_leave() -> None:
    book = filled(*[T0 - 1] * 100, *[T0 + 1] * 100)
    batch = book.take(64, T0)
    assert sum(one.deadline_ms < T0 for one in batch if one.deadline_ms is not None) == 16
    book = filled(*[T0 - 1] * 100, *[T0 + 1] * 10)
    assert sum((one.deadline_ms or 0) < T0 for one in book.take(64, T0)) == 54


@given(st.data())
def test_whoever_waits_is_woken_by_its_key_or_its_time_and_by_nothing_else(data: st.DataObject) -> None:
    book = filled(*[None] * 8)
    taken = book.take(8, T0)
    keys = {one: data.draw(st.frozensets(st.sampled_from("abcd"), max_size=3)) for one in taken}
    wakes = {one: data.draw(st.integers(T0 + 1, T0 + 20)) for one in taken}
    for one in taken:
        book.wait(one, keys[one], wakes[one])
    assert (book.ready, book.waiting) == (0, 8)
    touched = data.draw(st.sampled_from("abcd"))
    book.touch([touched])
    now = data.draw(st.integers(T0, T0 + 20))
    book.wake_due(now)
    woken = {one for one in taken if touched in keys[one] or wakes[one] <= now}
    assert set(offsets(book.take(8, T0))) == {one.message.offset for one in woken}
    assert len(book) == 8


def test_a_key_that_is_touched_after_its_proposal_was_woken_wakes_it_only_once() -> None:
    book = filled(None)
    (one,) = book.take(1, T0)
    book.wait(one, frozenset("ab"), T0 + 5)
    book.touch("a")
    book.touch("b")
    book.wake_due(T0 + 5)
    assert len(book.take(5, T0)) == 1
    assert book.take(5, T0) == []


def test_the_first_open_proposal_is_the_one_with_the_lowest_offset_that_is_not_closed() -> None:
    book = filled(None, None, None)
    by_offset = {one.message.offset: one for one in book.take(3, T0)}
    assert book.first() is by_offset[0]
    book.close(by_offset[1])
    assert book.first() is by_offset[0]
    book.close(by_offset[0])
    assert book.first() is by_offset[2]
    book.close(by_offset[2])
    assert book.first() is None


def test_under_overload_those_that_will_be_missed_do_not_keep_out_those_that_can_be_in_time() -> None:
    book = filled(*[T0 + n for n in range(100)])
    batch = book.take(16, T0, lead_ms=50)
    assert offsets(batch[:12]) == list(range(50, 62))
    assert offsets(batch[12:]) == [0, 1, 2, 3]


def test_a_closed_proposal_is_never_woken() -> None:
    book = filled(None)
    (one,) = book.take(1, T0)
    book.wait(one, frozenset("a"), T0 + 5)
    book.close(one)
    book.touch("a")
    book.wake_due(T0 + 10)
    assert book.take(5, T0) == []


def test_where_the_clock_is_set_back_who_has_no_deadline_waits_no_longer_for_it() -> None:
    book = filled(None, T0 + 500)
    one, other = sorted(book.take(2, T0), key=lambda p: p.message.offset)
    for each in (one, other):
        book.wait(each, frozenset(), T0 + 400)
    book.set_back(3_600_000)
    assert (one.until_ms, other.until_ms) == (T0 + 10_000 - 3_600_000, T0 + 10_000)
    assert len(book.take(5, T0 - 3_600_000)) == 2
