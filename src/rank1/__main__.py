"""`python -m rank1` is the command line."""

from rank1.cli import main

main()
