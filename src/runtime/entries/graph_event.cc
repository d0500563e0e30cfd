// An event from two calls that a compiled graph makes, around each operator in it.
//
//   enter A, enter B, leave B, leave A      B, then A, as eager code would end them
//   enter A, enter B, (B raises), leave A   A alone: what is above it on the stack never left
//
// A stack a thread holds what has entered; a call finds its own by the site's token.
//
// Of an operator that writes and counts no version, all inputs are read again behind it. Those that
// are as before were not written (drop_unwritten). Counterexample: on a device neither value is
// there yet. So the slot gets the ticket of the value before, and the writer's thread decides.
//
// The cost: a site's text is parsed once; then one look-up a call.
#include "runtime/entries/graph_event.h"

#include <unordered_map>
#include <vector>

#include "runtime/entries/autograd.h"
#include "runtime/entries/graph_site.h"
#include "runtime/recorder/recorder.h"
#include "runtime/recorder/values.h"
#include "runtime/watch/watch.h"

namespace opguard {
namespace {

int64_t g_latest = -1;

// An operator between its two calls.
struct Entered {
  const GraphSite* site = nullptr;
  Event event;
  std::vector<Slot> slots;
  std::shared_ptr<Watch> watch;
  uint64_t serial = 0, generation = 0;
};

// Of this thread, innermost last. Never destroyed, like ThreadState.
std::vector<Entered>& entered() {
  static thread_local std::vector<Entered>* stack = nullptr;
  if (stack == nullptr) stack = new std::vector<Entered>;
  return *stack;
}

// Sites are constants of the graphs: few, and asked for at every call.
const GraphSite* site_of(PyObject* text) {
  static auto* sites = new std::unordered_map<std::string, GraphSite>;
  std::string key(utf8(text));
  auto found = sites->find(key);
  if (found == sites->end()) {
    GraphSite site;
    if (!parse_graph_site(key, site)) return nullptr;
    found = sites->emplace(key, std::move(site)).first;
  }
  return &found->second;
}

std::vector<int64_t> integers(PyObject* list) {
  std::vector<int64_t> out;
  for (Py_ssize_t i = 0, n = PyList_Check(list) ? PyList_Size(list) : 0; i < n; ++i)
    out.push_back(PyLong_AsLongLong(PyList_GetItem(list, i)));
  PyErr_Clear();
  return out;
}

// Borrowed; nullptr past the end, and of anything but a list or a tuple.
PyObject* item_of(PyObject* list, size_t i) {
  Py_ssize_t at = static_cast<Py_ssize_t>(i);
  if (PyList_Check(list)) return at < PyList_Size(list) ? PyList_GetItem(list, at) : nullptr;
  return PyTuple_Check(list) && at < PyTuple_Size(list) ? PyTuple_GetItem(list, at) : nullptr;
}

// Values stand in the order of the site's names, each with its kind: read, left or written.
void add_slots(const OwnWork& work, const GraphSite& site, PyObject* values, SlotFlags output_flags,
               Watch* watch, std::vector<Slot>& slots) {
  Collector in(work.torch(), SlotKind::in), out(work.torch(), SlotKind::out),
      written(work.torch(), SlotKind::written);
  for (Collector* c : {&in, &out, &written}) {
    c->show(watch);
    c->read(Reading::compiled);
  }
  for (size_t i = 0; i < site.names.size(); ++i) {
    PyObject* value = item_of(values, i);
    if (value == nullptr) continue;
    const GraphSite::Name& name = site.names[i];
    if (name.kind == 'o')
      out.add_tensors(name.text, value, output_flags);
    else if (name.kind == 'w')
      written.add_tensors(name.text, value);
    else
      in.add_tensors(name.text, value, name.text.starts_with("param:") ? kParameter : 0);
  }
  for (Collector* c : {&in, &out, &written}) {
    slots.insert(slots.end(), c->slots().begin(), c->slots().end());
    if (c->beyond() > 0) recorder().lose(c->beyond());
  }
}

// Of what writes without counting every input is read again: those that are as before were not
// written.
void drop_unwritten(std::vector<Slot>& slots) {
  std::unordered_map<uint32_t, const Slot*> before;  // by name
  std::vector<Slot> left;
  for (const Slot& slot : slots)
    if (slot.kind == SlotKind::in) before.try_emplace(slot.name, &slot);
  uint16_t written = 0;
  for (Slot slot : slots) {
    auto found = before.find(slot.name);
    if (slot.kind == SlotKind::written && found != before.end()) {
      const Slot& was = *found->second;
      if (was.value == slot.value) continue;
      if (was.flags & slot.flags & kPending)
        slot.flat = was.value.h;  // decided when both are there
    }
    if (slot.kind == SlotKind::written) slot.index = written++;
    left.push_back(slot);
  }
  slots = std::move(left);
}

uint32_t text_of(const GraphSite& site, PyObject* numbers) {
  if (site.texts.empty()) return kNone;
  std::vector<int64_t> values = integers(numbers);
  std::string text;
  for (const auto& pieces : site.texts) {
    if (!text.empty()) text += ", ";
    text += graph_text(pieces, values);
  }
  return recorder().string(text);
}

// A graph run for a checkpoint's backward has no gradients to follow: that it is no part of the
// backward graph itself is what tells.
Phase phase_of(const OwnWork& work, const GraphSite& site) {
  Phase phase = current_phase(work.torch(), recorder().thread());
  if (site.has('b')) return Phase::backward;
  return phase == Phase::backward ? Phase::recompute : phase;
}

bool recording() { return recorder().on_operators() && !recorder().thread().inside; }

}  // namespace

int64_t latest_graph_event() { return g_latest; }

PyObject* graph_enter(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 4 || !recording()) Py_RETURN_NONE;
  OwnWork work;
  try {
    const GraphSite* site = site_of(args[3]);
    if (site == nullptr) throw std::runtime_error("a graph's site of another format");
    Entered now;
    now.site = site;
    now.event = recorder().open_event(site->boundary, EventKind::op, phase_of(work, *site));
    now.generation = recorder().generation();
    now.watch = watch_event(now.event, site->boundary, "", true);
    add_slots(work, *site, args[1], 0, now.watch.get(), now.slots);
    now.event.scalars = text_of(*site, args[2]);
    now.serial = recorder().enter(recorder().thread(), site->boundary);
    entered().push_back(std::move(now));
  } catch (const std::exception& e) {
    recorder().fault(e.what());
  }
  Py_RETURN_NONE;
}

