"""The operators by which a compiled graph records.

Two levels. `enter` and `leave` stand in the graph that dynamo makes, around the operator of a site. They decompose
where autograd is still to be seen. Run for real (backend="eager") they hook its nodes as an eager probe does. Traced
by AOTAutograd they put hooks on the traced nodes, whose bodies are so traced into the backward graph. What remains in
the graphs, `begin`, `end` and `node`, only reads. Each writes to a ring, a tensor of one element: an operator that
changes nothing would be dropped or moved. The backward graph has a ring of its own. Both are on the device of what
the graph works on: a tensor of the processor's would keep a graph from being captured (docs/design/compile.md).

A site is told by a constant text, so that a compiled graph is complete in itself and may come from a cache.
It is `<format>;<token>;<boundary>;<flags>;<names>;<texts>`, percent-encoded, read by
src/runtime/entries/graph_site.cc. The token
pairs `enter` with `leave`."""

import threading

import torch

from opguard import _rt
from opguard.record import hook_numbers

FORMAT = "1"
# Before a slot's name.
IN, OUT, WRITTEN = "i", "o", "w"
# Of an event. NEW_HISTORY: what came before an input is this site's too, as of an item that its iteration made.
IN_GRAPH, IN_BACKWARD, NEW_HISTORY, RAISED = "g", "b", "n", "r"
# What changes its arguments without torch's version counters: all are read again.
UNCOUNTED = set("cw")

# By device: the forward graphs' ring, the backward graphs'. Dynamo reads them from here.
RING, RING_BACKWARD = {}, {}
# Devices whose `end` gives its event's index as a value. Reading one of another device would wait for it. There the
# index is known by the address of what `end` gave, which lives until its backward has run.
BY_VALUE = {"cpu"}
_indexes = {}



def prepare(device):
    """device: its name. Makes its rings."""
    if device in RING:
        return
    for rings in (RING, RING_BACKWARD):
        ring = torch.zeros(1, dtype=torch.int64, device=device)
        # Else a graph that changes it would not be captured by Inductor.
        mark = getattr(torch._dynamo, "mark_static_address", None)
        if mark is not None:
            mark(ring)
        rings[device] = ring


def site(token, boundary, flags, names, texts):
    """"1;7;model.mul:77ab;;iself,iarg0;" and the like: the format above, of parts that are encoded already."""
    return ";".join((FORMAT, str(token), boundary, flags, ",".join(names), "|".join(texts)))


class _Open(threading.local):
    def __init__(self):
        # token -> versions and grad_fn of the inputs before the operator
        self.sites = {}


_open = _Open()


def _version(tensor):
    try:
        return tensor._version
    except RuntimeError:  # inference tensors count no versions
        return 0


def _is_traced(ring):
    """While a graph is traced the ring is a stand-in of AOTAutograd's; for real it is the plain tensor that prepare()
    made."""
    return type(ring) is not torch.Tensor


def _is_fake(ring):
    from torch._subclasses.fake_tensor import FakeTensor

    return isinstance(ring, FakeTensor)


def _in_backward():
    return torch._C._current_graph_task_id() != -1


def _plain(values):
    """DTensor: this rank's shard, as when eager."""
    return [getattr(value, "_local_tensor", value) for value in values]


def _enter(ring, values, numbers, text):
    """The operator of a site begins. The inputs' versions and nodes are kept until `leave` comes with the same token.
    What has another version by then was written. What stands behind a node of `history` is not this site's."""
    if _is_fake(ring):
        return  # dynamo asks for the shapes of the results
    token, _, flags = text.split(";", 4)[1:4]
    history = [value.grad_fn for value in values if value.grad_fn is not None and NEW_HISTORY not in flags]
    _open.sites[token] = [_version(value) for value in values], history
    if _is_traced(ring):
        if _in_backward():
            text = _flagged(text, IN_BACKWARD)
        torch.ops.opguard.begin(ring, _plain(values), numbers, text)
    else:
        _rt.graph_enter(ring, values, numbers, text)


def _flagged(text, *flags):
    parts = text.split(";")
    parts[3] += "".join(flags)
    return ";".join(parts)


