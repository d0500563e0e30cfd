"""Which dispatched operators compute: the one definition behind every share of coverage.

An operator computes unless it only looks at a tensor or makes room for one. Such a one returns nothing but views of its
arguments, allocates memory without a value, asks for metadata, or is torch's own bookkeeping. Everything else
computes, copies and random numbers too."""

from opguard import operators

# Torch's own bookkeeping, and our marks.
_NAMESPACES = ("prim", "profiler", "opguard")


def computes(name, func=None):
    """name: as in the schema, with the overload ("aten::add.Tensor"); func: the OpOverload, if it is one."""
    namespace, _, last = name.partition(".")[0].partition("::")
    if namespace in _NAMESPACES or namespace == "aten" and operators.only_looks(last):
        return False
    return not _returns_views(getattr(func, "_schema", None))


def _returns_views(schema):
    """Every result is an alias of an argument that is not written: slices, transposes, splits."""
    try:
        aliases = [result.alias_info for result in schema.returns]
    except AttributeError:
        return False
    return bool(aliases) and all(alias is not None and not alias.is_write for alias in aliases)


_computes = {}


def computes_cached(name, func):
    known = _computes.get(name)
    if known is None:
        known = _computes[name] = computes(name, func)
    return known
