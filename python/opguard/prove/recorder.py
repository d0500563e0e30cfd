"""Every operator of a step, with the storages that it reads and writes: a dispatch mode.

    y = x @ w           {"op": "aten.mm.default", "args": [T x, T w], "out": [T y], "writes": [T y], "at": 7}
    ones(4).tril()      not computed from state or tokens: the node carries its values instead of a meaning
    y.t()               {"view": true}: no new storage, so nothing is written

A storage is symbolic once an operator with a symbolic argument, or a collective, has written it.
Whatever else a step reads is a constant: its contents are noted before its first reader runs.
Counterexample: memory from empty() counts as symbolic, and no node stands for it. So what is computed of memory that
nobody wrote is no number by chance: the checker meets it, and says so. Filled with numbers it is a constant.
The cost: a walk up the stack for each operator; an operator's arguments are never copied.
"""

import os

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import encode, sources
from .problem import NotCaptured

_UNWRITTEN = ("aten.empty.", "aten.empty_like.", "aten.empty_strided.", "aten.empty_permuted.", "aten.new_empty.", "aten.new_empty_strided.")
_READ_ONLY = ("c10d.send.", "c10d.barrier.", "c10d.monitored_barrier_.", "c10d.check_for_nan.")
_OVERWRITING = ("fill_", "zero_", "copy_", "normal_", "uniform_", "random_", "bernoulli_", "exponential_")
_COLLECTIVES = ("c10d.", "_c10d_functional.")
# Lists of tensors that gloo and NCCL copy through a flat buffer: the argument's position. All others are read and written as they lie.
_COPIED = {"c10d.allgather_.default": 0, "c10d.reduce_scatter_.default": 1}
_SHARED_FLAT = ("c10d._reduce_scatter_base_.", "c10d.reduce_scatter_tensor_coalesced_.")  # the fake group wants parts of the output's form; others count elements
_REDUCED_AS_THEY_LIE = ("c10d.allreduce_.", "c10d.reduce_.")  # in a memory format that all ranks have
_TRUSTED = ("aten.", "_c10d_functional.")  # fsdp's and a user's operators write arguments that their schemas do not name
_MESSAGES = ("c10d.send.", "c10d.recv_.")
_AT = "opguard_at"  # where a node's place is kept in its metadata


def _elsewhere(tensors, kwargs, fake=False):
    """Shape propagation: tensors that hold no data. `fake`: those of FakeTensorMode are the step's own."""
    if str(kwargs.get("device")) == "meta":
        return True
    return any(tensor.device.type == "meta" or not fake and type(tensor).__name__ == "FakeTensor" for tensor in tensors)


def _refuse_gaps(name, args):
    """What ProcessGroupNCCL's or ProcessGroupGloo's checks refuse, or would move as memory: a plan that cannot run has no proof."""
    for tensor in encode.tensors_in([value for position, value in enumerate(args) if position != _COPIED.get(name)], []):
        if not encode.has_storage(tensor) or tensor.is_contiguous():
            continue
        if name.startswith(_REDUCED_AS_THEY_LIE) and any(tensor.is_contiguous(memory_format=form) for form in (torch.channels_last, torch.channels_last_3d)):
            continue
        text = "%s of a tensor that is not contiguous: %s with strides %s. NCCL or gloo refuses it"
        raise NotCaptured(text % (name.split(".")[1].strip("_"), list(tensor.shape), list(tensor.stride())))


def _flat(value):
    """A tensor, or each of a list, as one row of its elements."""
    if isinstance(value, torch.Tensor):
        return value.view(-1)
    return [tensor.view(-1) for tensor in value] if isinstance(value, (list, tuple)) else value


def _mutated(func, name, args, kwargs):
    """The tensors that an operator changes in place, by its schema. c10d's schemas say nothing: they write the first argument."""
    if name.startswith("c10d."):
        return [] if name.startswith(_READ_ONLY) else encode.tensors_in(args[0] if args else list(kwargs.values()), [])
    found = []
    if name.startswith("aten.native_batch_norm."):
        # Its schema does not say that it moves the running statistics.
        return encode.tensors_in([value for value, training in zip(args[3:5], args[5:6] * 2) if training], found)
    for position, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            encode.tensors_in(args[position] if position < len(args) else kwargs.get(argument.name), found)
    return found