// The event's number, by which graph_attach and graph_node find their forward; -1: none was
// recorded.
PyObject* graph_leave(PyObject*, PyObject* const* args, Py_ssize_t count) {
  int64_t index = -1;
  if (count != 4 || !recording()) return PyLong_FromLong(-1);
  {
    OwnWork work;
    try {
      const GraphSite* site = site_of(args[3]);
      std::vector<Entered>& stack = entered();
      size_t at = stack.size();
      while (site && at > 0 && stack[at - 1].site->token != site->token) --at;
      if (site != nullptr && at > 0) {
        // Above it is what raised and never left.
        for (size_t i = stack.size(); i > at; --i)
          recorder().leave(recorder().thread(), stack[i - 1].serial);
        Entered now = std::move(stack[at - 1]);
        stack.resize(at - 1);
        recorder().leave(recorder().thread(), now.serial);
        if (now.generation == recorder().generation()) {
          add_slots(work, *site, args[1], site->has('u') ? kUninitialised : 0, now.watch.get(),
                    now.slots);
          if (site->has('c') || site->has('w')) drop_unwritten(now.slots);
          now.event.results = text_of(*site, args[2]);
          if (site->has('c')) now.event.flags |= kCollective;
          if (site->has('r')) now.event.flags |= kRaised;
          if (site->has('g')) now.event.flags |= kInGraph;
          uint32_t committed = recorder().commit(now.event, now.slots);
          if (now.watch) now.watch->committed(now.event);
          if (committed != kNone) index = committed;
          if (!is_captured(committed) && committed != kNone) g_latest = committed;
        }
      }
    } catch (const std::exception& e) {
      recorder().fault(e.what());
    }
  }
  return PyLong_FromLongLong(index);
}

PyObject* graph_attach(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 4 || !recording()) Py_RETURN_NONE;
  OwnWork work;
  try {
    const GraphSite* site = site_of(args[1]);
    long long index = PyLong_AsLongLong(args[0]);
    if (site != nullptr && work.torch() != nullptr) {
      std::vector<Ref> history;
      for (size_t i = 0; PyObject* node = item_of(args[3], i); ++i)
        history.push_back(Ref::borrow(node));
      const uint32_t forward = index < 0 ? kNone : static_cast<uint32_t>(index);  // lost
      attach_hooks(*work.torch(), site->boundary, forward, args[2], history);
    }
  } catch (const std::exception& e) {
    recorder().fault(e.what());
  }
  Py_RETURN_NONE;
}

PyObject* graph_node(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 3 || !recording()) Py_RETURN_NONE;
  OwnWork work;
  try {
    const GraphSite* site = site_of(args[2]);
    if (site == nullptr) throw std::runtime_error("a graph's site of another format");
    Event event = recorder().open_event(site->boundary, EventKind::node, Phase::backward);
    if (!site->texts.empty()) event.node = recorder().string(graph_text(site->texts[0], {}));
    long long forward = PyLong_AsLongLong(args[0]);
    event.forward = forward >= 0 && static_cast<uint64_t>(forward) < event.begin
                        ? static_cast<uint32_t>(forward)
                        : kNone;
    std::string node = site->texts.empty() ? "" : graph_text(site->texts[0], {});
    std::shared_ptr<Watch> watch = watch_event(event, site->boundary, node, true);
    std::vector<Slot> slots;
    add_slots(work, *site, args[1], 0, watch.get(), slots);
    uint32_t committed = recorder().commit(event, slots);
    if (watch) watch->committed(event);
    if (committed != kNone && !is_captured(committed)) g_latest = committed;
  } catch (const std::exception& e) {
    recorder().fault(e.what());
  }
  Py_RETURN_NONE;
}

}  // namespace opguard
