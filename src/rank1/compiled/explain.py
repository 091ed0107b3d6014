"""Numba's errors in one line."""

from __future__ import annotations

from typing import Any


def explain(error: Exception, *arguments: Any) -> Exception:
    return error
