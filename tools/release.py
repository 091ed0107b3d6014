"""Final check before an upload: dist/ and js/ have this version, from a clean tree, with notes.

make release          tests first, then this; it uploads nothing
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def problems(root: Path = ROOT) -> list[str]:
    """Return the problems that prevent a release."""
    text = (root / "src/rank1/__init__.py").read_text()
    version = re.findall(r'^__version__ = "(.*)"$', text, re.M)[0]
    found = []
    if not re.search(rf"^## {re.escape(version)}( |$)", (root / "CHANGELOG.md").read_text(), re.M):
        found.append(f'CHANGELOG.md has no heading "## {version}": rename "Unreleased"')
    if f"version: {version}\n" not in (root / "CITATION.cff").read_text():
        found.append(f"CITATION.cff doesn't have version {version}")
    if f'"version": "{version}"' not in (root / "js/package.json").read_text():
        found.append(f"js/package.json doesn't have version {version}")
    names = {path.name for path in (root / "dist").glob("[!.]*")}
    wanted = {f"rank1-{version}.tar.gz", f"rank1-{version}-py3-none-any.whl"}
    if names != wanted:
        found.append(f"dist/ has {sorted(names)}, instead of {sorted(wanted)}")
    packed = {path.name for path in (root / "js").glob("*.tgz")}
    if packed != {f"rank1-{version}.tgz"}:
        found.append(f"js/ has {sorted(packed)}, instead of only rank1-{version}.tgz")
    try:
        status = subprocess.run(
            ["git", "status", "--porcelain"], cwd=root, capture_output=True, text=True
        )
    except FileNotFoundError:
        return [*found, "git isn't installed, so nothing shows whether the tree is clean"]
    if status.returncode or status.stdout:
        told = (status.stderr or status.stdout).rstrip()
        found.append(f"the working tree isn't clean:\n{told}")
    return found


def main() -> None:
    """Print what is missing, or what to do next."""
    if found := problems():
        sys.exit("\n".join(["Not yet:", *(f"- {each}" for each in found)]))
    print("Ready. Tag it, and upload dist/ with: .venv/bin/twine upload dist/*")


if __name__ == "__main__":
    main()
