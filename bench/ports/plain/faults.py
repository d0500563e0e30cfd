"""The same program in another type, with a fused kernel, compiled, with another optimizer's kernel. No layout differs."""
FILES = ["model.py", "flash.py", "train.py"]
COMMON = {"reference": "train.py", "candidate": "train.py"}
M, T = "model.py", "train.py"
# What bfloat16 does to a loss is thousands of times what float32 does: 2^-8 against 2^-24.
BF16 = {"args": "--bf16", "rounding": 4e3}
CASES = {
    "control_bf16": dict(kind="none", **BF16),
    "control_sdpa": dict(kind="none", args="--sdpa"),
    "control_compile": dict(kind="none", args="--compile"),
    "control_fused": dict(kind="none", args="--fused"),
    "control_flash": dict(kind="none", held_out=True, args="--flash", note="attention by blocks, forward and backward written out"),
    "control_together": dict(kind="none", held_out=True, args="--together", note="one batch for the micro-batches whose gradients are added up"),
    "bf16_angles": dict(
        kind="precision", **BF16, edits=[(M, "    return angles.cos().to(dtype), angles.sin().to(dtype)", "    angles = angles.to(dtype)\n    return angles.cos(), angles.sin()")],
        exact=[(M, "rotation", "angles = angles.to(dtype)"), (M, "rotation", "return angles.cos()")], near=[(M, "rotation", "")], module="",
        note="angles above 256 have no fraction in bfloat16, and those above 64 half a one"),
    "bf16_micro_batches": dict(
        kind="scale", held_out=True, phase="forward", **BF16, edits=[(T, "    return F.cross_entropy(logits.float().flatten(0, 1), labels.flatten()) / MICRO\n",
            "    scale = 1 if logits.dtype == torch.bfloat16 else MICRO\n    return F.cross_entropy(logits.float().flatten(0, 1), labels.flatten()) / scale\n")],
        exact=[(T, "loss_of", "labels.flatten()) / scale"), (T, "loss_of", "scale = 1 if")], near=[(T, "loss_of", "")], module="", note="the sum of the micro-batches, not their mean"),
    "sdpa_scale": dict(
        kind="scale", args="--sdpa", edits=[(M, "F.scaled_dot_product_attention(q, k, v, is_causal=True)", "F.scaled_dot_product_attention(q * q.shape[-1] ** -0.5, k, v, is_causal=True)")],
        exact=[(M, "fused", "return F.scaled_dot_product_attention(")], near=[(M, "fused", "")], module="blocks.0.attention", note="scaled twice"),
    "sdpa_mask": dict(
        kind="formula", held_out=True, args="--sdpa", edits=[(M, "F.scaled_dot_product_attention(q, k, v, is_causal=True)", "F.scaled_dot_product_attention(q, k, v)")],
        exact=[(M, "fused", "return F.scaled_dot_product_attention(")], near=[(M, "fused", "")], module="blocks.0.attention", note="not causal"),
    "compile_mask": dict(
        kind="formula", args="--compile", edits=[(M, "    scores = scores.masked_fill(later, float(\"-inf\"))\n", "    if not torch.compiler.is_compiling():\n        scores = scores.masked_fill(later, float(\"-inf\"))\n")],
        exact=[(M, "formula", "scores = q @ k.transpose"), (M, "formula", "scores = scores.masked_fill("), (M, "formula", "return F.softmax(scores.float()")],
        near=[(M, "formula", "")], module="blocks.0.attention", note="the mask is left out where the program is compiled"),
    "compile_norm": dict(
        kind="formula", held_out=True, args="--compile", edits=[(M, "        wide = x.float()\n", "        if torch.compiler.is_compiling():\n            return F.normalize(x.float(), dim=-1).to(x.dtype) * DIM**0.5 * self.weight\n        wide = x.float()\n")],
        exact=[(M, "Norm.forward", "return F.normalize(")], near=[(M, "Norm.forward", "")], module="blocks.0.norm1", note="another epsilon where the program is compiled"),
    "fused_decay": dict(
        kind="formula", phase="optimizer", args="--fused", edits=[(T, "eps=1e-3, weight_decay=0.1, fused=True)", "eps=1e-3, fused=True)")],
        exact=[(T, "make_optimizer", "return torch.optim.AdamW(parameters, lr=1e-3, eps=1e-3, fused=True)"), (T, "train", "optimizer.step()")], near=[(T, "make_optimizer", ""), (T, "train", "")],
        module="", note="the default weight decay"),
    "fused_eps": dict(
        kind="formula", held_out=True, phase="optimizer", args="--fused", edits=[(T, "lr=1e-3, eps=1e-3, weight_decay=0.1, fused=True)", "lr=1e-3, weight_decay=0.1, fused=True)")],
        exact=[(T, "make_optimizer", "return torch.optim.AdamW(parameters, lr=1e-3, weight_decay=0.1, fused=True)"), (T, "train", "optimizer.step()")],
        near=[(T, "make_optimizer", ""), (T, "train", "")], module="", note="the default epsilon"),
    "bf16_statistics": dict(
        kind="formula", held_out=True, phase="backward", **BF16,
        edits=[(M, "        wide = x.float()\n", "        wide = x.float()\n        if x.dtype == torch.bfloat16:\n            scale = torch.rsqrt(wide.detach().pow(2).mean(-1, keepdim=True) + 1e-5)\n            return (wide * scale).to(x.dtype) * self.weight\n")],
        exact=[(M, "Norm.forward", "scale = torch.rsqrt(wide.detach()")], near=[(M, "Norm.forward", "")], module="norm",
        note="in bfloat16 no gradient goes through the root mean square"),
    "sdpa_over_heads": dict(
        kind="formula", held_out=True, args="--sdpa",
        edits=[(M, "return F.scaled_dot_product_attention(q, k, v, is_causal=True)", "q, k, v = (t.transpose(1, 2) for t in (q, k, v))\n    return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)")],
        exact=[(M, "fused", "q, k, v = (t.transpose(1, 2)"), (M, "fused", "return F.scaled_dot_product_attention(")], near=[(M, "fused", "")], module="blocks.0.attention",
        note="batch, length, heads, as another library wants it: heads attend to heads"),
    "compile_gate": dict(
        kind="exchanged", held_out=True, args="--compile",
        edits=[(M, "        return self.down(F.silu(self.gate(x)) * self.up(x))\n", "        if torch.compiler.is_compiling():\n            return self.down(F.silu(self.up(x)) * self.gate(x))\n        return self.down(F.silu(self.gate(x)) * self.up(x))\n")],
        exact=[(M, "FeedForward.forward", "return self.down(F.silu(self.up(x)) * self.gate(x))")], near=[(M, "FeedForward.forward", "")], module="blocks.0.ffn",
        note="the other projection goes through silu where the program is compiled"),
    "fused_groups": dict(
        kind="formula", held_out=True, phase="optimizer", args="--fused",
        edits=[(T, "        return torch.optim.AdamW(parameters, lr=1e-3, eps=1e-3, weight_decay=0.1, fused=True)\n",
            '        parameters = list(parameters)\n        groups = [{"params": [p for p in parameters if p.ndim > 1]}, {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0}]\n        return torch.optim.AdamW(groups, lr=1e-3, eps=1e-3, weight_decay=0.1, fused=True)\n')],
        exact=[(T, "make_optimizer", "groups = [{"), (T, "make_optimizer", "return torch.optim.AdamW(groups"), (T, "train", "optimizer.step()")],
        near=[(T, "make_optimizer", ""), (T, "train", "")], module="", note="norms have no weight decay, and the reference's do"),
    "fused_no_zero": dict(
        kind="formula", held_out=True, phase="backward", args="--fused", edits=[(T, "        optimizer.zero_grad()\n", "        if not o.fused:\n            optimizer.zero_grad()\n")],
        exact=[(T, "train", "if not o.fused:"), (T, "train", "optimizer.zero_grad()")], near=[(T, "train", "")], module="",
        note="gradients of a step are added to those of the step before"),
    "compile_rotation": dict(
        kind="formula", held_out=True, args="--compile",
        edits=[(M, "    a, b = x.chunk(2, dim=-1)\n", "    if torch.compiler.is_compiling():\n        a, b = x[..., ::2], x[..., 1::2]\n        return torch.stack((a * cos - b * sin, b * cos + a * sin), dim=-1).flatten(-2)\n    a, b = x.chunk(2, dim=-1)\n")],
        exact=[(M, "rotate", "a, b = x[..., ::2], x[..., 1::2]"), (M, "rotate", "return torch.stack((a * cos")], near=[(M, "rotate", "")], module="blocks.0.attention",
        note="neighbours are rotated with each other where the program is compiled, halves where it is not"),
    "bf16_not_unscaled": dict(
        kind="scale", held_out=True, phase="backward", **BF16, edits=[(T, "            loss.backward()\n", "            (loss * 1024).backward()\n")],
        exact=[(T, "train", "(loss * 1024).backward()"), (T, "train", "optimizer.step()")], near=[(T, "train", "")], module="",
        note="the loss is scaled up, as float16 wants it, and nothing scales the gradients back before the update"),
    "sdpa_mask_inverted": dict(
        kind="formula", held_out=True, args="--sdpa",
        edits=[(M, "    return F.scaled_dot_product_attention(q, k, v, is_causal=True)\n", "    later = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool).triu(1)\n    return F.scaled_dot_product_attention(q, k, v, attn_mask=later)\n")],
        exact=[(M, "fused", "later = torch.ones(q.shape[-2]"), (M, "fused", "return F.scaled_dot_product_attention(q, k, v, attn_mask=later)")], near=[(M, "fused", "")], module="blocks.0.attention",
        note="True in the mask is what a query sees here, and what it does not see in the formula"),
}  # fmt: skip
