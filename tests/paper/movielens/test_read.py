"""Reading the files: what comes out, and where an error says it is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import rank1.paper.movielens
from rank1.errors import FileError
from rank1.paper.movielens import DataError, read
from rank1.paper.movielens.read import AGES, OCCUPATIONS


def test_reads_what_is_written(folder: Path) -> None:
    data = read(folder)
    assert data.genders == ["F", "M", "M", "F", "M"]
    assert data.ages.tolist() == [1, 56, 25, 1, 25]
    assert data.occupations.tolist() == [10, 16, 15, 10, 15]
    assert data.titles[1] == "Misérables, Les (1995)"
    assert data.titles[2] == "Star Wars: Episode IV - A New Hope (1977)"
    # ids 1, 73, 260 become places 0, 1, 2
    assert data.users.tolist() == [0, 0, 1, 2, 3, 3, 2]
    assert data.movies.tolist() == [2, 0, 1, 2, 2, 0, 1]
    assert data.stars.tolist() == [4, 5, 2, 5, 1, 4, 3]
    assert not data.stand_in
    assert repr(data) == "<MovieLens: 5 users, 4 movies, 7 ratings>"


def test_finds_the_folder_of_the_archive(folder: Path) -> None:
    inner = folder / "outer" / "ml-1m"
    inner.mkdir(parents=True)
    for file in folder.glob("*.dat"):
        file.rename(inner / file.name)
    assert len(read(folder / "outer").stars) == 7
    assert len(read(str(inner)).stars) == 7


def test_line_ends_of_either_kind(folder: Path) -> None:
    expected = read(folder)
    for file in folder.glob("*.dat"):
        file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    assert read(folder).titles == expected.titles
    assert read(folder).stars.tolist() == expected.stars.tolist()


def test_a_character_that_python_takes_for_a_line_end(folder: Path) -> None:
    """0x85 is "next line" in latin-1, and an ellipsis in the encoding of Windows."""
    file = folder / "movies.dat"
    file.write_bytes(file.read_bytes().replace(b"Toy Story", b"Toy\x85Story"))
    assert read(folder).titles[0] == "Toy\x85Story (1995)"


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8", "utf-8-sig"])
def test_titles_in_latin_1_and_in_utf_8(folder: Path, encoding: str) -> None:
    """The original is Latin-1; who opens and saves it again often makes UTF-8 of it."""
    names = "Misérables, Les", "Rosenkavalier: Ärger über Öl", "Città dell'uomo ½"
    for file in folder.glob("*.dat"):
        text = file.read_text("latin-1")
        for old, new in zip(("Misérables, Les", "Toy Story", "Contender, The"), names, strict=True):
            text = text.replace(old, new)
        file.write_text(text, encoding, newline="\n")
    titles = read(folder).titles
    assert [titles[k][:-7] for k in (1, 0, 3)] == list(names)
    assert titles[0] == "Rosenkavalier: Ärger über Öl (1995)"


def test_one_byte_that_is_not_utf_8_makes_it_latin_1(folder: Path) -> None:
    file = folder / "movies.dat"
    text = file.read_bytes().decode("latin-1").replace("Toy Story", "Voilà")
    file.write_bytes(text.encode("utf-8").replace("é".encode(), b"\xe9"))
    assert read(folder).titles[:2] == ["VoilÃ\xa0 (1995)", "Misérables, Les (1995)"]


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("users.dat", "2::M::56", "2:M::56", r"users.dat:2: must be 5 fields .*'2:M::56"),
        ("users.dat", "2::M", "2::m", r"users.dat:2: gender must be one of F, M; got 'm'"),
        ("users.dat", "3::M::25", "3::M::26", r"users.dat:3: age must be one of 1, 18.*'26'"),
        ("users.dat", "::16::", "::21::", r"users.dat:2: occupation must be one of 0, .*'21'"),
        ("users.dat", "4::F", "3::F", r"users.dat:4: user 3 occurs twice"),
        ("users.dat", "4::F", "x::F", r"users.dat:4: the user id must be a whole number, got 'x'"),
        ("users.dat", "3::M::25::15::55117\n", "", r"ratings.dat:4: there is no user '3'.* trunc"),
        ("movies.dat", "73::Mis", "73:Mis", r"movies.dat:2: must be 3 fields"),
        ("movies.dat", "260::Star", "::Star", r"movies.dat:3: the movie id .* got ''"),
        ("movies.dat", "260::Star", "73::Star", r"movies.dat:3: movie 73 occurs twice"),
        ("movies.dat", "260::Star", "261::Star", r"ratings.dat:1: there is no movie '260'.* trun"),
        ("ratings.dat", "73::2::", "73::6::", r"ratings.dat:3: stars must be .* 5; got '6'"),
        ("ratings.dat", "73::2::", "73::2.5::", r"ratings.dat:3: stars must be .* got '2.5'"),
        ("ratings.dat", "978297837", "later", r"ratings.dat:4: the time .* got 'later'"),
        (
            "ratings.dat",
            "1::1::5",
            "1::260::5",
            r"ratings.dat:2: this user has already rated the same",
        ),
        ("ratings.dat", "2::73::2::978299026", "", r"ratings.dat:3: must be 4 fields"),
        ("ratings.dat", "2::73::2::", "2::73::2::9::", r"ratings.dat:3: must be 4 fields"),
    ],
)
def test_errors_give_file_and_line(
    folder: Path, file: str, old: str, new: str, message: str
) -> None:
    text = (folder / file).read_text("latin-1")
    assert old in text
    (folder / file).write_text(text.replace(old, new, 1), "latin-1", newline="\n")
    with pytest.raises(DataError, match=message):
        read(folder)


@pytest.mark.parametrize("name", ["users.dat", "movies.dat", "ratings.dat"])
def test_a_file_cut_anywhere_within_a_line(folder: Path, name: str) -> None:
    file = folder / name
    whole = file.read_bytes()
    for size in range(len(whole)):
        file.write_bytes(whole[:size])
        if size and whole[size - 1 : size] == b"\n":
            continue  # cut between lines, it looks like a shorter file
        line = max(1, whole[:size].count(b"\n") + 1)
        with pytest.raises(DataError, match=f"{name}:{line}: .*(truncated|empty)"):
            read(folder)


def test_the_real_ratings_cut_between_lines(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where users and movies are those of MovieLens 1M, the number of ratings is known."""
    # The module; its package has the function under the same name.
    monkeypatch.setattr(sys.modules["rank1.paper.movielens.read"], "WHOLE", (5, 4, 7))
    read(folder)
    file = folder / "ratings.dat"
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:-2]))
    with pytest.raises(DataError, match=r"ratings.dat:5: MovieLens 1M has 7 ratings, .* after 5"):
        read(folder)


