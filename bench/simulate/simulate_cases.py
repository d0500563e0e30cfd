"""The cases of bench/simulate.py: programs of this folder, each right or with one thing configured wrongly.

A case is the program, the reference's ranks and arguments, the simulated run's, edits of its text, and what is to be
said: `arithmetic`, `configuration` (and on which line), or `refused` (and the words that say why). Controls run with
three seeds.
"""

CASES = {}


def case(name, program, args, b, ranks=2, a="", a_ranks=1, edits=(), says="arithmetic", at=(), held_out=False):
    seeds = 3 if says == "arithmetic" and not edits else 1
    CASES[name] = {
        "program": program,
        "a": f"{args} {a}".strip(),
        "a_ranks": a_ranks,
        "b": f"{args} {b}".strip(),
        "ranks": ranks,
        "edits": list(edits),
        "says": says,
        "at": list(at),
        "seeds": seeds,
        "held_out": held_out,
        "set": "own",
    }


STREAM = "    torch.manual_seed(o.seed + 1000 + data_rank)\n"
case("plan.control_tp", "plan", "", "--tp 2")
case("plan.control_dropout", "plan", "--dropout 0.1", "--tp 2")
case("plan.control_cp", "plan", "", "--cp 2")
case("plan.control_fsdp", "plan", "--data 2", "--fsdp", a_ranks=2)
case("plan.control_tp_fsdp", "plan", "--data 2 --dropout 0.1", "--tp 2 --fsdp", ranks=4, a_ranks=2)
case("plan.control_tp_cp", "plan", "", "--tp 2 --cp 2", ranks=4, held_out=True)
case(
    "plan.padded",
    "plan",
    "",
    "--tp 2",
    edits=[("padded(TOKENS, 8)", "padded(TOKENS, 8 * o.tp)")],
    says="configuration",
    at=["padded(TOKENS, 8 * o.tp)"],
)
case(
    "plan.data_order",
    "plan",
    "",
    "--tp 2",
    edits=[("batch(step, data_rank)", "batch(step, rank)")],
    says="configuration",
    at=["batch(step, rank)", "torch.randint(0, TOKENS"],
)
case(
    "plan.dropout_streams",
    "plan",
    "--dropout 0.1",
    "--tp 2",
    edits=[(STREAM, STREAM.replace("data_rank", "rank"))],
    says="configuration",
    at=["torch.manual_seed(o.seed + 1000 + rank)"],
)
case(
    "plan.replicated_norm",
    "plan",
    "",
    "--tp 2",
    edits=[
        (
            '"norm1": SequenceParallel(),',
            '"norm1": PrepareModuleOutput(output_layouts=Shard(1), desired_output_layouts=Shard(1)),',
        ),
        ("SequenceParallel, parallelize_module", "SequenceParallel, PrepareModuleOutput, parallelize_module"),
    ],
    held_out=True,
)
case(
    "plan.learning_rate",
    "plan",
    "",
    "--tp 2",
    edits=[("lr=1e-2", "lr=1e-2 / o.tp")],
    says="configuration",
    at=["lr=1e-2 / o.tp", "optimizer.step()"],
    held_out=True,
)
case(
    "plan.loss_per_rank",
    "plan",
    "",
    "--tp 2",
    edits=[("labels.flatten())\n            loss.backward()", "labels.flatten()) / o.tp\n            loss.backward()")],
    says="configuration",
    at=["labels.flatten()) / o.tp"],
    held_out=True,
)
case("plan.other_data_ranks", "plan", "", "--data 2 --fsdp", says="refused", at=["divided among 2"])
case(
    "plan.by_hand",
    "plan",
    "",
    "--tp 2",
    edits=[
        (
            "return self.out(mixed.transpose(1, 2).flatten(2))",
            "mixed = self.out(mixed.transpose(1, 2).flatten(2))\n"
            "        dist.all_reduce(mixed) if dist.is_initialized() else None\n"
            "        return mixed",
        )
    ],
    says="refused",
    at=["in a forward or backward pass"],
)

