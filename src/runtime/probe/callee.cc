// Asks a callable what it is: its type, its name, its module, and whether its file has probes.
//
//   torch.nn.functional.dropout     a function of Python: random by its name, torch's by its module
//   x.add_                          built in, and its self is a tensor: an operator of ATen
//   functools.wraps(f)(g)           the function that runs is below, eight hops at most
//   len                             built in, of `builtins`: it looks at no tensor
//
// Counterexample: a method of an object that is no tensor is asked anew each time. One C function
// serves many objects, and who is meant is its self.
//
// An answer is kept by address, with a weak reference to the function. So a new one at the same
// address is asked again. The cost: a look into a table of 1,024 places.
#include "runtime/probe/callee.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "operators/operators.h"
#include "runtime/host/object.h"
#include "runtime/probe/primitives.h"

namespace opguard {
namespace {

// What has a name and a module of its own. Any other object that is called says its class.
bool is_callable_kind(PyObject* callee) {
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(callee));
  const Types& t = types();
  return type == t.function || type == t.builtin || type == t.method || type == t.method_wrapper ||
         PyType_Check(callee);
}

// The function of Python that runs, below bound methods and functools.wraps; none for any other.
Ref function_of(const TorchApi* torch, PyObject* callee) {
  const Types& t = types();
  Ref at = Ref::borrow(callee);
  if (PyType_Check(callee))
    at = attribute(callee, "__init__");
  else if (torch && torch->is_module(callee))
    at = attribute(reinterpret_cast<PyObject*>(Py_TYPE(callee)), "forward");
  for (int hops = 0; at && hops < 8; ++hops) {
    PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(at.get()));
    if (type == t.method) {
      at = attribute(at.get(), "__func__");
    } else if (type == t.function) {
      Ref wrapped = attribute(at.get(), "__wrapped__");
      if (!wrapped) return at;
      at = wrapped;
    } else {
      break;
    }
  }
  return {};
}

// A file with probes has imported `og`, or `og_1` where it has an `og` of its own.
bool instrumented(PyObject* function) {
  Ref globals = attribute(function, "__globals__");
  if (!globals || !PyDict_Check(globals.get())) return false;
  for (const char* name : {"og", "og_1"}) {
    PyObject* og = PyDict_GetItemString(globals.get(), name);
    if (og != nullptr && utf8_attribute(og, "__module__") == "opguard") return true;
  }
  return false;
}

// Functions whose call is one collective. Others of torch.distributed may make many, or none.
bool is_collective_call(std::string_view module) {
  static constexpr std::array<std::string_view, 4> kModules = {
      "torch.distributed.distributed_c10d", "torch.distributed._functional_collectives",
      "torch.distributed.nn.functional", "torch._C._distributed_c10d"};
  return std::find(kModules.begin(), kModules.end(), module) != kModules.end();
}

// A built-in function whose self is a tensor, nothing, or something of torch's.
bool is_of_aten(const TorchApi* torch, PyObject* callee, std::string_view module) {
  if (torch == nullptr || reinterpret_cast<PyObject*>(Py_TYPE(callee)) != types().builtin)
    return false;
  PyObject* self = PyCFunction_GetSelf(callee);
  if (self != nullptr && torch->plain(self)) return true;
  if (in_package(module, "torch")) return true;
  return self != nullptr && PyModule_Check(self) &&
         in_package(utf8_attribute(self, "__name__"), "torch");
}

// A module in which nothing but its own forward runs: neither modules inside nor hooks, which may
// be anyone's.
bool stands_alone(PyObject* module) {
  Ref fields(PyObject_GenericGetDict(module, nullptr));
  if (!fields) PyErr_Clear();
  if (!fields || !PyDict_Check(fields.get())) return false;
  for (const char* name : {"_modules", "_forward_hooks", "_forward_pre_hooks"}) {
    PyObject* table = PyDict_GetItemString(fields.get(), name);
    if (table == nullptr || !PyDict_Check(table) || PyDict_Size(table) != 0) return false;
  }
  return true;
}

