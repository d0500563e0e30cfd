#include "runtime/probe/operation.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "record/random_operator.h"
#include "runtime/entries/autograd.h"
#include "runtime/entries/collective.h"
#include "runtime/entries/optimizer.h"
#include "runtime/host/object.h"
#include "runtime/probe/primitives.h"
#include "runtime/recorder/held.h"
#include "runtime/recorder/parameter_names.h"
#include "runtime/watch/watch.h"

namespace opguard {
namespace {

constexpr size_t kKeptSlots = 64;  // of which a thread keeps the memory

// "arg3". kind: of three letters.
class Numbered {
 public:
  Numbered(const char* kind, size_t number) {
    if (number > 9) long_ = kind + std::to_string(number);
    const char text[4] = {kind[0], kind[1], kind[2], static_cast<char>('0' + number % 10)};
    std::memcpy(short_, text, sizeof text);
  }
  operator std::string_view() const {
    return long_.empty() ? std::string_view(short_, sizeof short_) : long_;
  }

 private:
  char short_[4];
  std::string long_;
};

// Modules, classes and plain values have names of their own; anything else says its class.
std::string name_of(PyObject* callee) { return utf8_attribute(callee, "__name__"); }

Ref first_of(PyObject* args, PyObject* kwargs, Py_ssize_t place, const char* name) {
  if (PyTuple_Size(args) > place) return Ref::borrow(PyTuple_GetItem(args, place));
  PyObject* found = kwargs != nullptr ? PyDict_GetItemString(kwargs, name) : nullptr;
  return Ref::borrow(found);
}

// "lr=[0.1, 0.01]" of the optimizer that a scheduler is bound to; "" for any other object.
std::string learning_rates(const TorchApi& torch, PyObject* scheduler) {
  if (torch.is_module(scheduler) || is_optimizer(torch, scheduler)) return "";
  Ref optimizer = optimizer_field(torch, scheduler, "optimizer");
  if (!optimizer || !is_optimizer(torch, optimizer.get())) return "";
  Ref groups = attribute(optimizer.get(), "param_groups");
  if (!groups || !PyList_Check(groups.get())) return "";
  Collector rates(&torch, SlotKind::in);
  Ref list(PyList_New(0));
  for (Py_ssize_t g = 0; list && g < PyList_Size(groups.get()); ++g) {
    PyObject* group = PyList_GetItem(groups.get(), g);
    PyObject* lr = PyDict_Check(group) ? PyDict_GetItemString(group, "lr") : nullptr;
    if (lr != nullptr) PyList_Append(list.get(), lr);
  }
  rates.add("lr", list.get());
  return rates.scalars();
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
    // Decorators of torch's functions are in the standard library, or nearly.
    if (!in_package(module, "torch") && !in_package(module, "opguard") && module != "contextlib" &&
        module != "functools" && module != "typing_extensions")
      return frame;
    frame = attribute(frame.get(), "f_back");
  }
  return {};
}

Operation::Operation(PyObject* id, Mark mark)
    : thread_(&recorder().thread()), mark_(mark), inputs_(nullptr, SlotKind::in, *thread_) {
  if (!recorder().on_operators()) return;
  ThreadState& thread = *thread_;
  if (thread.inside) return;
  active_ = true;
  work_.emplace(*thread_);
  inputs_.use(work_->torch());
  Recorder::Site& site = recorder().site(id);
  boundary_ = &site.text;
  generation_ = recorder().generation();
  event_ =
      recorder().open_event(site, EventKind::op, current_phase(work_->torch(), thread), thread);
  // Asked for, the interpreter makes an object of its frame.
  if (!recorder().located(site))
    locate_boundary(*boundary_, reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  serial_ = recorder().enter(thread, *boundary_);
  watch_ = watch_event(event_, *boundary_);
  inputs_.show(watch_.get());
}

Operation::~Operation() { cancel(); }

void Operation::cancel() {
  if (watch_) watch_->end();
  work_.reset();
  if (!active_) return;
  active_ = false;
  recorder().leave(*thread_, serial_);
}

void Operation::input(const char* name, PyObject* value) {
  if (!active_ || value == nullptr) return;
  if (!work_) work_.emplace(*thread_);
  try {
    inputs_.add(name, value);
  } catch (const std::exception& e) {
    recorder().fault(e.what());
  }
}

bool Operation::arguments(PyObject* callee, Ref& args, Ref& kwargs) {
  if (!active_) return true;
  callee_ = describe_callee(work_->torch(), callee);
  if (callee_.primitive && recorder().mode() == Mode::trusted && mark_ == Mark::none) {
    cancel();
    return true;
  }
  if (!callee_.reads_iterator) return true;
  work_.reset();  // an iterator is the program's code
  // The first thing it does is to make a list; ours is the one it makes. An iterator that is at its
  // end already is handed on, since an empty generator is warned of.
  auto list_of = [](PyObject* value, Ref& list) {
    if (!PyIter_Check(value)) return true;
    list = Ref(PySequence_List(value));
    if (list && PyList_Size(list.get()) == 0) list = Ref();
    return list || !PyErr_Occurred();
  };
  for (Py_ssize_t i = 0, n = PyTuple_Size(args.get()); i < n; ++i) {
    Ref list;
    if (!list_of(PyTuple_GetItem(args.get(), i), list)) return false;
    if (!list) continue;
    Ref changed(PyTuple_New(n));
    if (!changed) return false;
    for (Py_ssize_t k = 0; k < n; ++k)
      PyTuple_SetItem(
          changed.get(), k,
          k == i ? Ref(list).release() : Ref::borrow(PyTuple_GetItem(args.get(), k)).release());
    args = changed;
  }
  PyObject* named = kwargs ? PyDict_GetItemString(kwargs.get(), "parameters") : nullptr;
  if (named == nullptr) return true;
  Ref list;
  if (!list_of(named, list)) return false;
  if (!list) return true;
  kwargs = Ref(PyDict_Copy(kwargs.get()));
  return kwargs && PyDict_SetItemString(kwargs.get(), "parameters", list.get()) == 0;
}

// torch.Tensor(2, 3), torch.Tensor(torch.Size([2, 3])); not torch.Tensor([2, 3]), which are values.
static bool are_sizes(PyObject* args) {
  const Py_ssize_t count = PyTuple_Size(args);
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* value = PyTuple_GetItem(args, i);
    const bool shape = PyTuple_Check(value) && type_name(value) == "Size";
    if (!(PyLong_Check(value) && !PyBool_Check(value)) && !shape) return false;
  }
  return count > 0;
}

// conv(padding=1, bias=False) is conv(bias=False, padding=1).
static std::vector<std::pair<std::string_view, PyObject*>> by_name(PyObject* kwargs) {
  std::vector<std::pair<std::string_view, PyObject*>> all;
  PyObject *key, *value;
  for (Py_ssize_t at = 0; kwargs != nullptr && PyDict_Next(kwargs, &at, &key, &value);)
    all.emplace_back(utf8(key), value);
  std::sort(all.begin(), all.end());
  return all;
}

void Operation::call_inputs(PyObject* callee, PyObject* args, PyObject* kwargs) {
  if (!active_) return;
  if (!work_) work_.emplace(*thread_);
  try {
    const TorchApi* torch = work_->torch();
    collective_ = callee_.collective;
    if (callee_.uninitialised || (callee_.takes_sizes && are_sizes(args)))
      output_flags_ |= kUninitialised;
    if (callee_.saves || callee_.loads) inputs_.widen();
    thread_->running.back().communicates = callee_.communicates;
    Ref self = receiver_of(callee);
    if (self) {
      inputs_.add("self", self.get());
      // super().forward(x): the module's parameters are read by torch's own code.
      if (torch && torch->is_module(self.get()) && name_of(callee) == "forward" &&
          in_package(utf8_attribute(callee, "__module__"), "torch"))
        inputs_.add_module(self.get(), 0);
      if (torch) receiver_inputs(*torch, self.get());
    } else if (torch && is_torch_module(*torch, callee)) {
      inputs_.add_module(callee, 0);
    }
    Py_ssize_t given = PyTuple_Size(args);
    Ref clipped = torch && callee_.clips ? first_of(args, kwargs, 0, "parameters") : Ref();
    auto add = [&](std::string_view name, PyObject* value) {
      if (value == clipped.get()) return gradient_inputs(*torch, std::string(name), value);
      inputs_.add(name, value);
      if (torch && callee_.foreign && !torch->plain(value))
        hold(*torch, std::string(name) + ".", value, callee_.loads);
    };
    for (Py_ssize_t i = 0; i < given; ++i)
      add(Numbered("arg", static_cast<size_t>(i)), PyTuple_GetItem(args, i));
    if (kwargs != nullptr)
      for (const auto& [name, value] : by_name(kwargs)) add(name, value);
    // What code of others does to a list of parameters, it may do to their gradients.
    if (torch && callee_.foreign && !callee_.torch) listed_gradients(*torch);
  } catch (const std::exception& e) {
    recorder().fault(e.what());
  }
}

void Operation::receiver_inputs(const TorchApi& torch, PyObject* self) {
  if (callee_.steps) {
    if (steps_unhooked(torch, self)) stepper_ = Ref::borrow(self);
    std::string rates = learning_rates(torch, self);
    if (!rates.empty()) {
      inputs_.text("self." + rates.substr(0, 2), rates.substr(3));
      scheduler_ = Ref::borrow(self);
    }
  }
  if (!callee_.foreign || torch.plain(self)) return;
  // An optimizer's step and its tables are recorded or read elsewhere.
  bool loads = callee_.loads;
  if (callee_.into_receiver && (loads || !is_optimizer(torch, self)))
    hold(torch, "self.", self, loads);
  // GradScaler's scale.
  Ref type = Ref::borrow(reinterpret_cast<PyObject*>(Py_TYPE(self)));
  if (torch.is_module(self) || torch.is_tensor(self) || is_optimizer(torch, self) ||
      !in_package(utf8_attribute(type.get(), "__module__"), "torch"))
    return;
  Ref fields(PyObject_GenericGetDict(self, nullptr));
  if (!fields) PyErr_Clear();
  if (!fields || !PyDict_Check(fields.get())) return;
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(fields.get(), &at, &key, &value);)
    if (torch.is_tensor(value)) inputs_.add_tensors("self." + std::string(utf8(key)), value);
}

