"""A grid of problems, policies and horizons, written as a TOML file."""

from __future__ import annotations

import itertools
import math
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from rank1 import checks
from rank1.errors import InputError, InputTypeError
from rank1.policies import POLICIES
from rank1.policies.base import Policy
from rank1.problems import PROBLEMS
from rank1.problems.base import Problem
from rank1.settings import build, list_depth
from rank1.simulation.known import known_of
from rank1.simulation.plan import MAX_RUNS
from rank1.simulation.series import Series, checkpoints_of

__all__ = ["EXAMPLE", "Grid", "grid_of", "read_grid"]

T = TypeVar("T")

#: More is surely a slip of the pen, and would take minutes only to be written down.
MAX_SERIES = 1_000_000
#: Rows and columns of all problems together: more would not fit into memory.
MAX_LINES = 100_000_000
DEFAULTS = {"runs": 20, "seed": 1, "checkpoints": 100, "shuffle": False}
#: A grid to start from: `rank1 sweep --example`.
EXAMPLE = """\
n = 20_000                   # steps; a list of several is a dimension of the grid
runs = 10                    # of every policy on every problem
seed = 1
checkpoints = 10             # how many steps regret is recorded at, or a list of steps

[[problem]]                  # see `rank1 problems`; there may be several
name = "spike"
K = [4, 8]                   # a list is a dimension
L = "=K"                     # the same as another setting
p_u = 0.5
p_v = 0.5
delta_u = { from = 0.2, to = 0.4, count = 3 }      # or step = 0.1; log = true for even ratios
delta_v = "=delta_u"

[[policy]]                   # see `rank1 policies`
name = "rank1elim"
confidence_scale = [0.5, 1]

[[policy]]
name = "uniform"
"""


@dataclass(frozen=True)
class Grid:
    """Every policy on every problem with every n, `runs` times."""

    problems: Sequence[Problem]
    policies: Sequence[Policy]
    n: Sequence[int]
    runs: int
    seed: int
    checkpoints: int | list[int]
    shuffle: bool = False

    def series(self) -> list[Series]:
        """All combinations, in the order of the result's rows."""
        return [
            Series.of(policy, problem, n, self.checkpoints, self.seed, shuffle=self.shuffle)
            for problem in self.problems
            for policy in self.policies
            for n in self.n
        ]

    @property
    def steps(self) -> int:
        """Steps of all runs together."""
        return len(self.problems) * len(self.policies) * self.runs * sum(self.n)


