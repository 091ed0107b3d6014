"""rank1 study …"""

from __future__ import annotations

import io
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer.main

from rank1 import cli
from rank1.studies import Study

Run = Callable[..., Any]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run a command in an empty folder; return its output, or its JSON."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, status: int = 0) -> Any:
        monkeypatch.setattr("sys.argv", ["rank1", "study", *arguments])
        try:
            cli.main()
            ended = 0
        except SystemExit as end:
            ended = int(end.code or 0)
        captured = capsys.readouterr()
        assert ended == status, captured.err
        assert "Traceback" not in captured.err
        if status == 2:
            assert captured.out == ""
            return captured.err
        return json.loads(captured.out) if "--json" in arguments else captured.out

    return run


def create(run: Run, *more: str) -> Any:
    grid = "--rows", "18-24,25-34", "--columns", "email,push"
    return run("create", "spring", *grid, "--seed", "1", "--json", *more)


@pytest.mark.uncompiled
def test_a_study_from_beginning_to_end(run: Run) -> None:
    made = create(run)
    assert (made["policy"], made["rows"]) == ("uts", ["18-24", "25-34"])
    assert [each["name"] for each in run("list", "--json")["studies"]] == ["spring"]
    given = run("ask", "spring", "--count", "6", "--key", "k", "--json")["suggestions"]
    assert run("ask", "spring", "--count", "6", "--key", "k", "--json")["suggestions"] == given
    words = [word for k, each in enumerate(given[:4]) for word in (each["id"], str(k % 2))]
    told = run("tell", "spring", *words, "--json")["reports"]
    assert [each["reward"] for each in told] == [0, 1, 0, 1]
    assert run("cancel", "spring", given[4]["id"], "--json")["state"] == "cancelled"
    document = run("verify", "spring", "--json")
    assert document == {
        "ok": True, "suggestions": 6, "reports": 4, "pending": 1, "expired": 0, "cancelled": 1,
    }  # fmt: skip
    best = run("best", "spring", "--json")
    assert best["leader"] == ["18-24", "push"]
    assert best["stop"] is False
    shown = run("show", "spring")
    assert re.search(r"18-24 +0 +1\*", shown)
    assert "+1" in shown
    assert run("show", "spring", "--json")["policy"] == "uts"
    assert run("fit", "spring", "--repetitions", "19", "--json")["repetitions"] == 19
    assert run("export", "spring", "--out", "log.jsonl", "--json")["suggestions"] == 6
    lines = [json.loads(line) for line in Path("log.jsonl").read_text().splitlines()]
    keys = {"id", "row", "column", "state", "reward", "asked_at", "told_at"}
    assert keys <= set(lines[0])
    Path("known.csv").write_text("row,column,reward\n18-24,push,1\n25-34,email,0\n")
    assert run("import", "spring", "known.csv", "--json")["rewards"] == 2
    assert run("import", "spring", "known.csv").startswith("already imported: 2 rewards from")
    Path("other.csv").write_text("r;column;won;n\n18-24;push;3;5\n")
    named = ("--column", "row=r", "--column", "successes=won", "--column", "trials=n")
    found = run("import", "spring", "other.csv", *named, "--json")
    assert (found["rewards"], found["skipped"], found["already_imported"]) == (5, 0, False)
    assert "written as reward=converted" in run(
        "import", "spring", "other.csv", "--column", "row", status=2
    )
    assert run("replay", "spring", "--policy", "ucb1", "--json")["rewards"] == 11
    assert run("revise", "spring", "--add-rows", "35+", "--json")["rows"][-1] == "35+"
    run("backup", "--out", "copy.db")
    assert Study.open("spring", "copy.db").counts()["reports"] == 4
    assert run("doctor", "--json")["ok"] is True
    assert run("doctor", "--storage", "copy.db", "--json")["studies"][0]["reports"] == 4


@pytest.mark.uncompiled
def test_the_examples_work(run: Run) -> None:
    group: Any = typer.main.get_command(cli.application())
    commands = group.commands["study"].commands
    wanted = "create list show ask tell cancel best fit export import replay verify backup doctor"
    assert set(wanted.split()) <= set(commands)
    Path("known.csv").write_text("row,column,reward\n18-24,push,1\n25-34,email,0\n")
    first = shlex.split(commands["create"].epilog)[3:]
    assert run(*first)
    ids = [e["id"] for e in run("ask", "spring", "--count", "2", "--json")["suggestions"]]
    run("create", "home", "--side", "headline=A,B", "--side", "image=x,y", "--goal", "find")
    sides = ("--side", "segment=new,old", "--side", "channel=mail,push", "--given", "segment")
    run("create", "mail", *sides, "--goal", "find")
    run("ask", "mail", "--given", "segment=new")
    for name, command in sorted(commands.items(), key=lambda each: each[0] == "delete"):
        assert command.epilog.startswith(f"Example: rank1 study {name}")
        if name == "create":
            continue
        words = shlex.split(command.epilog)[3:]
        place = {"tell": 0, "cancel": 1}.get(name)
        if place is not None:  # ids belong to one study
            words = [ids[place] if word == "k3fzqa-2-00z8" else word for word in words]
        assert run(*words)


