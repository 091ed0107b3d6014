"""rank1 serve: live studies over HTTP, and their page."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Annotated, Any

import typer

from rank1.cli.app import answer, app, group, print_json, show
from rank1.cli.options import Json, integer, number, option
from rank1.errors import MissingPackageError, extra

serve_app = group(
    None,
    "Example: rank1 serve --storage rank1.db --port 8000",
    invoke_without_command=True,
    no_args_is_help=False,
)
token_app = group(
    "Create, list and revoke tokens; a running service sees changes within a second.",
    "Example: rank1 serve token create --role writer --study spring",
)
serve_app.add_typer(token_app, name="token")
app.add_typer(serve_app, name="serve")

File = Annotated[str | None, option("The file of tokens; default: rank1-tokens.json.", "--tokens")]
ConfigFile = Annotated[str | None, option("A TOML file of settings.", "--config")]


@serve_app.callback()
def serve(
    context: typer.Context,
    host: Annotated[str | None, option("Address; default: 127.0.0.1.")] = None,
    port: Annotated[int | None, integer("Port; default: 8000; 0 for any free port.")] = None,
    storage: Annotated[str | None, option("A file (default: rank1.db), or postgresql://….")] = None,
    tokens: File = None,
    max_body: Annotated[
        int | None, integer("Largest body of a request, in bytes; default: 4 MiB.")
    ] = None,
    rate: Annotated[
        float | None, number("Requests per second for each token; default: 5000.")
    ] = None,
    patience: Annotated[
        float | None, number("Timeout for receiving a body, in seconds; default: 10.")
    ] = None,
    drain: Annotated[
        float | None, number("Seconds to finish requests at shutdown; default: 10.")
    ] = None,
    connections: Annotated[
        int | None, integer("Largest number of simultaneous connections; default: 2000.")
    ] = None,
    access_log: Annotated[bool | None, option("Log a line for each request; default: no.")] = None,
    workers: Annotated[
        int | None, integer("Number of server processes, with PostgreSQL; default: 1.")
    ] = None,
    webhook: Annotated[
        str | None, option("URL for webhooks; RANK1_SERVE_WEBHOOK_SECRET signs them.")
    ] = None,
    config: ConfigFile = None,
    demo: Annotated[
        bool,
        option("Show a demo study with simulated visitors; kept only with --storage.", "--demo"),
    ] = False,
    show_config: Annotated[
        bool, option("Print the settings as JSON, and exit.", "--show-config")
    ] = False,
) -> None:
    """Serve live studies over HTTP, with a page that shows them.

    Settings come from flags, then from the environment (such as RANK1_SERVE_PORT), then from a TOML
    file.
    """
    if context.invoked_subcommand is not None:
        return
    from rank1.server.config import Config, read_config

    settings = {field.name for field in dataclasses.fields(Config)}
    given = {name: value for name, value in context.params.items() if name in settings}
    if show_config:
        print_json(read_config(given, config).shown())
        return
    try:
        from rank1.server.run import serve as run
    except ModuleNotFoundError as error:
        raise MissingPackageError(f"serve needs {error.name}", extra("server")) from None
    if demo:
        from rank1.server.demo import DemoTraffic, demo_settings

        with demo_settings(given) as (place, table):
            run(read_config(place, config), _say, lambda registry: DemoTraffic(registry, table))
        return
    run(read_config(given, config), _say)


def _say(line: str) -> None:
    print(line, flush=True)


def _tokens(file: str | None, config: str | None = None) -> Any:
    from rank1.server.config import read_config
    from rank1.server.tokens import Tokens

    return Tokens(read_config({"tokens": file}, config).tokens)


@token_app.command(epilog="Example: rank1 serve token create --role writer --study spring")
def create(
    role: Annotated[str, option("browser, reader, writer or admin.")],
    study: Annotated[
        list[str] | None, option("A study it is valid for; can be repeated; default: all.")
    ] = None,
    note: Annotated[str, option("A note, shown in the list.")] = "",
    origin: Annotated[
        list[str] | None,
        option("For browser: the origin of a page, such as https://shop.example; can be repeated."),
    ] = None,
    days: Annotated[float | None, number("Days until it expires; default: never.")] = None,
    rate: Annotated[float | None, number("Requests per second; default: the service's.")] = None,
    tokens: File = None,
    config: ConfigFile = None,
    json_: Json = False,
) -> None:
    """Create a token and print it, once: only its digest is stored."""
    text = _tokens(tokens, config).create(
        role, study or None, note, origins=origin or [], days=days, rate=rate
    )
    if json_:
        print_json({"token": text, "id": text.split("_")[1], "role": role, "studies": study})
    else:
        print(text)


@token_app.command("list", epilog="Example: rank1 serve token list --json")
def list_(tokens: File = None, config: ConfigFile = None, json_: Json = False) -> None:
    """List the tokens, without their secrets."""
    found = [each.public() for each in _tokens(tokens, config).list()]
    if json_:
        print_json({"tokens": found})
        return
    for each in found:
        day = datetime.datetime.fromtimestamp(each["created"]).strftime("%Y-%m-%d")
        studies = "all studies" if each["studies"] is None else ", ".join(each["studies"])
        show(f"{each['id']}  {each['role']:7}  {day}  {studies}  {each['note']}".rstrip())


@token_app.command(epilog="Example: rank1 serve token revoke 5d41402a")
def revoke(
    id: Annotated[str, typer.Argument(help="Id of the token, as in the list.")],
    tokens: File = None,
    config: ConfigFile = None,
    json_: Json = False,
) -> None:
    """Revoke a token."""
    _tokens(tokens, config).revoke(id)
    answer(json_, {"id": id, "state": "revoked"}, f"{id} is revoked")
