"""Faults of parallelism written by hand. The reference is the same program in one process."""
FILES = ["groups.py", "regions.py", "layers.py", "attention.py", "experts.py", "model.py", "pipeline.py", "update.py", "train.py"]
COMMON = {"reference": "train.py", "candidate": "train.py", "ranks": 2}
G, R, L, A, E, M, P, U, T = "groups.py", "regions.py", "layers.py", "attention.py", "experts.py", "model.py", "pipeline.py", "update.py", "train.py"
CASES = {
    "control_tp_sp": dict(kind="none", args="--tp 2 --sp"),
    "control_pp": dict(kind="none", args="--pp 2"),
    "control_zero": dict(kind="none", ref="--zero", args="--dp 2 --zero"),
    "control_ep": dict(kind="none", ref="--moe", args="--dp 2 --moe", note="tokens go to the experts' ranks: those are permuted, and experts renumbered"),
    "control_cp": dict(kind="none", args="--cp 2", held_out=True, note="attention by blocks"),
    "control_tp_pp": dict(kind="none", ranks=4, args="--tp 2 --sp --pp 2", held_out=True),
    "control_scatter": dict(kind="none", args="--tp 2 --sp --scatter", held_out=True, note="sequence parallelism by reduce-scatter, not by all-reduce and a part of it"),
    "control_pp_uneven": dict(kind="none", args="--pp 2 --in-first 3", held_out=True, note="three layers in the first stage, one in the last"),
    "control_checkpoint": dict(kind="none", args="--tp 2 --sp --checkpoint", held_out=True, note="activations are not kept but made once more, with their collectives"),
    "vocab_sum": dict(
        kind="missing_reduce", args="--tp 2", edits=[(L, "        total = Reduce.apply(total, tp)\n", "")],
        exact=[(L, "cross_entropy", "return (total.log() - right).mean()"), (L, "cross_entropy", "total = shifted.exp().sum(-1)")], near=[(L, "cross_entropy", "")],
        module="head", note="each rank divides by the sum of its own words"),
    "row_bias": dict(
        kind="formula", args="--tp 2", edits=[(L, "        partial = F.linear(x, self.weight)\n", "        partial = F.linear(x, self.weight, self.bias)\n"), (L, "        return whole + self.bias\n", "        return whole\n")],
        exact=[(L, "Row.forward", "partial = F.linear(x, self.weight, self.bias)"), (L, "Row.forward", "whole = leave(partial")], near=[(L, "Row.forward", "")],
        module="layers.0.attention.out", note="the bias is added by every rank"),
    "sequence_order": dict(
        kind="wrong_layout", held_out=True, args="--tp 2 --sp",
        edits=[(R, "        ctx.group = group\n        return group.gather(x, 1)\n\n    @staticmethod\n    def backward(ctx, grad):\n        return ctx.group.mine(",
                   "        ctx.group = group\n        return group.gather(x, 1).roll(x.shape[1], 1)\n\n    @staticmethod\n    def backward(ctx, grad):\n        return ctx.group.mine(")],
        exact=[(R, "GatherSequence.forward", "return group.gather(x, 1).roll(")], near=[(R, "GatherSequence.forward", ""), (R, "enter", "")],
        module="layers.0.attention", note="the parts of the sequence in the wrong order"),
    "pipeline_buffer": dict(
        kind="stale", phase="backward", args="--pp 2",
        edits=[(P, "        buffer = torch.empty(shape)\n", "        buffer = self.buffers.setdefault(tuple(shape), torch.empty(shape)).data\n"), (P, "        self.model, self.pp = model, pp\n", "        self.model, self.pp, self.buffers = model, pp, {}\n")],
        exact=[(P, "Stage.receive", "dist.recv(buffer, src=source)"), (P, "Stage.receive", "buffer = self.buffers"), (P, "Stage.run", "made.backward()")],
        near=[(P, "Stage.receive", ""), (P, "Stage.run", "")], module="layers.0", note="one buffer for all micro-batches: backward sees the last one's activations"),
    "expert_order": dict(
        kind="wrong_layout", args="--dp 2 --moe", ref="--moe", edits=[(E, "mixed = returned[order.argsort()] * weight[:, None]", "mixed = returned[order] * weight[:, None]")],
        exact=[(E, "Experts.forward", "mixed = returned[order]")], near=[(E, "Experts.forward", "")], module="layers.1.ffn", note="sorted once more, not back"),
    "zero_tail": dict(
        kind="omits", held_out=True, phase="optimizer", ref="--zero", args="--dp 2 --zero",
        edits=[(U, "self.size = (count + unit - 1) // unit * self.ALIGN", "self.size = count // unit * self.ALIGN if group.size > 1 else (count + unit - 1) // unit * self.ALIGN")],
        exact=[(U, "ShardedAdamW.__init__", "self.size = count // unit"), (U, "ShardedAdamW.step", "part = whole[at : at + p.numel()]"), (U, "ShardedAdamW.step", "p.view(-1)[: part.numel()].copy_(part)"),
               (U, "ShardedAdamW.step", "whole = self.group.gather(w, 0)")],
        near=[(U, "ShardedAdamW.__init__", ""), (U, "ShardedAdamW.step", ""), (U, "ShardedAdamW.flat", "")], module="", note="no rank has the end of the parameters"),
    "clip_local": dict(
        kind="missing_reduce", held_out=True, phase="optimizer", args="--tp 2", edits=[(U, 'whole + groups["tp"].sum(cut) + ', "whole + cut + ")],
        exact=[(U, "clip", "square = whole + cut +"), (U, "clip", 'norm = groups["pp"].sum(square).sqrt()')], near=[(U, "clip", "")], module="",
        note="each rank clips by the norm of its own part"),
    "ring_rescale": dict(
        kind="formula", args="--cp 2", edits=[(A, "total = old[1] * before + new[1] * after", "total = old[1] + new[1] * after")],
        exact=[(A, "merge", "total = old[1] + new[1] * after")], near=[(A, "merge", "")], module="layers.0.attention", note="the old sum is of another largest score"),
    "shared_pair": dict(
        kind="missing_reduce", held_out=True, phase="backward", args="--tp 2", edits=[(A, "        self.pair.partial = True\n", "        self.pair.partial = False\n")],
        exact=[(U, "finish_gradients", "if tp.size > 1 and (getattr(p"), (U, "finish_gradients", "cp.sum(p.grad).div_(cp.size)"), (A, "Attention.__init__", "self.pair.partial = False")],
        near=[(U, "finish_gradients", ""), (A, "Attention.__init__", "")], module="layers.0.attention", note="the keys' weight is whole on every rank, its gradient is not"),
    "rank_data": dict(
        kind="diverged_replicas", args="--tp 2", edits=[(T, "for number in range(dp.rank, MICRO, dp.size):", 'for number in range(groups["tp"].rank, MICRO + groups["tp"].rank, dp.size):')],
        exact=[(T, "batches", "for number in range(groups"), (T, "batches", "tokens, labels = micro_batch(step, number)")], near=[(T, "batches", ""), (T, "micro_batch", "")], module="",
        note="the ranks of one model read other batches"),
    "loss_sum": dict(
        kind="scale", held_out=True, phase="backward", args="--dp 2", edits=[(U, "        p.grad.div_(dp.size)\n", "        p.grad.div_(cp.size)\n")],
        exact=[(U, "finish_gradients", "p.grad.div_(cp.size)"), (U, "finish_gradients", "dp.sum(p.grad)")], near=[(U, "finish_gradients", "")], module="",
        note="gradients are summed over data-parallel ranks, not averaged; clipping hides it from the update"),
    "loss_sum_open": dict(
        kind="scale", held_out=True, phase="backward", ref="--clip 10", args="--dp 2 --clip 10", edits=[(U, "        p.grad.div_(dp.size)\n", "        p.grad.div_(cp.size)\n")],
        exact=[(U, "finish_gradients", "p.grad.div_(cp.size)"), (U, "finish_gradients", "dp.sum(p.grad)")], near=[(U, "finish_gradients", "")], module="",
        note="the same, and no clipping"),
    "blocks_gradient": dict(
        kind="missing_reduce", held_out=True, phase="backward", args="--cp 2",
        edits=[(A, "return ctx.group.mine(ctx.group.sum(grad.clone()), 1).contiguous(), None", "return ctx.group.mine(grad, 1).contiguous(), None")],
        exact=[(A, "GatherBlocks.backward", "return ctx.group.mine(grad, 1)")], near=[(A, "GatherBlocks.backward", "")], module="layers.3.attention",
        note="keys and values get the gradient of their own rank's queries alone"),
    "mirrored_peer": dict(
        kind="wrong_layout", held_out=True, ranks=4, args="--tp 2 --sp --pp 2", edits=[(P, "return self.pp.ranks[self.pp.rank + step]", "return dist.get_world_size() - 1 - dist.get_rank()")],
        exact=[(P, "Stage.peer", "return dist.get_world_size() - 1"), (P, "Stage.receive", "dist.recv(buffer, src=source)"), (P, "Stage.run", "dist.send(made.detach()"),
               (P, "Stage.run", "given = tokens if self.first else")],
        near=[(P, "Stage.peer", ""), (P, "Stage.receive", ""), (P, "Stage.run", "")], module="layers.2",
        note="right for two stages alone; with two tensor-parallel ranks each gets the other's part of the sequence"),
    "backward_order": dict(
        kind="stale", held_out=True, phase="backward", args="--pp 2", edits=[(P, "for given, made in kept:", "for given, made in kept if self.last else reversed(kept):")],
        exact=[(P, "Stage.run", "for given, made in kept if"), (P, "Stage.run", "made.backward(self.receive(")], near=[(P, "Stage.run", ""), (P, "Stage.receive", "")], module="layers.1",
        note="the first stage takes the micro-batches backward from the last one: each has another's gradient"),
    "sequence_first_part": dict(
        kind="omits", held_out=True, phase="backward", args="--tp 2 --sp",
        edits=[(R, "return ctx.group.mine(ctx.group.sum(grad.clone()), 1).contiguous(), None", "return ctx.group.sum(grad.clone()).chunk(ctx.group.size, 1)[0].contiguous(), None")],
        exact=[(R, "GatherSequence.backward", "return ctx.group.sum(grad.clone()).chunk(")], near=[(R, "GatherSequence.backward", "")], module="norm",
        note="every rank keeps the gradient of the first part of the sequence"),
    "expert_average": dict(
        kind="scale", held_out=True, phase="backward", ref="--moe", args="--dp 2 --moe",
        edits=[(U, "            dp.sum(p.grad)\n        p.grad.div_(dp.size)\n", "            dp.sum(p.grad)\n            p.grad.div_(dp.size)\n")],
        exact=[(U, "finish_gradients", 'if not getattr(p, "expert", False)'), (U, "finish_gradients", "p.grad.div_(dp.size)")], near=[(U, "finish_gradients", "")], module="layers.1.ffn",
        note="the experts' gradients are of all ranks' tokens, and not divided by the ranks"),
    "expert_first": dict(
        kind="mapping", held_out=True, ref="--moe", args="--dp 2 --moe", edits=[(E, "first = group.rank * self.here", "first = group.rank * (self.here - 1)")],
        exact=[(E, "Experts.__init__", "first = group.rank * (self.here - 1)"), (E, "Experts.__init__", "self.up = nn.ParameterList("), (E, "Experts.__init__", "self.down = nn.ParameterList("),
               (E, "Experts.apply_experts", "parts[i] = F.silu(")],
        near=[(E, "Experts.__init__", ""), (E, "Experts.apply_experts", "")], module="layers.1.ffn", note="the ranks have experts 0 1 and 1 2"),
    "not_broadcast": dict(
        kind="diverged_replicas", held_out=True, args="--tp 2",
        edits=[(L, '"""What tensor parallelism cuts: columns, rows, the vocabulary. Weights are drawn whole, by name, and cut."""\n', '"""What tensor parallelism cuts: columns, rows, the vocabulary. Weights are drawn whole, by name, and cut."""\nimport os\n'),
               (L, "    whole = draw(name, *shape)\n", '    whole = draw(name, *shape)\n    if dim is None and int(os.environ.get("RANK", 0)):\n        whole = torch.full(shape, float(name.endswith("gain")))\n')],
        exact=[(L, "parameter", "whole = torch.full(shape"), (L, "parameter", "if dim is None and int("), (L, "parameter", "p = nn.Parameter("), (L, "Norm.forward", "return x * torch.rsqrt(")],
        near=[(L, "parameter", ""), (L, "Norm.forward", "")], module="layers.0.norm1", note="rank 0 has the parameters that are not cut, the others keep ones and zeros"),
    "small_gradients": dict(
        kind="missing_reduce", held_out=True, phase="backward", args="--dp 2", edits=[(U, 'if not getattr(p, "expert", False):\n            dp.sum', 'if not getattr(p, "expert", False) and p.ndim > 1:\n            dp.sum')],
        exact=[(U, "finish_gradients", 'if not getattr(p, "expert", False) and p.ndim > 1'), (U, "finish_gradients", "p.grad.div_(dp.size)")], near=[(U, "finish_gradients", "")], module="norm",
        note="gains and biases are in no bucket: their gradients stay each rank's own"),
    "zero_gather_early": dict(
        kind="stale", held_out=True, phase="optimizer", ref="--zero", args="--dp 2 --zero",
        edits=[(U, "        whole = self.group.gather(w, 0)\n", ""), (U, "        self.first.lerp_(g, 0.1)\n", "        whole = self.group.gather(w, 0)\n        self.first.lerp_(g, 0.1)\n")],
        exact=[(U, "ShardedAdamW.step", "whole = self.group.gather(w, 0)"), (U, "ShardedAdamW.step", "part = whole[at : at + p.numel()]"), (U, "ShardedAdamW.step", "p.view(-1)[: part.numel()].copy_(part)")],
        near=[(U, "ShardedAdamW.step", "")], module="", note="the parameters are gathered before they are updated"),
    "sum_in_bfloat16": dict(
        kind="precision", held_out=True, args="--tp 2", edits=[(R, "        return group.sum(x.clone())\n", "        return group.sum(x.bfloat16()).to(x.dtype)\n")],
        exact=[(R, "Reduce.forward", "return group.sum(x.bfloat16())")], near=[(R, "Reduce.forward", ""), (R, "leave", "")], module="words", note="the ranks' parts are rounded to bfloat16 before they are added"),
    "router_seed": dict(
        kind="diverged_replicas", held_out=True, ref="--moe", args="--dp 2 --moe", edits=[(E, 'parameter(f"{name}.router", shape', 'parameter(f"{name}.router{group.rank or str()}", shape')],
        exact=[(E, "Experts.__init__", 'self.router = parameter(f"{name}.router{group.rank')], near=[(E, "Experts.__init__", ""), (E, "Experts.forward", ""), (L, "parameter", ""), (L, "draw", "")],
        module="layers.1.ffn", note="routers are drawn as experts are, by rank; parameter and draw are right"),
    "late_inbox": dict(
        kind="stale", held_out=True, args="--pp 2",
        edits=[(P, "        kept, total = [], torch.zeros(())\n", "        kept, total, inbox = [], torch.zeros(()), []\n"),
               (P, "            given = tokens if self.first else self.receive(shape, self.peer(-1)).requires_grad_()\n",
                   "            if not self.first:\n                inbox.append(self.receive(shape, self.peer(-1)))\n            given = tokens if self.first else inbox[max(len(kept) - 1, 0)].requires_grad_()\n")],
        exact=[(P, "Stage.run", "given = tokens if self.first else inbox[")], near=[(P, "Stage.run", ""), (P, "Stage.receive", "")], module="layers.2",
        note="two buffers in turn, one step late: the last stage takes the first micro-batch's activations twice, then each one's of the one before"),
    "gains_not_given": dict(
        kind="omits", held_out=True, phase="optimizer", ref="--zero", args="--dp 2 --zero",
        edits=[(T, "ShardedAdamW(model.parameters(), groups", "ShardedAdamW([p for p in model.parameters() if o.dp == 1 or p.ndim > 1], groups")],
        exact=[(T, "main", "optimizer = ShardedAdamW([")], near=[(T, "main", ""), (U, "ShardedAdamW.__init__", ""), (U, "ShardedAdamW.step", "")], module="",
        note="the group without weight decay is given to no optimizer: gains and biases stay as they are; ShardedAdamW is right"),
    "reduce_twice": dict(
        kind="scale", held_out=True, phase="backward", args="--tp 2",
        edits=[(R, "        return group.sum(x.clone())\n\n    @staticmethod\n    def backward(ctx, grad):\n        return grad, None\n",
                   "        ctx.group = group\n        return group.sum(x.clone())\n\n    @staticmethod\n    def backward(ctx, grad):\n        return ctx.group.sum(grad.clone().contiguous()), None\n")],
        exact=[(R, "Reduce.backward", "return ctx.group.sum(grad.clone().contiguous()), None")], near=[(R, "Reduce.backward", ""), (L, "cross_entropy", "")], module="",
        note="the gradient of an all-reduce is taken for an all-reduce: every rank has it whole already"),
    "gradient_in_bfloat16": dict(
        kind="precision", held_out=True, phase="backward", ranks=4, args="--tp 2 --sp --pp 2",
        edits=[(P, "    def receive(self, shape, source):\n        buffer = torch.empty(shape)\n", "    def receive(self, shape, source, dtype=torch.float32):\n        buffer = torch.empty(shape, dtype=dtype)\n"),
               (P, "made.backward(self.receive(made.shape, self.peer(1)))", "made.backward(self.receive(made.shape, self.peer(1), torch.bfloat16).float())"),
               (P, "dist.send(given.grad, dst", "dist.send(given.grad.bfloat16(), dst")],
        exact=[(P, "Stage.run", "dist.send(given.grad.bfloat16(), dst"), (P, "Stage.run", "made.backward(self.receive(made.shape, self.peer(1), torch.bfloat16).float())")],
        near=[(P, "Stage.run", ""), (P, "Stage.receive", "")], module="layers.1", note="stages send gradients in half the bytes, activations in float32"),
    "head_input": dict(
        kind="missing_reduce", held_out=True, phase="backward", args="--tp 2", edits=[(M, "return self.head(enter(self.norm(x), self.tp, self.sequence))", "return self.head(self.norm(x))")],
        exact=[(M, "Model.forward", "return self.head(self.norm(x))")], near=[(M, "Model.forward", "")], module="norm",
        note="the last norm gets the gradient of this rank's words alone"),
    "sequence_flag": dict(
        kind="missing_reduce", held_out=True, phase="backward", args="--tp 2 --sp", edits=[(T, "finish_gradients(model, groups, o.sp)", "finish_gradients(model, groups, o.scatter)")],
        exact=[(T, "main", "finish_gradients(model, groups, o.scatter)")], near=[(T, "main", ""), (U, "finish_gradients", "")], module="norm",
        note="the other flag of sequence parallelism: gains and biases keep the gradient of their rank's tokens; finish_gradients is right"),
    "uneven_start": dict(
        kind="mapping", held_out=True, args="--pp 2 --in-first 3", edits=[(M, "start = in_first + each * (pp.rank - 1)", "start = each * pp.rank")],
        exact=[(M, "stage_layers", "start = each * pp.rank")], near=[(M, "stage_layers", ""), (M, "Model.__init__", "")],
        module="layers.1", note="where stages of as many layers each begin: layer 1 is there twice, layer 3 nowhere"),
    "places_group": dict(
        kind="wrong_data", held_out=True, ranks=4, args="--cp 2 --tp 2", edits=[(T, 'places = groups["cp"].mine(torch.arange(LENGTH), 0)', 'places = groups["tp"].mine(torch.arange(LENGTH), 0)')],
        exact=[(T, "main", 'places = groups["tp"].mine(')], near=[(T, "main", ""), (A, "Attention.forward", ""), (A, "rotate", "")], module="layers.0.attention",
        note="each rank's positions are those of its tensor-parallel rank: they have the right shape, and mine is right"),
    "scatter_rows": dict(
        kind="wrong_layout", held_out=True, args="--tp 2 --sp --scatter",
        edits=[(G, "        parts = x.movedim(dim, 0).contiguous()\n        mine = parts.new_empty(parts.shape[0] // self.size, *parts.shape[1:])\n", "        parts = x.flatten()\n        mine = parts.new_empty(parts.numel() // self.size)\n"),
               (G, "        return mine.movedim(0, dim).contiguous()\n", "        return mine.view_as(x.chunk(self.size, dim)[0])\n")],
        exact=[(G, "Group.sum_mine", "parts = x.flatten()"), (G, "Group.sum_mine", "dist.reduce_scatter_tensor(mine, parts"), (G, "Group.sum_mine", "return mine.view_as(")],
        near=[(G, "Group.sum_mine", ""), (R, "ScatterThenGather.forward", ""), (R, "leave", "")], module="words",
        note="a reduce-scatter cuts memory, which has the batch first: a rank gets one sequence for its half of both"),
}  # fmt: skip
