"""Grids: dimensions, ranges, ties, and errors that say what would be right."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

import rank1
from rank1.policies import POLICIES
from rank1.sweeps import grid_of, read_grid
from rank1.sweeps.grid import EXAMPLE
from tests.simulation.support import Named

SPIKE = """
n = 1000
[[problem]]
name = "spike"
K = 4
L = 4
p_u = 0.5
p_v = 0.5
delta_u = 0.2
delta_v = 0.2
[[policy]]
name = "uniform"
"""


def grid(text: str = SPIKE, **changes: str) -> Any:
    """The grid of a text, with some of its lines put another way."""
    lines = []
    for line in text.splitlines():
        name = line.split(" = ")[0]
        lines.append(f"{name} = {changes.pop(name)}" if name in changes else line)
    return grid_of(tomllib.loads("\n".join([*(f"{k} = {v}" for k, v in changes.items()), *lines])))


def settings(some: Any, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(p.description["settings"][name] for name in names) for p in some.problems]


def test_lists_are_dimensions() -> None:
    some = grid(K="[4, 8]", L="[2, 3]", n="[10, 1e3]")
    assert settings(some, "K", "L") == [(4, 2), (4, 3), (8, 2), (8, 3)]
    assert some.n == [10, 1000]
    series = some.series()
    assert [(one.problem.K, one.problem.L, one.n) for one in series][:3] == [
        (4, 2, 10), (4, 2, 1000), (4, 3, 10)
    ]  # fmt: skip
    assert len({one.key for one in series}) == 8
    assert some.steps == 4 * 20 * 1010


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("{ from = 0.1, to = 0.3, count = 3 }", [0.1, 0.2, 0.3]),
        ("{ from = 0.1, to = 0.35, step = 0.1 }", [0.1, 0.2, 0.3]),
        ("{ from = 0.1, to = 0.3, step = 0.1 }", [0.1, 0.2, 0.3]),
        ("{ from = 0.001, to = 0.1, count = 3, log = true }", [0.001, 0.01, 0.1]),
        ("{ from = 0.1, to = 0.1, count = 1 }", [0.1]),
    ],
)
def test_ranges(text: str, values: list[float]) -> None:
    assert [value for (value,) in settings(grid(delta_u=text), "delta_u")] == values


def test_ranges_of_whole_numbers() -> None:
    assert settings(grid(K="{ from = 2, to = 8, step = 3 }"), "K") == [(2,), (5,), (8,)]
    log = "{ from = 4, to = 64, count = 5, log = true }"
    assert settings(grid(K=log), "K") == [(4,), (8,), (16,), (32,), (64,)]
    assert grid(n="{ from = 1000, to = 3000, count = 3 }").n == [1000, 2000, 3000]


def test_a_tie_follows_another_setting() -> None:
    some = grid(K="[4, 8]", L='"=K"', delta_v='"= delta_u"', delta_u="[0.1, 0.2]")
    assert settings(some, "K", "L", "delta_v") == [
        (4, 4, 0.1),
        (4, 4, 0.2),
        (8, 8, 0.1),
        (8, 8, 0.2),
    ]


def test_a_list_of_what_is_itself_a_list_is_a_dimension() -> None:
    def problems(name: str, **settings: Any) -> Any:
        given = {"n": 10, "problem": [{"name": name, **settings}], "policy": [{"name": "uniform"}]}
        return grid_of(given).problems

    one = problems("bernoulli", u=[0.1, 0.9], v=[0.5, 0.6])
    assert [problem.u.tolist() for problem in one] == [[0.1, 0.9]]
    two = problems("bernoulli", u=[[0.1, 0.9], [0.2, 0.8]], v=[[0.5]])
    assert [problem.u.tolist() for problem in two] == [[0.1, 0.9], [0.2, 0.8]]
    law = ["discrete", [0, 1], [0.5, 0.5]]
    (factors,) = problems("factors", u_law=[["beta", 2, 1], law], v_law=[0.5, ["beta", 1, 1]])
    assert (factors.K, factors.L) == (2, 2)
    factors = problems("factors", u_law=[[["beta", 2, 1], 0.5], [0.1, 0.2]], v_law=[0.5])
    assert [problem.K for problem in factors] == [2, 2]
    pair: Any = [[[0.9, 0.1], [0.2, 0.8]]]
    for sides in ((1, 2), (1, 1, 2), (1, 1, 1, 2)):  # of any depth, so always one problem
        (categorical,) = problems("categorical", values=[0, 1], probabilities=pair)
        assert categorical.grid.sizes == sides
        pair = [pair]
    (categorical,) = problems("categorical", values=[0, 1], probabilities=[[pair[0][0][0]] * 3] * 2)
    assert categorical.grid.sizes == (2, 3, 1, 2)
    labels = {"email": 0.1, "push": 0.3}
    campaign = problems("campaign", segments={"a": 0.5}, channels=[labels, labels | {"post": 0.2}])
    assert [problem.L for problem in campaign] == [2, 3]


def test_policies_have_dimensions_and_defaults() -> None:
    some = grid(SPIKE.replace('"uniform"', '"rank1elim"\nconfidence_scale = [0.5, 1, 2]'))
    labels = ["rank1elim:confidence_scale=0.5", "rank1elim", "rank1elim:confidence_scale=2"]
    assert [policy.label for policy in some.policies] == labels
    assert (some.runs, some.seed, some.checkpoints) == (20, 1, 100)


def test_words_are_values_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(POLICIES, "named", Named)
    some = grid(SPIKE.replace('"uniform"', '"named"\nK = ["few", "many"]\nexact = [true, false]'))
    assert [tuple(policy.settings.values()) for policy in some.policies] == [
        (0.6, "few", True), (0.6, "few", False), (0.6, "many", True), (0.6, "many", False)
    ]  # fmt: skip


def test_the_example_is_a_grid(tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(EXAMPLE)
    some = read_grid(tmp_path / "grid.toml")
    assert (len(some.problems), len(some.policies), some.runs) == (6, 3, 10)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nn": "3"}, "a key of the grid must be one of n, runs, .*got 'nn'"),
        ({"n": "0"}, "n must be a whole number of at least 1, got 0"),
        ({"n": "[]"}, "n must be a list of at least one value, got"),
        ({"n": "[10, 10]"}, r"n must be a list with every value once, got \[10, 10\]"),
        ({"runs": "2.5"}, "runs must be a whole number .* at most 10000000, got 2.5"),
        ({"runs": "[1, 2]"}, r"runs must be a whole number of at least 1, got \[1, 2\]"),
        ({"seed": "-1"}, "seed must be a whole number of at least 0, got -1"),
        ({"checkpoints": "0"}, "checkpoints must be a whole number of at least 1"),
        ({"checkpoints": "[10, 5000]"}, "checkpoints must be .* at most 1000, got 5000"),
        ({"K": "[4, 0]"}, r"problem spike \(K=0, L=4, .*K must be a whole number"),
        ({"K": "[]"}, "problem spike: K must be a list of at least one value"),
        ({"K": "[[4]]"}, r"K must be a whole number of at least 1.*got \[4\]"),
        ({"K": "[4, 4]"}, r"problem must be in the grid once, got problem spike \(K=4.* twice"),
        ({"L": '"=M"'}, r"L must be equal to a setting that has its own values \(K, p_u"),
        ({"L": '"=L"'}, "L must be equal to a setting that has its own values"),
        ({"delta_u": "[0.1, 0.6]"}, r"delta_u=0.6.*p_u \+ delta_u must be at most 1"),
        ({"p_u": "{ from = 0.1, to = 0.2 }"}, "p_u must be a range of from, to, and count or step"),
        ({"p_u": "{ from = 0.1, to = 0.2, cont = 2 }"}, "a range must be one of .*mean count"),
        ({"p_u": "{ from = 0.3, to = 0.2, count = 2 }"}, "to must be a number of at least 0.3"),
        ({"p_u": "{ from = 0.0, to = 0.2, count = 2, log = true }"}, "from must be .*above 0"),
        ({"p_u": "{ from = 0.0, to = 0.2, step = 0 }"}, "step must be a number above 0, got 0"),
        ({"p_u": "{ from = 0.0, to = 0.2, step = 1e-9 }"}, "at most 1,000,000 values"),
        ({"K": "{ from = 2, to = 2000, step = 1 }", "L": "{ from = 2, to = 2000, step = 1 }"},
         "at most 1,000,000 combinations, got 3,996,001 problems × 1 policies"),
        ({"runs": "1e12"}, "runs must be .* at most 10000000, got 1000000000000"),
        ({"shuffle": "1"}, "shuffle must be true or false, got 1"),
        ({"K": "{ from = 1, to = 20000, step = 1 }"}, "got 200,090,000"),
        ({"K": "[4, inf]"}, "K must be a whole number .*got inf"),
        ({"K": "[4, nan]"}, "K must be a whole number .*got nan"),
        ({"K": "[4, true]"}, "K must be a whole number .*got True"),
        ({"K": "{ from = 1, to = 1000001, step = 1 }"}, "a range of at most 1,000,000 values"),
        ({"n": "{ from = 1, to = 1001, step = 1 }", "K": "{ from = 2, to = 1001, step = 1 }"},
         "at most 1,000,000 combinations, got 1,000 problems × 1 policies × 1001 values of n"),
    ],
)  # fmt: skip
def test_impossible_values(changes: dict[str, str], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        grid(**changes)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"spike"', '"spik"', "problem must be one of .*did you mean spike"),
        ('name = "spike"', "M = 3", "every .*problem.* must be a table with a name"),
        ("K = 4", "M = 4", r"problem spike \(.*setting must be one of K, L, .*got 'M'"),
        ("K = 4\n", "", r"problem spike \(.*K must be given, got nothing"),
        ('"uniform"', '"uniform"\na = 1', "policy uniform .*settings must be none, got 'a'"),
        ("[[problem]]", "[problem]", r"problem must be tables, each under \[\[problem\]\]"),
        ("n = 1000\n", "", "n must be in the grid, got nothing"),
        ("K = 4", "K = ", "Invalid value"),
    ],
)
def test_impossible_files(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "grid.toml"
    path.write_text(SPIKE.replace(old, new))
    with pytest.raises(rank1.Rank1Error, match=message) as caught:
        read_grid(path)
    assert str(path) in str(caught.value)


def test_problems_that_would_not_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where only making them tells how large they are."""
    monkeypatch.setattr("rank1.sweeps.grid.MAX_LEVELS", 9)
    u = [[0.1, 0.9], [0.2, 0.8], [0.3, 0.7], [0.4, 0.6]]
    problem = {"name": "bernoulli", "u": u, "v": [0.5]}
    given = {"n": 10, "problem": [problem], "policy": [{"name": "uniform"}]}
    with pytest.raises(
        rank1.InputError, match=r"at most 9 levels in total, over all sides, got more wi"
    ):
        grid_of(given)
    assert len(grid_of(given | {"problem": [problem | {"u": u[:3]}]}).problems) == 3


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"must be a readable TOML file, got '.*none': No such file"
    ):
        read_grid(tmp_path / "none")
    (tmp_path / "bad").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="bad"):
        read_grid(tmp_path / "bad")


