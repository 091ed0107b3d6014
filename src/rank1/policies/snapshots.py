"""A policy and its state as bytes, from which both go on as if nothing had happened.

The bytes are a first line, a SHA-256 digest of all that follows, and an npz file: the state's
arrays, and under `header` a JSON text with the policy's name, settings and layout. Nothing in it is
pickled, so reading a snapshot runs no code of its writer's.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable
from typing import Any

import numpy as np

import rank1
from rank1.errors import InputTypeError, Rank1Error, SnapshotError, shown
from rank1.policies.base import LIMITS, Known, Policy, State, Truth

__all__ = ["restore", "snapshot"]

_FIRST = b"rank1 snapshot 1\n"
_DIGEST = hashlib.sha256().digest_size


def snapshot(policy: Policy, state: State) -> bytes:
    """The policy and its state as bytes, for `restore`.

    Pulls that wait for their rewards are part of it. The generator of random numbers isn't: a
    state that is restored makes the same choices if `ask` is given a generator in the same state.

    Parameters
    ----------
    policy
        The policy that the state belongs to. Its settings must be numbers, texts, booleans or None.
    state
        From its `start`.

    Examples
    --------
    >>> import numpy as np, rank1
    >>> policy = rank1.UCB1(confidence=1.5)
    >>> state = policy.start(rank1.Known(K=2, L=3, n=1000))
    >>> rank1.tell(state, rank1.ask(state, np.random.default_rng(1)), reward=1.0)
    >>> data = rank1.snapshot(policy, state)
    >>> policy, state = rank1.restore(data)
    >>> policy, state.best()
    (UCB1(confidence=1.5), 0)
    """
    header = {
        "policy": policy.name,
        "settings": policy.settings,
        "layout": policy.layout,
        "rank1": rank1.__version__,
    }
    try:
        text = json.dumps(header)
    except TypeError as error:
        raise InputTypeError(
            f"settings of {policy.name}",
            policy.settings,
            "numbers, texts, booleans or None",
            str(error),
        ) from None
    file = io.BytesIO()
    np.savez(file, header=np.array(text), **state._asdict())
    body = file.getvalue()
    return _FIRST + hashlib.sha256(body).digest() + body


def restore(data: bytes, policies: Iterable[type[Policy]] = ()) -> tuple[Policy, State]:
    """The policy and the state of a snapshot.

    Parameters
    ----------
    data
        From `snapshot`.
    policies
        Classes of policies that rank1 doesn't come with; they are looked up by name, before its
        own.

    Raises
    ------
    SnapshotError
        If the data are damaged or incomplete, the policy isn't known, or its state is laid out
        differently in this version.
    """
    header, arrays = _opened(data)
    policy = _policy(header, policies)
    state = _started(policy, arrays.get("limits"))
    fields = state._asdict()
    if arrays.keys() != fields.keys():
        raise SnapshotError(
            f"a snapshot of {policy.name} must have the arrays {', '.join(fields)}",
            f"missing: {', '.join(fields.keys() - arrays.keys()) or 'none'}, "
            f"too many: {', '.join(arrays.keys() - fields.keys()) or 'none'}",
        )
    for name, array in fields.items():
        fields[name] = _filled(policy.name, name, array, arrays[name])
    return policy, type(state)(**fields)


def _opened(data: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    """The header and the arrays, once it is sure that nothing is damaged."""
    if not data.startswith(_FIRST):
        what = "cut short" if _FIRST.startswith(data) else "something else, or of another version"
        raise SnapshotError(f"data must be a snapshot that rank1 made; these are {what}")
    start = len(_FIRST) + _DIGEST
    digest, body = data[len(_FIRST) : start], data[start:]
    if hashlib.sha256(body).digest() != digest:
        raise SnapshotError("the snapshot is damaged or cut short", "its checksum is wrong")
    try:
        with np.load(io.BytesIO(body), allow_pickle=False) as file:
            arrays = dict(file)
        header = json.loads(str(arrays.pop("header")))
        header = {key: header[key] for key in ("policy", "settings", "layout", "rank1")}
    except Exception as error:  # whatever NumPy, zip files and JSON raise
        raise SnapshotError("the snapshot can't be read", repr(error)) from None
    return header, arrays


def _policy(header: dict[str, Any], policies: Iterable[type[Policy]]) -> Policy:
    from rank1.policies import POLICIES  # which has this module's functions, too

    known = POLICIES | {cls.name: cls for cls in policies}
    name, layout = header["policy"], header["layout"]
    if name not in known:
        raise SnapshotError(
            f"the snapshot is of policy {shown(name)}, which is none of {', '.join(known)}",
            "pass its class as restore(…, policies=[…])",
        )
    cls = known[name]
    if layout != cls.layout:
        raise SnapshotError(
            f"the snapshot of {name} has layout {shown(layout)}, made by rank1 "
            f"{header['rank1']}; this is rank1 {rank1.__version__}, with layout {cls.layout}",
            policy=name,
        )
    try:
        return cls(**header["settings"])
    except (TypeError, ValueError) as error:
        raise SnapshotError(
            f"the snapshot has settings that {name} can't have", str(error)
        ) from None


def _started(policy: Policy, limits: Any) -> State:
    """A new state for what the old one was told; it shows which arrays there must be."""
    # The truth isn't kept: the arrays are as many and as large whatever it was.
    truth = Truth(best_arm=0, lowest_mean=1.0) if policy.needs_truth else None
    try:
        return policy.start(Known.of_limits(limits.view(LIMITS), truth))
    except (TypeError, ValueError, IndexError, AttributeError, Rank1Error) as error:
        raise SnapshotError(
            f"the snapshot has no limits, or none that {policy.name} can have", str(error)
        ) from None


def _filled(policy: str, name: str, array: Any, kept: Any) -> Any:
    """An array of a new state, with the values that were kept.

    Filled in place, because some arrays begin at a certain address. One that starts empty, as a
    list of pulls that were given back, may have grown since.
    """
    if kept.dtype.names is not None and kept.dtype.descr == array.dtype.descr:
        kept = kept.view(array.dtype)  # names are kept, but not that they can be attributes
    grown = array.ndim > 0 and len(array) == 0 and kept.shape[1:] == array.shape[1:]
    if kept.dtype != array.dtype or not (grown or kept.shape == array.shape):
        raise SnapshotError(
            f"array {name} of {policy} must have shape {array.shape} of {array.dtype}, "
            f"got {kept.shape} of {kept.dtype}"
        )
    if grown:
        return kept
    array[...] = kept
    return array
