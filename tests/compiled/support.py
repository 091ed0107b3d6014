"""Modules that are written, imported, edited and imported again."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType


class Sources:
    """Source files of somebody's own, in a folder that Python imports from."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def edit(self, name: str, old: str, new: str) -> None:
        text = (self.folder / name).read_text()
        assert old in text
        self.write({name: text.replace(old, new)})

    def load(self, name: str) -> ModuleType:
        """The module as it is written now, with all that it imports from the folder."""
        self.forget()
        importlib.invalidate_caches()
        return importlib.import_module(name)

    def forget(self) -> None:
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None)).startswith(str(self.folder)):
                del sys.modules[name]
