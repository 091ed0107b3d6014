"""The web pages: static HTML without data, which JavaScript fills through the API."""

from __future__ import annotations

import functools
import gzip
import hashlib
import mimetypes
from importlib import resources

from fastapi import APIRouter, Request
from jinja2 import Environment, PackageLoader
from starlette.responses import HTMLResponse, Response

import rank1
from rank1.server.problem_details import RefusedError

__all__ = ["routes"]

FILES = (
    "style.css", "common.js", "list.js", "new.js", "study.js", "levels.js", "manage.js",
    "charts.js", "tokens.js", "docs.js", "plotly.js",
)  # fmt: skip
#: Pages by address. All are one level deep and link to each other relatively, so that the service
#: works behind a proxy under any path.
PAGES = {"/": "list", "/new": "new", "/study": "study", "/tokens": "tokens", "/docs": "docs"}


@functools.cache
def _file(name: str) -> tuple[bytes, bytes]:
    """Read a file; returns it plain and compressed."""
    if name == "plotly.js":
        data = resources.files("plotly").joinpath("package_data", "plotly.min.js").read_bytes()
    else:
        data = resources.files("rank1.server.pages").joinpath("static", name).read_bytes()
    return data, gzip.compress(data, 6)


@functools.cache
def _digest() -> str:
    """Return a digest for the files' address, so that new and old versions aren't mixed."""
    seal = hashlib.blake2b(digest_size=6)
    for name in FILES:
        seal.update(_file(name)[0])
    return seal.hexdigest()


def _address(name: str) -> str:
    return f"static/{_digest()}/{name}"


@functools.cache
def _page(template: str) -> str:
    loader = PackageLoader("rank1.server.pages")
    templates = Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return templates.get_template(template).render(static=_address, version=rank1.__version__)


async def _shell(template: str) -> Response:
    return HTMLResponse(_page(template))


def routes() -> APIRouter:
    """Make the routes of the pages and their files."""
    router = APIRouter(include_in_schema=False)

    for address, name in PAGES.items():
        router.get(address)(functools.partial(_shell, f"{name}.html"))

    @router.get("/rank1.js")
    async def client(request: Request) -> Response:
        """Serve the JavaScript client, built from `js/`, to pages of any origin."""
        headers = {"Cross-Origin-Resource-Policy": "cross-origin"}
        return _sent(request, "rank1.js", headers | {"Cache-Control": "public, max-age=3600"})

    @router.get("/static/{digest}/{name}")
    async def static(request: Request, digest: str, name: str) -> Response:
        if name not in FILES or digest != _digest():
            raise RefusedError(404, f"there is no file {name!r}", "load the page again")
        return _sent(request, name, {"Cache-Control": "public, max-age=31536000, immutable"})

    return router


def _sent(request: Request, name: str, headers: dict[str, str]) -> Response:
    """Respond with a file, compressed if the client accepts that."""
    data, small = _file(name)
    headers = {**headers, "Vary": "Accept-Encoding"}
    media = mimetypes.guess_type(name)[0] or "application/octet-stream"
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(small, headers={**headers, "Content-Encoding": "gzip"}, media_type=media)
    return Response(data, headers=headers, media_type=media)
