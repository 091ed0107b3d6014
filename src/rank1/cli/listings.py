"""rank1 policies and rank1 problems."""

from __future__ import annotations

from typing import Any

from rank1.cli.app import app, print_json, show
from rank1.cli.options import Json


@app.command(epilog="Example: rank1 policies --json")
def policies(json_: Json = False) -> None:
    """List the policies and their settings."""
    from rank1.settings import all_policies

    _list("policy", all_policies(), json_)


@app.command(epilog="Example: rank1 problems --json")
def problems(json_: Json = False) -> None:
    """List the problems and their settings."""
    from rank1.problems import PROBLEMS

    _list("problem", PROBLEMS, json_)


def _list(kind: str, table: Any, json_: bool) -> None:
    import inspect

    from rank1.settings import settings_of

    entries = []
    for name, maker in table.items():
        settings = settings_of(maker)
        required = [key for key, value in settings.items() if value is inspect.Parameter.empty]
        defaults = {key: value for key, value in settings.items() if key not in required}
        about = (inspect.getdoc(maker) or "").splitlines()[0]
        entries.append({"name": name, "about": about, "required": required, "defaults": defaults})
    if json_:
        print_json({"problems" if kind == "problem" else "policies": entries})
        return
    from rank1.tables import table as table_of

    listing = table_of(kind, "what it is", "settings")
    for entry in entries:
        words = [
            *entry["required"],
            *(f"{key}={value}" for key, value in entry["defaults"].items()),
        ]
        listing.add_row(str(entry["name"]), str(entry["about"]), ", ".join(words) or "none")
    show(listing)
