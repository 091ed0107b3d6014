"""Low-rank completion: fill in a matrix of which only some entries are known."""

from __future__ import annotations

from rank1.paper.completion.optspace import Completion, optspace
from rank1.paper.completion.rank import guess_rank

__all__ = ["Completion", "guess_rank", "optspace"]