@pytest.mark.parametrize("name", ["users.dat", "movies.dat", "ratings.dat"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(FileError, match=f"no {name} in .*users.dat, movies.dat, ratings"):
        read(folder)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"no users.dat and no movies.dat .*nowhere"):
        read(tmp_path / "nowhere")


def test_names_of_the_package() -> None:
    for name in rank1.paper.movielens.__all__:
        assert hasattr(rank1.paper.movielens, name)


def test_codes_mean_what_the_readme_of_the_data_says() -> None:
    assert AGES == {
        1: "under 18", 18: "18-24", 25: "25-34", 35: "35-44", 45: "45-49", 50: "50-55", 56: "56+"
    }  # fmt: skip
    assert dict(enumerate(OCCUPATIONS)) == {
        0: "other or not specified", 1: "academic/educator", 2: "artist", 3: "clerical/admin",
        4: "college/grad student", 5: "customer service", 6: "doctor/health care",
        7: "executive/managerial", 8: "farmer", 9: "homemaker", 10: "K-12 student", 11: "lawyer",
        12: "programmer", 13: "retired", 14: "sales/marketing", 15: "scientist",
        16: "self-employed", 17: "technician/engineer", 18: "tradesman/craftsman",
        19: "unemployed", 20: "writer",
    }  # fmt: skip
