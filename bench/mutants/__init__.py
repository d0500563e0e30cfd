"""Random mutants of library code whose truth is known by construction: see bench/mutants.py."""
