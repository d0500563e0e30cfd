// Memory that other ranks write, as a short list of spans that readings are held against.
//
//   launch, of [0x1000, 0x1400)          its inputs are read; the span is in flight
//   somebody reads [0x1200, 0x1300)      unreadable: half of it may be written
//   somebody reads [0x1000, 0x1400)      the value as it was given away, if that was read
//   wait()                               the span is gone, the outputs are read: the landing
//
// A call with a probe is the site's event, and its landing a second one. Without a probe both are
// one, called after the function it is in: "<dist.all_reduce train.sync>".
//
// Counterexample: nobody waits. Then the end is learned late, and an operator may have written the
// output since. Its version tells, and the value is "not known" instead of a wrong one.
//
// Readings that were carried over are forgotten at both ends: collectives count no versions.
#include "runtime/entries/collective.h"

#include "runtime/host/object.h"
#include "runtime/recorder/location.h"

namespace opguard {
namespace {

PyTypeObject* g_flight_type = nullptr;
bool g_watched = false;

struct FlightObject {
  PyObject_HEAD Flight* flight;
};

// Memory that a collective in flight writes. Few at any time.
struct Span {
  uint64_t begin, end;
  const Flight* flight;
};
std::vector<Span> g_spans;

void release_spans(const Flight& flight) {
  std::erase_if(g_spans, [&](const Span& s) { return s.flight == &flight; });
}

// fn(name, tensor) for a tensor or a nest of lists of them.
template <typename F>
void for_each_tensor(const TorchApi& torch, const std::string& name, PyObject* value, F fn,
                     int depth = 0) {
  if (torch.is_tensor(value)) {
    fn(name, value);
  } else if (depth < 64 && (PyList_Check(value) || PyTuple_Check(value))) {
    bool tuple = PyTuple_Check(value);
    for (Py_ssize_t i = 0, n = PyObject_Size(value); i < n; ++i) {
      Ref item = Ref::borrow(tuple ? PyTuple_GetItem(value, i) : PyList_GetItem(value, i));
      if (item)
        for_each_tensor(torch, name + "[" + std::to_string(i) + "]", item.get(), fn, depth + 1);
    }
  }
}

// outputs: ((name, value, flags), ...)
void give_outputs(Flight& flight, PyObject* outputs, const TorchApi& torch) {
  for (Py_ssize_t i = 0, n = PyTuple_Size(outputs); i < n; ++i) {
    const char* name = nullptr;
    PyObject* value = nullptr;
    int flags = 0;
    if (!PyArg_ParseTuple(PyTuple_GetItem(outputs, i), "sOi", &name, &value, &flags)) return;
    for_each_tensor(torch, name, value, [&](const std::string& label, PyObject* tensor) {
      TensorView view = view_tensor(torch, tensor);
      flight.outputs.push_back(
          {Ref::borrow(tensor), label, static_cast<SlotFlags>(flags), view.version});
      if (!view.has_value() || view.span_bytes() == 0) return;
      const uint64_t begin = view.first_byte();
      g_spans.push_back({begin, begin + view.span_bytes(), &flight});
    });
  }
}

// "train.sync_gradients": where in the program, by names that outlive an edit above it.
std::string place_of(PyObject* frame) {
  if (frame == nullptr) return {};
  Ref code(reinterpret_cast<PyObject*>(PyFrame_GetCode(reinterpret_cast<PyFrameObject*>(frame))));
  std::string file = utf8_attribute(code.get(), "co_filename");
  file = file.substr(file.rfind('/') + 1);
  return file.substr(0, file.rfind('.')) + "." + utf8_attribute(code.get(), "co_name");
}

// Whether this thread's innermost operator is a call of this very collective. Its first one: a call
// that makes several is told by the first.
Running* site(ThreadState& thread) {
  if (thread.running.empty()) return nullptr;
  Running& innermost = thread.running.back();
  return innermost.communicates && !innermost.flight ? &innermost : nullptr;
}

// The event of a collective without a site, or of one whose site's event was before it ended.
void commit(Flight& flight, Collector& out) {
  // Nothing between launch and landing is inside it.
  Event event = recorder().open_event(flight.boundary, EventKind::collective, flight.event.phase);
  event.step = flight.event.step;
  event.micro_batch = flight.event.micro_batch;
  event.start_ns = flight.event.start_ns;
  event.flags = kCollective;
  event.group = flight.event.group;
  event.sequence = flight.event.sequence;
  event.scalars = flight.event.scalars;
  event.forward = flight.launch;
  if (!out.scalars().empty()) event.results = recorder().string(out.scalars());
  std::vector<Slot> slots = std::move(flight.slots);
  slots.insert(slots.end(), out.slots().begin(), out.slots().end());
  if (out.beyond() > 0) recorder().lose(out.beyond());
  recorder().commit(event, slots);
}

// late: nobody said when it ended. What changed since by counted operators is not its output.
void land(Flight& flight, bool late) {
  if (flight.landed) return;
  flight.landed = true;
  release_spans(flight);
  // Collectives count no versions, and write buffers that others are views of.
  storages().forget_all();
  bool own = !flight.at_site;
  if (recorder().alive() && flight.generation == recorder().generation() &&
      (own || flight.launch != kNone)) {
    OwnWork work;
    try {
      Collector out(work.torch(), SlotKind::out, 65535);
      for (const Flight::Output& output : flight.outputs) {
        if (late && tensor_version(output.object.get()) != output.version)
          out.text(output.name, "not known");
        else
          out.add_tensors(output.name, output.object.get(), output.flags);
      }
      commit(flight, out);
    } catch (const std::exception& e) {
      recorder().fault(e.what());
    }
  }
  flight.outputs.clear();
}

// Outputs that were not known at the launch: in flight from here on.
PyObject* flight_give(PyObject* self, PyObject* outputs) {
  Flight& flight = *reinterpret_cast<FlightObject*>(self)->flight;
  OwnWork work;
  if (work.torch() != nullptr && PyTuple_Check(outputs) && !flight.landed)
    give_outputs(flight, outputs, *work.torch());
  Py_RETURN_NONE;
}

// Once: a second call does nothing.
PyObject* flight_land(PyObject* self, PyObject* late) {
  land(*reinterpret_cast<FlightObject*>(self)->flight, late == Py_True);
  Py_RETURN_NONE;
}

PyObject* flight_number(PyObject* self, PyObject* number) {
  unsigned long value = PyLong_AsUnsignedLong(number);
  if (PyErr_Occurred()) return nullptr;
  reinterpret_cast<FlightObject*>(self)->flight->event.sequence = static_cast<uint32_t>(value);
  Py_RETURN_NONE;
}

// A message whose sender was not known when it was launched.
PyObject* flight_channel(PyObject* self, PyObject* args) {
  const char* group = nullptr;
  unsigned number = 0;
  if (!PyArg_ParseTuple(args, "sI", &group, &number)) return nullptr;
  Flight& flight = *reinterpret_cast<FlightObject*>(self)->flight;
  if (recorder().alive() && flight.generation == recorder().generation()) {
    flight.event.group = recorder().string(group);
    flight.event.sequence = number;
  }
  Py_RETURN_NONE;
}

// No event is made of it.
PyObject* flight_cancel(PyObject* self, PyObject*) {
  Flight& flight = *reinterpret_cast<FlightObject*>(self)->flight;
  flight.landed = true;
  release_spans(flight);
  flight.outputs.clear();
  Py_RETURN_NONE;
}

void free_flight(PyObject* self) {
  Flight* flight = reinterpret_cast<FlightObject*>(self)->flight;
  release_spans(*flight);
  delete flight;
  PyTypeObject* type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

PyMethodDef g_flight_methods[] = {
    {"give", flight_give, METH_O, "give(outputs): those it is known to write only now"},
    {"land", flight_land, METH_O, "land(late): its outputs are there"},
    {"number", flight_number, METH_O, "number(n): its number in its group"},
    {"channel", flight_channel, METH_VARARGS, "channel(group, n): only now known"},
    {"cancel", flight_cancel, METH_NOARGS, "It never ran"},
    {}};
PyType_Slot g_flight_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(free_flight)},
                                {Py_tp_methods, g_flight_methods},
                                {0, nullptr}};
PyType_Spec g_flight_spec = {"opguard._rt.Flight", sizeof(FlightObject), 0, Py_TPFLAGS_DEFAULT,
                             g_flight_slots};

struct Call {
  const char* boundary;
  const char* group;
  unsigned long long sequence;
  PyObject *inputs, *outputs;  // ((name, value, flags), ...)
  const char* scalars;
  int structure;  // neither inputs nor outputs are values of the program
};

// Its event is opened, its inputs are read, and its outputs are in flight from here on. An output
// that is no input holds nothing that anybody reads before.
void take_off(Flight& flight, const Call& call, const OwnWork& work) {
  ThreadState& thread = recorder().thread();
  storages().forget_all();
  flight.generation = recorder().generation();
  flight.boundary = call.boundary;
  if (!flight.at_site) {
    Ref frame = user_frame();
    // "<dist.all_reduce" is completed here; "<ddp.bucket>" has a name of its own.
    if (!flight.boundary.ends_with('>')) {
      std::string place = place_of(frame.get());
      flight.boundary += place.empty() ? ">" : " " + place + ">";
    }
    locate_boundary(flight.boundary, frame.get());
  } else {
    flight.boundary = *thread.running.back().boundary;
  }
  flight.event = recorder().open_event(flight.boundary, EventKind::collective,
                                       current_phase(work.torch(), thread));
  flight.event.group = recorder().string(call.group);
  flight.event.sequence = static_cast<uint32_t>(call.sequence);
  if (*call.scalars != 0) flight.event.scalars = recorder().string(call.scalars);
  if (work.torch() == nullptr || call.structure) return;
  Collector in(work.torch(), SlotKind::in, 65535);
  std::vector<PyObject*> read;
  for (Py_ssize_t i = 0, n = PyTuple_Size(call.inputs); i < n; ++i) {
    const char* name = nullptr;
    PyObject* value = nullptr;
    int flags = 0;
    if (!PyArg_ParseTuple(PyTuple_GetItem(call.inputs, i), "sOi", &name, &value, &flags)) return;
    for_each_tensor(*work.torch(), name, value,
                    [&](const std::string&, PyObject* tensor) { read.push_back(tensor); });
    // A site has read its arguments itself.
    if (!flight.at_site) in.add_tensors(name, value, static_cast<SlotFlags>(flags));
  }
  if (in.beyond() > 0) recorder().lose(in.beyond());
  flight.slots = std::move(in.slots());
  give_outputs(flight, call.outputs, *work.torch());
  for (const Flight::Output& output : flight.outputs) {
    bool given = false;
    for (PyObject* r : read) given |= r == output.object.get();
    if (!given) flight.overwritten.push_back(output.object);
  }
}

}  // namespace

