"""Save a policy and its state as bytes, and restore them.

The bytes are a first line, a SHA-256 digest of everything that follows, and an npz file: the
state's arrays, and under `header` a JSON text with the policy's name, settings and layout. Nothing
is pickled, so reading a snapshot never runs foreign code.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from rank1 import __version__
from rank1.errors import InputTypeError, Rank1Error, SnapshotError, shown
from rank1.policies.base import Known, Policy, State, Truth
from rank1.policies.known import LIMITS

__all__ = ["restore", "snapshot"]

_FIRST = b"rank1 snapshot 1\n"
_DIGEST = hashlib.sha256().digest_size


def snapshot(policy: Policy, state: State) -> bytes:
    """Return the policy and its state as bytes, for `restore`.

    Pending pulls are included; the random number generator is not: a restored state makes the same
    choices if `ask` gets a generator in the same state.

    Parameters
    ----------
    policy
        The policy of the state. Its settings must be numbers, strings, booleans or None.
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
        "rank1": __version__,
    }
    try:
        text = json.dumps(header)
    except TypeError as error:
        raise InputTypeError(
            f"settings of {policy.name}",
            policy.settings,
            "numbers, strings, booleans or None",
            str(error),
        ) from None
    file = io.BytesIO()
    np.savez(file, header=np.array(text), **state._asdict())
    body = file.getvalue()
    return _FIRST + hashlib.sha256(body).digest() + body


def restore(data: bytes, policies: Iterable[type[Policy]] = ()) -> tuple[Policy, State]:
    """Return the policy and the state of a snapshot.

    Parameters
    ----------
    data
        From `snapshot`.
    policies
        Policy classes that don't come with rank1; they take precedence over its own policies of
        the same name.

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
    """The header and the arrays, after a check that nothing is damaged."""
    if not data.startswith(_FIRST):
        what = "cut short" if _FIRST.startswith(data) else "something else, or of another version"
        raise SnapshotError(f"data must be a snapshot made by rank1, got {what}")
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
    from rank1.policies import POLICIES  # imports this module, too

    known = POLICIES | {cls.name: cls for cls in policies}
    name, layout = header["policy"], header["layout"]
    if name not in known:
        raise SnapshotError(
            f"the snapshot is of policy {shown(name)}, which isn't one of {', '.join(known)}",
            "pass its class as restore(…, policies=[…])",
        )
    cls = known[name]
    if layout != cls.layout:
        raise SnapshotError(
            f"the snapshot of {name} has layout {shown(layout)}, made by rank1 "
            f"{header['rank1']}; this is rank1 {__version__}, with layout {cls.layout}",
            policy=name,
        )
    try:
        return cls(**header["settings"])
    except (TypeError, ValueError) as error:
        raise SnapshotError(
            f"the snapshot has settings that {name} can't have", str(error)
        ) from None


def _started(policy: Policy, limits: Any) -> State:
    """A new state for the limits of the old one; it shows which arrays are required."""
    # The truth isn't stored: it doesn't change the number or size of the arrays.
    truth = Truth(best_arm=0, lowest_mean=1.0) if policy.needs_truth else None
    try:
        return policy.start(Known.of_limits(limits.view(LIMITS), truth))
    except (TypeError, ValueError, IndexError, AttributeError, Rank1Error) as error:
        raise SnapshotError(
            f"the snapshot has no limits, or limits that are invalid for {policy.name}", str(error)
        ) from None


def _filled(policy: str, name: str, array: Any, kept: Any) -> Any:
    """Fill an array of a new state with the stored values, and return it.

    It is filled in place, because some arrays begin at a certain address. An array that starts
    empty, such as the list of pulls given back, may have grown since.
    """
    if kept.dtype.names is not None and kept.dtype.descr == array.dtype.descr:
        kept = kept.view(array.dtype)  # the file has the names, but not the attribute access
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
