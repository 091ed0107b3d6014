"""Samplers for Optuna that let a policy suggest several categorical parameters together."""

from __future__ import annotations

from rank1.errors import MissingPackageError, extra

try:
    import optuna as _optuna  # noqa: F401
except ModuleNotFoundError as error:
    raise MissingPackageError(
        f"rank1.optuna needs {error.name}", extra("optuna"), name=error.name
    ) from None

from rank1.optuna.sampler import ArmSampler, PairSampler

__all__ = ["ArmSampler", "PairSampler"]
