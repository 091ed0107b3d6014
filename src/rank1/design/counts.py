"""Reports as rows of counts: how many pulls of an arm, drawn under a version, gave each reward."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rank1.design.values import Bools, Design, Floats, Ints, Version, checked_version
from rank1.errors import InputError, InputTypeError

__all__ = ["Counts", "checked_counts", "gridded", "log_average", "runs", "tally"]

#: The number of equal steps into which `gridded` divides the range of rewards.
STEPS = 128


class Counts(NamedTuple):
    """How many pulls of an arm, drawn under a version, gave a reward: one row for each reward."""

    version: Ints
    arm: Ints
    reward: Floats
    #: Whole numbers, or fractions where `gridded` has split rewards.
    pulls: NDArray[Any]
    #: The version that was current when the reports arrived; default: the version of the pull.
    under: Ints | None = None

    @classmethod
    def of(cls, rows: Iterable[tuple[float, ...]]) -> Counts:
        """Make counts from rows of version, arm, reward, pulls and, for late reports, `under`.

        >>> Counts.of([(0, 3, 1.0, 12)]).pulls.tolist()
        [12.0]
        """
        columns = list(zip(*rows, strict=True)) or [()] * 4
        kinds: tuple[Any, ...] = np.int64, np.int64, np.float64, np.float64, np.int64
        return cls(*(np.array(column, kind) for column, kind in zip(columns, kinds, strict=False)))

    @property
    def arrived(self) -> Ints:
        """The version that was current when each row's reports arrived."""
        return self.version if self.under is None else self.under

    def take(self, rows: Any) -> Counts:
        """Return some of the rows, by number, slice or condition."""
        under = None if self.under is None else self.under[rows]
        version, arm, reward, pulls = (column[rows] for column in self[:4])
        return Counts(version, arm, reward, pulls, under)


def gridded(design: Design, counts: Counts) -> Counts:
    """Move rewards to 129 equally spaced values, splitting each between its two neighbours.

    A reward between two values counts partly for each, so means stay the same. Counts by version,
    arm and value are then bounded in size, whatever the rewards. The evidence stays valid: a bet's
    factor is linear in the reward and the logarithm is concave, so the wealth can only get
    smaller. Rewards at either end of the range don't change.

    >>> plan = Design([2], low=0, high=128)
    >>> split = gridded(plan, Counts.of([(0, 1, 3.25, 8)]))
    >>> split.reward.tolist(), split.pulls.tolist()
    ([3.0, 4.0], [6.0, 2.0])
    """
    _check_rewards(design, np.asarray(counts.reward))
    twice = counts.take(np.tile(np.arange(len(counts.arm)), 2))
    place = design.scaled(np.asarray(counts.reward)) * STEPS
    below = np.floor(np.minimum(place, STEPS - 1))
    value = np.concatenate([below, below + 1]) / STEPS
    pulls = twice.pulls * np.concatenate([below + 1 - place, place - below])
    reward = design.low + (design.high - design.low) * value
    return twice._replace(reward=reward, pulls=pulls).take(pulls != 0)