bool Flight::overwrites(PyObject* object) const {
  for (const Ref& o : overwritten)
    if (o.get() == object) return true;
  return false;
}

Flight& flight_of(const Ref& object) {
  return *reinterpret_cast<FlightObject*>(object.get())->flight;
}

// What the site read is what it was given.
void launched(Flight& flight, uint32_t index, const std::vector<Slot>& inputs,
              const std::vector<Collector::Item>& arguments) {
  flight.launch = index;
  flight.slots = inputs;
  for (Flight::Output& output : flight.outputs)
    for (const Collector::Item& argument : arguments)
      if (argument.object.get() == output.object.get()) output.name = argument.name;
}

bool anything_in_flight() { return !g_spans.empty(); }

// The very tensor that was given away has the value it had then; any other that overlaps the span
// is unreadable.
bool read_in_flight(const TensorView& view, Slot& slot) {
  if (g_spans.empty() || !view.has_value()) return false;
  const uint64_t begin = view.first_byte();
  uint64_t end = begin + view.span_bytes();
  for (const Span& span : g_spans) {
    if (end <= span.begin || span.end <= begin ||
        span.flight->generation != recorder().generation())
      continue;
    slot.flags |= kUnreadable;
    for (const Slot& given : span.flight->slots) {
      if (given.address != begin || given.size_bytes != end - begin ||
          (given.flags & kUnreadable) || recorder().meta(view) != given.meta)
        continue;
      slot.flags =
          static_cast<SlotFlags>((slot.flags & ~kUnreadable) | (given.flags & (kMask | kPending)));
      slot.value = given.value;
      slot.flat = given.flat;
      slot.has_digest = given.has_digest;
      slot.digest = given.digest;
      slot.pattern = given.pattern;
      slot.address = given.address;
      slot.size_bytes = given.size_bytes;
    }
    return true;
  }
  return false;
}