GRID = ("create", "x", "--side", "side=a,b", "--goal", "find")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ask", "spring"], "no studies|there is no"),
        (["create", "x", "--rows", "a,a", "--columns", "b"], "rows must be names that differ"),
        (["create", "x", "--rows", "@nowhere", "--columns", "b"], "--rows @nowhere can't be read"),
        (["create", "x", "--rows", "a", "--columns", "b", "--side", "c=d"], "--side must be left"),
        (["tell", "spring", "id"], "an id and its reward"),
        (["verify", "spring", "--storage", "."], "director"),
        (["tell", "spring", "id", "x"], "'reward': must be a number"),
        (["reward", "spring", "ann", "x"], "'reward': must be a number"),
        (["forecast", "spring", "--per-day", "x"], "'--per-day': must be a number, such as"),
        ([*GRID, "--guardrail", "left"], "--guardrail must be written as metric=number"),
        ([*GRID, "--guardrail", "left=x"], "'--guardrail left': must be a number"),
        ([*GRID, "--reward-range", "0:200"], "'--reward-range': must be a number"),
        ([*GRID, "--reward-range", "5"], "--reward-range must be the smallest and the largest"),
        ([*GRID, "--tolerance", "0.1"], "0 for --goal find .*: --min-lift says which"),
        ([*GRID, "--on-expiry", "default"], "--reward-window .* with --on-expiry default,"),
        ([*GRID, "--new-levels", "add"], "--new-levels must be refuse .*, got 'add'"),
    ],
)
def test_bad_input_is_told(run: Run, arguments: list[str], message: str) -> None:
    assert re.search(message, run(*arguments, status=2))


def test_a_wide_grid_is_drawn_in_shades(run: Run) -> None:
    Path("names.txt").write_text("\n".join(f"line {k}" for k in range(30)))
    run("create", "wide", "--rows", "a,b", "--columns", "@names.txt")
    given = run("ask", "wide", "--count", "200", "--json")["suggestions"]
    words = [w for e in given for w in (e["id"], "1" if e["row"] == "b" else "0")]
    run("tell", "wide", *words)
    shown = run("show", "wide")
    assert re.search(r"^b [█*?]{30}$", shown, re.M)


def test_a_damaged_study_is_told_of(run: Run) -> None:
    create(run)
    study = Study.open("spring")
    given = study.ask(count=10)
    study.tell_many([(each.id, 1.0) for each in given])
    study.close()
    import apsw

    with apsw.Connection("rank1.db") as raw:
        raw.execute("DELETE FROM rank1_events WHERE seq = 5")
    found = run("doctor", "--json", status=1)
    assert not found["ok"]
    assert found["problems"]


def test_a_reward_may_be_negative_and_a_study_retired(run: Run) -> None:
    run("create", "neg", "--rows", "a,b", "--columns", "c,d", "--reward-range", "-1,1")
    asked = run("ask", "neg", "--json")["suggestions"][0]["id"]
    assert run("tell", "neg", asked, "-0.5", "--json")["reports"][0]["reward"] == -0.5
    run("tell", "neg", asked, "--jsn", status=2)
    assert run("retire", "neg", "--json") == {"name": "neg", "retired": True}
    run("ask", "neg", status=2)


@pytest.mark.uncompiled
def test_a_study_of_three_sides(run: Run) -> None:
    sides = "--side", "headline=A,B", "--side", "image=x,y", "--side", "button=buy"
    made = run("create", "home", *sides, "--seed", "1", "--json")
    assert made["sides"] == {"headline": ["A", "B"], "image": ["x", "y"], "button": ["buy"]}
    assert "rows" not in made
    data = '{"page": 7}'
    (given,) = run("ask", "home", "--data", data, "--json")["suggestions"]
    assert given["levels"] == {"headline": "A", "image": "x", "button": "buy"}
    assert ("row" in given, given["data"]) == (False, {"page": 7})
    assert "A × x × buy brought 1" in run("tell", "home", given["id"], "1")
    revised = run("revise", "home", "--add", "button=go", "--retire", "image=y", "--json")
    assert revised["sides"]["button"] == ["buy", "go"]
    assert run("best", "home", "--json")["leader"] == ["A", "x", "buy"]
    for command in ("best", "show"):
        assert "A × x × buy" in run(command, "home")
    for wrong, message in (
        (["create", "x"], "--side must be given, or both rows and columns, got neither"),
        (["create", "x", "--rows", "a,b"], "both rows and columns, got rows alone"),
        (["create", "x", "--side", "a=1", "--side", "a=2"], "a twice"),
        (["create", "x", "--side", "a"], "written as side=level"),
        (["revise", "home", "--add", "colour=red"], "by sides, which are headline, image, button"),
    ):
        assert message in run(*wrong, status=2)


