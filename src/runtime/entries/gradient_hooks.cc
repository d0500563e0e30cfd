// Two kinds of hooks, as objects that the engine calls.
//
//   node      after it ran: hook(grad_inputs, grad_outputs) is one event
//   leaf      before(grad): the gradient and what is there already are read
//             the engine adds
//             call: the sum is read, and both halves are one event
//
// Several passes may be at one leaf, in several threads or one inside the other. Each half finds
// its own by torch's number of the pass.
#include "runtime/entries/gradient_hooks.h"

#include <algorithm>
#include <cstddef>

#include "runtime/host/object.h"
#include "runtime/recorder/parameter_names.h"
#include "runtime/recorder/sketches.h"
#include "runtime/recorder/values.h"
#include "runtime/watch/watch.h"

namespace opguard {
namespace {

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

// Empty where the leaf is gone: the reference is weak.
Ref leaf_of(LeafHook* hook) {
  Ref leaf(PyObject_CallNoArgs(hook->variable));
  if (!leaf) PyErr_Clear();
  return leaf.get() == Py_None ? Ref() : leaf;
}

// The first half: what comes in, and what the leaf has already. An entry of the same pass that
// never got its second half is replaced.
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

// The second half: the leaf's gradient as it is, by the parameter's name, is a model value.
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

}  // namespace

Ref node_hook(const std::string* boundary, const std::string* node, uint32_t forward, bool before) {
  auto* hook = PyObject_New(NodeHook, g_node_hook_type);
  if (hook == nullptr) return {};
  hook->boundary = boundary == nullptr ? nullptr : new std::string(*boundary);
  hook->node = node == nullptr ? nullptr : new std::string(*node);
  hook->forward = forward;
  hook->generation = recorder().generation();
  hook->before = before ? new std::shared_ptr<Watch> : nullptr;
  return Ref(reinterpret_cast<PyObject*>(hook));
}

Ref leaf_hook(PyObject* leaf) {
  Ref weak(PyWeakref_NewRef(leaf, nullptr));
  auto* hook = weak ? PyObject_New(LeafHook, g_leaf_hook_type) : nullptr;
  PyErr_Clear();
  if (hook == nullptr) return {};
  hook->variable = weak.release();
  hook->adding = new std::vector<Adding>;
  return Ref(reinterpret_cast<PyObject*>(hook));
}

bool is_gradient_hook(PyObject* object) {
  return Py_TYPE(object) == g_node_hook_type || Py_TYPE(object) == g_leaf_hook_type;
}

bool init_gradient_hooks() {
  g_node_hook_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&g_node_spec));
  g_leaf_hook_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&g_leaf_spec));
  return g_node_hook_type != nullptr && g_leaf_hook_type != nullptr;
}

}  // namespace opguard
