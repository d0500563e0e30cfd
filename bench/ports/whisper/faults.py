"""Faults of port.py."""
PACKAGES = ["transformers"]
FILES = ["weights.py", "reference.py", "port.py"]
COMMON = {"held_out": True}
P = "port.py"
CASES = {
    "control": dict(kind="none", note="convolutions as products of windows, one product for the keys and values of all layers, sines by formula"),
    "early_windows": dict(
        kind="wrong_data",
        edits=[(P, "windows = F.pad(x, (1, 1)).unfold(", "windows = F.pad(x, (2, 0)).unfold(")],
        exact=[(P, "Windows.forward", "windows = F.pad(x, (2, 0))")], near=[(P, "Windows.forward", "")], module="model.encoder.conv1",
        note="a window is a frame and the two before it, as for sound that goes on"),
    "sines_in_turn": dict(
        kind="wrong_layout",
        edits=[(P, "return torch.cat((turns.sin(), turns.cos()), dim=1)", "return torch.stack((turns.sin(), turns.cos()), dim=2).flatten(1)")],
        exact=[(P, "sines", "return torch.stack((turns.sin()"), (P, "Listener.forward", "heard = heard + sines()")],
        near=[(P, "sines", ""), (P, "Listener.forward", "")], module="model.encoder.embed_positions",
        note="a sine and a cosine in turn, as many papers have them, not all sines first"),
    "twice_scaled": dict(
        kind="scale",
        edits=[(P, "look(self.query(self.norm(x)), k, v)", "look(self.query(self.norm(x)) / math.sqrt(HEAD), k, v)")],
        exact=[(P, "Across.forward", "return x + self.out(look(self.query(self.norm(x)) /")], near=[(P, "Across.forward", ""), (P, "look", "")],
        module="model.decoder.layers.0.encoder_attn", note="queries are scaled as the reference scales its own, and then look scales the scores"),
    "memory_order": dict(
        kind="exchanged",
        edits=[(P, "keys, values = pairs[0::2], pairs[1::2]", "keys, values = pairs[:LAYERS], pairs[LAYERS:]")],
        exact=[(P, "Speaker.forward", "keys, values = pairs[:LAYERS]"), (P, "Speaker.forward", "x = self.across[i](x, keys[i]"),
               (P, "Speaker.forward", "pairs = self.memory(heard)")], near=[(P, "Speaker.forward", ""), (P, "translate", "")],
        module="model.decoder.layers.0.encoder_attn", note="read as all keys and then all values: the first layer's value is the second one's key"),
}  # fmt: skip
