"""Parallel plans proved equal to their logical model: what is captured in Python, for the checker in C++."""
