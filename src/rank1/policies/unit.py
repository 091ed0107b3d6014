"""For policies that read a reward as a probability."""

from __future__ import annotations

from rank1.policies.base import Known

__all__ = ["require_unit_rewards"]


def require_unit_rewards(policy: str, known: Known) -> None:
    """Refuse a problem whose rewards may lie outside [0, 1].

    >>> require_unit_rewards("uts", Known(K=2, L=2, n=10, low=0.0, high=5.0))
    Traceback (most recent call last):
    ...
    ValueError: uts needs rewards in [0, 1], but here they lie in [0, 5]; scale them to [0, 1] or take a policy for any noise, like rank1elim
    """  # noqa: E501
    if known.low < 0 or known.high > 1:
        raise ValueError(
            f"{policy} needs rewards in [0, 1], but here they lie in "
            f"[{known.low:g}, {known.high:g}]; scale them to [0, 1] or take a policy for any "
            "noise, like rank1elim"
        )
