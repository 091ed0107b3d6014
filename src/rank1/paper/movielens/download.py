"""Get the ratings: from a folder, by download once their terms are accepted, or generated."""

from __future__ import annotations

import importlib
import os
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from rank1.errors import InputError, MissingPackageError, extra
from rank1.paper.movielens.read import FILES, DataError, Ratings, read
from rank1.paper.movielens.stand_in import stand_in
from rank1.paths import cache_directory

__all__ = ["LICENCE", "download", "downloaded", "obtain"]

URL = "https://files.grouplens.org/datasets/movielens/ml-1m.zip"
SHA256 = "a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20"

#: A summary of the terms, to show before asking; the README that comes with the data is binding.
LICENCE = """\
MovieLens 1M is the work of GroupLens Research, University of Minnesota. In short, its terms are:
- It may be used for research. Any commercial or revenue-bearing use needs their permission.
- It may not be redistributed without their permission.
- Publications that use it must acknowledge it, and may not suggest that they endorse the results.
- It comes without any guarantee.
In full: https://files.grouplens.org/datasets/movielens/ml-1m-README.txt"""


def obtain(directory: str | Path | None = None, *, accept_licence: bool = False) -> Ratings:
    """MovieLens 1M if it is available, otherwise the stand-in.

    Parameters
    ----------
    directory
        The folder of the data, see `read`. Anything wrong with it is an error.
    accept_licence
        Without a folder: whether the terms in `LICENCE` were read and accepted. Then the data are
        downloaded into the user's cache, once. If that fails, a note on standard error says so and
        the stand-in is used.

    Examples
    --------
    >>> obtain()
    <stand-in data: 1500 users, 400 movies, 110000 ratings>
    """
    if directory is not None:
        return read(directory)
    if accept_licence:
        try:
            return read(download(default_directory(), accept_licence=True))
        except ConnectionError as error:
            print(f"Using stand-in data: {error}.", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        return read(stand_in(folder))


def downloaded(directory: str | Path | None = None) -> Path | None:
    """The folder of files that `download` has fetched before; None if there is none."""
    folder = Path(directory or default_directory()) / "ml-1m"
    return folder if all((folder / name).is_file() for name in FILES) else None


def default_directory() -> Path:
    """The default folder for the data."""
    return cache_directory() / "movielens"


def download(
    directory: str | Path, *, accept_licence: bool = False, url: str = URL, sha256: str = SHA256
) -> Path:
    """Fetch MovieLens 1M into a directory, unless it is already there.

    Needs pooch, from the extra `movielens`. The data are never part of this package.

    Parameters
    ----------
    directory
        The files go to its subfolder `ml-1m`; both are created if necessary.
    accept_licence
        Must be True: the caller has read the terms in `LICENCE` and accepts them.
    url, sha256
        The address and checksum of the archive, for a mirror.

    Returns
    -------
    Path
        The folder of the files, for `read`.

    Raises
    ------
    InputError
        The terms weren't accepted.
    ConnectionError
        The archive couldn't be fetched.
    DataError
        The archive has another checksum, or doesn't contain the three files.

    Examples
    --------
    >>> from rank1.paper.movielens import download
    >>> download("data")
    Traceback (most recent call last):
    ...
    rank1.InputError: accept_licence must be True to download MovieLens 1M, got False: its terms...
    """
    if accept_licence is not True:
        expected = "True to download MovieLens 1M"
        raise InputError("accept_licence", accept_licence, expected, f"its terms are\n{LICENCE}")
    if (there := downloaded(directory)) is not None:
        return there
    target = Path(directory) / "ml-1m"
    pooch = _pooch()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".ml-1m.") as folder:
        try:
            archive = pooch.retrieve(
                url, known_hash=f"sha256:{sha256}", path=folder, fname="ml-1m.zip"
            )
        except ValueError as error:  # pooch raises it for a wrong checksum
            raise DataError(
                f"the archive must have the SHA-256 checksum {sha256}. It is truncated or isn't "
                f"the MovieLens 1M of 2003; nothing was kept. ({error})",
                "try again later",
            ).within(url) from None
        except OSError as error:  # requests' errors are OSErrors
            raise ConnectionError(
                f"{url} couldn't be downloaded: {error}. Download it another way, unpack it, "
                "and pass its folder as the data directory"
            ) from None
        unpacked = Path(folder) / "unpacked"
        unpacked.mkdir()
        _unpack(Path(archive), unpacked)
        target.mkdir(exist_ok=True)
        for file in unpacked.iterdir():
            os.replace(file, target / file.name)
    return target


def _pooch() -> Any:
    try:
        pooch = importlib.import_module("pooch")
    except ImportError:
        raise MissingPackageError("downloading MovieLens needs pooch", extra("movielens")) from None
    pooch.get_logger().setLevel("WARNING")
    return pooch


def _unpack(archive: Path, folder: Path) -> None:
    """Unpack the three files and the README with the terms, from any folder in the archive."""
    try:
        with zipfile.ZipFile(archive) as packed:
            inside = {Path(name).name: name for name in packed.namelist()}
            for name in (*FILES, "README"):
                if name in inside:
                    with packed.open(inside[name]) as source, (folder / name).open("wb") as file:
                        shutil.copyfileobj(source, file)
    except zipfile.BadZipFile as error:
        raise DataError(f"not a zip archive ({error})").within(archive.name) from None
    if missing := [name for name in FILES if name not in inside]:
        raise DataError(f"no {' and no '.join(missing)} in the archive").within(archive.name)
