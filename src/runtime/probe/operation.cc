// The steps of one execution, and what each finds out that the event needs.
//
//   y.mul_(x), y = og("m:1", y.mul_)(x)
//     Operation()   coordinates; the thread is inside "m:1" from now on
//     ready()       which inputs want a gradient, and the nodes that made them
//     finish()      out0; `written` y, whose version counted up; hooks on nodes that were not there
//
// Our own work is between OwnWork and its end. It is over before the operator runs: probes that it
// hits inside are recorded. Counterexample: an operator that forks, or closes the log. The
// generation then is another one, and the event is dropped: it would be in a log that is not its
// own.
//
// An exception of ours is a fault of the recorder's, and the program gets its result. One of the
// program's is recorded as kRaised, and goes on as it was.
#include "runtime/probe/operation.h"

#include "record/generators.h"
#include "runtime/entries/autograd.h"
#include "runtime/entries/collective.h"
#include "runtime/entries/optimizer.h"
#include "runtime/host/object.h"
#include "runtime/probe/numbered.h"
#include "runtime/probe/primitives.h"
#include "runtime/recorder/location.h"
#include "runtime/recorder/sketches.h"
#include "runtime/watch/watch.h"

namespace opguard {
namespace {

constexpr size_t kKeptSlots = 64;  // of which a thread keeps the memory

}  // namespace

// Nothing is recorded (active_ stays false) outside of the window, and where this thread is in our
// own work.
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
  // Parameters that it finds may make an event of their own, which comes before this one.
  WhereItRuns where;
  if (sketches().on()) where = sketches().where(recorder().step(), recorder().micro_batch());
  generation_ = recorder().generation();
  event_ =
      recorder().open_event(site, EventKind::op, current_phase(work_->torch(), thread), thread);
  if (!where.module.empty()) event_.module = recorder().string(where.module);
  if (!where.calls.empty()) event_.calls = recorder().string(where.calls);
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

// Read at once: the operator may write into it.
void Operation::input(const char* name, PyObject* value) {
  if (!active_ || value == nullptr) return;
  if (!work_) work_.emplace(*thread_);
  try {
    inputs_.add(name, value);
  } catch (const std::exception& e) {
    recorder().fault(e.what());
  }
}

void Operation::ready() {
  if (!active_) return;
  if (!work_) work_.emplace(*thread_);
  if (callee_.clips) sketches().gradients(recorder().step());
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

// True where the event is to be recorded. Leaves the boundary, whatever the answer.
bool Operation::done() {
  if (watch_) watch_->end();
  work_.reset();
  if (!active_) return false;
  active_ = false;
  for (Running& r : thread_->running)
    if (r.serial == serial_) flight_ = r.flight;
  recorder().leave(*thread_, serial_);
  // Closed, or forked by the operator itself: the event belongs to the parent's log.
  return recorder().alive() && recorder().generation() == generation_;
}

// A view: of an input, or of what only the program knows. An input itself was written in place.
bool Operation::in_others_memory(PyObject* result) const {
  for (const Collector::Item& item : inputs_.items())
    if (item.object.get() == result) return false;
  if (says_true(result, "_is_view")) return true;
  const uint32_t block = storages().place_of(result).number;
  for (const Collector::Item& item : inputs_.items())
    if (block != 0 && !item.numpy && torch_api()->plain(item.object.get()) &&
        storages().place_of(item.object.get()).number == block)
      return true;
  return false;
}

// What it read, but for what a collective only writes. Also a functional collective's result it had
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

// The slots' order is inputs, results, written inputs. Hooks come last, behind commit(): they need
// the event's number.
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

// Of a result that is new memory; what lies in another's is that one's.
void Operation::jitter(PyObject* result, const OwnWork& work) {
  if (callee_.loads || work.torch() == nullptr) return;
  const bool several = PyTuple_Check(result) || PyList_Check(result);
  const Ref fresh(PyList_New(0));
  for (Py_ssize_t i = 0, n = several ? PySequence_Size(result) : 1; fresh && i < n; ++i) {
    const Ref item = several ? Ref(PySequence_GetItem(result, i)) : Ref::borrow(result);
    if (!item || !work.torch()->is_tensor(item.get()) || in_others_memory(item.get())) continue;
    bool given = false;
    for (const Collector::Item& input : inputs_.items()) given |= input.object.get() == item.get();
    if (!given) PyList_Append(fresh.get(), item.get());
  }
  if (fresh && PyList_Size(fresh.get()) > 0)
    sketches().jitter(*boundary_, recorder().next_occurrence(event_), fresh.get());
}

void Operation::set_mark() {
  if (mark_ != Mark::step && mark_ != Mark::micro_batch) return;
  if (!recorder().alive()) return;
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
    if (result != nullptr && !recorder().on_operators()) set_mark();
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
    if (result != nullptr && sketches().jitters()) jitter(result, work);
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