def _is_made_of_others(func):
    """An operator that is nothing but others. Autograd takes most of them apart; inference_mode and DTensor do not."""
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    return func.namespace == "aten" and has_kernel(func.name(), "CompositeImplicitAutograd") and not has_kernel(func.name(), "CPU")


_library = None  # lives as long as its kernel


def _one_hot(tensor, num_classes=-1):
    """What torch's one_hot gives, with its checks of the values."""
    if tensor.numel() and (int(tensor.min()) < 0 or 0 <= num_classes <= int(tensor.max())):
        raise RuntimeError("Class values must be non-negative and smaller than num_classes.")
    count = int(tensor.max()) + 1 if num_classes < 0 else num_classes
    return (tensor.unsqueeze(-1) == torch.arange(count, device=tensor.device)).long()


def _keep_one_hot_whole():
    """one_hot asks for the greatest of its values, which a token's nobody knows. With a kernel of its own it is one operator, and asks nothing."""
    global _library
    if _library is None:
        _library = torch.library.Library("aten", "IMPL")
        _library.impl("one_hot", _one_hot, "CPU")


def _outputs(result):
    """Tensors in order, None for what is no tensor among them: positions mean something to an operator's rule."""
    if isinstance(result, torch.Tensor):
        return [encode.plain(result)]
    found = []
    for item in result if isinstance(result, (list, tuple)) else ():
        if isinstance(item, (list, tuple)):
            found += _outputs(item)
        else:
            found.append(encode.plain(item) if isinstance(item, torch.Tensor) else None)
    while found and found[-1] is None:
        found.pop()
    return found


