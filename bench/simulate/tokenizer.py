"""Stands where Megatron-LM's is, and pads as it does: to a multiple that has the tensor parallel size in it."""

import math


def _vocab_size_with_padding(orig_vocab_size, args, logging_enabled=True):
    multiple = args.make_vocab_size_divisible_by * args.tensor_model_parallel_size
    return int(math.ceil(orig_vocab_size / multiple) * multiple)
