from __future__ import annotations

from pathlib import Path

import pytest

from rank1.paper.movielens import Ratings, read, stand_in

#: Holes in the movie ids, a title in latin-1, one with a colon, a movie and a user without ratings.
USERS = """\
1::F::1::10::48067
2::M::56::16::70072
3::M::25::15::55117
4::F::1::10::02460
7::M::25::15::55117
"""
MOVIES = """\
1::Toy Story (1995)::Animation|Children's|Comedy
73::Misérables, Les (1995)::Drama|Musical
260::Star Wars: Episode IV - A New Hope (1977)::Action|Adventure
3952::Contender, The (2000)::Drama|Thriller
"""
RATINGS = """\
1::260::4::978300760
1::1::5::978302268
2::73::2::978299026
3::260::5::978297837
4::260::1::978294008
4::1::4::978294230
3::73::3::978294282
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a few lines of each file."""
    for name, text in (("users", USERS), ("movies", MOVIES), ("ratings", RATINGS)):
        (tmp_path / f"{name}.dat").write_text(text, encoding="latin-1", newline="\n")
    return tmp_path


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Ratings:
    """The stand-in of the default seed."""
    return read(stand_in(tmp_path_factory.mktemp("stand_in")))
