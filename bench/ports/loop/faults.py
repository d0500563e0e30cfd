"""Faults of mixing, accumulation, clipping, rates, decay and average, in a training that was taken apart."""
FILES = ["net.py", "recipe.py", "loop.py", "examples.py", "update.py", "train.py"]
COMMON = {"reference": "loop.py", "candidate": "train.py", "held_out": True}
E, U, T = "examples.py", "update.py", "train.py"
CASES = {
    "control": dict(kind="none", note="12 images as 5, 5 and 2; optimizer, schedule, clipping, loss and average of its own"),
    "rate_by_parts": dict(
        kind="formula", phase="optimizer",
        edits=[(T, "            total += loss.detach()\n", "            total += loss.detach()\n            self.schedule.advance()\n"),
               (T, "        self.optimizer.step(self.schedule.factor())\n        self.schedule.advance()\n",
                "        self.optimizer.step(self.schedule.factor())\n")],
        exact=[(T, "Training.gradients", "self.schedule.advance()"), (T, "Training.step", "self.optimizer.step(self.schedule.factor())"),
               (U, "Nesterov.step", "row.p -= factor * row.rate")],
        near=[(T, "Training.gradients", ""), (T, "Training.step", ""), (U, "Nesterov.step", ""), (U, "Schedule.factor", ""),
              (U, "Schedule.advance", "")],
        module="", note="the schedule goes on with every micro-batch, three times as fast"),
    "places_decay": dict(
        kind="formula", phase="optimizer", edits=[(U, 'return p.ndim > 1 and name != "places"', "return p.ndim > 1")],
        exact=[(U, "Row.decays", "return p.ndim > 1"), (U, "Row.__init__", "self.decay = DECAY if"),
               (U, "Nesterov.step", "pull = row.p.grad + row.decay * row.p"), (U, "Nesterov.step", "row.p -= factor * row.rate")],
        near=[(U, "Row.decays", ""), (U, "Row.__init__", ""), (U, "Nesterov.step", "")], module="",
        note="what does not decay is told by its dimensions alone, and the places' embedding has three"),
    "mean_of_means": dict(
        kind="scale",
        edits=[(T, "        for part in micro_batches(examples):\n", "        parts = list(micro_batches(examples))\n        for part in parts:\n"),
               (T, "part.targets) * len(part) / len(examples)\n", "part.targets) / len(parts)\n")],
        exact=[(T, "Training.gradients", "loss = self.criterion("), (T, "Training.gradients", "total += loss.detach()")], near=[(T, "Training.gradients", "")],
        module="", note="every micro-batch counts a third, the one of two images as well"),
    "partner_share": dict(
        kind="exchanged", edits=[(E, "torch.lerp(targets.flip(0), targets, share))", "torch.lerp(targets, targets.flip(0), share))")],
        exact=[(E, "Mixer.__call__", "return Examples(torch.lerp(images.flip(0)"), (T, "Training.criterion", "return -(targets * logits")],
        near=[(E, "Mixer.__call__", ""), (T, "Training.criterion", "")], module="", note="of the labels, the other image has the share of the image itself"),
    "clip_parts": dict(
        kind="formula", phase="optimizer",
        edits=[(T, "            loss.backward()\n", "            loss.backward()\n            clip(self.model.parameters())\n")],
        exact=[(T, "Training.gradients", "clip(self.model.parameters())"), (U, "clip", "g.mul_(LARGEST / (norm + 1e-6))")],
        near=[(T, "Training.gradients", ""), (U, "clip", "")], module="", note="what is added up so far is clipped after every micro-batch"),
    "short_batch": dict(
        kind="omits", edits=[(E, "for first in range(0, len(examples), MOST):", "for first in range(0, len(examples) - MOST + 1, MOST):")],
        exact=[(E, "micro_batches", "for first in range(0, len(examples) -"), (E, "micro_batches", "yield Examples("),
               (T, "Training.gradients", "for part in micro_batches(examples):"), (T, "Training.gradients", "total += loss.detach()")],
        near=[(E, "micro_batches", ""), (T, "Training.gradients", "")], module="", note="the last micro-batch is smaller than the others and is left out"),
    "average_alias": dict(
        kind="formula", phase="optimizer", edits=[(U, "self.model, self.steps = copy.deepcopy(model), 0", "self.model, self.steps = copy.copy(model), 0")],
        exact=[(U, "Average.__init__", "self.model, self.steps = copy.copy(model), 0"), (U, "Average.follow", "kept.copy_("),
               (U, "Average.between", "return keep * kept"), (U, "Average.follow", "for kept, p in zip(")],
        near=[(U, "Average.__init__", ""), (U, "Average.follow", ""), (U, "Average.between", "")], module="",
        note="a shallow copy has the parameters of the model itself, and they are averaged with themselves"),
    "decay_in_speed": dict(
        kind="formula", phase="optimizer", edits=[(U, "(pull + MOMENTUM * row.speed)", "(row.p.grad + MOMENTUM * row.speed)")],
        exact=[(U, "Nesterov.step", "row.p -= factor * row.rate")], near=[(U, "Nesterov.step", "")], module="",
        note="the step's own part of Nesterov's sum is without the decay"),
}  # fmt: skip
