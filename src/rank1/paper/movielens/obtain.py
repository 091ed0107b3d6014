"""The data that there are: a folder's, downloaded, or generated."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from rank1.paper.movielens.download import download
from rank1.paper.movielens.read import Ratings, read
from rank1.paper.movielens.stand_in import stand_in
from rank1.paths import cache_directory

__all__ = ["obtain"]


def obtain(directory: str | Path | None = None, *, accept_licence: bool = False) -> Ratings:
    """MovieLens 1M where it can be had, and otherwise the stand-in.

    Parameters
    ----------
    directory
        The folder of the data, see `read`. Whatever is wrong with it is an error.
    accept_licence
        Without a folder: whether the terms in `LICENCE` were read and accepted. Then the data are
        downloaded into the user's cache, once. Where they can't be reached, a note on standard
        error says so and the stand-in takes their place.

    Examples
    --------
    >>> obtain()
    <stand-in data: 1500 users, 400 movies, 110000 ratings>
    """
    if directory is not None:
        return read(directory)
    if accept_licence:
        try:
            return read(download(cache_directory() / "movielens", accept_licence=True))
        except ConnectionError as error:
            print(f"Going on with stand-in data: {error}.", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        return read(stand_in(folder))