// Modules and optimizers as arguments: their tensors, read before the call as the call may.
void Operation::hold(const TorchApi& torch, const std::string& prefix, PyObject* holder,
                     bool state) {
  std::vector<Held> all = held_tensors(torch, holder, state);
  if (all.empty()) return;
  inputs_.widen();
  holders_.push_back({prefix, Ref::borrow(holder), state, {}});
  for (const Held& held : all) {
    inputs_.add_tensors(prefix + held.name, held.tensor.get(), held.flags);
    holders_.back().before.insert(held.tensor.get());
  }
}

// A list of parameters given to a function that works on their gradients alone.
void Operation::gradient_inputs(const TorchApi& torch, const std::string& name, PyObject* list) {
  std::vector<Ref> params;
  if (torch.is_tensor(list)) params.push_back(Ref::borrow(list));
  bool tuple = PyTuple_Check(list);
  Py_ssize_t n = tuple ? PyTuple_Size(list) : PyList_Check(list) ? PyList_Size(list) : 0;
  for (Py_ssize_t i = 0; i < n; ++i)
    params.push_back(Ref::borrow(tuple ? PyTuple_GetItem(list, i) : PyList_GetItem(list, i)));
  if (params.empty()) return inputs_.add(name, list);
  inputs_.widen();
  inputs_.text(name, "<" + std::to_string(params.size()) + " parameters>");
  std::vector<std::string> names = parameter_names(params);
  for (size_t i = 0; i < params.size(); ++i) {
    // Of another tensor than a leaf torch would warn.
    Ref leaf = attribute(params[i].get(), "is_leaf");
    Ref grad = leaf.get() == Py_True ? attribute(params[i].get(), "grad") : Ref();
    if (grad && grad.get() != Py_None)
      inputs_.add_tensors("grad" + (names[i].empty() ? std::to_string(i) : ":" + names[i]),
                          grad.get());
  }
}

