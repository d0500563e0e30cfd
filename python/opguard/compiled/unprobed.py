"""Operators that ran without their probe, by the reason: told in the log's header, never silent."""

_counts = {}


def count(reason):
    _counts[reason] = _counts.get(reason, 0) + 1


def counts():
    return dict(_counts)
