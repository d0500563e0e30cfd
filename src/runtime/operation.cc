#include "runtime/operation.h"

#include <array>

#include "runtime/autograd.h"
#include "runtime/object.h"

namespace opguard {
namespace {

// Factories whose result holds whatever was in memory.
bool leaves_uninitialised(std::string_view name) {
  static constexpr std::array<std::string_view, 7> kNames = {"empty",
                                                             "empty_like",
                                                             "empty_strided",
                                                             "new_empty",
                                                             "new_empty_strided",
                                                             "empty_permuted",
                                                             "_empty_affine_quantized"};
  for (std::string_view n : kNames)
    if (n == name) return true;
  return false;
}

// Modules, classes and plain values have names of their own; anything else says its class.
std::string name_of(PyObject* callee) { return utf8_attribute(callee, "__name__"); }

bool is_callable_kind(PyObject* callee) {
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(callee));
  const Types& t = types();
  return type == t.function || type == t.builtin || type == t.method || type == t.method_wrapper ||
         PyType_Check(callee);
}

}  // namespace

void locate_boundary(const std::string& boundary, PyObject* frame) {
  if (frame == nullptr || !recorder().unlocated(boundary)) return;
  Location at;
  auto* python_frame = reinterpret_cast<PyFrameObject*>(frame);
  Ref code(reinterpret_cast<PyObject*>(PyFrame_GetCode(python_frame)));
  int line = PyFrame_GetLineNumber(python_frame);
  at.line = line > 0 ? static_cast<uint32_t>(line) : 0;
  at.path = at.file = utf8_attribute(code.get(), "co_filename");
  at.function = utf8_attribute(code.get(), "co_qualname");
  if (at.function.empty()) at.function = utf8_attribute(code.get(), "co_name");
  recorder().locate(boundary, at);
}

Ref user_frame() {
  Ref frame = Ref::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame && frame.get() != Py_None) {
    Ref globals = attribute(frame.get(), "f_globals");
    PyObject* name = globals && PyDict_Check(globals.get())
                         ? PyDict_GetItemString(globals.get(), "__name__")
                         : nullptr;
    std::string_view module = utf8(name);
    if (!in_package(module, "torch") && !in_package(module, "opguard")) return frame;
    frame = attribute(frame.get(), "f_back");
  }
  return {};
}

