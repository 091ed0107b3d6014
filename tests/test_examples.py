from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from examples import marketer, positions, shop

import rank1
from tests.server.support import PATIENCE, served


def test_the_shop_finds_what_sells(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rank1, "Client", partial(rank1.Client, timeout=PATIENCE))
    with served(tmp_path) as service:
        shop.main([service.url, service.token, "--visitors", "6000"])
        _, found = service.call("/v1/studies/shop")
    totals = found["totals"]
    assert totals["reports"] == 6000
    assert totals["pending"] == 0
    printed = capsys.readouterr().out
    sold = float(printed.split("visitors, ")[1].split("%")[0])
    assert sold > 7.0  # playing all pairs equally sells 6.7


def test_a_shop_without_a_service_shows_its_favourite() -> None:
    with rank1.Client("http://127.0.0.1:9", "t") as client:
        window = shop.Shop(rank1.client.RemoteStudy(client, "shop"), stock=3)
        seen = [window.show() for _ in range(4)]
        assert [each.levels for each in seen] == [shop.FAVOURITE] * 4
        window.report(seen[0].id, True)
        window.close()


def test_positions(capsys: pytest.CaptureFixture[str]) -> None:
    positions.main(["--visitors", "6000"])
    assert "shelf × top leads" in capsys.readouterr().out


def test_marketer(capsys: pytest.CaptureFixture[str]) -> None:
    marketer.main(["--mails", "3000"])
    printed = capsys.readouterr().out
    assert "leads" in printed
    assert "rank one" in printed
