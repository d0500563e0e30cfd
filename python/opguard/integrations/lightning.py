"""Records steps of a Lightning Trainer.

    from opguard.integrations.lightning import OpguardCallback
    Trainer(callbacks=[OpguardCallback("logs/run1", steps=(100, 103))])

A step ends with the batch whose optimizers have stepped; batches whose gradients are only accumulated belong to it. It
is counted from `trainer.global_step` on, so a resumed run goes on where it was. What `opguard.recording` takes beside,
as `mode="full"` or `ring=5`, is taken here too."""

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:
    from pytorch_lightning.callbacks import Callback

from opguard import step
from opguard.recordings import Recording


class OpguardCallback(Callback):
    def __init__(self, log, steps=None, **options):
        super().__init__()
        self.recording = Recording(log, steps, marked=True, **options)
        self.seen = 0

    def on_train_start(self, trainer, pl_module):
        self.seen = trainer.global_step
        self.recording.start(first_step=self.seen)

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        if trainer.global_step != self.seen:
            self.seen = trainer.global_step
            step()

    def on_train_end(self, trainer, pl_module):
        self.recording.stop()

    def on_exception(self, trainer, pl_module, exception):
        self.recording.stop()
