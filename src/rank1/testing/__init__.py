"""Test your own policy or problem: everything that rank1's own must do, as plain functions.

>>> import rank1
>>> from rank1.testing import check_policy, check_problem
>>> check_policy(rank1.Uniform())
>>> check_problem(rank1.Bernoulli([0.2, 0.9], [0.5, 0.7]))

They return nothing, or raise an AssertionError that says what is wrong. To get one pytest result
per check:

    from rank1.testing import POLICY_CHECKS

    @pytest.mark.parametrize("check", POLICY_CHECKS)
    def test_contract(check):
        check(Mine())

`play_compiled` and `play_plain` return every choice of a run, to compare a fast version with a
literal one.
"""

from rank1.testing.play import play_compiled, play_plain
from rank1.testing.policies import POLICY_CHECKS, check_policy
from rank1.testing.problems import PROBLEM_CHECKS, check_problem

__all__ = [
    "POLICY_CHECKS",
    "PROBLEM_CHECKS",
    "check_policy",
    "check_problem",
    "play_compiled",
    "play_plain",
]
