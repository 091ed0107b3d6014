"""What the files in deploy/ take from the rest of the repository."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import rank1

ROOT = Path(__file__).parent.parent


def test_the_image_has_all_that_its_wheel_needs(tmp_path: Path) -> None:
    """Build the wheel from what the Dockerfile copies, and nothing else."""
    text = (ROOT / "deploy/Dockerfile").read_text()
    copied = re.findall(r"^COPY (?!--)(.+) /source/\S*$", text, re.MULTILINE)
    names = [name for line in copied for name in line.split()]
    assert "src" in names
    allowed = (ROOT / ".dockerignore").read_text().split()
    for name in names:
        assert f"!{name}" in allowed
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name)
        else:
            shutil.copy(ROOT / name, tmp_path)
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", "wheels"],
        cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    (wheel,) = (tmp_path / "wheels").glob("rank1-*.whl")
    assert "rank1/server/pages/static/levels.js" in zipfile.ZipFile(wheel).namelist()


def test_alerts_name_metrics_that_exist() -> None:
    """An alert on a metric that was renamed would stay silent."""
    from rank1.server.metrics import Metrics

    known = Metrics().text({"tokens_unreadable": 0})
    named = set(re.findall(r"rank1_\w+", (ROOT / "deploy/alerts.yml").read_text()))
    assert named
    for name in named:
        assert f"# TYPE {name.removesuffix('_bucket')} " in known


def test_backups_are_checked_private_and_removed_when_old(tmp_path: Path) -> None:
    storage, folder = tmp_path / "a.db", tmp_path / "copies"
    rank1.Study.create("a", rows=["x", "y"], columns=["z"], storage=storage).close()
    folder.mkdir()
    old, other = folder / "rank1-20200101T000000Z.db", folder / "other.db"
    for each in (old, other):
        each.touch()
        os.utime(each, (0, 0))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    command = ["sh", str(ROOT / "deploy/backup.sh"), str(storage), str(folder)]
    subprocess.run(command, env={**os.environ, "PATH": path}, check=True, capture_output=True)
    (copy,) = set(folder.iterdir()) - {other}
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    with rank1.Study.open("a", copy) as study:
        assert study.verify().ok
    storage.write_bytes(b"damaged")
    assert subprocess.run(
        command, env={**os.environ, "PATH": path}, capture_output=True, check=False
    ).returncode
    assert set(folder.iterdir()) == {copy, other}