void Operation::listed_gradients(const TorchApi& torch) {
  std::vector<std::pair<std::string, Ref>> grads;
  for (const Collector::Item& item : inputs_.items()) {
    if (!has_type(item.object.get(), torch.parameter_type)) continue;
    if (item.name.find_first_of(".[") == std::string::npos || item.name.find(':') != item.name.npos)
      continue;
    Ref grad = attribute(item.object.get(), "grad");
    if (grad && grad.get() != Py_None) grads.push_back({item.name + ".grad", grad});
  }
  for (const auto& [name, grad] : grads) inputs_.add_tensors(name, grad.get());
}

void Operation::ready() {
  if (!active_) return;
  if (!work_) work_.emplace(*thread_);
  // A generator that is handed over is no business of the global ones, which another thread may be
  // drawing from just now.
  if (callee_.random && !given_generator(inputs_.scalars()))
    recorder().record_generators(event_.phase, callee_.of_torch_generators);
  if (event_.phase == Phase::forward || event_.phase == Phase::recompute) {
    event_.flags |= kGradientsTold;
    for (size_t i = 0; i < inputs_.items().size(); ++i) {
      const Collector::Item& item = inputs_.items()[i];
      if (item.numpy || item.outside_autograd) continue;
      Ref node = grad_fn_of(item.object.get());
      const bool made = node && node.get() != Py_None;
      if (made || wants_gradient(item.object.get())) inputs_.slots()[i].flags |= kWantsGradient;
      if (made) history_.push_back(node);
    }
  }
  work_.reset();
  if (stepper_) optimizer_begins(stepper_.get());
  if (watch_) watch_->begin();
}

