"""Sides, shares and bets."""
