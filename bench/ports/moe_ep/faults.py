"""Faults of expert parallelism. The reference is the same program in one process, which has all experts."""
FILES = ["moe.py", "train.py"]
COMMON = {"reference": "train.py", "candidate": "train.py", "ranks": 2, "held_out": True}
M = "moe.py"
CASES = {
    "control": dict(kind="none", note="slots of fixed size by all_to_all, two experts for a row, some rows that find no room, a bias that evens out the load"),
    "slots_by_rank": dict(
        kind="wrong_layout",
        edits=[(M, "by_expert = arrived.view(ranks(), self.here, ROOM, DIM).transpose(0, 1).reshape(self.here, ranks() * ROOM, DIM)",
                "by_expert = arrived.view(self.here, ranks() * ROOM, DIM)"),
               (M, "by_rank = made.view(self.here, ranks(), ROOM, DIM).transpose(0, 1).reshape(ranks(), self.here * ROOM, DIM)",
                "by_rank = made.view(ranks(), self.here * ROOM, DIM)")],
        exact=[(M, "Experts.distributed", "by_expert = arrived.view(self.here"), (M, "Experts.distributed", "made = torch.bmm(")],
        near=[(M, "Experts.distributed", "")], module="experts.0",
        note="what arrives lies by rank and then by expert, and is read as by expert: right in one process, where there is one rank"),
    "load_of_rank": dict(
        kind="missing_reduce",
        edits=[(M, "        if ranks() > 1:\n            dist.all_reduce(self.load)\n        self.bias +=", "        self.bias +=")],
        exact=[(M, "Router.even_out", "self.bias += 0.05"), (M, "Router.even_out", "self.load.zero_()"), (M, "Router.forward", "self.load += chosen"),
               (M, "Router.forward", "chosen = (scores + self.bias)")], near=[(M, "Router.even_out", ""), (M, "Router.forward", "")], phase="optimizer",
        module="experts.0.router", note="each rank evens out the load of its own rows, so that the biases, copies of each other before, go apart"),
}  # fmt: skip