class Recorder(TorchDispatchMode):
    """Holds one rank's nodes, stacks and constants, ready for JSON. `fake`: there are no numbers, so none are written down. `makers`: who made what was there before, or None."""

    def __init__(self, fake=False, makers=None):
        super().__init__()
        self._fake, self._makers = fake, makers
        _keep_one_hot_whole()
        self.nodes, self.stacks, self.constants, self.constants_at, self.passages = [], [], {}, {}, []
        self.paused = False
        self._storages = encode.Storages()
        self._symbolic, self._known = set(), set()  # storages; known: of which no constant is needed any more
        self._unwritten = set()  # storages from empty(): symbolic until numbers fill them
        self._covered = {}  # storage -> elements that are inputs
        self._stack_numbers = {}

    @classmethod
    def _should_skip_dynamo(cls):
        return False  # or torch would import its compiler, for 2.5 s in each rank, to say that this is not compiled

    def input(self, tensor):
        """`tensor` is state or tokens. Its storage's other elements, if any, are constants: padding, or a neighbour in
        one buffer.

        Several inputs may lie in one storage: only once all its elements are inputs is nothing of it constant."""
        described = self._storages.tensor(tensor)
        if "t" in described:
            storage = self._storages.number(tensor)
            self._covered[storage] = self._covered.get(storage, 0) + tensor.numel()
            self._symbolic.add(storage)
            if self._covered[storage] < self._elements(tensor):
                self._note_constant(storage, tensor)
            else:
                self.constants.pop(str(storage), None)
        return described

    def output(self, tensor):
        if encode.has_storage(tensor):
            self._note_if_unknown(tensor)
        return self._storages.tensor(tensor)

    def read(self, tensor):
        """Python has read values without an operator: tolist() and numpy() do."""
        if not self.paused and encode.has_storage(tensor) and self._storages.number(tensor) in self._symbolic:
            node = torch._C._current_autograd_node()
            self._add("aten._local_scalar_dense.default", [self._storages.tensor(tensor)], {}, [], self._at(node), node)["writes"] = []

    def passed(self, function, given, returned):
        """A backward of the user's own has returned: what it handed on as it was has no operator, and no other line."""
        code = getattr(function, "__code__", None)
        if self.paused or code is None or not sources.is_user(code.co_filename):
            return
        through = {self._storages.number(t) for t in encode.tensors_in(given, []) if encode.has_storage(t)}
        through &= {self._storages.number(t) for t in encode.tensors_in(returned, []) if encode.has_storage(t)}
        if through:
            at = self._stack(((os.path.abspath(code.co_filename), sources.defined_at(code), getattr(code, "co_qualname", code.co_name)),))
            self.passages.append([len(self.nodes), sorted(through), at])

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        # DTensor and the like compute by operators on plain tensors, which come here next.
        if any(kind.__name__ not in ("Tensor", "Parameter", "FakeTensor") for kind in types):
            return NotImplemented
        inputs = encode.tensors_in(kwargs, encode.tensors_in(args, []))
        if self.paused or _elsewhere(inputs, kwargs, self._fake) or func.namespace == "prim":  # asks a tensor's device: fake tensors are
            return func(*args, **kwargs)
        if _is_made_of_others(func):
            with self:
                return func.decompose(*args, **kwargs)
        if func.namespace == "c10d":
            _refuse_gaps(str(func), args)
        # Arguments are described before the operator runs: it may give them other sizes.
        described = [self._storages.argument(value) for value in args]
        named = {key: self._storages.argument(value) for key, value in kwargs.items()}
        for tensor in inputs:
            if encode.has_storage(tensor):
                self._note_if_unknown(tensor)
        result = func(*map(_flat, args), **kwargs) if str(func).startswith(_SHARED_FLAT) else func(*args, **kwargs)
        outputs = _outputs(result)
        if _elsewhere([tensor for tensor in outputs if tensor is not None], {}, self._fake):
            return result
        self._note(func, args, kwargs, described, named, inputs, outputs)
        return result

    def _note(self, func, args, kwargs, described, named, inputs, outputs):
        """An operator that has run: what it means for who is symbolic, and its node where the checker needs one. In
        this order:

        1. empty() makes unwritten memory and no node.
        2. Numbers that fill it whole make it constant again.
        3. Else what it made or wrote is symbolic where something that it read is, or where it is a collective.

        A node without anything unknown carries its values."""
        name = str(func)
        collective = name.startswith(_COLLECTIVES)
        mutated = _mutated(func, name, args, kwargs)
        made = [tensor for tensor in outputs if tensor is not None]
        view = (func.is_view or name.startswith(_TRUSTED)) and self._is_view(func, inputs, made, mutated)
        if name.startswith(_UNWRITTEN) and not self._any_symbolic(inputs):
            fresh = {self._storages.number(tensor) for tensor in made if encode.has_storage(tensor)}
            self._symbolic |= fresh
            self._unwritten |= fresh
            return
        if not collective and self._fills(name, inputs, mutated):
            filled = {self._storages.number(tensor) for tensor in mutated}
            self._symbolic -= filled
            self._unwritten -= filled
        symbolic = collective or self._any_symbolic(inputs + made)
        written = self._distinct(made + mutated)
        for tensor in written:
            if encode.has_storage(tensor):
                (self._symbolic if symbolic else self._known).add(self._storages.number(tensor))
        if not symbolic and (view or not written or self._fake and name.startswith("aten.lift_fresh.")):  # a view, but of a tensor that is not fake
            return
        node = torch._C._current_autograd_node()
        out = [None if tensor is None else self._storages.tensor(tensor) for tensor in outputs]
        if name.startswith("_c10d_functional."):
            self._add_group(func, args, kwargs, named)
        entry = self._add(name, described, named, out, self._at(node), node)
        if view:
            entry["view"] = True
        if name.startswith(_MESSAGES) and sources.called_by("distributed_c10d.py", ("send", "recv")):
            entry["waits"] = True  # isend, irecv and batches of them return before it is done
        entry["writes"] = [self._storages.tensor(tensor) for tensor in written]
        if not symbolic:
            entry["values"] = [] if self._fake else [encode.contents(tensor) for tensor in written]

    def _fills(self, name, inputs, mutated):
        """Whether fresh memory is filled whole, with numbers."""
        operator, overload = name.split(".")[1:3] if name.count(".") > 1 else ("", "")
        if not mutated or not (operator in _OVERWRITING or overload.endswith("out")):
            return False
        if not all(encode.has_storage(tensor) and self._storages.number(tensor) in self._unwritten and tensor.numel() == self._elements(tensor) for tensor in mutated):
            return False
        return not self._any_symbolic([tensor for tensor in inputs if all(tensor is not target for target in mutated)])

    def _add(self, name, args, kwargs, out, at, node):
        entry = {"op": name, "args": args, "kwargs": kwargs, "out": out, "at": at}
        if node is not None:
            entry["backward"], entry["node"] = True, node.name()
        self.nodes.append(entry)
        return entry

    def _add_group(self, func, args, kwargs, named):
        """A functional collective names its group by a text, which means nothing outside: its ranks stand beside it as
        _group."""
        for position, argument in enumerate(func._schema.arguments):
            if argument.name == "group_name":
                named["_group"] = encode.group_ranks(args[position] if position < len(args) else kwargs["group_name"])

    def _any_symbolic(self, tensors):
        # A tensor without strides is symbolic: nothing tells what it was computed from.
        return any(not encode.has_storage(tensor) or self._storages.number(tensor) in self._symbolic for tensor in tensors)

    def _is_view(self, func, inputs, made, mutated):
        """Does it show memory that was there, and write none? A transposed tensor is one; a conjugated one means other
        numbers and is none."""
        if not all(encode.has_storage(tensor) for tensor in inputs + made):
            return False
        if any(tensor.is_conj() or tensor.is_neg() for tensor in made):
            return False  # the same memory means other numbers
        if torch.Tag.inplace_view in func.tags:
            return True  # transpose_() and the like change sizes, never contents
        old = {self._storages.number(tensor) for tensor in inputs}
        return bool(made) and not mutated and all(self._storages.number(tensor) in old for tensor in made)

    def _distinct(self, tensors):
        """In-place operators return what they changed: named once."""
        found = {}
        for tensor in tensors:
            found.setdefault(str(self._storages.tensor(tensor)), tensor)
        return list(found.values())

    @staticmethod
    def _elements(tensor):
        """How many elements of the tensor's type its storage holds, seen or not."""
        return tensor.untyped_storage().nbytes() // tensor.element_size()

    def _note_if_unknown(self, tensor):
        """A storage that nothing symbolic wrote is a constant as it is now, before its first reader runs. Once for
        each."""
        storage = self._storages.number(tensor)
        if storage not in self._symbolic and storage not in self._known:
            self._known.add(storage)
            self._note_constant(storage, tensor)

    def _note_constant(self, storage, tensor):
        if self._fake:
            return
        whole = torch.as_strided(tensor.detach(), (self._elements(tensor),), (1,), 0)
        self.constants[str(storage)] = [encode.dtype_name(tensor.dtype), encode.contents(whole)]
        lines = self._makers.lines(tensor) if self._makers else ()
        if lines:
            self.constants_at[str(storage)] = self._stack(lines)

    def _at(self, node):
        """The number of the user's stack: that of the running line, or of the forward line that made an autograd node."""
        if node is None:
            return self._stack(sources.users(sources.running()))
        inner = sources.users(sources.running(), inside_backward=True)
        if inner:
            return self._stack(inner)
        metadata = node.metadata
        if _AT not in metadata:
            lines = sources.users(sources.noted(metadata.get("traceback_")))
            metadata[_AT] = self._stack(lines or sources.users(sources.running()))
        return metadata[_AT]

    def _stack(self, lines):
        """The number of a list of lines in `stacks`, each of which is written once."""
        if lines not in self._stack_numbers:
            self._stack_numbers[lines] = len(self.stacks)
            self.stacks.append([list(line) for line in lines])
        return self._stack_numbers[lines]