void Operation::skip_primitive(std::string_view name) {
  if (active_ && recorder().mode() == Mode::trusted && is_primitive(name, "")) cancel();
}

bool Operation::done() {
  if (watch_) watch_->end();
  work_.reset();
  if (!active_) return false;
  active_ = false;
  for (Running& r : thread_->running)
    if (r.serial == serial_) flight_ = r.flight;
  recorder().leave(*thread_, serial_);
  // Closed, or forked by the operator itself: the event belongs to the parent's log.
  return recorder().on() && recorder().generation() == generation_;
}

namespace {

constexpr size_t kFewItems = 16;

// The same object again, further back in the list. seen: those of long lists.
bool repeated(const std::vector<Collector::Item>& items, size_t at,
              std::optional<std::unordered_set<PyObject*>>& seen) {
  PyObject* object = items[at].object.get();
  if (seen) return !seen->insert(object).second;
  for (size_t i = 0; i < at; ++i)
    if (items[i].object.get() == object) return true;
  return false;
}

}  // namespace

// What batch norm's kernels may write without counting: one tensor a channel, or a buffer of the
// module that is called.
bool Operation::running_statistic(size_t input) {
  if (callee_.statistics) return input > 0;
  if (!(inputs_.slots()[input].flags & kParameter)) return false;
  const TorchApi* torch = torch_api();
  return torch != nullptr && !has_type(inputs_.items()[input].object.get(), torch->parameter_type);
}

