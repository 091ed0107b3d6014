"""The same grids, played with the usual alternatives: `make compare` writes docs/compare.md.

`game` is the game that all of them play. Each `with_*` has the code that a user of a package would
write, and runs in that package's own environment (`run`). `page` makes tables of the results.
"""
