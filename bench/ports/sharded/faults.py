"""Faults of a DTensor plan, of FSDP2, of both, of DDP. The reference is the same program in one process."""
FILES = ["model.py", "layout.py", "train.py"]
COMMON = {"reference": "train.py", "candidate": "train.py", "ranks": 2, "held_out": True}
M, L, T = "model.py", "layout.py", "train.py"
TP, FSDP, DDP, BOTH = {"args": "--tp 2"}, {"args": "--fsdp 2"}, {"args": "--ddp 2"}, {"args": "--fsdp 2 --tp 2", "ranks": 4}
BACKWARD = (T, "step_of", "(loss * layout.averages).backward()")
CASES = {
    "control_tp": dict(kind="none", **TP, note="rows of one matrix in another order, norms over cut heads, a loss over cut words and one over all of them"),
    "control_both": dict(kind="none", **BOTH, note="FSDP2 adds gradients up and does not average them; its factor is set module by module"),
    "gate_up_rows": dict(
        kind="wrong_layout", **TP,
        edits=[(L, "    weight = block.ffn.gate_up.weight\n    weight.data = by_ranks(weight.data, mesh.size())\n", "")],
        exact=[(M, "FeedForward.forward", "gate, up = self.gate_up(x).chunk(2, -1)"), (M, "FeedForward.forward", "return self.down(F.silu(gate) * up)"),
               (L, "plan", "parallelize_module(block, mesh, {")],
        near=[(M, "FeedForward.forward", ""), (L, "plan", ""), (L, "by_ranks", "")], module="blocks.0.ffn",
        note="two matrices in one are cut as one: the first rank has all the gate's rows, the second all of up's"),
    "heads_everywhere": dict(
        kind="missing_reduce", phase="backward", **TP,
        edits=[(L, '"attention.q_norm": SequenceParallel(sequence_dim=2, use_local_output=True),  # which cuts the heads here\n',
                '"attention.q_norm": Everywhere(Replicate()),\n'),
               (L, '"attention.k_norm": SequenceParallel(sequence_dim=2, use_local_output=True),\n', '"attention.k_norm": Everywhere(Replicate()),\n')],
        exact=[(L, "plan", '"attention.q_norm": Everywhere('), (L, "Everywhere.enter", "return DTensor.from_local("),
               (M, "Attention.forward", "rotate(self.q_norm(q), cos, sin)"), BACKWARD, (T, "step_of", "p.grad = p.grad.redistribute(")],
        near=[(L, "plan", ""), (L, "Everywhere.enter", ""), (L, "Everywhere.leave", ""), (M, "Attention.forward", ""), (T, "step_of", "")],
        module="blocks.2.attention", note="a rank's heads are called all heads: the gradients of the norms' weights are each rank's own"),
    "calm_here": dict(
        kind="missing_reduce", **TP,
        edits=[(T, "    total = whole(logits).logsumexp(-1)\n",
                "    total = (logits.to_local() if isinstance(logits, DTensor) else logits).logsumexp(-1)\n")],
        exact=[(T, "loss_of", "total = (logits.to_local()"), (T, "loss_of", "calm = total[")], near=[(T, "loss_of", "")], module="",
        note="the logarithm of the sum over this rank's half of the words"),
    "first_block_half": dict(
        kind="precision", **FSDP,
        edits=[(L, "    for block in model.blocks:\n        fully_shard(block, mesh=mesh, mp_policy=FULL)\n",
                "    half = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32, output_dtype=torch.float32)\n"
                "    for block in model.blocks:\n        fully_shard(block, mesh=mesh, mp_policy=FULL if block is not model.blocks[0] else half)\n")],
        exact=[(L, "fully_sharded", "fully_shard(block, mesh=mesh, mp_policy=FULL if"), (L, "fully_sharded", "half = MixedPrecisionPolicy("),
               (M, "Model.forward", "x = block(x, self.cos, self.sin)"), (M, "Block.forward", "x = x + self.attention(self.norm1(x), cos, sin)")],
        near=[(L, "fully_sharded", ""), (M, "Model.forward", ""), (M, "Block.forward", "")], module="blocks.0",
        note="one block is computed in bfloat16, and what it gives and its gradients are float32 again"),
    "seen_alone": dict(
        kind="missing_reduce", **FSDP, edits=[(T, "raw(model).seen += layout.add_up(counts)", "raw(model).seen += counts")],
        exact=[(T, "step_of", "raw(model).seen += counts"), (T, "loss_of", "rare = (1 + seen).rsqrt()"), (T, "step_of", "counts, report = frequencies(")],
        near=[(T, "step_of", ""), (T, "loss_of", ""), (T, "frequencies", "")], module="",
        note="a buffer: each rank counts the words it has itself, and from the second step on the ranks weigh words differently"),
    "early_optimizer": dict(
        kind="omits", phase="optimizer", **FSDP,
        edits=[(T, "    model = layout.wrap(Model())\n", "    model = Model()\n"),
               (T, "weight_decay=0.1, foreach=False)\n", "weight_decay=0.1, foreach=False)\n    model = layout.wrap(model)\n")],
        exact=[(T, "main", "optimizer = torch.optim.AdamW("), (T, "main", "model = layout.wrap(model)"), (T, "step_of", "optimizer.step()"),
               (L, "fully_sharded", "fully_shard(model, mesh=mesh"), (L, "fully_sharded", "fully_shard(block, mesh=mesh")],
        near=[(T, "main", ""), (T, "step_of", ""), (L, "fully_sharded", "")], module="",
        note="the optimizer has the parameters of before fully_shard, which have no gradients: it updates nothing"),
    "divides_in_blocks": dict(
        kind="scale", phase="backward", **BOTH,
        edits=[(L, "    for part in model.modules():\n        if isinstance(part, FSDPModule):\n            part.set_gradient_divide_factor(1.0)\n"
                   "            part.set_force_sum_reduction_for_comms(True)  # gloo has no scaled sum\n",
                "    model.set_gradient_divide_factor(1.0)\n    model.set_force_sum_reduction_for_comms(True)  # gloo has no scaled sum\n")],
        exact=[(L, "fully_sharded", "model.set_gradient_divide_factor(1.0)"), (L, "fully_sharded", "fully_shard(block, mesh=mesh"), BACKWARD],
        near=[(L, "fully_sharded", ""), (T, "step_of", "")], module="blocks.2",
        note="the factor is the outermost module's alone: the blocks' gradients are averaged, those of words and head added up"),
    "strided_parts": dict(
        kind="missing_reduce", phase="optimizer", **BOTH,
        edits=[(T, "[Replicate() if p.is_replicate() else Partial() for p in grad.placements]",
                "[Partial() if p.is_shard() else Replicate() for p in grad.placements]")],
        exact=[(T, "square_of", "parts = [Partial() if"), (T, "square_of", "return DTensor.from_local(square,"), (T, "square_of", "square = grad.to_local()"),
               (T, "clip", "norm = torch.stack([square_of")],
        near=[(T, "square_of", ""), (T, "clip", "")], module="",
        note="what both meshes cut along one dimension is a strided shard to FSDP, and that is no shard by is_shard"),
    "past_the_wrapper": dict(
        kind="missing_reduce", phase="backward", **DDP, edits=[(T, "            logits = model(tokens)\n", "            logits = raw(model)(tokens)\n")],
        exact=[(T, "step_of", "logits = raw(model)(tokens)"), BACKWARD, (T, "step_of", "with layout.accumulating(")], near=[(T, "step_of", ""), (L, "raw", "")],
        module="", note="DDP learns in its forward that a backward comes; nobody called it, and the ranks keep their own gradients"),
    "same_words": dict(
        kind="wrong_layout", **DDP, edits=[(T, "for number in range(layout.rank, MICRO, layout.data)]", "for number in range(0, MICRO, layout.data)]")],
        exact=[(T, "my_batches", "for number in range(0, MICRO"), (T, "step_of", "batches = my_batches("), (T, "micro_batch", "words = 1 + (torch.rand("),
               (T, "micro_batch", "g = torch.Generator()")],
        near=[(T, "my_batches", ""), (T, "micro_batch", "")], module="", note="every rank takes the first rank's part of the data"),
}  # fmt: skip
