"""What libraries declare of how ranks hold a tensor, as text for the log (mode `sketch`). Nobody is asked to compute it.

    DTensor.placements, device_mesh       "_StridedShard(0, 2), Shard(0) over 2x2 ranks 0-3"
    Megatron's attributes of a parameter  "Shard(0) over 2 ranks 0-1 as tensor_model_parallel, partition_dim 0"
                                          "Replicate() over 2 ranks 0-1 as sequence_parallel"

The grammar is `placements [over MESH ranks RANKS] [as WORDS]`, a placement for each dimension of the mesh. RANKS come
in the mesh's order. A text is a string of the log, so that it is written once.

Counterexample: a gradient in Megatron's `main_grad` is a plain tensor. Its parameter's attributes speak for it, also of
sums: behind a step's reductions what is no tensor parallel has to be the same on all ranks of the group.

The cost: 2 us a DTensor, nothing of other tensors. Nothing is imported, and nothing communicates: a mesh is a tensor
that the process has, and a group's ranks are in its tables.
"""

import sys

_meshes = {}  # id -> (mesh, text): meshes live as long as the program
# Of these the order of the fields is ours; of other placements the class alone is told.
_FIELDS = {
    "Shard": ("dim",), "_StridedShard": ("dim", "split_factor"), "Replicate": (), "Partial": ("reduce_op",),
}  # fmt: skip


def of_tensor(tensor):
    """Of a DTensor; None of what is none. Never raises."""
    try:
        library = sys.modules.get("torch.distributed.tensor")
        if library is None or type(tensor) is not library.DTensor:
            return None
        spec = tensor._spec
        return "%s over %s" % (", ".join(map(_placement, spec.placements)), _mesh(spec.mesh))
    except Exception:  # another torch's: then it declares nothing that is known
        return None


def _placement(placement):
    kind = type(placement).__name__
    return "%s(%s)" % (kind, ", ".join(str(getattr(placement, field)) for field in _FIELDS.get(kind, ())))


def _mesh(mesh):
    known = _meshes.get(id(mesh))
    if known is None or known[0] is not mesh:
        ranks = mesh.mesh
        text = "%s ranks %s" % ("x".join(map(str, ranks.shape)), _ranges(ranks.flatten().tolist()))
        known = _meshes[id(mesh)] = (mesh, text)
    return known[1]


def _ranges(ranks):
    """[0, 1, 2, 5] -> "0-2,5"."""
    parts = []
    for rank in ranks:
        if parts and rank == parts[-1][1] + 1:
            parts[-1][1] = rank
        else:
            parts.append([rank, rank])
    return ",".join(str(first) if first == last else "%d-%d" % (first, last) for first, last in parts)


def of_parameter(parameter):
    """Of a parameter by Megatron's attributes; None where it has none, as a DTensor that speaks for itself."""
    try:
        held = object.__getattribute__(parameter, "__dict__")
        if "tensor_model_parallel" not in held and "sequence_parallel" not in held:
            return None
        words, placement = [], "Replicate()"
        if held.get("tensor_model_parallel"):
            dim = int(held["partition_dim"])
            placement = "Shard(%d)" % dim
            words += ["tensor_model_parallel", "partition_dim %d" % dim]
            if held.get("partition_stride", 1) != 1:
                words.append("partition_stride %d" % int(held["partition_stride"]))
        words += ["sequence_parallel"] if held.get("sequence_parallel") else []
        expert = held.get("allreduce") is False
        words += ["allreduce False"] if expert else []
        ranks = _group(expert)
        over = "" if ranks is None else " over %d ranks %s" % (len(ranks), _ranges(ranks))
        return placement + over + " as " + ", ".join(words or ["tensor_model_parallel False"])
    except Exception:
        return None


def _group(expert):
    """The ranks over which Megatron cuts parameters, of experts those over which it cuts these; None: it says nothing."""
    state = sys.modules.get("megatron.core.parallel_state")
    if state is None:
        return None
    group = state.__dict__.get("_EXPERT_TENSOR_PARALLEL_GROUP" if expert else "_TENSOR_MODEL_PARALLEL_GROUP")
    return None if group is None else sys.modules["torch.distributed"].get_process_group_ranks(group)
