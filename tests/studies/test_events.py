"""Kinds of events, their columns, and the ids that users see."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rank1
from rank1.studies.events import (
    RECORD,
    Event,
    Events,
    Kind,
    as_events,
    check_text,
    columns,
    new_uid,
    nonces,
    read_id,
    suggestion_id,
)


@given(st.integers(1, 10**18 - 1), st.integers(1, 2**20 - 1))
def test_an_id_can_be_read_again(seq: int, nonce: int) -> None:
    uid = new_uid()
    text = suggestion_id(uid, seq, nonce)
    assert read_id(text) == (uid, seq, nonce)
    assert read_id(f" {text.upper()}\n") == (uid, seq, nonce)


@pytest.mark.parametrize(
    "text",
    ["", "17", "k3fzqa-17", "k3fzqa-0-00z8", "k3fzqa-017-00z8", "k3fzqa-17-00z8-", "k3fzqa-17-oooo",
     "k3fzqa-1" + "0" * 18 + "-00z8", "k3fzqa-١٧-00z8", "x" * 10**6],
)  # fmt: skip
def test_what_is_no_id_is_unknown(text: str) -> None:
    with pytest.raises(rank1.UnknownSuggestionError, match="ids look like"):
        read_id(text)


def test_an_id_is_text() -> None:
    with pytest.raises(rank1.InputTypeError, match="id must be the text"):
        read_id(17)  # type: ignore[arg-type]


def test_nonces_differ() -> None:
    # 1,000 of 2^20: half a collision is expected; ten have a probability of about 1e-11
    assert len(set(nonces(1000))) > 990
    # and of 2^30: one collision in 2,000 such trials
    assert len({new_uid() for _ in range(1000)}) > 997


@given(st.text())
def test_text_that_is_taken_can_be_kept(text: str) -> None:
    try:
        check_text("unit", text)
    except rank1.InputError:
        assert not 1 <= len(text) <= 256 or "\0" in text or not _encodes(text)
    else:
        assert 1 <= len(text.encode()) <= 1024


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def test_events_as_columns() -> None:
    events = as_events(
        [Event(Kind.SUGGESTED, 3, -(2**62), nonce=9), Event(Kind.REPORTED, 0, 1, 7, 0.25)],
        first=8,
        at=1.5,
    )
    assert events.size == 2
    assert [column.dtype for column in events] == [RECORD[name] for name in Events._fields]
    assert all(column.flags.c_contiguous for column in events)
    assert events.seq.tolist() == [8, 9]
    assert events.at.tolist() == [1.5, 1.5]
    assert events.kind.tolist() == [2, 3]
    assert (events.arm[0], events.tag[0], events.nonce[0]) == (3, -(2**62), 9)
    assert (events.suggestion[1], events.value[1]) == (7, 0.25)
    assert math.isnan(events.value[0])


@pytest.mark.parametrize("kind", [0, 13, 100])
def test_a_kind_of_a_later_version_is_refused(kind: int) -> None:
    records = np.zeros(3, RECORD)
    records["seq"], records["kind"] = [5, 6, 7], [1, kind, 2]
    with pytest.raises(rank1.FormatError, match=f"event 6 .* of kind {kind}.*upgrade rank1"):
        columns(records)


def test_numbers_of_kinds_never_change() -> None:
    assert {kind.name: int(kind) for kind in Kind} == {
        "CREATED": 1, "SUGGESTED": 2, "REPORTED": 3, "CANCELLED": 4, "EXPIRED": 5, "REVISED": 6,
        "HISTORY": 7, "RETIRED": 8, "VERSION": 9, "RECORDED": 10, "GUARDRAIL": 11,
        "NOTED": 12,
    }  # fmt: skip
