"""The JavaScript client: build it, measure it, and test it with Node against Python's vectors."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import rank1
from tests.server.support import served

JS = Path(__file__).parent.parent / "js"
MAX_SIZE = 4096

pytestmark = pytest.mark.skipif(
    not (shutil.which("node") and shutil.which("npm")),
    reason="the JavaScript client is left out: there is no Node.js with npm",
)


def run(*command: str) -> str:
    found = subprocess.run(
        command, cwd=JS, capture_output=True, text=True, timeout=600, check=False,
        env={**os.environ, "npm_config_update_notifier": "false"},
    )  # fmt: skip
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


def installed() -> None:
    """Install the tools that build and test the client."""
    if not (JS / "node_modules/.bin/openapi-typescript").exists():
        run("npm", "ci", "--no-audit", "--no-fund")


@pytest.fixture(scope="module")
def built() -> Path:
    """Build the client as `npm pack` does."""
    installed()
    run("npm", "run", "build")
    return JS / "dist"


def test_it_is_small_and_typed(built: Path) -> None:
    for name in ("index.js", "rank1.js"):
        assert (built / name).stat().st_size < MAX_SIZE
    served = Path(rank1.__file__).parent / "server/pages/static/rank1.js"
    assert served.read_bytes() == (built / "rank1.js").read_bytes()  # after a change, copy it
    assert "export declare function assign" in (built / "index.d.ts").read_text()


def test_it_does_what_it_says(built: Path) -> None:
    found = run("npm", "test")
    assert "# fail 0" in found
    assert "# pass 10" in found


def test_it_can_be_packed(built: Path) -> None:
    listed = run("npm", "pack", "--dry-run", "--json", "--ignore-scripts")
    for name in ("dist/index.js", "dist/index.d.ts", "dist/rank1.js", "example.html"):
        assert f'"path": "{name}"' in listed


@pytest.mark.validate
def test_a_client_generated_from_the_schema_runs_a_study(tmp_path: Path) -> None:
    installed()
    with served(tmp_path) as service:
        (tmp_path / "openapi.json").write_text(json.dumps(service.call("/openapi.json")[1]))
        for name in ("study.ts", "tsconfig.json"):
            shutil.copy(JS / "generated" / name, tmp_path)
        (tmp_path / "package.json").write_text('{"type": "module"}')
        (tmp_path / "node_modules").symlink_to(JS / "node_modules")
        tools = JS / "node_modules/.bin"
        run(str(tools / "openapi-typescript"), str(tmp_path / "openapi.json"),
            "--default-non-nullable=false", "--output", str(tmp_path / "schema.ts"))  # fmt: skip
        run(str(tools / "tsc"), "--project", str(tmp_path))
        found = json.loads(run("node", str(tmp_path / "study.js"), service.url, service.token))
    assert found == {
        "goal": "find", "told": 1, "records": [201], "rewards": [200], "reports": 2,
        "leader": found["leader"], "events": ["reported", "reported"], "refused": 409,
        "retired": True,
    }  # fmt: skip
