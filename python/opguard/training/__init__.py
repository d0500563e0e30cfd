"""What a program's training does, beside its operators: module calls, optimizers' steps, batches, checkpoints.

`opguard run --observe` and `--check` ask for it. Each kind and its fields: docs/formats/observations.md."""
