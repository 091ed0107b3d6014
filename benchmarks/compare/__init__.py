"""The same grids through what people use instead: `make compare` writes docs/compare.md.

`game` is what all of them play; each `with_*` has the code that a user of a package would write,
and runs in an environment of that package's own (`run`); `page` makes tables of what comes back.
"""