def read_grid(path: str | os.PathLike[str]) -> Grid:
    """Read a grid from a TOML file; every value is checked before anything is played.

    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "grid.toml"
    >>> size = path.write_text(EXAMPLE)
    >>> len(read_grid(path).series())
    18
    """
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")  # some editors put a mark at the start
        return grid_of(tomllib.loads(text))
    except OSError as error:
        raise InputError(
            f"the grid must be a TOML file that can be read, got {os.fspath(path)!r}: "
            f"{error.strerror}"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{os.fspath(path)!r} must be TOML in UTF-8: {error}") from None
    except RecursionError:
        raise InputError(
            f"{os.fspath(path)!r} must be a grid, got lists or tables nested too deeply"
        ) from None
    except (ValueError, TypeError) as error:
        raise InputError(f"{os.fspath(path)}: {error}") from None


def grid_of(given: Mapping[str, Any]) -> Grid:
    """The grid that plain values describe, as a TOML file has them.

    >>> grid = grid_of({
    ...     "n": [1000, 2000],
    ...     "problem": [{"name": "bernoulli", "u": [[0.1, 0.9], [0.2, 0.8]], "v": [0.5, 0.6]}],
    ...     "policy": [{"name": "rank1elim", "confidence_scale": [0.5, 1]}]})
    >>> len(grid.problems), [policy.label for policy in grid.policies], grid.runs
    (2, ['rank1elim:confidence_scale=0.5', 'rank1elim'], 20)
    """
    for key in given:
        checks.one_of("a key of the grid", key, ["n", *DEFAULTS, "problem", "policy"])
    for key in ("n", "problem", "policy"):
        if key not in given:
            raise InputError(f"the grid needs {key}")
    plain = DEFAULTS | {key: given[key] for key in DEFAULTS if key in given}
    marks = plain["checkpoints"]
    n = [checks.integer("n", value, 1) for value in _dimension("n", given["n"], 0)]
    if len(set(n)) < len(n):
        raise InputError(f"n must have every value once, got {checks.shown(n)}")
    if not isinstance(marks, list):
        marks = checks.integer("checkpoints", marks, 1, 10**6)
    else:
        for value in n:
            checkpoints_of(value, marks)
    if not isinstance(plain["shuffle"], bool):
        raise InputTypeError(f"shuffle must be true or false, got {checks.shown(plain['shuffle'])}")
    tables = {kind: _tables(kind, given[kind]) for kind in ("problem", "policy")}
    sizes = {
        kind: sum(math.prod(map(len, dimensions.values())) for _, dimensions, _ in parts)
        for kind, parts in tables.items()
    }
    size = math.prod(sizes.values()) * len(n)
    if size > MAX_SERIES:
        raise InputError(
            f"the grid must have at most {MAX_SERIES:,} combinations, got {sizes['problem']:,} "
            f"problems × {sizes['policy']:,} policies × {len(n)} values of n = {size:,}"
        )
    lines = sum(map(_lines, tables["problem"]))
    if lines > MAX_LINES:
        raise InputError(_too_large(f"{lines:,}"))
    problems = _made("problem", PROBLEMS, tables["problem"])
    policies = _made("policy", POLICIES, tables["policy"])
    for policy, problem in itertools.product(policies, problems):
        try:  # whether it can play: a grid of one pair tells
            policy.start(replace(known_of(policy, problem, n[0]), K=1, L=1))
        except ValueError as error:
            name = problem.description["name"]
            raise InputError(f"policy {policy.label} on problem {name}: {error}") from None
    return Grid(
        problems,
        policies,
        n,
        checks.integer("runs", plain["runs"], 1, MAX_RUNS),
        checks.integer("seed", plain["seed"], 0, None),
        marks,
        plain["shuffle"],
    )


#: A name, the values of each setting, and the settings that equal another.
Table = tuple[str, dict[str, list[Any]], dict[str, str]]


def _tables(kind: str, given: Any) -> list[Table]:
    if not isinstance(given, list) or not all(isinstance(table, Mapping) for table in given):
        raise InputTypeError(
            f"{kind} must be tables, each under [[{kind}]], got {checks.shown(given)}"
        )
    if not given:
        raise InputError(f"the grid needs a [[{kind}]]")
    known: Mapping[str, Callable[..., Any]] = PROBLEMS if kind == "problem" else POLICIES
    tables = []
    for table in given:
        if "name" not in table:
            raise InputError(f"every [[{kind}]] needs a name, got {checks.shown(dict(table))}")
        name = checks.one_of(kind, table["name"], known)
        dimensions, ties = {}, {}
        for key, value in table.items():
            if key == "name":
                continue
            if isinstance(value, str) and value.startswith("="):
                ties[key] = value[1:].strip()
                continue
            depth = list_depth(known[name], key)
            dimensions[key] = _dimension(f"{kind} {name}: {key}", value, depth)
        for key, other in ties.items():
            if other not in dimensions:
                raise InputError(
                    f"{kind} {name}: {key} must equal a setting that has values of its own "
                    f"({', '.join(dimensions)}), got {'=' + other!r}"
                )
        tables.append((name, dimensions, ties))
    return tables


def _dimension(name: str, value: Any, depth: int) -> list[Any]:
    """The values of one setting: a list around what is itself `depth` lists deep, or a range."""
    if isinstance(value, Mapping) and {"from", "to"} <= set(value):
        return list(_range(name, value))
    if not isinstance(value, list) or (depth and _depth(value) <= depth):
        return [value]
    if not value:
        raise InputError(f"{name} must have at least one value, got []")
    return value


def _depth(value: Any) -> int:
    # A list that begins with a word, such as ["beta", 2, 1], is one law of a factor.
    if not isinstance(value, list) or (value and isinstance(value[0], str)):
        return 0
    return 1 + max(map(_depth, value), default=0)


def _range(name: str, given: Mapping[str, Any]) -> Iterator[float]:
    for key in given:
        checks.one_of(f"{name}: a range", key, ("from", "to", "count", "step", "log"))
    log = given.get("log", False)
    if ("count" in given) == ("step" in given) or not isinstance(log, bool):
        raise InputError(f"{name}: a range needs from, to, and count or step, got {dict(given)}")
    low = checks.number(f"{name}: from", given["from"], *([0.0] if log else []), above=log)
    high = checks.number(f"{name}: to", given["to"], low)
    if "step" in given:
        if log:
            raise InputError(f"{name}: a range with log needs count, got step")
        step = checks.number(f"{name}: step", given["step"], 0, above=True)
        count = math.floor((high - low) / step + 1e-9) + 1
    else:
        count = checks.integer(f"{name}: count", given["count"], 1)
        step = (high - low) / max(count - 1, 1)
    if count > MAX_SERIES:
        raise InputError(f"{name}: a range has at most {MAX_SERIES:,} values, got {count:,}")
    whole = all(isinstance(given[key], int) for key in ("from", "to"))
    for k in range(count):
        value = low * (high / low) ** (k / max(count - 1, 1)) if log else low + k * step
        value = float(f"{value:.12g}")  # 0.1 + 2·0.1 is 0.3 to whoever wrote it
        yield int(value) if whole and value.is_integer() else value


def _lines(table: Table) -> int:
    """Rows and columns of a table's problems, where K and L are settings: told before any is made.

    >>> _lines(("spike", {"K": [2, 3], "p_u": [0.1, 0.2]}, {"L": "K"}))
    20
    """
    _, dimensions, ties = table
    count = math.prod(map(len, dimensions.values()))
    sizes = [dimensions.get(ties.get(name, name), []) for name in ("K", "L")]
    return sum(
        count // len(values) * sum(size for size in values if isinstance(size, int) and size > 0)
        for values in sizes
        if values
    )


def _too_large(got: str) -> str:
    return (
        f"the problems of a grid must have at most {MAX_LINES:,} rows and columns together, "
        f"got {got}"
    )


def _made(kind: str, known: Mapping[str, Callable[..., T]], tables: list[Table]) -> list[T]:
    made: dict[str, T] = {}
    lines = 0
    for name, dimensions, ties in tables:
        for values in itertools.product(*dimensions.values()):
            settings = dict(zip(dimensions, values, strict=True))
            settings |= {key: settings[other] for key, other in ties.items()}
            shown = ", ".join(f"{key}={checks.shown(value)}" for key, value in settings.items())
            try:
                one = build(kind, known, name, settings)
            except (ValueError, TypeError) as error:
                reason = str(error).removeprefix(f"{kind} {name}: ")
                raise InputError(f"{kind} {name} ({shown}): {reason}") from None
            if isinstance(one, Problem):
                lines += one.K + one.L
                if lines > MAX_LINES:
                    raise InputError(_too_large(f"more with {kind} {name} ({shown})"))
            told = one.settings if isinstance(one, Policy) else getattr(one, "description", None)
            if repr((name, told)) in made:
                raise InputError(f"{kind} {name} ({shown}) is in the grid twice")
            made[repr((name, told))] = one
    return list(made.values())