@pytest.mark.parametrize(
    "policies",
    ['"ucb1"\nconfidence = [2, 2.0]', '"ucb1"\n[[policy]]\nname = "ucb1"\nconfidence = 2'],
)
def test_the_same_policy_twice_is_an_error(policies: str) -> None:
    """Its runs would count twice, and standard errors would come out too small."""
    with pytest.raises(
        ValueError, match=r"policy must be in the grid once, got policy ucb1 .*twice"
    ):
        grid(SPIKE.replace('"uniform"', policies))


@pytest.mark.parametrize(
    ("problem", "policy", "message"),
    [
        (
            '"gaussian"\nu = [0.5]\nv = [0.5]\nsigma = 1',
            '"uts"',
            r"uts on problem gaussian: rewards must be in \[0, 1\] for uts",
        ),
        (
            '"bernoulli"\nu = [0.0]\nv = [0.5]',
            '"glm_ucb"',
            "glm_ucb on problem bernoulli: c_mu must",
        ),
    ],
)
def test_a_policy_that_can_not_play_a_problem_is_told_at_once(
    problem: str, policy: str, message: str
) -> None:
    text = f"n = 10\n[[problem]]\nname = {problem}\n[[policy]]\nname = {policy}\n"
    with pytest.raises(ValueError, match=message):
        grid(text)


