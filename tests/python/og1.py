"""The fingerprints and the digest as docs/formats/record-format.md defines them, in numpy, on bytes in logical order."""
import numpy

M64 = (1 << 64) - 1


def base(dim):
    z = (dim + 1) * 0x9E3779B97F4A7C15 & M64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & M64
    z = (z ^ z >> 27) * 0x94D049BB133111EB & M64
    return (z ^ z >> 31) & ~7 | (3 if dim % 2 else 5)


def mix(x):
    x = x ^ x >> numpy.uint64(29)
    x = x * numpy.uint64(0xD6E8FEB86659FD93)
    return x ^ x >> numpy.uint64(32)


def powers(dim, n):
    p = numpy.full(n, base(dim), dtype=numpy.uint64)
    p[:1] = 1
    return numpy.multiply.accumulate(p)


def og1(array):
    """(h, m). array: uint8, the tensor's shape + (bytes of an element,)."""
    shape, size = array.shape[:-1], array.shape[-1]
    if 0 in shape:
        return 0, 0
    row_bytes = (shape[-1] if shape else 1) * size
    lane = next(w for w in (8, 4, 2, 1) if row_bytes % w == 0)
    rows = numpy.ascontiguousarray(array).reshape(-1, row_bytes)
    lanes = rows.view("<u%d" % lane).astype(numpy.uint64)
    hashes = (mix(lanes) * powers(0, lanes.shape[1])).sum(axis=1, dtype=numpy.uint64)
    m = int(mix(hashes).sum(dtype=numpy.uint64))
    h = hashes.reshape(shape[:-1])
    for dim in range(1, len(shape)):  # the last remaining dimension is number `dim` from the end
        h = (h * powers(dim, h.shape[-1])).sum(axis=-1, dtype=numpy.uint64)
    return int(h), m


def flat(array):
    return og1(numpy.ascontiguousarray(array).reshape(-1, array.shape[-1]))[0]


def narrow_terms(values):
    """What numbers add to the digest that float32 holds."""
    values = numpy.asarray(values, numpy.float32).reshape(-1)
    x = values.view(numpy.uint32).copy()
    x[values == 0] = 0
    x[numpy.isnan(values)] = 0xFFC00000
    x ^= x >> numpy.uint32(15)
    x *= numpy.uint32(0x2C1B3C6D)
    x ^= x >> numpy.uint32(15)
    x *= numpy.uint32(0x297A2D39)
    return x.astype(numpy.uint64) ** numpy.uint64(2)


def wide_terms(bits):
    y = mix(bits)
    return y * (numpy.uint64(2) * y + numpy.uint64(1))


def digest(values):
    """values: a numpy array of floats, integers, bools or complex numbers."""
    values = numpy.ascontiguousarray(values).reshape(-1)
    if values.dtype.kind == "c":
        values = values.view(values.real.dtype)
    with numpy.errstate(all="ignore"):
        wide = values.astype(numpy.float64)
        terms = wide_terms(wide.view(numpy.uint64))
        narrow = numpy.isnan(wide) | (wide == wide.astype(numpy.float32))
        terms[narrow] = narrow_terms(wide[narrow])
        if values.dtype.kind in "iu":
            rounded = numpy.array([int(a) != int(b) for a, b in zip(wide.tolist(), values.tolist())], bool)
            terms[rounded] = wide_terms(values[rounded].astype(numpy.uint64))
    return int(terms.sum(dtype=numpy.uint64))


def xor(array, width):
    data = numpy.ascontiguousarray(array).reshape(-1)
    words = numpy.concatenate([data, numpy.zeros(-len(data) % width, numpy.uint8)]).view("<u%d" % width)
    return int(numpy.bitwise_xor.reduce(words)) if len(words) else 0