Operation::Operation(PyObject* id, Mark mark) : mark_(mark), inputs_(torch_api(), SlotKind::in) {
  if (!recorder().on() || recorder().thread().inside) return;
  active_ = true;
  OwnWork work;
  boundary_ = utf8(id);
  generation_ = recorder().generation();
  ThreadState& thread = recorder().thread();
  event_ = recorder().open_event(boundary_, EventKind::op, current_phase(work.torch(), thread));
  locate_boundary(boundary_, reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  serial_ = recorder().enter(thread, boundary_);
}

Operation::~Operation() { cancel(); }

void Operation::cancel() {
  if (!active_) return;
  active_ = false;
  recorder().leave(recorder().thread(), serial_);
}

void Operation::input(const char* name, PyObject* value) {
  if (!active_ || value == nullptr) return;
  OwnWork work;
  try {
    inputs_.add(name, value);
  } catch (const std::exception& e) {
    recorder().fault(e.what());
  }
}

void Operation::call_inputs(PyObject* callee, PyObject* args, PyObject* kwargs) {
  if (!active_) return;
  OwnWork work;
  try {
    const TorchApi* torch = work.torch();
    if (is_callable_kind(callee)) {
      std::string module = utf8_attribute(callee, "__module__");
      collective_ = in_package(module, "torch.distributed");
      if (leaves_uninitialised(name_of(callee))) output_flags_ |= kUninitialised;
    }
    Ref self = receiver_of(callee);
    if (self) {
      inputs_.add("self", self.get());
      // super().forward(x): the module's parameters are read by torch's own code.
      if (torch && torch->is_module(self.get()) && name_of(callee) == "forward" &&
          in_package(utf8_attribute(callee, "__module__"), "torch"))
        inputs_.add_module(self.get(), 0);
    } else if (torch && is_torch_module(*torch, callee)) {
      inputs_.add_module(callee, 0);
    }
    for (Py_ssize_t i = 0, n = PyTuple_Size(args); i < n; ++i)
      inputs_.add("arg" + std::to_string(i), PyTuple_GetItem(args, i));
    PyObject *key, *value;
    if (kwargs != nullptr)
      for (Py_ssize_t at = 0; PyDict_Next(kwargs, &at, &key, &value);)
        inputs_.add(utf8(key), value);
  } catch (const std::exception& e) {
    recorder().fault(e.what());
  }
}

void Operation::ready() {
  if (!active_ || (event_.phase != Phase::forward && event_.phase != Phase::recompute)) return;
  OwnWork work;
  for (const Collector::Item& item : inputs_.items()) {
    if (item.numpy) continue;
    Ref node = attribute(item.object.get(), "grad_fn");
    if (node && node.get() != Py_None) history_.push_back(node);
  }
}

bool Operation::done() {
  if (!active_) return false;
  active_ = false;
  recorder().leave(recorder().thread(), serial_);
  // Closed, or forked by the operator itself: the event belongs to the parent's log.
  return recorder().on() && recorder().generation() == generation_;
}

void Operation::written_inputs(std::vector<Slot>& slots, const OwnWork& work) {
  Collector written(work.torch(), SlotKind::written);
  std::vector<PyObject*> seen;
  for (const Collector::Item& item : inputs_.items()) {
    PyObject* object = item.object.get();
    bool again = false;
    for (PyObject* s : seen) again |= s == object;
    if (again) continue;
    seen.push_back(object);
    // Collectives and numpy write without counting.
    bool uncounted = collective_ || item.numpy || mark_ == Mark::writes;
    if (!uncounted && tensor_version(object) == item.version) continue;
    written.add_tensors(item.name, object);
    std::vector<Slot>& w = written.slots();
    if (uncounted && !w.empty() && w.back().value == item.value) w.pop_back();
  }
  slots.insert(slots.end(), written.slots().begin(), written.slots().end());
}

void Operation::record(PyObject* result, bool raised, const OwnWork& work) {
  Collector outputs(work.torch(), SlotKind::out);
  if (raised) {
    event_.flags |= kRaised;
  } else if (result != nullptr) {
    if (PyTuple_Check(result) || PyList_Check(result)) {
      bool tuple = PyTuple_Check(result);
      Py_ssize_t n = tuple ? PyTuple_Size(result) : PyList_Size(result);
      for (Py_ssize_t i = 0; i < n; ++i) {
        Ref item = Ref::borrow(tuple ? PyTuple_GetItem(result, i) : PyList_GetItem(result, i));
        if (item) outputs.add("out" + std::to_string(i), item.get(), output_flags_);
      }
    } else {
      outputs.add("out0", result, output_flags_);
      if (work.torch() && is_torch_module(*work.torch(), result))
        outputs.add_module(result, output_flags_);
    }
  }
  std::vector<Slot> slots = std::move(inputs_.slots());
  slots.insert(slots.end(), outputs.slots().begin(), outputs.slots().end());
  // What an operation still in flight on another thread has done so far is no value.
  bool in_flight = collective_ && result != nullptr && result != Py_None;
  if (!in_flight) written_inputs(slots, work);
  if (collective_) event_.flags |= kCollective;
  if (!inputs_.scalars().empty()) event_.scalars = recorder().string(inputs_.scalars());
  if (!outputs.scalars().empty()) event_.results = recorder().string(outputs.scalars());
  if (uint64_t beyond = inputs_.beyond() + outputs.beyond(); beyond > 0) recorder().lose(beyond);
  bool differentiable = !raised && result != nullptr && work.torch() != nullptr &&
                        (event_.phase == Phase::forward || event_.phase == Phase::recompute) &&
                        in_graph(*work.torch(), result);
  if (differentiable) event_.flags |= kInGraph;
  uint32_t index = recorder().commit(event_, slots);
  if (differentiable && index != kNone)
    attach_hooks(*work.torch(), boundary_, index, result, history_, event_.begin);
}

PyObject* Operation::finish(PyObject* result) {
  if (!done()) return result;
  OwnWork work;
  try {
    record(result, result == nullptr, work);
  } catch (const std::exception& e) {
    recorder().fault(e.what());
  }
  return result;
}

int Operation::finish(int status) {
  if (!done()) return status;
  OwnWork work;
  try {
    record(nullptr, status != 0, work);
  } catch (const std::exception& e) {
    recorder().fault(e.what());
  }
  return status;
}

PyObject* Operation::finish_item(PyObject* item, bool own_item) {
  if (item == nullptr) {
    // The end of an iteration is no event; an error is the program's own.
    cancel();
    return nullptr;
  }
  if (own_item) input("arg0", item);
  return finish(item);
}

}  // namespace opguard
