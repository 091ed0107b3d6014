"""`python -m rank1`, and the command `rank1`."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; also handles Ctrl-C while it is still loading."""
    try:
        from rank1.cli import main as run

        run()
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
