"""Environments for rivals whose dependencies conflict with ours."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from rank1.paths import cache_directory


def environment(rival: str, *installs: tuple[str, ...]) -> Path:
    """Return the Python of a rival's environment in the cache directory, made on first use.

    Each of `installs` has the arguments of one call of pip.
    """
    folder = cache_directory() / f"{rival}-{sys.version_info.major}.{sys.version_info.minor}"
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    complete = folder / "complete"
    if not complete.exists():
        print(f"{rival}: making an environment for it (once, a minute or two)", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        commands = [[sys.executable, "-m", "venv", str(folder)]]
        commands += [[str(python), "-m", "pip", "install", "--quiet", *args] for args in installs]
        for command in commands:
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=900)
        complete.touch()
    return python


def why_skipped(rival: str, error: Exception) -> str:
    """Say why in one line, from the last line of the error."""
    lines = (getattr(error, "stderr", None) or str(error)).strip().splitlines() or [repr(error)]
    return f"{rival}: skipped, it can't be installed or run here ({lines[-1]})"
