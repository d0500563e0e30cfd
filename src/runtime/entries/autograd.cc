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

#include "runtime/entries/gradient_hooks.h"
#include "runtime/entries/graph_event.h"
#include "runtime/host/hook_numbers.h"
#include "runtime/host/object.h"
#include "runtime/recorder/location.h"
#include "runtime/recorder/parameter_names.h"
#include "runtime/recorder/sketches.h"
#include "runtime/recorder/values.h"
#include "runtime/watch/watch.h"

namespace opguard {
namespace {

constexpr std::string_view kLeaf = "AccumulateGrad", kCompiled = "CompiledFunctionBackward";

enum class Claim { taken, known, refused };

// Puts our hook on a node; where one of ours is there already, takes it off again.
Claim claim(PyObject* node, PyObject* hook, OwnHook& at) {
  at = register_own_hook(node, "register_hook", hook);
  if (!at.hooks || !PyDict_Check(at.hooks.get())) return Claim::refused;
  int ours = 0;
  PyObject *id, *other;
  for (Py_ssize_t i = 0; PyDict_Next(at.hooks.get(), &i, &id, &other);)
    ours += is_gradient_hook(other);
  if (ours == 1) return Claim::taken;
  if (PyObject_DelItem(at.hooks.get(), at.id.get()) != 0) PyErr_Clear();
  return Claim::known;
}

bool add_prehook(PyObject* node, PyObject* hook) {
  const Ref before = attribute(hook, "before");
  return before && register_own_hook(node, "register_prehook", before.get()).hooks;
}

// told: what the node does is recorded by itself, and only the claim is wanted.
Claim take_node(PyObject* node, const std::string& name, const std::string& boundary,
                uint32_t index, bool told) {
  const bool before = !told && g_watching && watched_before(boundary, name);
  OwnHook at;
  const Ref held = node_hook(told ? nullptr : &boundary, told ? nullptr : &name, index, before);
  if (!held) return Claim::refused;
  const Claim claimed = claim(node, held.get(), at);
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

// A parameter's node is one for all its uses. Which leaves have our hook is asked of a table first,
// without hanging another one on it to find out.
Claim take_leaf(PyObject* node) {
  Ref variable = attribute(node, "variable");
  if (!variable || variable.get() == Py_None) return Claim::known;
  if (claimed_leaves().hold(variable.get())) return Claim::known;
  OwnHook at;
  const Ref held = leaf_hook(variable.get());
  if (!held) return Claim::refused;
  const Claim claimed = claim(node, held.get(), at);
  if (claimed == Claim::taken && !add_prehook(node, held.get())) return Claim::refused;
  Ref weak(claimed != Claim::refused ? PyWeakref_NewRef(at.hooks.get(), nullptr) : nullptr);
  if (weak) claimed_leaves().add(variable.get(), std::move(weak));
  PyErr_Clear();
  return claimed;
}

// The nodes of the tensors in a result, through tuples, lists and dicts, 64 levels at most.
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

// The nodes that a node hands gradients to. None stands for an input that wants no gradient.
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
  const Ref name = answer(node, "name");
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

// Whether any tensor of a result has a grad_fn: kInGraph.
bool in_graph(const TorchApi& torch, PyObject* result) {
  std::vector<Ref> roots;
  collect_roots(torch, result, roots, 0);
  return !roots.empty();
}

// From a result back to what was there before (`history`: the inputs' nodes) and to nodes that are
// claimed. Nodes of compiled graphs that told of themselves since `begin` are claimed without a
// text.
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
  if (!recorder().alive() || recorder().thread().inside) return;
  OwnWork work;
  // A backward inside a backward (checkpointing) is part of the outer one.
  if (work.torch() == nullptr || in_backward(*work.torch())) return;
  if (!recorder().on()) return recorder().count_backward();
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

}  // namespace opguard
