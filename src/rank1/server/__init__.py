"""Live studies over HTTP, with a page that shows them; what `rank1 serve` runs."""

from __future__ import annotations
