"""Faults of port.py."""
PACKAGES = ["timm"]
FILES = ["weights.py", "reference.py", "port.py"]
P = "port.py"
CASES = {
    "control": dict(kind="none"),
    "qkv_order": dict(
        kind="exchanged", edits=[(P, 'zip(("query", "key", "value"),', 'zip(("key", "query", "value"),')],
        exact=[(P, "load", 'for part, value in zip(("key"'), (P, "SelfAttention.forward", "query, key, value = self.heads("), (P, "SelfAttention.forward", "scores = query @ key.mT")],
        near=[(P, "load", ""), (P, "SelfAttention.forward", "")], module="encoders.0.attention", note="the query's weights are the key's"),
    "post_norm": dict(
        kind="formula", edits=[(P, "x = self.attention(self.before_attention(x)) + x", "x = self.before_attention(self.attention(x) + x)")],
        exact=[(P, "Encoder.forward", "x = self.before_attention(self.attention(x) + x)")], near=[(P, "Encoder.forward", "")], module="encoders.0",
        note="the norm after the residual, not before the attention"),
    "no_class_position": dict(
        kind="formula", held_out=True,
        edits=[(P, "        x = torch.cat((first, x), dim=1)\n        x = x + self.positions\n", "        x = x + self.positions[1:]\n        x = torch.cat((first, x), dim=1)\n")],
        exact=[(P, "ViT.forward", "x = x + self.positions[1:]"), (P, "ViT.forward", "x = torch.cat((first, x), dim=1)")], near=[(P, "ViT.forward", "")], module="",
        note="the class token gets no position"),
    "mean_of_tokens": dict(
        kind="formula", held_out=True, edits=[(P, "return self.classifier(x[:, 0])", "return self.classifier(x.mean(dim=1))")],
        exact=[(P, "ViT.forward", "return self.classifier(x.mean(dim=1))")], near=[(P, "ViT.forward", "")], module="", note="the mean of all tokens for the class token"),
    "channels_last": dict(
        kind="wrong_layout", held_out=True, edits=[(P, "grid.permute(0, 2, 4, 1, 3, 5)", "grid.permute(0, 2, 4, 3, 5, 1)")],
        exact=[(P, "ViT.patches", "return grid.permute(0, 2, 4, 3, 5, 1)")], near=[(P, "ViT.patches", ""), (P, "load", "")], module="",
        note="a patch has its channels last, the weight has them first"),
    "smoothed_labels": dict(
        kind="formula", held_out=True, edits=[(P, "nn.CrossEntropyLoss()", "nn.CrossEntropyLoss(label_smoothing=0.1)")],
        exact=[(P, "fit", "nn.CrossEntropyLoss(label_smoothing=0.1)"), (P, "fit", "error = criterion(prediction, target)")], near=[(P, "fit", "")], module="",
        note="the port is trained by its own recipe, which smooths labels"),
}  # fmt: skip
