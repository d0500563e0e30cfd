"""Faults of port.py."""
PACKAGES = ["timm"]
FILES = ["weights.py", "reference.py", "port.py"]
COMMON = {"held_out": True}
P = "port.py"
CASES = {
    "control": dict(kind="none", note="channels first: convolutions of one pixel and of patches are products, norms are formulas"),
    "rim": dict(
        kind="formula",
        edits=[(P, "F.pad(x, (rim, rim, rim, rim))", 'F.pad(x, (rim, rim, rim, rim), mode="replicate")')],
        exact=[(P, "Unit.forward", "y = self.norm(self.around(F.pad(")], near=[(P, "Unit.forward", "")], module="stages.0.blocks.0.conv_dw",
        note="the picture's rim goes on outside of it, where the reference has zeros"),
    "response_axis": dict(
        kind="formula",
        edits=[(P, "response.mean(1, keepdim=True)", "response.mean(-1, keepdim=True)")],
        exact=[(P, "ResponseNorm.forward", "share = response / (response.mean(-1")], near=[(P, "ResponseNorm.forward", "")], module="stages.0.blocks.0.mlp.grn",
        note="the channels are last where this line comes from; here that is the mean of one number, and every share is 1"),
    "deviation_order": dict(
        kind="wrong_data",
        edits=[(P, "torch.tensor(STD).view(3, 1, 1)", "torch.tensor(STD[::-1]).view(3, 1, 1)")],
        exact=[(P, "pixels", "mean, deviation = torch.tensor(MEAN)"), (P, "pixels", "return (channels - mean) / deviation")], near=[(P, "pixels", "")],
        module="", note="blue's deviation for red, and red's for blue: the pictures once came in blue, green, red"),
    "pool_order": dict(
        kind="formula",
        edits=[(P, "x = self.last(x.mean((2, 3), keepdim=True))", "x = self.last(x).mean((2, 3), keepdim=True)")],
        exact=[(P, "Net.forward", "x = self.last(x).mean(")], near=[(P, "Net.forward", ""), (P, "PixelNorm.forward", "")], module="head",
        note="each pixel is normalised, not their mean"),
}  # fmt: skip
