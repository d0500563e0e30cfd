"""Programs of public repositories with what makes them short: arguments, data, and changed texts. None of their code is here.

A program: folder, script, arguments; `data`: (kind of standins.py, folder relative to the program's); `edit`: (file, old, new), texts of sizes and of
devices that are written in the program; `ranks`: by torchrun; `then`: a second script of the same folder afterwards; `compile` False: has no optimizer."""


def program(folder, script="main.py", *arguments, data=(), edit=(), ranks=0, then=(), compile=True):
    """One program; its name is that of its folder, with the script and the first argument that say which."""
    name = "_".join([*folder.split("/")[-2:], script[:-3]] + [a for a in arguments[1:2] if a.isupper() or a in ("GRU", "Transformer")])
    return {"name": name.replace("/", "_"), "folder": folder, "script": script, "arguments": list(arguments), "data": list(data), "edit": list(edit), "ranks": ranks,
            "then": list(then), "compile": compile}  # fmt: skip


MNIST = [("mnist", "../data")]
SHORT = ["--epochs", "1", "--dry-run"]
SMALL = ["--batch-size", "8"]
TESTS = ["--test-batch-size", "16"]
TP = "distributed/tensor_parallelism"
SERIES = "distributed/ddp-tutorial-series"
WORDS = [*SHORT, "--emsize", "16", "--nhid", "16", "--bptt", "8", "--batch_size", "4"]

EXAMPLES = [
    program("dcgan", "main.py", "--dataset", "fake", "--dry-run", "--batchSize", "4", "--ngf", "8", "--ndf", "8", "--workers", "0", "--manualSeed", "1", "--niter", "1"),
    program("mnist", "main.py", *SHORT, *SMALL, *TESTS, "--no-accel", data=MNIST),
    program("mnist_forward_forward", "main.py", "--epochs", "3", "--train_size", "64", "--test_size", "32", "--no_accel", data=[("mnist", "data")]),
    program("mnist_hogwild", "main.py", *SHORT, *SMALL, "--test-batch-size", "16", "--num-processes", "1", data=MNIST),
    program("mnist_rnn", "main.py", *SHORT, *SMALL, *TESTS, data=MNIST),
    program("regression", "main.py", edit=[("main.py", "1e-3", "5e-1")]),
    program("vae", "main.py", "--epochs", "1", "--batch-size", "16", "--no-accel", data=MNIST),
    program("gat", "main.py", "--dry-run", "--no-accel", "--hidden-dim", "8", "--num-heads", "2", data=[("cora", "cora")]),
    program("gcn", "main.py", "--dry-run", "--no-accel", data=[("cora", "cora")], edit=[("main.py", "with requests.get(cora_url, stream=True) as tgz_file:", "if False:")]),
    program("imagenet", "main.py", "pictures", "-a", "squeezenet1_1", "-b", "2", "--epochs", "1", "--no-accel", "-j", "0", "--seed", "1", data=[("images", "pictures")]),
    program("siamese_network", "main.py", *SHORT, *SMALL, *TESTS, "--no-accel", data=MNIST),
    program("super_resolution", "main.py", "--upscale_factor", "3", "--batchSize", "2", "--testBatchSize", "2", "--nEpochs", "1", "--threads", "0", data=[("bsds", "dataset")],
            then=["super_resolve.py", "--input_image", "dataset/BSDS300/images/test/0.jpg", "--model", "model_epoch_1.pth", "--output_filename", "out.png"]),
    program("time_sequence_prediction", "generate_sine_wave.py", then=["train.py", "--steps", "1"],
            edit=[("generate_sine_wave.py", "L = 1000", "L = 40"), ("generate_sine_wave.py", "N = 100", "N = 6"), ("train.py", "future = 1000", "future = 10"),
                                                                      ("train.py", "torch.load('traindata.pt')", "torch.load('traindata.pt', weights_only=False)")]),
    *[program("word_language_model", "main.py", "--model", model, *WORDS, data=[("text", "data/wikitext-2")], then=["generate.py", "--words", "20"])
      for model in ("RNN_TANH", "RNN_RELU", "LSTM", "GRU", "Transformer")],
    *[program("reinforcement_learning", name, edit=[(name, "in count(1)", "in range(1, 4)")]) for name in ("reinforce.py", "actor_critic.py")],
    *[program("fx", name + ".py", compile=False) for name in ("custom_tracer", "inline_function", "invert", "module_tracer", "primitive_library", "profiling_tracer",
                                               "proxy_based_graph_creation", "replace_op", "subgraph_rewriter_basic_use", "wrap_output_dynamically")],
    program("fast_neural_style", "neural_style/neural_style.py", "train", "--dataset", "pictures/train", "--style-image", "pictures/style.png", "--save-model-dir", ".", "--epochs", "1",
            "--batch-size", "2", "--image-size", "32", data=[("images", "pictures")], edit=[("neural_style/vgg.py", "weights=models.VGG16_Weights.IMAGENET1K_V1", "weights=None")]),
    program("distributed/ddp", "example.py", ranks=2, edit=[("example.py", ".to(rank)", '.to("cpu")'), ("example.py", "device_ids=[rank]", "device_ids=None"),
                                                           ("example.py", "[{os.getpid()}]", "")]),
    program(TP, "tensor_parallel_example.py", ranks=2),
    program(TP, "sequence_parallel_example.py", ranks=2),
    program(TP, "fsdp_tp_example.py", ranks=2, edit=[("fsdp_tp_example.py", "dim=256", "dim=32"), ("fsdp_tp_example.py", "n_heads=16", "n_heads=4"), ("fsdp_tp_example.py", "32000", "320"),
                                                     ("fsdp_tp_example.py", "num_iterations = 10", "num_iterations = 2"), ("fsdp_tp_example.py", "(8, 256)", "(2, 16)")]),
    program("distributed/FSDP2", "example.py", ranks=2, edit=[("example.py", 'f"{device_type}:{rank}"', '"cpu"'), ("example.py", "torch.accelerator.device_index(rank)", "pass"),
                                                              ("example.py", ", device_id=device", ""), ("example.py", "n_layers=10", "n_layers=2"), ("example.py", "vocab_size = 1024", "vocab_size = 64"),
                                                              ("example.py", "range(10)", "range(2)"), ("example.py", "seq_len = 64", "seq_len = 8"), ("example.py", "batch_size = 32", "batch_size = 2")]),
    program(SERIES, "single_gpu.py", "2", "1", edit=[("single_gpu.py", "device = 0", 'device = "cpu"')]),
    program(SERIES, "multigpu_torchrun.py", "2", "1", ranks=2,
            edit=[("multigpu_torchrun.py", 'torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))', "pass"), ("multigpu_torchrun.py", '"nccl"', '"gloo"'), ("multigpu_torchrun.py", "device_ids=[self.gpu_id]", "device_ids=None"),
                  ("multigpu_torchrun.py", ".to(self.gpu_id)", '.to("cpu")'), ("multigpu_torchrun.py", "2048", "128")]),
    program("distributed/minGPT-ddp/mingpt", "main.py", "data_config.path=data/input.txt", "data_config.block_size=8", "data_config.truncate=1.0", "gpt_config.n_layer=2", "gpt_config.n_head=2", "gpt_config.n_embd=16",
            "trainer_config.max_epochs=1", "trainer_config.batch_size=32", "trainer_config.data_loader_workers=0", "trainer_config.use_amp=False", ranks=2, data=[("characters", "data")],
            edit=[("main.py", 'torch.device(f"{acc}:{rank}")', 'torch.device("cpu")'), ("trainer.py", 'torch.device(f"{self.acc}:{self.local_rank}")', 'torch.device("cpu")'),
                  ("trainer.py", ".to(self.local_rank)", '.to("cpu")'), ("trainer.py", "device_ids=[self.local_rank]", "device_ids=None"), ("trainer.py", "import boto3", "")]),
]  # fmt: skip


