"""The HTTP service for live studies and its web pages, started by `rank1 serve`."""

from __future__ import annotations
