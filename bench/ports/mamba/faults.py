"""Faults of port.py."""
PACKAGES = ["transformers"]
FILES = ["weights.py", "reference.py", "port.py"]
P, S, M = "port.py", "SelectiveSSM.forward", "MambaLayer.forward"
CASES = {
    "control": dict(kind="none"),
    "conv_shift": dict(
        kind="wrong_data", edits=[(P, "u = F.silu(u[..., : x.shape[1]].transpose(1, 2))", "u = F.silu(u[..., 1 : x.shape[1] + 1].transpose(1, 2))")],
        exact=[(P, M, "u = F.silu(u[..., 1 : x.shape[1] + 1]")], near=[(P, M, "")], module="stack.0", note="the convolution sees the next token"),
    "no_softplus": dict(
        kind="formula", edits=[(P, "delta = F.softplus(self.widen(delta))", "delta = torch.exp(self.widen(delta))")],
        exact=[(P, S, "delta = torch.exp(self.widen(delta))")], near=[(P, S, "")], module="stack.0.ssm", note="exp for softplus"),
    "no_skip": dict(
        kind="formula", held_out=True, edits=[(P, "+ u * self.skip", "+ x0 * self.skip"), (P, "    def forward(self, u):\n", "    def forward(self, u, x0):\n"), (P, "self.ssm(u) * F.silu", "self.ssm(u, self.inp(n)) * F.silu")],
        exact=[(P, S, "return self.scan(u, delta, a, b, c) + x0 * self.skip"), (P, M, "y = self.ssm(u, self.inp(n))")], near=[(P, S, ""), (P, M, "")], module="stack.0.ssm",
        note="the skip is taken before the convolution"),
    "first_state": dict(
        kind="formula", held_out=True, edits=[(P, "h, ys = torch.zeros(u.shape[0], INNER, STATE), []", "h, ys = driven[:, 0], []")],
        exact=[(P, "SelectiveSSM.scan", "h, ys = driven[:, 0], []"), (P, "SelectiveSSM.scan", "h = decay[:, t] * h + driven[:, t]")], near=[(P, "SelectiveSSM.scan", "")], module="stack.0.ssm",
        note="the scan begins with the first input, which comes once more"),
    "b_and_c": dict(
        kind="exchanged", held_out=True, edits=[(P, "delta, b, c = self.select(u)", "delta, c, b = self.select(u)")],
        exact=[(P, S, "delta, c, b = self.select(u).split("), (P, S, "return self.scan(u, delta, a, b, c)"), (P, "SelectiveSSM.scan", "driven = torch.einsum(")], near=[(P, S, ""), (P, "SelectiveSSM.scan", "")],
        module="stack.0.ssm", note="what writes the state reads it, and the other way round"),
    "state_detached": dict(
        kind="formula", held_out=True, phase="backward", edits=[(P, "h = decay[:, t] * h + driven[:, t]", "h = decay[:, t] * h.detach() + driven[:, t]")],
        exact=[(P, "SelectiveSSM.scan", "h = decay[:, t] * h.detach()")], near=[(P, "SelectiveSSM.scan", "")], module="stack.1.ssm",
        note="no gradient goes from a token to those before it by the state"),
}  # fmt: skip
