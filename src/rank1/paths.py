"""Where rank1 keeps things between processes. Nothing heavy is loaded to learn a folder's name."""

from __future__ import annotations

import os
from pathlib import Path

from rank1.errors import FileError

__all__ = ["cache_directory"]


def cache_directory() -> Path:
    """Where compiled code and downloads are kept: RANK1_CACHE_DIR, or the user's cache directory.

    Whoever may write there may put code into the processes that read it.
    """
    if chosen := os.environ.get("RANK1_CACHE_DIR"):
        return Path(chosen)
    import platformdirs

    folder = platformdirs.user_cache_path("rank1", appauthor=False)
    if not folder.is_absolute():  # "~" stays as it is for a user without a home
        raise FileError(
            "the user has no home directory, and so no cache directory",
            "name one in the environment variable RANK1_CACHE_DIR",
        )
    return folder