def lesson(folder, *edit, data=()):
    """A lesson of a tutorial: one pass over little data."""
    return program("tutorials/" + folder, "main.py", data=data, edit=[("main.py", old, new) for old, new in edit])


DATA = [("mnist", "../../data")]
ONCE = [("num_epochs = %d\n" % n, "num_epochs = 1\n") for n in (2, 5, 15, 80, 200)]

LESSONS = [
    lesson("01-basics/feedforward_neural_network", *ONCE, data=DATA),
    lesson("01-basics/logistic_regression", *ONCE, data=DATA),
    lesson("01-basics/linear_regression", ("import matplotlib.pyplot as plt", "import matplotlib; matplotlib.use('Agg'); import matplotlib.pyplot as plt")),
    lesson("01-basics/pytorch_basics", ("pretrained=True", "weights=None"), data=[("cifar", "../../data")]),
    lesson("02-intermediate/bidirectional_recurrent_neural_network", *ONCE, ("hidden_size = 128", "hidden_size = 16"), data=DATA),
    lesson("02-intermediate/convolutional_neural_network", *ONCE, data=DATA),
    lesson("02-intermediate/deep_residual_network", *ONCE, data=[("cifar", "../../data")]),
    lesson("02-intermediate/language_model", *ONCE, ("hidden_size = 1024", "hidden_size = 16"), ("num_samples = 1000", "num_samples = 20"), ("seq_length = 30", "seq_length = 8"), data=[("text", "data")]),
    lesson("02-intermediate/recurrent_neural_network", *ONCE, ("hidden_size = 128", "hidden_size = 16"), data=DATA),
    lesson("03-advanced/generative_adversarial_network", *ONCE, data=DATA),
    lesson("03-advanced/variational_autoencoder", *ONCE, ("../../data", "../../data"), data=DATA),
    *[program(*path.split("/"), edit=[(path.split("/")[1], "range(500)", "range(20)")])
      for path in ("nn/dynamic_net.py", "nn/two_layer_net_module.py", "nn/two_layer_net_nn.py", "nn/two_layer_net_optim.py", "autograd/two_layer_net_autograd.py",
                   "autograd/two_layer_net_custom_function.py", "tensor/two_layer_net_tensor.py")],
]  # fmt: skip

PROGRAMS = EXAMPLES + LESSONS
