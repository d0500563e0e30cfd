"""Faults of the parts around the model, in a training that was taken apart."""
FILES = ["net.py", "recipe.py", "loop.py", "packing.py", "objective.py", "update.py", "train.py"]
COMMON = {"reference": "loop.py", "candidate": "train.py", "held_out": True}
K, J, U, T = "packing.py", "objective.py", "update.py", "train.py"
CASES = {
    "control": dict(kind="none", note="optimizer, clipping, cross entropy and average of its own, rows by their documents' beginnings, a scaled loss"),
    "schedule_early": dict(
        kind="formula", phase="optimizer",
        edits=[(T, "        self.average.follow(self.model)\n        self.schedule.advance()\n", "        self.average.follow(self.model)\n"),
               (T, "        self.optimizer.step(self.schedule.rate())\n",
                "        self.schedule.advance()\n        self.optimizer.step(self.schedule.rate())\n")],
        exact=[(T, "Trainer.update", "self.optimizer.step(self.schedule.rate())"), (T, "Trainer.update", "self.schedule.advance()"),
               (U, "Decoupled.step", "p.mul_(1 - rate * decay)"), (U, "Decoupled.step", "p.sub_(mean /")],
        near=[(T, "Trainer.update", ""), (U, "Decoupled.step", ""), (U, "Schedule.rate", ""), (U, "Schedule.advance", "")], module="",
        note="every step has the rate of the next one"),
    "norms_decay": dict(
        kind="formula", phase="optimizer",
        edits=[(U, "return DECAY if p.ndim > 1 else 0.0", 'return 0.0 if name.endswith("bias") else DECAY')],
        exact=[(U, "Decoupled.decay", "return 0.0 if name.endswith("), (U, "Decoupled.step", "p.mul_(1 - rate * decay)")],
        near=[(U, "Decoupled.decay", ""), (U, "Decoupled.step", ""), (U, "Decoupled.__init__", "")], module="norm",
        note="biases are let off by their name, and the norms' weights are forgotten"),
    "clip_scaled": dict(
        kind="scale", phase="optimizer",
        edits=[(T, "        self.scaler.unscale(self.model.parameters())\n        size = clip(self.model.parameters())\n",
                "        size = clip(self.model.parameters()) / self.scaler.SIZE\n        self.scaler.unscale(self.model.parameters())\n")],
        exact=[(T, "Trainer.update", "size = clip(self.model.parameters()) /"), (T, "Trainer.update", "self.scaler.unscale("),
               (U, "clip", "p.grad.mul_(LARGEST"), (U, "Scaler.unscale", "p.grad.div_(self.SIZE)")],
        near=[(T, "Trainer.update", ""), (U, "clip", ""), (U, "Scaler.unscale", "")], module="",
        note="gradients are clipped while they are scaled, so what is left of them is 4096 times too small"),
    "last_row": dict(
        kind="omits",
        edits=[(K, "        room -= len(document)\n    if parts:\n        yield Packed(parts)\n", "        room -= len(document)\n")],
        exact=[(K, "pack", "yield Packed(parts)"), (K, "pack", "for document in documents:"), (T, "Trainer.run", "cost = self.accumulate(list(pack("),
               (T, "Trainer.accumulate", "for row in rows:")], near=[(K, "pack", ""), (T, "Trainer.accumulate", ""), (T, "Trainer.run", "")], module="",
        note="a row is given out when the next document does not fit: the last one never is"),
    "average_before": dict(
        kind="stale", phase="optimizer",
        edits=[(T, "        self.optimizer.step(self.schedule.rate())\n        self.average.follow(self.model)\n",
                "        self.average.follow(self.model)\n        self.optimizer.step(self.schedule.rate())\n")],
        exact=[(T, "Trainer.update", "self.average.follow(self.model)"), (T, "Trainer.update", "self.optimizer.step("),
               (U, "Average.follow", "kept.lerp_(p, 1 - KEPT)")], near=[(T, "Trainer.update", ""), (U, "Average.follow", "")], module="",
        note="the average follows the weights of before the step"),
    "labels_twice": dict(
        kind="wrong_data",
        edits=[(J, '    there = labels != IGNORED\n    chances = ',
                '    logits, labels = logits[:-1], labels[1:]\n    there = labels != IGNORED\n    chances = ')],
        exact=[(J, "surprise", "logits, labels = logits[:-1], labels[1:]"), (J, "surprise", "chances = logits[there]"),
               (J, "surprise", "right = chances.gather(")],
        near=[(J, "surprise", "")], module="", note="labels are the next words already, and the objective takes the next ones of those"),
}  # fmt: skip
