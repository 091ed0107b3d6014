"""A toy shop: its page asks which headline and which image to show, and reports what visitors buy.

Start a service (`rank1 serve`), then

    python -m examples.shop URL TOKEN                     the page, on http://127.0.0.1:8080
    python -m examples.shop URL TOKEN --visitors 50000    50,000 made-up visitors

A page must never wait for a bandit. So the shop keeps a stock of suggestions, asks for more when it
is used up, and shows its own favourite if the service is down.
"""

from __future__ import annotations

import argparse
import html
import itertools
import threading
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import numpy as np

import rank1

HEADLINES = ["Half price", "New in", "Made to last", "Only today"]
IMAGES = ["beach", "model", "product", "drawing", "family"]
FAVOURITE = {"headline": "New in", "image": "product"}
#: A visitor buys with the product of these probabilities, which the shop doesn't know.
ATTENTION = {"Half price": 0.60, "New in": 0.45, "Made to last": 0.35, "Only today": 0.50}
DESIRE = {"beach": 0.10, "model": 0.16, "product": 0.22, "drawing": 0.08, "family": 0.14}


class Shop:
    """The shop's stock of suggestions, and its reports to the service."""

    def __init__(self, study: rank1.RemoteStudy, stock: int = 200) -> None:
        self._study, self._size = study, stock
        self._stock: deque[rank1.Suggestion] = deque()
        self._sold: list[tuple[str, float]] = []
        self._lock = threading.Lock()

    def show(self) -> rank1.Suggestion:
        """Return the suggestion for the next visitor."""
        with self._lock:
            if not self._stock:
                # Only one visitor in two hundred has to wait, for at most five seconds.
                more = self._study.ask(count=self._size, fallback=FAVOURITE, timeout=5)
                self._stock.extend(more)
            return self._stock.popleft()

    def report(self, id: str, bought: bool) -> None:
        """Note whether a visitor bought, perhaps hours later."""
        with self._lock:
            self._sold.append((id, float(bought)))
            if len(self._sold) % self._size == 0:
                self.flush()

    def flush(self) -> None:
        """Send the waiting reports; because of the ids, a duplicate does no harm."""
        try:
            answers = self._study.tell_many(self._sold)
        except rank1.StorageError:
            return  # the service is down: send them with the next ones
        for (id, _), answer in zip(self._sold, answers, strict=True):
            if isinstance(answer, rank1.Rank1Error):
                print(f"the report of {id} was refused: {answer}")
        self._sold = []

    def close(self) -> None:
        """Send the last reports, and cancel the suggestions that were never shown."""
        self.flush()
        for each in self._stock:
            self._study.cancel(each.id)


def opened(client: rank1.Client, name: str) -> rank1.RemoteStudy:
    """Open the shop's study, or create it if it doesn't exist yet."""
    try:
        return client.open(name)
    except rank1.UnknownStudyError:
        return client.create(
            name,
            sides={"headline": HEADLINES, "image": IMAGES},
            goal="earn",
            reward_window=86_400,
        )


def play(shop: Shop, visitors: int, seed: int = 1) -> float:
    """Simulate visitors who look, think, and buy or leave; return the percentage who bought."""
    rng = np.random.default_rng(seed)
    thinking: deque[tuple[int, str, bool]] = deque()  # until when, what, and the outcome
    bought = 0
    for moment in range(visitors):
        seen = shop.show()
        buys = bool(
            rng.random() < ATTENTION[seen.levels["headline"]] * DESIRE[seen.levels["image"]]
        )
        bought += buys
        if seen.id:  # a favourite needs no report
            thinking.append((moment + int(rng.integers(50, 500)), seen.id, buys))
        while thinking and thinking[0][0] <= moment:
            _, id, outcome = thinking.popleft()
            shop.report(id, outcome)
    for _, id, outcome in thinking:
        shop.report(id, outcome)
    shop.close()
    return 100 * bought / visitors


def serve(shop: Shop, port: int = 8080) -> None:
    """Serve the page."""
    numbers = itertools.count(1)

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = urlsplit(self.path)
            if asked.path == "/buy":
                shop.report(parse_qs(asked.query)["id"][0], True)
                body = "<h1>Thank you</h1>"
            else:
                seen = shop.show()
                link = f"/buy?id={html.escape(seen.id)}"
                headline, image = map(html.escape, seen.levels.values())
                body = (
                    f"<h1>{headline}</h1><p>[picture: {image}]</p>"
                    f"<p>You are visitor {next(numbers)}. <a href='{link}'>Buy</a></p>"
                )
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(f"<!doctype html><title>Shop</title>{body}".encode())

    print(f"the shop is open on http://127.0.0.1:{port}")
    ThreadingHTTPServer(("127.0.0.1", port), Page).serve_forever()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url")
    parser.add_argument("token")
    parser.add_argument("--visitors", type=int)
    parser.add_argument("--study", default="shop")
    given = parser.parse_args(arguments)
    with rank1.Client(given.url, given.token) as client:
        study = opened(client, given.study)
        shop = Shop(study)
        if given.visitors is None:
            serve(shop)
            return
        rate = play(shop, given.visitors)
        best = study.best()
        each = np.outer(list(ATTENTION.values()), list(DESIRE.values()))
        print(
            f"{given.visitors:,} visitors, {rate:.1f}% bought. With an equal split it would have "
            f"been {100 * each.mean():.1f}%, with the best pair {100 * each.max():.1f}%."
        )
        if best.leader is not None:
            print(f"{' × '.join(best.leader)} leads; {best.reason}.")


if __name__ == "__main__":
    main()
