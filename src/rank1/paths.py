"""Where rank1 stores files between processes. Imports nothing heavy."""

from __future__ import annotations

import os
from pathlib import Path

from rank1.errors import FileError

__all__ = ["cache_directory"]


def cache_directory() -> Path:
    """The folder for compiled code and downloads: RANK1_CACHE_DIR, or the user's cache directory.

    Anybody with write access to it can run code in the processes that read it.
    """
    if chosen := os.environ.get("RANK1_CACHE_DIR"):
        return Path(chosen)
    import platformdirs

    folder = platformdirs.user_cache_path("rank1", appauthor=False)
    if not folder.is_absolute():  # "~" is not expanded for a user without a home
        raise FileError(
            "the user has no home directory, and so no cache directory",
            "set the environment variable RANK1_CACHE_DIR to a folder",
        )
    return folder
