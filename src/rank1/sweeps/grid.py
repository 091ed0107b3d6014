"""A grid of problems, policies and horizons, written as a TOML file."""

from __future__ import annotations

import itertools
import math
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rank1 import checks
from rank1.errors import InputError, InputTypeError
from rank1.policies.base import Policy
from rank1.problems import PROBLEMS
from rank1.problems.base import Problem
from rank1.settings import find_policy, list_depth, make
from rank1.simulation.feedback import AT_ONCE, Feedback
from rank1.simulation.known import smallest_start
from rank1.simulation.plan import MAX_RUNS
from rank1.simulation.series import Series, checkpoints_of

__all__ = ["EXAMPLE", "SweepGrid", "grid_of", "read_grid"]

#: The largest number of series; more are surely a mistake, and would take minutes just to list.
MAX_SERIES = 1_000_000
#: The largest total number of levels, over all sides and problems: more would not fit in memory.
MAX_LEVELS = 100_000_000
#: How rewards arrive, for the whole grid: arguments of `Feedback.of`.
FEEDBACK = ("delay", "missing", "batch", "drift", "forgetting")
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
class SweepGrid:
    """Every policy on every problem with every n, `runs` times."""

    problems: Sequence[Problem]
    policies: Sequence[Policy]
    n: Sequence[int]
    runs: int
    seed: int
    checkpoints: int | list[int]
    shuffle: bool = False
    feedback: Feedback = AT_ONCE

    def series(self) -> list[Series]:
        """All combinations, in the order of the result's rows."""
        return [
            Series.of(
                policy,
                problem,
                n,
                self.checkpoints,
                self.seed,
                shuffle=self.shuffle,
                feedback=self.feedback,
            )
            for problem in self.problems
            for policy in self.policies
            for n in self.n
        ]

    @property
    def steps(self) -> int:
        """Steps of all runs together."""
        return len(self.problems) * len(self.policies) * self.runs * sum(self.n)


def read_grid(path: str | os.PathLike[str]) -> SweepGrid:
    """Read a grid from a TOML file; every value is checked before anything is played.

    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "grid.toml"
    >>> size = path.write_text(EXAMPLE)
    >>> len(read_grid(path).series())
    18
    """
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")  # some editors write a byte-order mark
        return grid_of(tomllib.loads(text))
    except (InputError, InputTypeError) as error:
        raise error.within(os.fspath(path)) from None
    except OSError as error:
        raise _unreadable(path, "a readable TOML file", error.strerror) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _unreadable(path, "TOML in UTF-8", str(error)) from None
    except RecursionError:
        raise _unreadable(path, "without lists or tables nested too deeply") from None


def _unreadable(path: Any, expected: str, hint: str | None = None) -> InputError:
    place = os.fspath(path)
    return InputError("the grid", place, expected, hint, got=repr(place))  # not shortened


def grid_of(given: Mapping[str, Any]) -> SweepGrid:
    """The grid that plain values describe, as read from a TOML file.

    >>> grid = grid_of({
    ...     "n": [1000, 2000],
    ...     "problem": [{"name": "bernoulli", "u": [[0.1, 0.9], [0.2, 0.8]], "v": [0.5, 0.6]}],
    ...     "policy": [{"name": "rank1elim", "confidence_scale": [0.5, 1]}]})
    >>> len(grid.problems), [policy.label for policy in grid.policies], grid.runs
    (2, ['rank1elim:confidence_scale=0.5', 'rank1elim'], 20)
    """
    for key in given:
        checks.one_of("a key of the grid", key, ["n", *DEFAULTS, *FEEDBACK, "problem", "policy"])
    for key in ("n", "problem", "policy"):
        if key not in given:
            raise InputError(key, None, "in the grid", got="nothing")
    plain = DEFAULTS | {key: given[key] for key in DEFAULTS if key in given}
    marks = plain["checkpoints"]
    n = [checks.integer("n", value, 1) for value in _dimension("n", given["n"], 0)]
    if len(set(n)) < len(n):
        raise InputError("n", n, "a list with every value once")
    if not isinstance(marks, list):
        marks = checks.integer("checkpoints", marks, 1, 10**6)
    else:
        for value in n:
            checkpoints_of(value, marks)
    checks.boolean("shuffle", plain["shuffle"])
    feedback = Feedback.of(**{key: given[key] for key in FEEDBACK if key in given})
    tables = {kind: _tables(kind, given[kind]) for kind in ("problem", "policy")}
    sizes = {
        kind: sum(math.prod(map(len, table.dimensions.values())) for table in parts)
        for kind, parts in tables.items()
    }
    size = math.prod(sizes.values()) * len(n)
    if size > MAX_SERIES:
        parts = f"{sizes['problem']:,} problems × {sizes['policy']:,} policies"
        got = f"{parts} × {len(n)} values of n = {size:,}"
        raise InputError("the grid", size, f"of at most {MAX_SERIES:,} combinations", got=got)
    levels = sum(map(_levels, tables["problem"]))
    if levels > MAX_LEVELS:
        raise _too_large(levels, f"{levels:,}")
    problems: list[Problem] = _made("problem", tables["problem"])
    policies: list[Policy] = _made("policy", tables["policy"])
    for policy, problem in itertools.product(policies, problems):
        try:
            policy.check(problem.grid)
            smallest_start(policy, problem, n[0])
            feedback.check(policy, problem)
        except (InputError, InputTypeError) as error:
            name = problem.description["name"]
            raise error.within(f"policy {policy.label} on problem {name}") from None
    return SweepGrid(
        problems,
        policies,
        n,
        checks.integer("runs", plain["runs"], 1, MAX_RUNS),
        checks.integer("seed", plain["seed"], 0, None),
        marks,
        plain["shuffle"],
        feedback,
    )