// By names and modules alone: nothing of the program's is called. Which names mean what is in
// src/operators.
Callee describe(const TorchApi* torch, PyObject* callee) {
  Callee c;
  if (!is_callable_kind(callee)) {
    if (torch && torch->is_module(callee)) {
      Ref forward = function_of(torch, callee);
      c.foreign = forward && !instrumented(forward.get());
      c.torch = forward && in_package(utf8_attribute(forward.get(), "__module__"), "torch") &&
                stands_alone(callee);
      // One of the program's own says so by the operators inside it.
      c.random = c.foreign && may_draw(type_name(callee));
    }
    return c;
  }
  std::string name = utf8_attribute(callee, "__name__");
  std::string module = utf8_attribute(callee, "__module__");
  c.torch = in_package(module, "torch");
  c.of_aten = is_of_aten(torch, callee, module);
  c.statistics = updates_statistics(name);
  c.primitive = (c.torch || c.of_aten) && is_primitive(name, module);
  c.collective = in_package(module, "torch.distributed");
  c.communicates = is_collective_call(module);
  c.uninitialised = leaves_garbage(name);
  c.takes_sizes = c.torch && PyType_Check(callee) && std::string_view(name).ends_with("Tensor");
  c.steps = name == "step";
  c.random = may_draw(name);
  c.of_torch_generators = c.torch || c.of_aten;
  Ref function = function_of(torch, callee);
  // Builtins of the interpreter (isinstance, len) look at no tensor.
  c.foreign = function ? !instrumented(function.get()) : module != "builtins";
  if (in_package(module, "torch.nn.utils")) {
    c.reads_iterator = lists_parameters(name);
    c.clips = clips_gradients(name);
    c.unseen = replaces_parameters(name);
  }
  bool checkpoints = in_package(module, "torch.serialization") ||
                     in_package(module, "safetensors") ||
                     in_package(module, "torch.distributed.checkpoint");
  std::string_view what = name;
  if (what.starts_with("async_")) what.remove_prefix(6);
  // GradScaler's kernels.
  c.unseen |= in_package(module, "torch.amp") || in_package(module, "torch.cuda.amp");
  c.loads = name == "load_state_dict" || (checkpoints && what.starts_with("load"));
  c.saves = name == "state_dict" || (checkpoints && what.starts_with("save"));
  if (checkpoints) c.collective = false;
  // What nn.Module offers to everyone looks at tables; of its subclasses' methods nothing is known.
  bool of_module = module == "torch.nn.modules.module" || name == "forward";
  c.into_receiver = name == "load_state_dict" || !of_module;
  if (of_module && converts_module(name)) c.into_receiver = c.unseen = true;
  return c;
}

// Of a function that lives, or of a C function, which does for ever.
struct KnownCallee {
  PyObject* object = nullptr;  // a function of Python, only compared
  PyObject* alive = nullptr;   // weak reference to it, owned
  PyCFunction function = nullptr;
  bool with_torch = false;
  Callee callee;
};
constexpr size_t kKnown = 1024;

// The upper ten bits of the product: 1,024 places, without a division.
KnownCallee& known_at(uint64_t address) {
  static auto* all = new std::array<KnownCallee, kKnown>;
  return (*all)[address * 0x9e3779b97f4a7c15u >> 54];
}

}  // namespace

Callee describe_callee(const TorchApi* torch, PyObject* callee) {
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(callee));
  if (type == types().builtin) {
    // One C function may serve many objects: those of modules and tensors are what they are called.
    PyObject* self = PyCFunction_GetSelf(callee);
    const bool lasting =
        self == nullptr || PyModule_Check(self) || (torch != nullptr && torch->plain(self));
    if (!lasting) return describe(torch, callee);
    PyCFunction function = PyCFunction_GetFunction(callee);
    KnownCallee& known = known_at(reinterpret_cast<uint64_t>(function));
    if (known.function != function || known.with_torch != (torch != nullptr)) {
      Py_XDECREF(std::exchange(known.alive, nullptr));
      known = {nullptr, nullptr, function, torch != nullptr, describe(torch, callee)};
    }
    return known.callee;
  }
  if (type != types().function) return describe(torch, callee);
  KnownCallee& known = known_at(reinterpret_cast<uint64_t>(callee));
  if (known.object != callee || known.alive == nullptr ||
      PyWeakref_GetObject(known.alive) != callee || known.with_torch != (torch != nullptr)) {
    Callee described = describe(torch, callee);
    Ref weak(PyWeakref_NewRef(callee, nullptr));
    if (!weak) PyErr_Clear();
    Py_XDECREF(std::exchange(known.alive, weak.release()));
    known.object = callee;
    known.function = nullptr;
    known.with_torch = torch != nullptr;
    known.callee = described;
  }
  return known.callee;
}

}  // namespace opguard
