"""Print the lowest versions that pyproject.toml allows, as constraints: `make test-oldest`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def lowest(project: dict[str, Any]) -> Iterator[str]:
    """Yield each requirement with its lower bound as the only version."""
    needed = list(project["project"]["dependencies"])
    for group in project["project"]["optional-dependencies"].values():
        needed += group
    needed += project["dependency-groups"]["dev"]
    for requirement in sorted(set(needed)):
        bound = re.match(r"([\w.-]+)(?:\[.*\])?>=([\w.]+)", requirement)
        if bound is None:
            raise SystemExit(f"pyproject.toml: {requirement!r} has no lower bound")
        yield "==".join(bound.groups())


if __name__ == "__main__":
    path = Path(__file__).parents[1] / "pyproject.toml"
    print("\n".join(lowest(tomllib.loads(path.read_text()))))
