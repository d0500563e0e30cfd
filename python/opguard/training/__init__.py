"""What is observed of a training program beside its operators: docs/formats/observations.md."""