class Table(NamedTuple):
    """A table of a problem or a policy, with the combinations of its settings."""

    name: str
    maker: Callable[..., Any]
    #: The values of each setting.
    dimensions: dict[str, list[Any]]
    #: Settings that equal another.
    ties: dict[str, str]


def _tables(kind: str, given: Any) -> list[Table]:
    if not isinstance(given, list) or not all(isinstance(table, Mapping) for table in given):
        raise InputTypeError(kind, given, f"tables, each under [[{kind}]]")
    if not given:
        raise InputError(kind, given, f"at least one table under [[{kind}]]")
    tables = []
    for table in given:
        if "name" not in table:
            raise InputError(f"every [[{kind}]]", dict(table), "a table with a name")
        name = table["name"]
        maker: Callable[..., Any] = (
            find_policy(name) if kind == "policy" else PROBLEMS[checks.one_of(kind, name, PROBLEMS)]
        )
        dimensions, ties = {}, {}
        for key, value in table.items():
            if key == "name":
                continue
            if isinstance(value, str) and value.startswith("="):
                ties[key] = value[1:].strip()
                continue
            depth = list_depth(maker, key)
            dimensions[key] = _dimension(f"{kind} {name}: {key}", value, depth)
        for key, other in ties.items():
            if other not in dimensions:
                own = ", ".join(dimensions)
                expected = f"equal to a setting that has its own values ({own})"
                raise InputError(key, "=" + other, expected).within(f"{kind} {name}")
        tables.append(Table(name, maker, dimensions, ties))
    return tables


def _dimension(name: str, value: Any, depth: int) -> list[Any]:
    """The values of one setting: a list of values that are `depth` lists deep, or a range."""
    if isinstance(value, Mapping) and {"from", "to"} <= set(value):
        return list(_range(name, value))
    if not isinstance(value, list) or (depth and _depth(value) <= depth):
        return [value]
    if not value:
        raise InputError(name, value, "a list of at least one value")
    return value


def _depth(value: Any) -> int:
    # A list that begins with a word, such as ["beta", 2, 1], is the law of one factor.
    if not isinstance(value, list) or (value and isinstance(value[0], str)):
        return 0
    return 1 + max(map(_depth, value), default=0)


def _range(name: str, given: Mapping[str, Any]) -> Iterator[float]:
    for key in given:
        checks.one_of(f"{name}: a range", key, ("from", "to", "count", "step", "log"))
    log = given.get("log", False)
    if ("count" in given) == ("step" in given) or not isinstance(log, bool):
        raise InputError(name, dict(given), "a range of from, to, and count or step")
    low = checks.number(f"{name}: from", given["from"], *([0.0] if log else []), above=log)
    high = checks.number(f"{name}: to", given["to"], low)
    if "step" in given:
        if log:
            raise InputError(name, dict(given), "a range with count if log is true")
        step = checks.number(f"{name}: step", given["step"], 0, above=True)
        count = math.floor((high - low) / step + 1e-9) + 1
    else:
        count = checks.integer(f"{name}: count", given["count"], 1)
        step = (high - low) / max(count - 1, 1)
    if count > MAX_SERIES:
        raise InputError(name, count, f"a range of at most {MAX_SERIES:,} values", got=f"{count:,}")
    whole = all(isinstance(given[key], int) for key in ("from", "to"))
    for k in range(count):
        value = low * (high / low) ** (k / max(count - 1, 1)) if log else low + k * step
        value = float(f"{value:.12g}")  # 0.1 + 2·0.1 should be 0.3
        yield int(value) if whole and value.is_integer() else value


def _levels(table: Table) -> int:
    """Rows and columns of a table's problems, if K and L are settings, without making the problems.

    >>> from rank1 import spike
    >>> _levels(Table("spike", spike, {"K": [2, 3], "p_u": [0.1, 0.2]}, {"L": "K"}))
    20
    """
    _, _, dimensions, ties = table
    count = math.prod(map(len, dimensions.values()))
    sizes = [dimensions.get(ties.get(name, name), []) for name in ("K", "L")]
    return sum(
        count // len(values) * sum(size for size in values if isinstance(size, int) and size > 0)
        for values in sizes
        if values
    )


def _too_large(levels: int, got: str) -> InputError:
    expected = f"of at most {MAX_LEVELS:,} levels in total, over all sides"
    return InputError("the problems of a grid", levels, expected, got=got)


def _made(kind: str, tables: list[Table]) -> list[Any]:
    made: dict[str, Any] = {}
    levels = 0
    for name, maker, dimensions, ties in tables:
        for values in itertools.product(*dimensions.values()):
            settings = dict(zip(dimensions, values, strict=True))
            settings |= {key: settings[other] for key, other in ties.items()}
            shown = ", ".join(f"{key}={checks.shown(value)}" for key, value in settings.items())
            which = f"{kind} {name} ({shown})" if shown else f"{kind} {name}"
            one = make(which, maker, settings)
            if isinstance(one, Problem):
                levels += sum(one.grid.sizes)
                if levels > MAX_LEVELS:
                    raise _too_large(levels, f"more with {which}")
            told = one.settings if isinstance(one, Policy) else getattr(one, "description", None)
            if repr((name, told)) in made:
                raise InputError(kind, settings, "in the grid once", got=f"{which} twice")
            made[repr((name, told))] = one
    return list(made.values())