def _leave(ring, ring_backward, values, inputs, names, numbers, text):
    """The operator has returned: outputs, inputs that it wrote, and its autograd nodes. A tensor that is two inputs is
    read again once. Where `enter` kept nothing, nothing counts as written."""
    if _is_fake(ring):
        return
    form, token, boundary, flags, outs, texts = text.split(";")
    versions, history = _open.sites.pop(token, ([], []))
    seen, written, uncounted = set(), [], bool(UNCOUNTED & set(flags))
    for value, name, before in zip(inputs, names.split(","), versions):
        if id(value) not in seen and (uncounted or _version(value) != before):
            written.append(value)
            outs += ("," if outs else "") + WRITTEN + name
        seen.add(id(value))
    roots = [value.grad_fn for value in values if value.grad_fn is not None]
    if roots:
        flags += IN_GRAPH
    if not _is_traced(ring):
        text = ";".join((form, token, boundary, flags, outs, texts))
        index = _rt.graph_leave(ring, [*values, *written], numbers, text)
        if roots:
            _rt.graph_attach(index, text, tuple(values), history)
        return
    if _in_backward():
        flags += IN_BACKWARD
    text = ";".join((form, token, boundary, flags, outs, texts))
    serial = torch.ops.opguard.end(ring, _plain([*values, *written]), numbers, text)
    if roots and IN_BACKWARD not in flags:
        _no_version_check(ring_backward)
        _claim(roots, history, boundary, token, ring_backward, serial)


def _no_version_check(ring):
    """The ring is saved for the backward pass, and other backward passes write to it before."""
    from torch.fx.experimental import proxy_tensor

    if proxy_tensor.get_proxy_mode() is not None:
        for proxy in proxy_tensor._get_proxies(ring):
            proxy.node.meta["saved_tensor_with_no_vc_check"] = True


def _claim(roots, history, boundary, token, ring, serial):
    """As attach_hooks of src/runtime/entries/autograd.cc."""
    todo = list(roots)
    while todo:
        node = todo.pop()
        if any(node is known for known in history) or node.name().endswith("AccumulateGrad"):
            continue
        with hook_numbers.apart():
            handle = node.register_hook(_NodeHook(boundary, token, node.name(), ring, serial))
        if sum(isinstance(hook, _NodeHook) for hook in handle.hooks_dict_ref().values()) > 1:
            handle.remove()
            continue
        todo += [following for following, _ in node.next_functions if following is not None]


class _NodeHook:
    """That it is there says that the node is claimed."""

    def __init__(self, boundary, token, name, ring, serial):
        self.boundary, self.token, self.name, self.ring, self.serial = boundary, token, name, ring, serial

    def __call__(self, outgoing, incoming):
        names, values = [], []
        for kind, label, gradients in ((IN, "grad", incoming), (OUT, "out", outgoing)):
            for i, gradient in enumerate(gradients):
                if gradient is not None:
                    names.append(f"{kind}{label}{i}")
                    values.append(gradient)
        torch.ops.opguard.node(self.ring, self.serial, _plain(values), site(self.token, self.boundary, "", names, [self.name]))


def _end(ring, values, numbers, text):
    """The event is made. What comes back tells its number to the backward graph. On the processor that is its value;
    elsewhere it is the address of a tensor, which autograd keeps as long as its backward may run."""
    index = _rt.graph_leave(ring, values, numbers, text)
    if ring.device.type in BY_VALUE:
        return torch.scalar_tensor(index, dtype=torch.int64)
    told = torch.empty((), dtype=torch.int64, device=ring.device)
    _indexes[told.data_ptr()] = index
    return told


def _node(ring, serial, values, text):
    """A node of the event that `serial` names; -1 where the address is not known."""
    if ring.device.type in BY_VALUE:
        _rt.graph_node(int(serial), values, text)
    else:
        _rt.graph_node(_indexes.get(serial.data_ptr(), -1), values, text)


_library = torch.library.Library("opguard", "DEF")
_library.define("enter(Tensor(a!) ring, Tensor[] values, SymInt[] numbers, str site) -> ()")
_library.define(
    "leave(Tensor(a!) ring, Tensor(b!) ring_backward, Tensor[] values, Tensor[] inputs, str names, SymInt[] numbers,"
    " str site) -> ()"
)
_library.define("begin(Tensor(a!) ring, Tensor[] values, SymInt[] numbers, str site) -> ()")
_library.define("end(Tensor(a!) ring, Tensor[] values, SymInt[] numbers, str site) -> Tensor")
_library.define("node(Tensor(a!) ring, Tensor serial, Tensor[] values, str site) -> ()")
_library.impl("enter", _enter, "CompositeImplicitAutograd")
_library.impl("leave", _leave, "CompositeImplicitAutograd")
_library.impl("begin", _rt.graph_enter, "CompositeExplicitAutograd")
_library.impl("end", _end, "CompositeExplicitAutograd")
_library.impl("node", _node, "CompositeExplicitAutograd")


@torch.library.register_fake("opguard::begin", lib=_library)
def _(ring, values, numbers, text):
    return None


@torch.library.register_fake("opguard::end", lib=_library)
def _(ring, values, numbers, text):
    return torch.empty((), dtype=torch.int64, device=ring.device)


@torch.library.register_fake("opguard::node", lib=_library)
def _(ring, serial, values, text):
    return None
