// Two kinds of hooks, as objects that the engine calls.
//
//   node      after it ran: hook(grad_inputs, grad_outputs) is one event
//   leaf      before(grad): the gradient and what is there already are read
//             the engine adds
//             call: the sum is read, and both halves are one event
//
// Several passes may be at one leaf, in several threads or one inside the other. Each half finds
// its own by torch's number of the pass.
//
// A node is claimed by the hook that hangs on it: who finds one of ours there takes his own off
// again. Counterexample: a set of the claimed nodes' addresses. The Python object of a node is made
// anew at each look, and its address is soon another node's.
//
// The walk of an operator ends at what its inputs came from and at claimed nodes. So all walks
// together are no longer than the program's backward passes.
#include "runtime/entries/autograd.h"

#include <algorithm>
#include <cstddef>
#include <unordered_map>
#include <unordered_set>

#include "runtime/entries/graph_event.h"
#include "runtime/host/hook_numbers.h"
#include "runtime/host/object.h"
#include "runtime/recorder/location.h"
#include "runtime/recorder/parameter_names.h"
#include "runtime/recorder/values.h"
#include "runtime/recorder/sketches.h"
#include "runtime/watch/watch.h"

namespace opguard {
namespace {

constexpr std::string_view kLeaf = "AccumulateGrad", kCompiled = "CompiledFunctionBackward";

PyTypeObject* g_node_hook_type = nullptr;
PyTypeObject* g_leaf_hook_type = nullptr;

// Called by the engine as hook(grad_inputs, grad_outputs). Belongs to the node and points to
// nothing. That it is there says that the node is claimed: nothing else is left on the node.
struct NodeHook {
  PyObject_HEAD std::string* boundary;  // nullptr: it only says so
  std::string* node;
  uint32_t forward;
  uint64_t generation;
  std::shared_ptr<Watch>* before;  // from before the node runs to after it; or nullptr
};

// A gradient that is being added to a leaf.
struct Adding {
  int64_t pass;  // the backward pass, torch's number of it
  uint64_t generation;
  Event event;
  std::vector<Slot> slots;
  std::shared_ptr<Watch> watch;
};

// On an AccumulateGrad node: `before(grad_outputs)` and, as a call, after it. Backward passes of
// several threads may be at one leaf at once, and one pass may start another from a hook. Each
// finds its own by its number.
struct LeafHook {
  PyObject_HEAD PyObject* variable;  // weak: the node holds the leaf, and we hang on the node
  std::vector<Adding>* adding;
};

// A pass that ends in an exception between the two calls leaves its entry; no more than so many.
constexpr size_t kAdding = 64;

PyObject* call_node_hook(PyObject* self, PyObject* args, PyObject*) {
  auto* hook = reinterpret_cast<NodeHook*>(self);
  if (hook->boundary == nullptr) Py_RETURN_NONE;
  if (hook->before != nullptr && *hook->before) (*hook->before)->end();
  if (!recorder().on() || recorder().thread().inside || PyTuple_Size(args) < 2) Py_RETURN_NONE;
  OwnWork work;
  Ref replaced;  // what the engine goes on with in place of `outgoing`
  try {
    Event event = recorder().open_event(*hook->boundary, EventKind::node, Phase::backward);
    event.node = recorder().string(*hook->node);
    event.forward = hook->generation == recorder().generation() ? hook->forward : kNone;
    Collector in(work.torch(), SlotKind::in), out(work.torch(), SlotKind::out);
    PyObject *outgoing = PyTuple_GetItem(args, 0), *incoming = PyTuple_GetItem(args, 1);
    std::shared_ptr<Watch> watch = watch_event(event, *hook->boundary, *hook->node);
    if (watch) {
      in.show(watch.get());
      out.show(watch.get());
      Ref given = watch->apart(outgoing);
      if (given.get() != outgoing) {
        replaced = given;
        outgoing = replaced.get();
      }
    }
    if (sketches().jitters() && PyTuple_Check(outgoing)) {
      const Ref gradients(PySequence_List(outgoing));
      if (gradients)
        sketches().jitter(*hook->boundary, recorder().next_occurrence(event), gradients.get());
    }
    for (Py_ssize_t i = 0, n = PyTuple_Check(incoming) ? PyTuple_Size(incoming) : 0; i < n; ++i)
      in.add_tensors("grad" + std::to_string(i), PyTuple_GetItem(incoming, i));
    for (Py_ssize_t i = 0, n = PyTuple_Check(outgoing) ? PyTuple_Size(outgoing) : 0; i < n; ++i)
      out.add_tensors("out" + std::to_string(i), PyTuple_GetItem(outgoing, i));
    std::vector<Slot> slots = std::move(in.slots());
    slots.insert(slots.end(), out.slots().begin(), out.slots().end());
    if (uint64_t beyond = in.beyond() + out.beyond(); beyond > 0) recorder().lose(beyond);
    recorder().commit(event, slots);
    if (watch) watch->committed(event);
    if (hook->before != nullptr && *hook->before) (*hook->before)->drilled(event);
  } catch (const std::exception& e) {
    recorder().fault(e.what());
  }
  if (hook->before != nullptr) hook->before->reset();
  if (replaced) return replaced.release();
  Py_RETURN_NONE;
}

// The node is about to run: what it is to read instead.
PyObject* before_node(PyObject* self, PyObject* args) {
  auto* hook = reinterpret_cast<NodeHook*>(self);
  if (hook->before == nullptr || !recorder().on() || recorder().thread().inside) Py_RETURN_NONE;
  Ref replaced;
  try {
    PyObject* incoming = PyTuple_Size(args) > 0 ? PyTuple_GetItem(args, 0) : Py_None;
    {
      OwnWork work;
      Event event = recorder().open_event(*hook->boundary, EventKind::node, Phase::backward);
      event.node = recorder().string(*hook->node);
      *hook->before = watch_event(event, *hook->boundary, *hook->node);
      if (*hook->before) replaced = (*hook->before)->read_apart(incoming);
    }
    if (*hook->before) (*hook->before)->begin();
    if (replaced && replaced.get() != incoming) return replaced.release();
  } catch (const std::exception& e) {
    recorder().fault(e.what());
  }
  Py_RETURN_NONE;
}

void free_node_hook(PyObject* self) {
  auto* hook = reinterpret_cast<NodeHook*>(self);
  delete hook->before;
  delete hook->boundary;
  delete hook->node;
  PyTypeObject* type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

Ref leaf_of(LeafHook* hook) {
  Ref leaf(PyObject_CallNoArgs(hook->variable));
  if (!leaf) PyErr_Clear();
  return leaf.get() == Py_None ? Ref() : leaf;
}

PyObject* before_accumulate(PyObject* self, PyObject* args) {
  auto* hook = reinterpret_cast<LeafHook*>(self);
  if (!recorder().on() || recorder().thread().inside) Py_RETURN_NONE;
  OwnWork work;
  try {
    std::string boundary = recorder().innermost(recorder().thread(), "<backward>");
    Adding adding{.pass = work.torch() ? graph_task(*work.torch()) : -1,
                  .generation = recorder().generation(),
                  .event = recorder().open_event(boundary, EventKind::accumulate, Phase::backward)};
    adding.watch = watch_event(adding.event, boundary);
    Collector in(work.torch(), SlotKind::in);
    in.show(adding.watch.get());
    PyObject* incoming =
        PyTuple_Check(args) && PyTuple_Size(args) > 0 ? PyTuple_GetItem(args, 0) : args;
    if (PyTuple_Check(incoming) && PyTuple_Size(incoming) > 0)
      incoming = PyTuple_GetItem(incoming, 0);
    in.add_tensors("grad0", incoming);
    if (Ref leaf = leaf_of(hook)) {
      Ref prior = attribute(leaf.get(), "grad");
      if (prior && prior.get() != Py_None) in.add_tensors("prior", prior.get());
    }
    adding.slots = std::move(in.slots());
    std::erase_if(*hook->adding, [&](const Adding& a) { return a.pass == adding.pass; });
    if (hook->adding->size() >= kAdding) hook->adding->erase(hook->adding->begin());
    hook->adding->push_back(std::move(adding));
  } catch (const std::exception& e) {
    recorder().fault(e.what());
  }
  Py_RETURN_NONE;
}

PyObject* call_leaf_hook(PyObject* self, PyObject*, PyObject*) {
  auto* hook = reinterpret_cast<LeafHook*>(self);
  if (!recorder().on() || recorder().thread().inside) Py_RETURN_NONE;
  OwnWork work;
  try {
    const int64_t pass = work.torch() ? graph_task(*work.torch()) : -1;
    auto found = std::find_if(hook->adding->begin(), hook->adding->end(),
                              [&](const Adding& a) { return a.pass == pass; });
    if (found == hook->adding->end()) Py_RETURN_NONE;
    // Taken out at once: from here on Python may run, and another pass come.
    Adding adding = std::move(*found);
    hook->adding->erase(found);
    if (adding.generation != recorder().generation()) Py_RETURN_NONE;
    Collector out(work.torch(), SlotKind::out);
    out.show(adding.watch.get());
    if (Ref leaf = leaf_of(hook)) {
      Ref grad = attribute(leaf.get(), "grad");
      std::string name = parameter_names({leaf})[0];
      if (grad && grad.get() != Py_None)
        out.add_tensors(name.empty() ? "grad" : "grad:" + name, grad.get(), kModelValue);
    }
    adding.slots.insert(adding.slots.end(), out.slots().begin(), out.slots().end());
    recorder().commit(adding.event, adding.slots);
    if (adding.watch) adding.watch->committed(adding.event);
  } catch (const std::exception& e) {
    recorder().fault(e.what());
  }
  Py_RETURN_NONE;
}

void free_leaf_hook(PyObject* self) {
  auto* hook = reinterpret_cast<LeafHook*>(self);
  Py_XDECREF(hook->variable);
  delete hook->adding;
  PyTypeObject* type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

PyMethodDef g_node_methods[] = {{"before", before_node, METH_VARARGS, nullptr}, {}};
PyMethodDef g_leaf_methods[] = {{"before", before_accumulate, METH_VARARGS, nullptr}, {}};

PyType_Slot g_node_slots[] = {{Py_tp_call, reinterpret_cast<void*>(call_node_hook)},
                              {Py_tp_dealloc, reinterpret_cast<void*>(free_node_hook)},
                              {Py_tp_methods, g_node_methods},
                              {0, nullptr}};
PyType_Slot g_leaf_slots[] = {{Py_tp_call, reinterpret_cast<void*>(call_leaf_hook)},
                              {Py_tp_dealloc, reinterpret_cast<void*>(free_leaf_hook)},
                              {Py_tp_methods, g_leaf_methods},
                              {0, nullptr}};
PyType_Spec g_node_spec = {"opguard._rt.NodeHook", sizeof(NodeHook), 0, Py_TPFLAGS_DEFAULT,
                           g_node_slots};
PyType_Spec g_leaf_spec = {"opguard._rt.LeafHook", sizeof(LeafHook), 0, Py_TPFLAGS_DEFAULT,
                           g_leaf_slots};

enum class Claim { taken, known, refused };

bool is_ours(PyObject* hook) {
  return Py_TYPE(hook) == g_node_hook_type || Py_TYPE(hook) == g_leaf_hook_type;
}

// The dictionary of a node's hooks, which lives as long as the node: weak, from a hook's handle.
Ref hooks_of(PyObject* handle, Ref& weak) {
  weak = attribute(handle, "hooks_dict_ref");
  Ref hooks(weak ? PyObject_CallNoArgs(weak.get()) : nullptr);
  if (!hooks) PyErr_Clear();
  return hooks && PyDict_Check(hooks.get()) ? std::move(hooks) : Ref();
}

// Puts our hook on a node; where one of ours is there already, takes it off again.
Claim claim(PyObject* node, PyObject* hook, Ref& hooks_weak) {
  Ref handle = register_own_hook(node, "register_hook", hook);
  if (!handle) return Claim::refused;
  Ref hooks = hooks_of(handle.get(), hooks_weak);
  int ours = 0;
  PyObject *id, *other;
  for (Py_ssize_t at = 0; hooks && PyDict_Next(hooks.get(), &at, &id, &other);)
    ours += is_ours(other);
  if (ours == 1) return Claim::taken;
  Ref removed(PyObject_CallMethod(handle.get(), "remove", nullptr));
  PyErr_Clear();
  return hooks ? Claim::known : Claim::refused;
}

bool add_prehook(PyObject* node, PyObject* hook) {
  Ref before(PyObject_GetAttrString(hook, "before"));
  PyErr_Clear();
  return before && register_own_hook(node, "register_prehook", before.get());
}

// told: what the node does is recorded by itself, and only the claim is wanted.
Claim take_node(PyObject* node, const std::string& name, const std::string& boundary,
                uint32_t index, bool told) {
  auto* hook = PyObject_New(NodeHook, g_node_hook_type);
  if (hook == nullptr) return Claim::refused;
  hook->boundary = told ? nullptr : new std::string(boundary);
  hook->node = told ? nullptr : new std::string(name);
  hook->forward = index;
  hook->generation = recorder().generation();
  const bool before = !told && g_watching && watched_before(boundary, name);
  hook->before = before ? new std::shared_ptr<Watch> : nullptr;
  Ref held(reinterpret_cast<PyObject*>(hook)), hooks;
  const Claim claimed = claim(node, held.get(), hooks);
  if (claimed == Claim::taken && before && !add_prehook(node, held.get())) return Claim::refused;
  return claimed;
}

// Leaves that were claimed -> their nodes' hooks, weak. A parameter is met at each of its uses. A
// node holds its leaf, so that an address stands for one leaf as long as its hooks live.
class ClaimedLeaves {
 public:
  bool hold(PyObject* leaf) const {
    auto at = hooks_.find(leaf);
    return at != hooks_.end() && lives(at->second);
  }
  void add(PyObject* leaf, Ref hooks) {
    if (hooks_.size() >= limit_) {
      std::erase_if(hooks_, [](const auto& entry) { return !lives(entry.second); });
      limit_ = std::max(limit_, 2 * hooks_.size());
    }
    hooks_[leaf] = std::move(hooks);
  }

 private:
  static bool lives(const Ref& weak) { return PyWeakref_GetObject(weak.get()) != Py_None; }

  std::unordered_map<PyObject*, Ref> hooks_;
  size_t limit_ = 1024;
};

ClaimedLeaves& claimed_leaves() {
  static auto* all = new ClaimedLeaves;
  return *all;
}

Claim take_leaf(PyObject* node) {
  Ref variable = attribute(node, "variable");
  if (!variable || variable.get() == Py_None) return Claim::known;
  if (claimed_leaves().hold(variable.get())) return Claim::known;
  Ref weak(PyWeakref_NewRef(variable.get(), nullptr));
  auto* hook = weak ? PyObject_New(LeafHook, g_leaf_hook_type) : nullptr;
  PyErr_Clear();
  if (hook == nullptr) return Claim::refused;
  hook->variable = weak.release();
  hook->adding = new std::vector<Adding>;
  Ref held(reinterpret_cast<PyObject*>(hook)), hooks;
  const Claim claimed = claim(node, held.get(), hooks);
  if (claimed == Claim::taken && !add_prehook(node, held.get())) return Claim::refused;
  if (claimed != Claim::refused) claimed_leaves().add(variable.get(), std::move(hooks));
  return claimed;
}

void collect_roots(const TorchApi& torch, PyObject* value, std::vector<Ref>& nodes, int depth) {
  if (torch.is_tensor(value)) {
    Ref node = grad_fn_of(value);
    if (node && node.get() != Py_None) nodes.push_back(node);
  } else if (depth < 64 && PyTuple_Check(value)) {
    for (Py_ssize_t i = 0, n = PyTuple_Size(value); i < n; ++i)
      collect_roots(torch, PyTuple_GetItem(value, i), nodes, depth + 1);
  } else if (depth < 64 && PyList_Check(value)) {
    for (Py_ssize_t i = 0; i < PyList_Size(value); ++i)
      collect_roots(torch, Ref::borrow(PyList_GetItem(value, i)).get(), nodes, depth + 1);
  } else if (depth < 64 && PyDict_Check(value)) {
    PyObject *key, *item;
    for (Py_ssize_t at = 0; PyDict_Next(value, &at, &key, &item);)
      collect_roots(torch, item, nodes, depth + 1);
  }
}

void push_next(PyObject* node, std::vector<Ref>& todo) {
  Ref next = attribute(node, "next_functions");
  for (Py_ssize_t i = 0, n = next && PyTuple_Check(next.get()) ? PyTuple_Size(next.get()) : 0;
       i < n; ++i) {
    PyObject* edge = PyTuple_GetItem(next.get(), i);
    PyObject* to = PyTuple_Check(edge) ? PyTuple_GetItem(edge, 0) : nullptr;
    if (to != nullptr && to != Py_None) todo.push_back(Ref::borrow(to));
  }
}

std::string node_name(PyObject* node) {
  Ref name(PyObject_CallMethod(node, "name", nullptr));
  if (!name) PyErr_Clear();
  return std::string(utf8(name.get()));
}

// The leaves below compiled graphs: their operators saw no real nodes when they were called.
void hook_compiled_leaves(const TorchApi& torch, PyObject* roots) {
  std::vector<Ref> todo;
  collect_roots(torch, roots, todo, 0);
  std::unordered_set<PyObject*> seen;
  std::vector<Ref> held;  // an address stands for a node only while its wrapper lives
  while (!todo.empty()) {
    Ref node = std::move(todo.back());
    todo.pop_back();
    if (!seen.insert(node.get()).second) continue;
    held.push_back(node);
    size_t known = todo.size();
    push_next(node.get(), todo);
    if (!node_name(node.get()).starts_with(kCompiled)) continue;
    for (size_t i = known; i < todo.size(); ++i) {
      PyObject* next = todo[i].get();
      if (node_name(next).ends_with(kLeaf) && take_leaf(next) == Claim::refused)
        recorder().fault("an autograd node takes no hook");
    }
  }
}

}  // namespace

bool in_graph(const TorchApi& torch, PyObject* result) {
  std::vector<Ref> roots;
  collect_roots(torch, result, roots, 0);
  return !roots.empty();
}

void attach_hooks(const TorchApi& torch, const std::string& boundary, uint32_t index,
                  PyObject* result, const std::vector<Ref>& history, uint64_t begin) {
  bool compiled = latest_graph_event() >= static_cast<int64_t>(begin);
  std::vector<Ref> todo;
  collect_roots(torch, result, todo, 0);
  // While we hold its wrapper a node has one identity.
  std::unordered_set<PyObject*> before_us;
  for (const Ref& known : history) before_us.insert(known.get());
  // However deep the graph is, a node is claimed once in its life. So all walks together are no
  // longer than the program's own backward passes.
  while (!todo.empty()) {
    Ref node = std::move(todo.back());
    todo.pop_back();
    if (before_us.count(node.get())) continue;
    std::string name = node_name(node.get());
    const bool told = compiled && name.starts_with(kCompiled);
    const Claim claimed = name.ends_with(kLeaf)
                              ? take_leaf(node.get())
                              : take_node(node.get(), name, boundary, index, told);
    if (claimed == Claim::refused) recorder().fault("an autograd node takes no hook");
    if (claimed == Claim::taken) push_next(node.get(), todo);
  }
}

void record_loss(PyObject* roots) {
  if (!recorder().on() || recorder().thread().inside) return;
  OwnWork work;
  // A backward inside a backward (checkpointing) is part of the outer one.
  if (work.torch() == nullptr || in_backward(*work.torch())) return;
  try {
    std::string boundary = recorder().innermost(recorder().thread(), "<backward>");
    if (boundary == "<backward>") locate_boundary(boundary, user_frame().get());
    Event event = recorder().open_event(boundary, EventKind::loss, Phase::forward);
    std::shared_ptr<Watch> watch = watch_event(event, boundary);
    Collector in(work.torch(), SlotKind::in);
    in.show(watch.get());
    if (PyTuple_Check(roots)) {
      for (Py_ssize_t i = 0, n = PyTuple_Size(roots); i < n; ++i)
        in.add_tensors("root" + std::to_string(i), PyTuple_GetItem(roots, i), kModelValue);
    } else if (PyList_Check(roots)) {
      for (Py_ssize_t i = 0; i < PyList_Size(roots); ++i)
        in.add_tensors("root" + std::to_string(i), Ref::borrow(PyList_GetItem(roots, i)).get(),
                       kModelValue);
    } else {
      in.add_tensors("root0", roots, kModelValue);
    }
    if (in.beyond() > 0) recorder().lose(in.beyond());
    recorder().commit(event, in.slots());
    if (watch) watch->committed(event);
    if (latest_graph_event() >= 0) hook_compiled_leaves(*work.torch(), roots);
  } catch (const std::exception& e) {
    recorder().fault(e.what());
  }
  recorder().count_backward();
}

bool init_autograd() {
  g_node_hook_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&g_node_spec));
  g_leaf_hook_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&g_leaf_spec));
  return g_node_hook_type != nullptr && g_leaf_hook_type != nullptr;
}

}  // namespace opguard
