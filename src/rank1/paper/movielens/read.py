"""Read the files of MovieLens 1M, line by line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rank1.errors import FileError, Rank1Error

__all__ = ["AGES", "FILES", "OCCUPATIONS", "STAND_IN", "DataError", "Ratings", "read"]

FILES = ("users.dat", "movies.dat", "ratings.dat")
GENDERS = {"F": "Female", "M": "Male"}
#: The code of an age range is its first year, except for the first.
AGES = {1: "under 18", 18: "18-24", 25: "25-34", 35: "35-44", 45: "45-49", 50: "50-55", 56: "56+"}
OCCUPATIONS = (
    "other or not specified",
    "academic/educator",
    "artist",
    "clerical/admin",
    "college/grad student",
    "customer service",
    "doctor/health care",
    "executive/managerial",
    "farmer",
    "homemaker",
    "K-12 student",
    "lawyer",
    "programmer",
    "retired",
    "sales/marketing",
    "scientist",
    "self-employed",
    "technician/engineer",
    "tradesman/craftsman",
    "unemployed",
    "writer",
)
#: The codes as written in the files.
AGE_CODES = {str(age): age for age in AGES}
OCCUPATION_CODES = {str(code): code for code in range(len(OCCUPATIONS))}
STAR_CODES = {str(stars): stars for stars in range(1, 6)}
#: Every title of the stand-in starts like this, which survives copying the files.
STAND_IN = "Stand-in "
#: The numbers of users, movies and ratings of MovieLens 1M.
WHOLE = (6040, 3883, 1_000_209)

Integers = NDArray[np.int64]


class DataError(Rank1Error, ValueError):
    """The data are invalid; the error's context is the file and the line."""


@dataclass(frozen=True, eq=False)
class Ratings:
    """Who rated which movie with how many stars."""

    #: A user's gender ("F" or "M"), age range and occupation, coded as in the files.
    genders: list[str]
    ages: Integers
    occupations: Integers
    #: A movie's title with its year.
    titles: list[str]
    #: For each rating, the index of its user and of its movie in the lists above, and the stars.
    users: Integers
    movies: Integers
    stars: Integers
    #: Whether these are generated data that only look like MovieLens.
    stand_in: bool

    def __repr__(self) -> str:
        name = "stand-in data" if self.stand_in else "MovieLens"
        sizes = f"{len(self.genders)} users, {len(self.titles)} movies"
        return f"<{name}: {sizes}, {len(self.stars)} ratings>"