bool watching_collectives() { return g_watched; }

// None: nothing is recorded, or it is the inner work of a collective that is the site's already.
PyObject* collective_launch(PyObject*, PyObject* args) {
  Call call{};
  if (!PyArg_ParseTuple(args, "ssKO!O!sp", &call.boundary, &call.group, &call.sequence,
                        &PyTuple_Type, &call.inputs, &PyTuple_Type, &call.outputs, &call.scalars,
                        &call.structure))
    return nullptr;
  if (!recorder().on() || recorder().thread().inside) Py_RETURN_NONE;
  OwnWork work;
  Running* at = site(recorder().thread());
  bool nested = !recorder().thread().running.empty() &&
                recorder().thread().running.back().communicates && at == nullptr;
  if (call.structure && nested) Py_RETURN_NONE;
  auto* object = PyObject_New(FlightObject, g_flight_type);
  if (object == nullptr) Py_RETURN_NONE;
  object->flight = new Flight;
  Ref held(reinterpret_cast<PyObject*>(object));
  object->flight->at_site = at != nullptr;
  try {
    take_off(*object->flight, call, work);
  } catch (const std::exception& e) {
    recorder().fault(e.what());
    Py_RETURN_NONE;
  }
  if (at != nullptr) at->flight = held;
  return held.release();
}

PyObject* collectives_watched(PyObject*, PyObject*) {
  g_watched = true;
  Py_RETURN_NONE;
}

bool init_collective() {
  g_flight_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&g_flight_spec));
  return g_flight_type != nullptr;
}

}  // namespace opguard