# Read by one rank of the tensor parallel group, as Megatron-LM does.
BROADCAST = """    tokens, labels, positions = next(iterator)
    here = {"tokens": tokens, "labels": labels} if mpu.get_tensor_model_parallel_rank() == 0 else None
    both = broadcast_data(["tokens", "labels"], here, torch.int64)
    tokens, labels = both["tokens"], both["labels"]
"""
case("core.control_tp", "core", "", "--tp 2")
case("core.control_tp_sp", "core", "--dropout 0.1", "--tp 2 --sp")
case("core.control_pp", "core", "--dropout 0.1", "--pp 2")
case("core.control_zero", "core", "", "--zero", a_ranks=2)
case("core.control_ep", "core", "--moe", "--ep 2", a_ranks=2)
case("core.control_tp_pp", "core", "--dropout 0.1", "--tp 2 --sp --pp 2", ranks=4, held_out=True)
case(
    "core.control_tokenizer",
    "core",
    "",
    "--tp 2",
    edits=[
        (
            "    return padded(TOKENS, 8)",
            "    from megatron.training.tokenizer.tokenizer import _vocab_size_with_padding\n"
            "\n"
            "    return _vocab_size_with_padding(TOKENS, "
            "argparse.Namespace(make_vocab_size_divisible_by=8, tensor_model_parallel_size=o.tp))",
        )
    ],
)
case(
    "core.control_broadcast",
    "core",
    "",
    "--tp 2",
    edits=[
        ("    tokens, labels, positions = next(iterator)\n", BROADCAST),
        (
            "from megatron.core.transformer.moe",
            "from megatron.core.tensor_parallel import broadcast_data\nfrom megatron.core.transformer.moe",
        ),
    ],
)
case(
    "core.own_group",
    "core",
    "",
    "--tp 2",
    edits=[
        (
            "    return GPTModel(\n",
            "    groups = ProcessGroupCollection.use_mpu_process_groups()\n"
            "    groups.tp = mpu.get_tensor_model_parallel_group()\n"
            "    return GPTModel(\n"
            "        pg_collection=groups,\n",
        ),
        ("        config,\n        layers,\n", "        config=config,\n        transformer_layer_spec=layers,\n"),
        (
            "        vocabulary(o),\n        LENGTH,\n",
            "        vocab_size=vocabulary(o),\n        max_sequence_length=LENGTH,\n",
        ),
        (
            "from megatron.core.transformer.moe",
            "from megatron.core.process_groups_config import ProcessGroupCollection\n"
            "from megatron.core.transformer.moe",
        ),
    ],
    says="refused",
    at=["that the program hands over"],
)
case(
    "core.padded",
    "core",
    "",
    "--tp 2",
    edits=[
        ("    return padded(TOKENS, 8)", "    return padded(TOKENS, 8 * mpu.get_tensor_model_parallel_world_size())")
    ],
    says="configuration",
    at=["padded(TOKENS, 8 * mpu", "vocabulary(o)"],
)
case(
    "core.data_order",
    "core",
    "",
    "--tp 2",
    edits=[
        (
            "    data_rank, data_size = mpu",
            "    data_rank, data_size = mpu.get_tensor_model_parallel_rank(), 1\n    _, _ = mpu",
        )
    ],
    says="configuration",
    at=["torch.randint(0, TOKENS", "batches(step, 4)", "mpu.get_tensor_model_parallel_rank(), 1"],
)
case(
    "core.data_reversed",
    "core",
    "",
    "--tp 2",
    edits=[
        (
            "[data_rank::data_size]\n",
            "[data_rank::data_size]\n"
            "        mine = mine[::-1] if mpu.get_tensor_model_parallel_rank() else mine\n",
        )
    ],
    says="configuration",
    at=["mine[::-1]", "batches(step, 4)", "torch.randint(0, TOKENS"],
)
case(
    "core.dropout_streams",
    "core",
    "--dropout 0.1",
    "--tp 2",
    edits=[
        (
            "    torch.manual_seed(o.seed + 2)\n",
            "    torch.manual_seed(o.seed + 2 + mpu.get_tensor_model_parallel_rank())\n",
        )
    ],
    says="configuration",
    at=["torch.manual_seed(o.seed + 2 + mpu"],
)
case(
    "core.tracker_streams",
    "core",
    "--dropout 0.1",
    "--tp 2",
    edits=[
        (
            "model_parallel_cuda_manual_seed(o.seed + 7)",
            "model_parallel_cuda_manual_seed(o.seed + 7 + mpu.get_tensor_model_parallel_rank())",
        )
    ],
    says="configuration",
    at=["model_parallel_cuda_manual_seed(o.seed + 7 + mpu"],
    held_out=True,
)
case(
    "core.frozen_rate",
    "core",
    "",
    "--tp 2 --sp",
    edits=[("weight_decay=0.1", "weight_decay=0.1 / o.tp")],
    says="configuration",
    at=["weight_decay=0.1 / o.tp", "optimizer.step()", "OptimizerConfig("],
    held_out=True,
)
case(
    "core.interleaved",
    "core",
    "",
    "--pp 2",
    edits=[("        o.tp, o.pp, expert_model", "        o.tp, o.pp, 2, expert_model")],
    says="refused",
    at=["virtual pipeline"],
)
