"""Faults of DTensor plans, FSDP2 and DDP. The reference is the same program in one process."""
FILES = ["model.py", "parallel.py", "train.py"]
COMMON = {"reference": "train.py", "candidate": "train.py", "ranks": 2, "held_out": True}
M, P, T = "model.py", "parallel.py", "train.py"
TP, DDP, FSDP, BOTH = {"args": "--tp 2"}, {"args": "--dp 2"}, {"args": "--dp 2 --fsdp"}, {"args": "--dp 2 --fsdp --tp 2", "ranks": 4}
CASES = {
    "control_tp": dict(
        kind="none", **TP, note="sequence parallelism, a feed-forward part written with from_local and to_local, cross entropy over parts of the words"),
    "control_fsdp": dict(kind="none", **FSDP, note="a scalar that FSDP2 does not take, gradients that go around once for two micro-batches"),
    "places_offset": dict(
        kind="wrong_data", **TP,
        edits=[(M, "        first = self.part * x.shape[1]\n", ""), (M, "local(self.weight)[first : first + x.shape[1]]", "local(self.weight)[: x.shape[1]]")],
        exact=[(M, "Places.forward", "rows = local(self.weight)[: x.shape[1]]"), (M, "Places.forward", "return x + rows")], near=[(M, "Places.forward", "")],
        module="places", note="every rank counts the positions of its part of the sequence from 0"),
    "partial_as_whole": dict(
        kind="missing_reduce", **TP,
        edits=[(P, "total = DTensor.from_local(made, mesh, [Partial()])", "total = DTensor.from_local(made, mesh, [Replicate()])")],
        exact=[(P, "HiddenParallel.leave", "total = DTensor.from_local(made, mesh, [Replicate()])"), (P, "HiddenParallel.leave", "return total.redistribute(")],
        near=[(P, "HiddenParallel.leave", ""), (M, "FeedForward.forward", "")], module="blocks.0.ffn",
        note="what each rank made of its hidden units is called the whole: a part of it is taken, and nothing added"),
    "tied_once": dict(
        kind="untied", phase="backward", **TP,
        edits=[(P, "    model.tie()  # each of the two modules was given a parameter of its own\n", "")],
        exact=[(P, "tensor_parallel", "parallelize_module(model, mesh, {"), (M, "Model.forward", "return self.head("),
               (M, "Model.forward", "x = self.places(self.words(tokens))")], near=[(P, "tensor_parallel", ""), (M, "Model.forward", ""), (M, "Model.tie", "")],
        module="head", note="tied before parallelize_module, which gives each of the two modules a parameter of its own"),
    "sync_first": dict(
        kind="missing_reduce", phase="backward", **DDP,
        edits=[(P, "elif isinstance(model, DistributedDataParallel) and not last:", "elif isinstance(model, DistributedDataParallel) and last:")],
        exact=[(P, "accumulating", "elif isinstance(model, DistributedDataParallel) and last:"), (P, "accumulating", "return model.no_sync()"),
               (T, "main", "with accumulating(model, last)"), (T, "main", "(loss * layout.size).backward()")], near=[(P, "accumulating", ""), (T, "main", "")],
        module="", note="gradients go around with the first micro-batch; those of the last are added on each rank alone"),
    "heat_alone": dict(
        kind="missing_reduce", phase="backward", **FSDP,
        edits=[(P, "        dist.all_reduce(grad, group=layout.dp.get_group())\n        grad.div_(layout.size)\n", "        grad.div_(layout.size)\n")],
        exact=[(P, "finish", "grad.div_(layout.size)"), (P, "finish", "grad = model.heat.grad.to_local()"),
               (P, "fully_sharded", "return fully_shard(model, mesh=mesh"), (M, "Model.forward", "return self.head(self.norm(x) * local(self.heat))")],
        near=[(P, "finish", ""), (P, "fully_sharded", ""), (M, "Model.forward", "")], module="",
        note="a parameter that FSDP2 ignores: nobody adds up its gradient over the ranks"),
    "block_policy": dict(
        kind="precision", phase="backward", **FSDP,
        edits=[(P, "fully_shard(block, mesh=mesh, mp_policy=FULL)",
                "fully_shard(block, mesh=mesh, mp_policy=MixedPrecisionPolicy(reduce_dtype=torch.bfloat16))")],
        exact=[(P, "fully_sharded", "fully_shard(block, mesh=mesh, mp_policy=MixedPrecisionPolicy("), (T, "main", "(loss * layout.size).backward()")],
        near=[(P, "fully_sharded", ""), (T, "main", "")], module="blocks.1",
        note="blocks keep the policy of another recipe: their gradients are added up in bfloat16"),
    "rank_of_world": dict(
        kind="diverged_replicas", **BOTH,
        edits=[(T, "for number in range(layout.rank, MICRO, layout.size)]", "for number in range(dist.get_rank() % layout.size, MICRO, layout.size)]")],
        exact=[(T, "mine", "return [micro_batch(step, number) for number in range(dist.get_rank() %"), (T, "micro_batch", "words = torch.randint("),
               (T, "main", "batches, report = mine(")], near=[(T, "mine", ""), (T, "micro_batch", "")], module="",
        note="of four ranks in two rows the last digit is the tensor-parallel one: two halves of one model read other words"),
    "words_of_world": dict(
        kind="wrong_reduce", **BOTH,
        edits=[(T, "dist.all_reduce(said, group=layout.dp.get_group())", "dist.all_reduce(said)")],
        exact=[(T, "count", "dist.all_reduce(said)"), (T, "loss_of", "return total / said")], near=[(T, "count", ""), (T, "loss_of", "")], module="",
        note="words are counted over all ranks, and two of them have the same words: the loss is half"),
}  # fmt: skip
