"""Ctrl-C that is delayed until the end of a block."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from rank1.interrupts import held_back

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")


@pytest.fixture(autouse=True)
def handlers() -> None:
    """Set the handlers that a program has; pytest's own differ with some plugins."""
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("children", [True, False])
def test_it_waits_for_the_end_of_the_block(children: bool) -> None:
    reached = []
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012
        with held_back(children=children):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)
            reached.append("the end of the block")
        reached.append("what comes after")
    assert reached == ["the end of the block"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_a_second_one_does_not_wait() -> None:
    reached = []
    with pytest.raises(KeyboardInterrupt), held_back():  # noqa: PT012
        for each in ("first", "second", "third"):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)
            reached.append(each)
    assert reached == ["first"]


def test_an_error_in_the_block_is_not_lost() -> None:
    with pytest.raises(ZeroDivisionError), held_back():
        _ = 1 / 0
    with pytest.raises(KeyboardInterrupt) as stop, held_back():  # noqa: PT012
        os.kill(os.getpid(), signal.SIGINT)
        _ = 1 / 0
    assert isinstance(stop.value.__context__, ZeroDivisionError)


def test_another_thread_may_hold_back_too() -> None:
    """A thread has no handlers, so nothing happens."""
    done = []

    def work() -> None:
        with held_back(children=True):
            done.append(1)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [1]


def test_processes_that_start_meanwhile_never_see_it() -> None:
    code = "import signal, time; print(signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    seen = []
    with held_back(children=True):
        seen.append(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True))
    seen.append(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True))
    assert ["SIGINT" in done.stdout for done in seen] == [True, False]


def test_a_termination_waits_too() -> None:
    class StopError(BaseException):
        pass

    def stop(*_: object) -> None:
        raise StopError

    before = signal.signal(signal.SIGTERM, stop)
    reached = []
    try:
        with pytest.raises(StopError), held_back():  # noqa: PT012
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.05)
            reached.append(1)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert reached == [1]