def test_a_grid_in_another_encoding(tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_bytes("# é\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"the grid must be TOML in UTF-8, got '.*grid.toml'"):
        read_grid(tmp_path / "grid.toml")


def test_a_mark_at_the_start_of_a_grid(tmp_path: Path) -> None:
    """Some editors put a BOM there."""
    (tmp_path / "grid.toml").write_bytes(b"\xef\xbb\xbf" + SPIKE.encode())
    assert len(read_grid(tmp_path / "grid.toml").series()) == 1


def test_deep_nesting_is_told(tmp_path: Path) -> None:
    path = tmp_path / "grid.toml"
    for text in (
        "n = " + "[" * 20_000,
        "n = " + "[" * 200 + "]" * 200,
        "[a" + ".a" * 10_000 + "]",
    ):
        path.write_text(text)
        with pytest.raises(rank1.InputError, match=r"grid.toml"):
            read_grid(path)
    path.write_text(SPIKE.replace("K = 4", "K = " + "[" * 200 + "4" + "]" * 200))
    with pytest.raises(rank1.InputTypeError, match="K must be a whole number"):
        read_grid(path)


SIDES = """
n = 300
runs = 2
checkpoints = 1
[[problem]]
name = "product"
factors = [[[0.9, 0.4], [0.8, 0.5]], [[0.9, 0.4], [0.8, 0.5], [0.9, 0.3]]]
[[problem]]
name = "means"
means = [[0.5, 0.1], [0.1, 0.52]]
[[policy]]
name = "uts"
[[policy]]
name = "tests.simulation.support:Named"
step = [0.25, 0.5]
"""


@pytest.mark.usefixtures("uncompiled")
def test_problems_with_any_number_of_sides_and_policies_of_others() -> None:
    """Lists of factors are two deep, so that one more is a dimension; means are always one grid."""
    some = grid(SIDES)
    assert [problem.grid.sizes for problem in some.problems] == [(2, 2), (2, 2, 2), (2, 2)]
    assert [policy.label for policy in some.policies] == [
        "uts",
        "named:step=0.25",
        "named:step=0.5",
    ]
    found = rank1.sweep(some, jobs=1)
    frame = found.frame.collect()
    assert frame["sides"].unique(maintain_order=True).to_list() == ["[2, 2]", "[2, 2, 2]"]
    assert frame.filter(sides="[2, 2, 2]", policy="uts")["best_arm"].to_list() == [0, 0]
    assert found.summary()["runs"].to_list() == [2] * 9


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"uts"', '"rank1elim"', r"policy rank1elim on problem product: sides must be 2 .*2×2×2"),
        ("0.5]], [", "1.5]], [", r"product \(factors=.*factors\[1\]\[1\] must be .*got 1.5"),
        ("[0.1, 0.52]]", "[0.1]]", r"problem means \(.*means must be an array of probabilities"),
        ("support:Named", "support:Nobody", "policy must be a class that can be imported"),
        ("support:Named", "support:ROOT", "policy must be the name of a class derived from"),
        ("step = [", "stop = [", "setting must be one of step, K, exact, got 'stop'"),
    ],
)
def test_impossible_sides_and_policies(old: str, new: str, message: str) -> None:
    with pytest.raises(rank1.Rank1Error, match=message):
        grid(SIDES.replace(old, new, 1))
