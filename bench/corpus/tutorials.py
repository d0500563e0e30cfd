"""The tutorials that a checkout of pytorch/tutorials holds, or one of its translations: every .py below a folder *_source, run as it stands.

None of their code is here. DATA: what a tutorial downloads if it is not there, as standins.py makes it, by the tutorial's path.
What else a tutorial asks for, and has not, it says itself: such a one is counted and named, not judged."""

import re

import examples

BASICS = "beginner_source/basics/%s_tutorial.py"
CIFAR = ["beginner_source/blitz/cifar10_tutorial.py", "beginner_source/introyt/introyt1_tutorial.py", "beginner_source/knowledge_distillation_tutorial.py",
         "intermediate_source/tensorboard_profiler_tutorial.py", "recipes_source/recipes/zeroing_out_gradients.py"]  # fmt: skip
DATA = {
    **{BASICS % name: [("fashion", "data")] for name in ("data", "optimization", "transforms", "quickstart")},
    "beginner_source/introyt/trainingyt.py": [("fashion", "data")],
    "beginner_source/fgsm_tutorial.py": [("mnist", "../data")],
    "intermediate_source/custom_function_conv_bn_tutorial.py": [("mnist", "../data")],
    "intermediate_source/spatial_transformer_tutorial.py": [("mnist", ".")],
    **{path: [("cifar", "data")] for path in CIFAR},
}
# Parts of a tutorial's project that are no program of their own: they need what the reader builds first.
PARTS = re.compile(r"custom_class_project|dispatcher/|rpc_ddp_tutorial/")


def found(source):
    """The tutorials below a folder, in the form of examples.py; the name is the path."""
    programs = []
    for path in sorted(source.glob("*_source/**/*.py")):
        where = str(path.relative_to(source))
        if PARTS.search(where):
            continue
        folder, _, script = where.rpartition("/")
        made = examples.program(folder, script, data=DATA.get(where, ()), compile="optim." in path.read_text())
        programs.append({**made, "name": where[: -len(".py")].replace("_source/", "/").replace("/", "_")})
    return programs
