from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.support import Served, served


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Start one service for the tests of a file; each test uses its own study names."""
    folder: Path = tmp_path_factory.mktemp("service")
    with served(folder) as found:
        yield found