@pytest.mark.uncompiled
def test_archive_forget_and_delete(run: Run) -> None:
    create(run)
    run("ask", "spring", "--unit", "ann", "--json")
    assert run("archive", "spring", "--json") == {"name": "spring", "archived": True}
    assert run("list", "--json")["studies"] == []
    (listed,) = run("list", "--all", "--json")["studies"]
    assert listed["archived"] >= listed["created"]
    assert "archived" in run("list", "--all")
    assert run("verify", "spring", "--json")["suggestions"] == 1
    assert "listed again" in run("archive", "spring", "--undo")
    assert len(run("list", "--json")["studies"]) == 1
    for command in (("forget-unit", "spring", "ann"), ("delete", "spring")):
        assert "--yes" in run(*command, status=2)
    assert run("forget-unit", "spring", "ann", "--yes", "--json") == {"name": "spring", "events": 1}
    assert "0 events" in run("forget-unit", "spring", "ann", "--yes")
    assert run("delete", "spring", "--yes", "--json") == {"name": "spring", "deleted": True}
    assert run("list", "--all", "--json")["studies"] == []
    assert "no study 'spring'" in run("delete", "spring", "--yes", status=2)


@pytest.mark.uncompiled
@pytest.mark.parametrize("answer", ["y", "n"])
def test_what_cannot_be_undone_is_asked(
    run: Run, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(run)
    terminal = io.StringIO(f"{answer}\n")
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", terminal)
    said = run("delete", "spring", status=0 if answer == "y" else 1)
    assert "delete 'spring' with its whole log? It can't be undone." in said
    assert len(run("list", "--all", "--json")["studies"]) == (answer == "n")


@pytest.mark.uncompiled
def test_guardrails_come_with_a_record_or_a_reward(run: Run) -> None:
    sides = ("--side", "image=x,y", "--goal", "find", "--control", "image=x")
    run("create", "home", *sides, "--guardrail", "left=0.1", "--seed", "1")
    told = "--version", "0", "--level", "image=x"
    run("record", "home", "ann", *told, "--reward", "1", "--guardrail", "left=1")
    run("record", "home", "bob", *told)
    assert "bob: x brought 0" in run("reward", "home", "bob", "0", "--guardrail", "left=0")
    with Study.open("home") as study:
        told_of = study.events(kinds=["guardrail"])
    assert [(each["metric"], each["value"]) for each in told_of] == [("left", 1.0), ("left", 0.0)]
    assert told_of[0]["levels"] == {"image": "x"}
    message = run("reward", "home", "bob", "0", "--guardrail", "slow=1", status=2)
    assert "slow" in message
    message = run("reward", "home", "bob", "0", "--guardrail", "left=1", status=2)
    assert "unit 'bob' already has left = 0, got left = 1" in message
    message = run("record", "home", "cay", *told, "--guardrail", "left=1", status=2)
    assert "--guardrail must be left out if there is no reward" in message


@pytest.mark.uncompiled
def test_nothing_is_said_of_segments_before_a_report(run: Run) -> None:
    run("create", "home", "--side", "image=x,y", "--side", "age=a,b", "--goal", "find")
    said = run("personalise", "home", "image", "--by", "age")
    assert said.strip() == "No answer about image by age: no results yet."


@pytest.mark.uncompiled
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_file_of_records_has_guardrails(run: Run, kind: str) -> None:
    sides = ("--side", "image=x,y", "--goal", "find", "--control", "image=x")
    run("create", "home", *sides, "--guardrail", "left=0.1", "--seed", "1")
    run("shares", "home")
    lines = ["unit,version,image,reward,left", "ann,0,x,1,1", "bob,0,y,0,", "cay,0,y,,"]
    if kind == "jsonl":
        one = {"unit": "ann", "version": 0, "levels": {"image": "x"}, "reward": 1}
        lines = [json.dumps({**one, "guardrails": {"left": 1}}), json.dumps({**one, "unit": "bob"})]
    Path(f"r.{kind}").write_text("\n".join(lines))
    for _ in range(2):
        found = run("record", "home", "--file", f"r.{kind}", "--json")
        assert found["refused"] == []
    with Study.open("home") as study:
        assert [each["value"] for each in study.events(kinds=["guardrail"])] == [1.0]
    wrong = {"csv": "\ndan,7,x,,", "jsonl": '\n{"unit": "dan", "version": 7, "levels": {}}'}
    Path(f"r.{kind}").write_text("\n".join(lines) + wrong[kind])
    found = run("record", "home", "--file", f"r.{kind}", "--json", status=1)
    assert [each["line"] for each in found["refused"]] == [len(lines) + 1]
    message = run("record", "home", "--file", f"r.{kind}", "--guardrail", "left=1", status=2)
    assert "--guardrail must be in the file" in message
