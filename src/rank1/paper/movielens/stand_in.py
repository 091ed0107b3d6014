"""Generated data that look like MovieLens, for when the real data aren't available."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rank1 import checks
from rank1.atomic import whole_file
from rank1.errors import InputError
from rank1.paper.movielens.read import AGES, FILES, OCCUPATIONS, STAND_IN, Integers

__all__ = ["stand_in"]

USERS, MOVIES, RATINGS, GROUPS = 1500, 400, 110_000, 245
#: As in MovieLens, no user rates fewer movies; none rates more than half of them either.
FEWEST, MOST = 20, MOVIES // 2
#: Each taste has two ends, and a movie belongs to the one where it is most extreme.
GENRES = (("Action", "Romance"), ("Comedy", "Thriller"), ("Children's", "Horror"))

Floats = NDArray[np.float64]


def stand_in(directory: str | Path, seed: int = 1) -> Path:
    """Write `users.dat`, `movies.dat` and `ratings.dat` with generated ratings.

    1,500 users in 245 groups of gender, age and occupation give 110,000 ratings to 400 movies.
    Users and movies have biases; in addition, three weaker tastes that depend on the group decide
    what is liked and, even more, what is watched. So the grid of groups and movies nearly has rank
    one, and missing ratings follow the tastes, as in MovieLens.

    Parameters
    ----------
    directory
        Where to write; created if necessary. Real data there are never overwritten.
    seed
        Different seeds give different ratings of the same kind.

    Returns
    -------
    Path
        The directory, for `read`.

    Examples
    --------
    >>> import tempfile
    >>> from rank1.paper.movielens import stand_in
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lines = (stand_in(folder) / "movies.dat").read_text("latin-1").splitlines()
    >>> lines[0]
    '1::Stand-in Action 1 (1932)::Action'
    """
    seed = checks.integer("seed", seed, 0)
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    _keep_real_data(folder)
    rng = np.random.default_rng(seed)

    group, gender, age, occupation = _users(rng)
    traits = (
        rng.normal(size=(2, 3))[gender]
        + rng.normal(size=(7, 3))[age]
        + rng.normal(size=(21, 3))[occupation]
    )
    traits = (traits - traits.mean(axis=0)) / traits.std(axis=0)
    tastes = rng.normal(size=(MOVIES, 3))
    liking = (traits @ tastes.T / np.sqrt(3))[group]

    watched = _watched(2.0 * rng.normal(size=MOVIES) + 1.5 * liking, rng)
    stars = 3.55 + 0.6 * rng.normal(size=(USERS, 1)) + 0.7 * rng.normal(size=MOVIES) + 0.3 * liking
    stars += 0.9 * rng.normal(size=stars.shape)
    stars = np.clip(np.rint(stars), 1, 5).astype(int)

    # MovieLens has gaps in its movie ids, so this has, too.
    ids = np.cumsum(1 + (rng.random(MOVIES) < 0.06))
    years = rng.integers(1930, 2001, size=MOVIES)
    furthest = np.abs(tastes).argmax(axis=1)
    genres = [GENRES[k][int(tastes[j, k] > 0)] for j, k in enumerate(furthest)]
    codes = list(AGES)
    users = [
        f"{u + 1}::{'FM'[gender[g]]}::{codes[age[g]]}::{occupation[g]}::00000"
        for u, g in enumerate(group)
    ]
    movies = [
        f"{ids[j]}::{STAND_IN}{genre} {j + 1} ({years[j]})::{genre}"
        for j, genre in enumerate(genres)
    ]
    raters, rated = np.nonzero(watched)
    rows = zip(raters.tolist(), ids[rated].tolist(), stars[watched].tolist(), strict=True)
    ratings = [f"{u + 1}::{i}::{star}::{1_000_000_000 + k}" for k, (u, i, star) in enumerate(rows)]
    _write(folder / "movies.dat", movies)  # first: it marks the folder as a stand-in's
    _write(folder / "users.dat", users)
    _write(folder / "ratings.dat", ratings)
    return folder


def _users(rng: np.random.Generator) -> tuple[Integers, Integers, Integers, Integers]:
    """Each user's group; each group's gender, age and occupation. Sizes vary widely."""
    kinds = (2, len(AGES), len(OCCUPATIONS))
    chosen = np.sort(rng.choice(int(np.prod(kinds)), GROUPS, replace=False))
    gender, age, occupation = np.unravel_index(chosen, kinds)
    size = np.exp(1.5 * rng.normal(size=GROUPS))
    others = rng.choice(GROUPS, USERS - GROUPS, p=size / size.sum())
    group = rng.permutation(np.concatenate([np.arange(GROUPS), others]))
    return group, gender, age, occupation


def _watched(appeal: Floats, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which user watches what: busy users watch more, and prefer what appeals to them."""
    busy = np.exp(1.3 * rng.normal(size=USERS))
    low, high = 0.0, 1e6
    for _ in range(100):  # find the factor that gives the right total
        factor = (low + high) / 2
        counts = np.clip(np.rint(factor * busy), FEWEST, MOST).astype(int)
        low, high = (factor, high) if counts.sum() < RATINGS else (low, factor)
    spare = np.flatnonzero((counts > FEWEST) & (counts < MOST))
    off = int(RATINGS - counts.sum())
    counts[spare[: abs(off)]] += np.sign(off)
    # The Gumbel trick: the largest of appeal plus noise are a draw without replacement.
    order = np.argsort(-(appeal + rng.gumbel(size=appeal.shape)), axis=1)
    watched = np.zeros(appeal.shape, dtype=bool)
    np.put_along_axis(watched, order, np.arange(MOVIES) < counts[:, None], axis=1)
    return watched


def _keep_real_data(folder: Path) -> None:
    movies = folder / "movies.dat"
    if movies.exists():
        real = STAND_IN not in movies.read_text("latin-1")
    else:
        real = any((folder / name).exists() for name in FILES)
    if real:
        raise InputError(
            "directory", str(folder), "without data other than a stand-in", "choose another one"
        )


def _write(path: Path, lines: list[str]) -> None:
    with whole_file(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="latin-1", newline="\n")