void Operation::written_inputs(std::vector<Slot>& slots, const OwnWork& work) {
  std::optional<Collector> collector;  // most operators write nothing
  auto written = [&]() -> Collector& {
    if (!collector) {
      collector.emplace(work.torch(), SlotKind::written).widen();
      collector->show(watch_.get());
    }
    return *collector;
  };
  // Code of others may write through pointers; running statistics are.
  const bool may_write_unseen =
      callee_.statistics || (callee_.foreign && !callee_.torch && !callee_.of_aten);
  if (callee_.loads || callee_.unseen) storages().forget_all();
  const std::vector<Collector::Item>& items = inputs_.items();
  std::optional<std::unordered_set<PyObject*>> seen;
  if (items.size() > kFewItems) seen.emplace();
  for (size_t i = 0; i < items.size(); ++i) {
    const Collector::Item& item = items[i];
    PyObject* object = item.object.get();
    if (repeated(items, i, seen)) continue;
    // Collectives and numpy write without counting.
    bool uncounted = collective_ || item.numpy || callee_.unseen || mark_ == Mark::writes ||
                     running_statistic(i);
    if (!uncounted && tensor_version(object) == item.version) {
      if (may_write_unseen) storages().forget(object);
      continue;
    }
    if (!item.numpy) storages().forget(object);
    written().read(uncounted ? Reading::forced : Reading::usual);
    written().add_tensors(item.name, object);
    std::vector<Slot>& w = written().slots();
    if (uncounted && !w.empty() && !overwritten(object)) {
      if (w.back().value == item.value)
        w.pop_back();
      else if (item.pending && (w.back().flags & kPending))
        w.back().flat = item.value.h;  // decided when both are there
    }
  }
  // Tensors the call put in place of others, or made: a loaded state, first gradients.
  for (Holder& holder : holders_)
    for (const Held& held : held_tensors(*work.torch(), holder.object.get(), holder.state))
      if (holder.before.insert(held.tensor.get()).second)
        written().add_tensors(holder.prefix + held.name, held.tensor.get(), held.flags);
  if (!collector) return;
  if (collector->beyond() > 0) recorder().lose(collector->beyond());
  slots.insert(slots.end(), collector->slots().begin(), collector->slots().end());
}

// A view: of an input, or of what only the program knows. An input itself was written in place.
bool Operation::in_others_memory(PyObject* result) const {
  for (const Collector::Item& item : inputs_.items())
    if (item.object.get() == result) return false;
  Ref view(PyObject_CallMethod(result, "_is_view", nullptr));
  if (!view) PyErr_Clear();
  if (view.get() == Py_True) return true;
  const uint32_t block = storages().place_of(result).number;
  for (const Collector::Item& item : inputs_.items())
    if (block != 0 && !item.numpy && torch_api()->plain(item.object.get()) &&
        storages().place_of(item.object.get()).number == block)
      return true;
  return false;
}

bool Operation::overwritten(PyObject* object) const {
  return flight_ && flight_of(flight_).overwrites(object);
}

// What it read, but for what a collective only writes; and a functional collective's result it had
// to wait for, which could not be read before.
void Operation::read_slots(const OwnWork& work, std::vector<Slot>& slots) {
  const std::vector<Collector::Item>& items = inputs_.items();
  bool unreadable = false;
  for (const Slot& slot : inputs_.slots()) unreadable |= (slot.flags & kUnreadable) != 0;
  if (!flight_ && !unreadable) {
    slots.insert(slots.end(), inputs_.slots().begin(), inputs_.slots().end());
    return;
  }
  for (size_t i = 0; i < inputs_.slots().size(); ++i) {
    Slot& slot = inputs_.slots()[i];
    PyObject* object = i < items.size() ? items[i].object.get() : nullptr;
    if (object != nullptr && overwritten(object)) continue;
    if ((slot.flags & kUnreadable) && object != nullptr && work.torch() != nullptr &&
        type_name(object) == "AsyncCollectiveTensor")
      slot = recorder().slot(view_tensor(*work.torch(), object), SlotKind::in, slot.index,
                             items[i].name, slot.flags & ~kUnreadable);
    slots.push_back(slot);
    slots.back().index = static_cast<uint16_t>(slots.size() - 1);
  }
}

