"""Get the ratings: from a folder, by download, or generated."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from rank1.paper.movielens.download import default_directory, download
from rank1.paper.movielens.read import Ratings, read
from rank1.paper.movielens.stand_in import stand_in

__all__ = ["obtain"]


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
