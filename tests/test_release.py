"""The final checks of `make release`."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tools.release import problems


@pytest.mark.skipif(shutil.which("git") is None, reason="git isn't installed")
def test_what_is_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "src/rank1").mkdir(parents=True)
    (tmp_path / "dist").mkdir()
    (tmp_path / "src/rank1/__init__.py").write_text('"""Doc."""\n__version__ = "1.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n")
    (tmp_path / "CITATION.cff").write_text("version: 1.1.0\n")
    (tmp_path / "js").mkdir()
    (tmp_path / "js/package.json").write_text('{"version": "1.1.0"}')
    for name in ("rank1-1.2.0.tar.gz", "rank1-1.2.0-py3-none-any.whl"):
        (tmp_path / "dist" / name).touch()
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    (tmp_path / ".git/info").mkdir(exist_ok=True)
    (tmp_path / ".git/info/exclude").write_text("*\n")
    named = [each.split()[0] for each in problems(tmp_path)]
    assert named == ["CHANGELOG.md", "CITATION.cff", "js/package.json", "js/"]

    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.0 (a day)\n")
    (tmp_path / "CITATION.cff").write_text("version: 1.2.0\n")
    (tmp_path / "js/package.json").write_text('{"version": "1.2.0"}')
    (tmp_path / "js/rank1-1.2.0.tgz").touch()
    assert problems(tmp_path) == []

    (tmp_path / "dist/rank1-1.1.0.tar.gz").touch()
    (tmp_path / ".git/info/exclude").write_text("")
    assert [each.split()[0] for each in problems(tmp_path)] == ["dist/", "the"]