def read(directory: str | Path) -> Ratings:
    """Read MovieLens 1M, or its stand-in, from the folder of its files.

    Parameters
    ----------
    directory
        Contains `users.dat`, `movies.dat` and `ratings.dat`, itself or in a subfolder `ml-1m`, in
        Latin-1 as GroupLens wrote them, or converted to UTF-8.

    Raises
    ------
    FileError
        A file is missing.
    DataError
        A line is invalid or a file is truncated; the message begins with file and line number.

    Examples
    --------
    >>> import tempfile
    >>> from rank1.paper.movielens import read, stand_in
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data = read(stand_in(folder))
    >>> data
    <stand-in data: 1500 users, 400 movies, 110000 ratings>
    >>> data.stand_in, data.titles[0]
    (True, 'Stand-in Action 1 (1932)')

    References
    ----------
    Harper, Konstan: The MovieLens datasets: history and context. ACM TiiS 5, 2015.
    https://doi.org/10.1145/2827872

    https://files.grouplens.org/datasets/movielens/ml-1m-README.txt
    """
    users_file, movies_file, ratings_file = files_of(Path(directory))

    # Ids are looked up as text: reading a million ratings converts no number.
    user_at: dict[str, int] = {}
    genders: list[str] = []
    ages: list[int] = []
    occupations: list[int] = []
    for number, (user, gender, age, occupation, _) in _lines(users_file, 5):
        _add(user_at, "user", user, users_file, number)
        for name, value, codes in (
            ("gender", gender, GENDERS),
            ("age", age, AGE_CODES),
            ("occupation", occupation, OCCUPATION_CODES),
        ):
            if value not in codes:
                wanted = f"{name} must be one of {', '.join(codes)}"
                raise DataError(f"{wanted}; got {value!r}").within(f"{users_file}:{number}")
        genders.append(gender)
        ages.append(AGE_CODES[age])
        occupations.append(OCCUPATION_CODES[occupation])

    movie_at: dict[str, int] = {}
    titles: list[str] = []
    for number, (movie, title, _) in _lines(movies_file, 3):
        _add(movie_at, "movie", movie, movies_file, number)
        titles.append(title)

    rated: list[tuple[int, int, int]] = []
    for number, (user, movie, stars, time) in _lines(ratings_file, 4):
        try:
            rated.append((user_at[user], movie_at[movie], STAR_CODES[stars]))
        except KeyError:
            if user not in user_at:
                problem = f"there is no user {user!r} in users.dat; is that file truncated?"
            elif movie not in movie_at:
                problem = f"there is no movie {movie!r} in movies.dat; is that file truncated?"
            else:
                problem = f"stars must be one of {', '.join(STAR_CODES)}; got {stars!r}"
            raise DataError(problem).within(f"{ratings_file}:{number}") from None
        if not time.isdecimal():
            problem = f"the time must be a whole number, got {time!r}"
            raise DataError(problem).within(f"{ratings_file}:{number}")

    if (len(genders), len(titles)) == WHOLE[:2] and len(rated) != WHOLE[2]:
        problem = f"MovieLens 1M has {WHOLE[2]} ratings, this file ends after {len(rated)}"
        raise DataError(problem, "get the data again").within(f"{ratings_file}:{len(rated)}")
    table = np.array(rated, dtype=np.int64).T
    pairs = table[0] * len(titles) + table[1]
    _, first = np.unique(pairs, return_index=True)
    if len(first) < len(pairs):
        again = int(np.setdiff1d(np.arange(len(pairs)), first)[0])
        problem = "this user has already rated the same movie in an earlier line"
        raise DataError(problem).within(f"{ratings_file}:{again + 1}")
    return Ratings(
        genders=genders,
        ages=np.array(ages, dtype=np.int64),
        occupations=np.array(occupations, dtype=np.int64),
        titles=titles,
        users=table[0],
        movies=table[1],
        stars=table[2],
        stand_in=any(title.startswith(STAND_IN) for title in titles),
    )


def files_of(directory: Path) -> list[Path]:
    """The three files, in the folder or in its subfolder `ml-1m`."""
    for folder in (directory, directory / "ml-1m"):
        if any((folder / name).is_file() for name in FILES):
            break
    else:
        folder = directory
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        raise FileError(
            f"no {' and no '.join(missing)} in {str(folder)!r}",
            f"the folder must hold the MovieLens 1M files {', '.join(FILES)}",
        )
    return [folder / name for name in FILES]


def _lines(path: Path, fields: int) -> Iterator[tuple[int, list[str]]]:
    """Each line's number and fields."""
    number = 0
    # Only a newline ends a line; Python would treat some Latin-1 characters as line ends, too.
    with path.open(encoding=_encoding(path), newline="\n") as file:
        for number, line in enumerate(file, start=1):
            parts = line.rstrip("\r\n").split("::")
            if len(parts) != fields or not line.endswith("\n"):
                problem = f"must be {fields} fields separated by '::' and a line end"
                error = DataError(f"{problem}; got {line[:80]!r}", "is the file truncated?")
                raise error.within(f"{path}:{number}")
            yield number, parts
    if number == 0:
        raise DataError("the file is empty", "get the data again").within(f"{path}:1")


def _encoding(path: Path) -> str:
    """UTF-8 if the whole file is valid UTF-8, which Latin-1 with accents never is by chance."""
    content = path.read_bytes()
    if content.isascii():
        return "ascii"
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8-sig"  # some programs write a byte-order mark


def _add(known: dict[str, int], name: str, key: str, path: Path, number: int) -> None:
    if not key.isdecimal():
        problem = f"the {name} id must be a whole number, got {key!r}"
        raise DataError(problem).within(f"{path}:{number}")
    if key in known:
        raise DataError(f"{name} {key} occurs twice").within(f"{path}:{number}")
    known[key] = len(known)