def checked_counts(design: Design, versions: Mapping[int, Version], counts: Counts) -> Counts:
    """Check counts, drop empty rows, add up equal ones, and sort by version and `under`.

    Raises an error if a row has an unknown version, or an arm that its version doesn't draw.
    """
    columns = [column for column in counts if column is not None]
    lengths = {len(column) for column in columns}
    if len(lengths) != 1:
        raise InputError("counts", counts, "columns of one length", got=f"{sorted(lengths)}")
    version, arm = _whole("version", counts.version), _whole("arm", counts.arm)
    reward, pulls = _column("reward", counts.reward), _column("pulls", counts.pulls)
    under = version if counts.under is None else _whole("under", counts.under)
    for name, column in (("version", version), ("under", under)):
        for number in np.unique(column):
            if int(number) not in versions:
                known = ", ".join(map(str, sorted(versions))) or "none"
                raise InputError(name, int(number), f"one of the versions known ({known})")
    _refuse("under", under, under < version, "the version of the pull, or a later one")
    _refuse("arm", arm, (arm < 0) | (arm >= design.grid.arms), f"in 0 … {design.grid.arms - 1}")
    _check_rewards(design, reward)
    _refuse("pulls", pulls, ~((pulls >= 0) & (pulls < np.inf)), "a number of at least 0")
    kept = pulls > 0
    version, arm, under = version[kept], arm[kept], under[kept]
    rows = Counts(version, arm, reward[kept].astype(float), pulls[kept].astype(float), under)
    numbers, place = np.unique(version, return_inverse=True)
    for number in numbers.tolist():
        if tuple(map(len, versions[number].shares)) != design.sizes:
            checked_version(design, versions[number])
    drawn = np.ones(len(arm), np.bool_)
    for side in design.chosen:
        shares = np.array([versions[number].shares[side] for number in numbers.tolist()])
        level = arm // design.grid.strides[side] % design.sizes[side]
        drawn &= shares[place, level] > 0 if len(arm) else True
    if not drawn.all():
        wrong = int(drawn.argmin())
        expected = f"one that version {version[wrong]} draws, with a share above 0"
        raise InputError("arm", int(arm[wrong]), expected)
    return _merged(rows, design.grid.arms)


def runs(counts: Counts) -> Iterator[tuple[int, int, Counts]]:
    """Yield the checked counts of each pair of version and `under`."""
    version, under = counts.version, counts.arrived
    ends = np.nonzero((np.diff(version) != 0) | (np.diff(under) != 0))[0] + 1
    for begin, end in zip([0, *ends], [*ends, len(version)], strict=True):
        if begin < end:
            yield int(version[begin]), int(under[begin]), counts.take(slice(begin, end))


def tally(places: Ints, weights: NDArray[Any], size: int) -> Floats:
    """Add up weights by place."""
    return np.bincount(places, weights, size).astype(np.float64, copy=False)


def log_average(logs: Floats) -> Floats:
    """Return the logs of averages over the first axis, from the logs of what is averaged."""
    top = logs.max(axis=0)
    return np.asarray(top + np.log(np.exp(logs - top).mean(axis=0)))


def _merged(rows: Counts, arms: int) -> Counts:
    """Merge rows with the same version, arm and reward."""
    if len(rows.arm) < 2:
        return rows
    rewards, which = np.array([rows.reward.min(), rows.reward.max()]), rows.reward != rows.reward[0]
    if rows.reward[0] != rewards[0]:
        which = ~which
    if (rewards[which.astype(np.int64)] != rows.reward).any():  # more than two values
        rewards, which = np.unique(rows.reward, return_inverse=True)
    under = rows.arrived
    width = int(under.max()) + 1
    numbers, pair = np.unique(rows.version * width + under, return_inverse=True)
    key = (pair * arms + rows.arm) * len(rewards) + which
    if len(numbers) * arms * len(rewards) <= 4 * len(key) + 2**16:
        pulls = tally(key, rows.pulls, 0)
        kept = np.nonzero(pulls)[0]
        pulls = pulls[kept]
    else:
        kept, where = np.unique(key, return_inverse=True)
        pulls = tally(where, rows.pulls, 0)
    rest, reward = np.divmod(kept, len(rewards))
    version, under = np.divmod(numbers[rest // arms], width)
    return Counts(version, rest % arms, rewards[reward], pulls, under)


def _check_rewards(design: Design, reward: NDArray[Any]) -> None:
    outside = ~((reward >= design.low) & (reward <= design.high))  # catches NaN too
    _refuse("reward", reward, outside, f"a number in [{design.low:g}, {design.high:g}]")


def _column(name: str, values: ArrayLike) -> NDArray[Any]:
    found = np.asarray(values)
    if found.ndim != 1 or found.dtype.kind not in "iuf":
        raise InputTypeError(name, values, "a column of numbers")
    return found


def _whole(name: str, values: ArrayLike) -> Ints:
    found = _column(name, values)
    _refuse(name, found, found != np.floor(found), "a whole number")  # catches NaN too
    return found.astype(np.int64, copy=False)


def _refuse(name: str, values: NDArray[Any], bad: Bools, expected: str) -> None:
    if bad.any():
        raise InputError(name, values[int(bad.argmax())].item(), expected)
