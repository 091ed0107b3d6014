"""The readable version of each algorithm, line by line, for comparison."""
