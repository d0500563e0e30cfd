"""Which dispatched operators compute: the one definition behind every share of coverage.

An operator computes unless it only looks at a tensor or makes room for one. Such a one returns nothing but views of its
arguments, allocates memory without a value, asks for metadata, or is torch's own bookkeeping. Everything else
computes, copies and random numbers too."""

# Torch's own bookkeeping, and our marks.
_NAMESPACES = ("prim", "profiler", "opguard")

_ALLOCATE = "empty empty_like empty_strided empty_permuted empty_quantized _empty_affine_quantized new_empty new_empty_strided resize_ resize_as_ set_"
# Views and aliases whose schema does not say so.
_VIEW = "detach_ _unsafe_view _reshape_alias lift lift_fresh"
_METADATA = (
    "is_same_size is_pinned is_set_to is_coalesced _is_zerotensor _has_same_storage_numel _version record_stream requires_grad_ "
    "size stride numel dim storage_offset sym_size sym_stride sym_numel sym_storage_offset sym_is_contiguous"
)
_NAMES = frozenset("aten::" + name for name in " ".join((_ALLOCATE, _VIEW, _METADATA)).split())


def computes(name, func=None):
    """name: as in the schema, with the overload ("aten::add.Tensor"); func: the OpOverload, if it is one."""
    base = name.partition(".")[0]
    if base in _NAMES or base.partition("::")[0] in _NAMESPACES:
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
