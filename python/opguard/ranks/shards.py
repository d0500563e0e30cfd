"""Fingerprints of a tensor's shards joined to that of the whole, without it: docs/formats/record-format.md, og1.

    combine([(h0, m0), (h1, m1)], dim=-2, sizes=4)      of [8, 16] cut into two [4, 16]: h0 + g^4 h1, m0 + m1

og1's h weighs each place of a dimension by a power of that dimension's g, modulo 2^64. So a shard that begins at `o`
counts as the shard alone, times g^o. The other half, m, is a sum over rows that knows no place.

Counterexample: along the last dimension places are counted in lanes of 8, 4, 2 or 1 bytes. Shards whose lanes have
another width cannot be joined. The cost: a power modulo 2^64 for each shard; no tensor is touched."""

_M64 = (1 << 64) - 1


def _base(dim):
    """g of the dimension `dim` places before the last."""
    z = (dim + 1) * 0x9E3779B97F4A7C15 & _M64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _M64
    z = (z ^ z >> 27) * 0x94D049BB133111EB & _M64
    return (z ^ z >> 31) & ~7 | (3 if dim % 2 else 5)


def _lane(row_bytes):
    """Bytes of a lane in a row of so many."""
    return next(w for w in (8, 4, 2, 1) if row_bytes % w == 0)


def combine(fingerprints, dim, sizes=None, offsets=None, *, ndim=None, element_size=None):
    """The og1 fingerprint (h, m) of the tensor whose shards along `dim` have these fingerprints.

    fingerprints: (h, m) of each shard, all of one dtype and equal in every other dimension.
    dim: negative, counted from the last; not negative only where `ndim` says of how many dimensions.
    sizes: the shards' sizes along dim, in elements; one number if they are equal. The shards follow one another in the order given.
    offsets: instead, or for shards in any order or with gaps of zeros: where each begins along dim, in elements.

    Along the last dimension `sizes` and `element_size` (bytes) are needed too, and the rows of every shard and of the
    whole must have lanes equally wide (ValueError if not: read the whole instead); m cannot be told there and is None, as
    it is wherever a shard's is. Shards that overlap are not seen: what is in two of them counts twice.
    """
    fingerprints = list(fingerprints)
    if dim >= 0:
        if ndim is None or dim >= ndim:
            raise ValueError("dim counts from the last and is negative, or ndim says of how many dimensions")
        dim -= ndim
    place = -1 - dim
    if sizes is None and offsets is None:
        raise ValueError("either sizes or offsets say where the shards lie")
    if sizes is not None:
        sizes = [sizes] * len(fingerprints) if isinstance(sizes, int) else list(sizes)
    if offsets is None:
        offsets = [sum(sizes[:i]) for i in range(len(sizes))]
    offsets = list(offsets)
    if len(offsets) != len(fingerprints) or sizes is not None and len(sizes) != len(fingerprints):
        raise ValueError(f"{len(fingerprints)} shards, {len(offsets if sizes is None else sizes)} places")
    if min(offsets, default=0) < 0 or sizes is not None and min(sizes, default=0) < 0:
        raise ValueError("sizes and offsets are not negative")
    per_element = 1
    if place == 0:
        if sizes is None or element_size is None:
            raise ValueError("along the last dimension sizes and element_size are needed")
        whole = max((o + n for o, n in zip(offsets, sizes)), default=0)
        rows = [n * element_size for n in [*sizes, *offsets, whole] if n]
        lane = _lane(whole * element_size)
        if any(row % lane for row in rows) or any(_lane(n * element_size) != lane for n in sizes if n):
            raise ValueError(f"lanes of the shards and of the whole differ in width (whole: {lane} bytes): "
                             "their fingerprints cannot be joined")  # fmt: skip
        per_element = element_size / lane
    h = sum(pow(_base(place), int(o * per_element), 1 << 64) * f[0] for o, f in zip(offsets, fingerprints)) & _M64
    if place == 0 or any(f[1] is None for f in fingerprints):
        return h, None
    return h, sum(f[1] for f in fingerprints) & _M64
