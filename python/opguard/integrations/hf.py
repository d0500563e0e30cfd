"""Records steps of a transformers.Trainer.

    from opguard.integrations.hf import OpguardCallback
    trainer.add_callback(OpguardCallback("logs/run1", steps=(100, 103)))

A step is one of the trainer's own (`state.global_step`), also where gradients are accumulated and in a resumed run. What
`opguard.recording` takes beside, as `mode="full"` or `ring=5`, is taken here too."""

from transformers import TrainerCallback

from opguard import step
from opguard.recordings import Recording


class OpguardCallback(TrainerCallback):
    def __init__(self, log, steps=None, **options):
        self.recording = Recording(log, steps, marked=True, **options)

    def on_train_begin(self, args, state, control, **_):
        self.recording.start(first_step=state.global_step)

    def on_step_end(self, args, state, control, **_):
        step()

    def on_train_end(self, args, state, control, **_):
        self.recording.stop()
