"""Parallel programs computed unsharded: docs/design/simulate.md."""