void Operation::record(PyObject* result, bool raised, const OwnWork& work) {
  Collector outputs(work.torch(), SlotKind::out, *thread_);
  outputs.show(watch_.get());
  if (callee_.loads || callee_.saves) outputs.widen();
  if (raised) {
    event_.flags |= kRaised;
  } else if (result != nullptr) {
    if (PyTuple_Check(result) || PyList_Check(result)) {
      bool tuple = PyTuple_Check(result);
      Py_ssize_t n = tuple ? PyTuple_Size(result) : PyList_Size(result);
      for (Py_ssize_t i = 0; i < n; ++i) {
        Ref item = Ref::borrow(tuple ? PyTuple_GetItem(result, i) : PyList_GetItem(result, i));
        if (item) outputs.add(Numbered("out", static_cast<size_t>(i)), item.get(), output_flags_);
      }
    } else {
      outputs.add("out0", result, output_flags_);
      if (work.torch() && !work.torch()->plain(result) && is_torch_module(*work.torch(), result))
        outputs.add_module(result, output_flags_);
    }
  }
  std::vector<Slot>& slots = thread_->slots;
  slots.clear();
  read_slots(work, slots);
  std::vector<Slot> given = flight_ ? slots : std::vector<Slot>();
  slots.insert(slots.end(), outputs.slots().begin(), outputs.slots().end());
  // What an operation still in flight on another thread has done so far is no value.
  bool in_flight =
      flight_ ? !flight_of(flight_).landed : collective_ && result != nullptr && result != Py_None;
  if (!in_flight) written_inputs(slots, work);
  if (scheduler_) {
    std::string rates = learning_rates(*work.torch(), scheduler_.get());
    if (!rates.empty()) outputs.text(rates.substr(0, 2), rates.substr(3));
  }
  if (flight_) {
    event_.group = flight_of(flight_).event.group;
    event_.sequence = flight_of(flight_).event.sequence;
  }
  if (flight_ || (collective_ && !watching_collectives())) event_.flags |= kCollective;
  if (!inputs_.scalars().empty()) event_.scalars = recorder().string(inputs_.scalars());
  if (!outputs.scalars().empty()) event_.results = recorder().string(outputs.scalars());
  if (uint64_t beyond = inputs_.beyond() + outputs.beyond(); beyond > 0) recorder().lose(beyond);
  bool differentiable = !raised && result != nullptr && work.torch() != nullptr &&
                        (event_.phase == Phase::forward || event_.phase == Phase::recompute) &&
                        in_graph(*work.torch(), result);
  if (differentiable) event_.flags |= kInGraph;
  uint32_t index = recorder().commit(event_, slots);
  if (slots.capacity() > kKeptSlots) std::vector<Slot>().swap(slots);
  if (watch_) watch_->committed(event_);
  if (flight_ && in_flight) launched(flight_of(flight_), index, given, inputs_.items());
  // Also of an event that was lost: its nodes are events of their own.
  if (differentiable)
    attach_hooks(*work.torch(), *boundary_, index, result, history_, event_.begin);
}

void Operation::set_mark() {
  if (mark_ != Mark::step && mark_ != Mark::micro_batch) return;
  if (!recorder().on()) return;
  OwnWork work;
  if (mark_ == Mark::step) recorder().mark_step();
  if (mark_ == Mark::micro_batch) recorder().mark_micro_batch();
}

PyObject* Operation::finish(PyObject* result) {
  if (active_ && stepper_) {
    if (result != nullptr)
      optimizer_ended(stepper_.get());
    else
      optimizer_dropped(stepper_.get());
  }
  if (!done()) {
    // Where operators are not recorded the mark is the program's word all the same.
    if (recorder().mode() == Mode::sdc && result != nullptr) set_mark();
    return result;
  }
  OwnWork work(*thread_);
  Ref given;  // what the program gets in place of the result
  try {
    if (watch_ && result != nullptr) {
      given = watch_->own_result(work, result, [&](PyObject* of) { return in_others_memory(of); });
      if (given.get() != result) {
        Py_DECREF(result);
        result = Ref(given).release();
      }
    }
    record(result, result == nullptr, work);
    if (callee_.loads && result != nullptr) recorder().record_state();
    set_mark();
  } catch (const std::exception& e) {
    recorder().fault(e.what());
  }
  return result;
}

int Operation::finish(int status) {
  if (!done()) return status;
  OwnWork work(*thread_);
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
