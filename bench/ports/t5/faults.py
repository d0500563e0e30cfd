"""Faults of port.py."""
PACKAGES = ["transformers"]
FILES = ["weights.py", "reference.py", "port.py"]
P = "port.py"
CASES = {
    "control": dict(kind="none"),
    "bucket": dict(
        kind="wrong_data", edits=[(P, "torch.where(distance < exact, distance, far)", "torch.where(distance <= exact, distance, far)"), (P, "far = (exact + far.long())", "far = (exact + 1 + far.long())")],
        exact=[(P, "bucket", "far = (exact + 1 + far.long())"), (P, "bucket", "return first + torch.where(distance <= exact"), (P, "RelativeBias.forward", "return self.table[bucket(")],
        near=[(P, "bucket", ""), (P, "RelativeBias.forward", "")], module="reader.bias", note="the logarithmic buckets are one too far"),
    "scaled": dict(
        kind="scale", edits=[(P, "logits = q @ k.transpose(-1, -2)", "logits = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])")],
        exact=[(P, "Attend.forward", "logits = q @ k.transpose(-1, -2) /")], near=[(P, "Attend.forward", "")], module="reader.own.0", note="T5 does not divide by sqrt(head)"),
    "head_scale": dict(
        kind="scale", held_out=True, edits=[(P, "        y = y * DIM**-0.5\n", "")],
        exact=[(P, "T5.forward", "logits = F.linear(y, self.words.weight)"), (P, "T5.forward", "y = self.writer(self.words(begun), memory)")], near=[(P, "T5.forward", "")],
        module="", note="the tied head wants its input over sqrt(dim)"),
    "cross_residual": dict(
        kind="formula", held_out=True, edits=[(P, "x = x + self.cross[i](", "x = self.cross[i](")],
        exact=[(P, "Stack.forward", "x = self.cross[i](self.cross_norm[i](x), memory, None)")], near=[(P, "Stack.forward", "")], module="writer",
        note="no residual around the cross attention"),
    "head_detached": dict(
        kind="formula", held_out=True, phase="backward", edits=[(P, "logits = F.linear(y, self.words.weight)", "logits = F.linear(y, self.words.weight.detach())")],
        exact=[(P, "T5.forward", "logits = F.linear(y, self.words.weight.detach())")], near=[(P, "T5.forward", "")], module="",
        note="the tied weight gets the gradient of the embeddings alone"),
    "decoder_buckets": dict(
        kind="wrong_data", held_out=True, edits=[(P, "RelativeBias(both=not causal)", "RelativeBias(both=True)")],
        exact=[(P, "Stack.__init__", "self.causal, self.bias, self.last = causal, RelativeBias(both=True)")],
        near=[(P, "Stack.__init__", ""), (P, "Stack.forward", ""), (P, "RelativeBias.forward", ""), (P, "bucket", "")], module="writer.bias",
        note="the decoder's buckets are for both directions, as the encoder's; bucket is right"),
}  # fmt: skip
