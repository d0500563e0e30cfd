"""Ranks of a mesh, and which of them stand for all.

    mesh [64, 16, 8]    64 data-parallel by 16 pipeline by 8 tensor-parallel ranks, the last the fastest: rank 8 is [0, 1, 0]

At full dims not every rank is looked at. Those on the axes through rank 0 are, and the last rank of all: of an axis that is
shorter at reduced dims, its last rank alone. Of those 8,192 these are 19, where only the pipeline is as long at reduced dims.
"""

import math


def coordinates(rank, mesh):
    """Rank 8 of a mesh [64, 16, 8] is [0, 1, 0]: the last axis is the fastest."""
    found = []
    for extent in reversed(mesh):
        found.insert(0, rank % extent)
        rank //= extent
    return found


def number(at, mesh):
    """The inverse of coordinates()."""
    rank = 0
    for coordinate, extent in zip(at, mesh):
        rank = rank * extent + coordinate
    return rank


def star(mesh, reduced):
    """Ranks along each axis, the others at 0; and the last."""
    origin = [0] * len(mesh)
    found = {0, math.prod(mesh) - 1}
    for axis, extent in enumerate(mesh):
        for coordinate in range(extent) if reduced[axis] == extent else (extent - 1,):
            found.add(number(origin[:axis] + [coordinate] + origin[axis + 1 :], mesh))
    return sorted(found)


def twin(rank, mesh, reduced):
    """The rank of a smaller mesh that is in the same place: at the same coordinate, and the last where it is the last."""
    at = [small - 1 if coordinate and coordinate == extent - 1 else min(coordinate, small - 1) for coordinate, extent, small in zip(coordinates(rank, mesh), mesh, reduced)]
    return number(at, reduced)
