// extension/module.cc: the extension opguard._rt: the probes (src/runtime) and the reading of logs
// (src/reading) under one roof.
//
//   opguard._rt.probe, start, close, ...     src/runtime    python/opguard/record/recording.py
//   opguard._rt.read_log                     src/reading    python/opguard/logs.py
//
// Counterexample: were this a part of src/runtime, the runtime would use reading, which uses the
// runtime's CPython (runtime/host/py.h): a circle of rooms.
#include "reading/python_log.h"
#include "runtime/entries/autograd.h"
#include "runtime/entries/collective.h"
#include "runtime/entries/gradient_hooks.h"
#include "runtime/entries/graph_capture.h"
#include "runtime/entries/graph_event.h"
#include "runtime/entries/optimizer.h"
#include "runtime/host/main_script.h"
#include "runtime/host/python_layout.h"
#include "runtime/probe/primitives.h"
#include "runtime/probe/probe.h"
#include "runtime/recorder/kept.h"
#include "runtime/recorder/observations.h"
#include "runtime/recorder/parameter_names.h"
#include "runtime/recorder/python_devices.h"
#include "runtime/recorder/python_fingerprint.h"
#include "runtime/recorder/recorder.h"
#include "runtime/recorder/sketches.h"
#include "runtime/recorder/tickets.h"
#include "runtime/recorder/values.h"
#include "runtime/watch/watch.h"

namespace opguard {
namespace {

bool mode_of(std::string_view name, Mode& mode) {
  static constexpr std::pair<std::string_view, Mode> kModes[] = {
      {"model", Mode::model},
      {"sdc", Mode::sdc},
      {"trusted", Mode::trusted},
      {"default", Mode::carrying},
      {"full", Mode::full},
      // And what recorder/sketches.h adds.
      {"sketch", Mode::full}};
  for (const auto& [known, value] : kModes)
    if (name == known) {
      mode = value;
      return true;
    }
  PyErr_Format(PyExc_ValueError,
               "OPGUARD_MODE is default, full, sketch, trusted, sdc, model or off, not %.80s",
               std::string(name).c_str());
  return false;
}

// start(dir, rank, world, mode, primitives, settings, names, states): from now on probes record.
PyObject* start(PyObject*, PyObject* args) {
  const char *dir = nullptr, *mode_name = nullptr, *primitives = nullptr;
  int rank = 0, world = 1;
  PyObject *settings = nullptr, *names = nullptr, *states = nullptr;
  Mode mode = Mode::full;
  if (!PyArg_ParseTuple(args, "siissOOO", &dir, &rank, &world, &mode_name, &primitives, &settings,
                        &names, &states) ||
      !mode_of(mode_name, mode))
    return nullptr;
  set_parameter_names(names);
  set_primitives(primitives);
  recorder().start(dir, rank, world, mode, settings, states);
  Py_RETURN_NONE;
}

PyObject* step(PyObject*, PyObject*) { return PyLong_FromUnsignedLong(recorder().step()); }

// sketch(slices, modules, gradients, jitter, declared): before the first event.
PyObject* sketch(PyObject*, PyObject* args) {
  const char* slices = nullptr;
  PyObject *modules = nullptr, *gradients = nullptr, *jitter = nullptr, *declared = nullptr;
  if (!PyArg_ParseTuple(args, "sOOOO", &slices, &modules, &gradients, &jitter, &declared) ||
      !sketches().begin(slices, modules, gradients, jitter, declared))
    return nullptr;
  Py_RETURN_NONE;
}

// record_tensors(boundary, [(name, tensor, declared or None)]): an event of its own. Also while a
// probe works.
PyObject* record_tensors(PyObject*, PyObject* args) {
  const char* boundary = nullptr;
  PyObject* items = nullptr;
  if (!PyArg_ParseTuple(args, "sO!", &boundary, &PyList_Type, &items)) return nullptr;
  if (recorder().on()) {
    OwnWork work;
    recorder().record_tensors(boundary, items);
  }
  Py_RETURN_NONE;
}

// watch(captures, transplants, dir, rank): before the first event.
PyObject* watch(PyObject*, PyObject* args) {
  const char *captures = nullptr, *transplants = nullptr, *dir = nullptr;
  int rank = 0;
  if (!PyArg_ParseTuple(args, "sssi", &captures, &transplants, &dir, &rank)) return nullptr;
  start_watching(captures, transplants, dir, rank);
  Py_RETURN_NONE;
}

// end_after(step, callback): before the first event.
PyObject* end_after(PyObject*, PyObject* args) {
  unsigned step = 0;
  PyObject* callback = nullptr;
  if (!PyArg_ParseTuple(args, "IO", &step, &callback)) return nullptr;
  recorder().end_after(step, callback);
  Py_RETURN_NONE;
}

// keep(limits, spool): before start().
PyObject* keep(PyObject*, PyObject* args) {
  const char *limits = nullptr, *spool = nullptr;
  std::string error;
  if (!PyArg_ParseTuple(args, "ss", &limits, &spool)) return nullptr;
  if (recorder().keep(limits, spool, error)) Py_RETURN_NONE;
  PyErr_SetString(PyExc_ValueError, error.c_str());
  return nullptr;
}

// hold_against(index, callback): before the first event.
PyObject* hold_against(PyObject*, PyObject* args) {
  const char* index = nullptr;
  PyObject* callback = nullptr;
  std::string error;
  if (!PyArg_ParseTuple(args, "sO", &index, &callback)) return nullptr;
  if (recorder().hold_against(index, callback, error)) Py_RETURN_NONE;
  PyErr_SetString(PyExc_ValueError, error.c_str());
  return nullptr;
}

// record_steps(window, first, marked, callback): before the first event. window: "100..103".
PyObject* record_steps(PyObject*, PyObject* args) {
  const char* text = nullptr;
  unsigned first = 0;
  int marked = 0;
  PyObject* callback = nullptr;
  StepWindow window;
  std::string error;
  if (!PyArg_ParseTuple(args, "sIpO", &text, &first, &marked, &callback)) return nullptr;
  if (*text != '\0' && !parse_window(text, window, error)) {
    PyErr_SetString(PyExc_ValueError, error.c_str());
    return nullptr;
  }
  recorder().record_steps(window, first, marked != 0, callback);
  Py_RETURN_NONE;
}

// hold_steps(count, watchers): before the first event.
PyObject* hold_steps(PyObject*, PyObject* args) {
  unsigned count = 0;
  PyObject* watchers = nullptr;
  if (!PyArg_ParseTuple(args, "IO", &count, &watchers)) return nullptr;
  recorder().hold_steps(count, watchers);
  Py_RETURN_NONE;
}

// write_ring(folder, why) -> whether there was something to write, and the recorder not at work.
PyObject* write_ring(PyObject*, PyObject* args) {
  const char *folder = nullptr, *why = nullptr;
  if (!PyArg_ParseTuple(args, "ss", &folder, &why)) return nullptr;
  return PyBool_FromLong(recorder().alive() && recorder().write_ring_now(folder, why));
}

// at_work() -> whether this thread is within the recorder, or a graph is being captured.
PyObject* at_work(PyObject*, PyObject*) {
  return PyBool_FromLong(recorder().alive() && recorder().at_work());
}

// progress(path): at the end of each step the number of steps stands there.
PyObject* progress(PyObject*, PyObject* path) {
  const char* text = PyUnicode_AsUTF8AndSize(path, nullptr);
  if (text == nullptr) return nullptr;
  recorder().count_steps_in(text);
  Py_RETURN_NONE;
}

// device_plugins(paths, patience): before the first tensor is met. patience: seconds.
PyObject* device_plugins(PyObject*, PyObject* args) {
  const char* paths = nullptr;
  double patience = 0;
  if (!PyArg_ParseTuple(args, "sd", &paths, &patience)) return nullptr;
  load_device_plugins(paths);
  if (patience > 0)
    tickets().set_patience(std::chrono::nanoseconds(static_cast<int64_t>(patience * 1e9)));
  Py_RETURN_NONE;
}

// drill(selections, driller): after watch, before the first event.
PyObject* drill(PyObject*, PyObject* args) {
  const char* selections = nullptr;
  PyObject* driller = nullptr;
  if (!PyArg_ParseTuple(args, "sO", &selections, &driller)) return nullptr;
  start_drilling(selections, driller);
  Py_RETURN_NONE;
}

PyObject* close(PyObject*, PyObject*) {
  SavedError saved;
  recorder().close();
  Py_RETURN_NONE;
}

// phase() -> the number of record/event.h's Phase of an operator that begins now.
PyObject* phase(PyObject*, PyObject*) {
  OwnWork work;
  return PyLong_FromLong(static_cast<long>(current_phase(work.torch(), recorder().thread())));
}

PyObject* rest(PyObject*, PyObject*) {
  SavedError saved;
  recorder().rest();
  Py_RETURN_NONE;
}

PyObject* recording(PyObject*, PyObject*) { return PyBool_FromLong(recorder().alive()); }

PyObject* observing(PyObject*, PyObject*) { return PyBool_FromLong(recorder().on()); }

PyObject* count_fault(PyObject*, PyObject* what) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(what, &size);
  if (text == nullptr) PyErr_Clear();
  recorder().fault(text == nullptr ? "an error without words" : text);
  Py_RETURN_NONE;
}

PyObject* buffers(PyObject*, PyObject* function) {
  set_buffers(function);
  Py_RETURN_NONE;
}

PyObject* saved(PyObject*, PyObject* value) {
  record_saved(value);
  Py_RETURN_NONE;
}

PyObject* loss(PyObject*, PyObject* roots) {
  record_loss(roots);
  Py_RETURN_NONE;
}

PyObject* step_begins(PyObject*, PyObject* optimizer) {
  optimizer_begins(optimizer);
  Py_RETURN_NONE;
}

PyObject* step_ended(PyObject*, PyObject* optimizer) {
  optimizer_ended(optimizer);
  Py_RETURN_NONE;
}

// describe(value) -> the text by which a record tells a value that is no tensor.
PyObject* describe(PyObject*, PyObject* value) {
  std::string text;
  {
    OwnWork work;
    Collector collector(work.torch(), SlotKind::in);
    collector.add("", value);
    text = collector.scalars().substr(collector.scalars().empty() ? 0 : 1);
  }
  return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}

// locate(boundary, path, line, function): where a boundary is, once.
PyObject* locate(PyObject*, PyObject* args) {
  const char *boundary = nullptr, *path = nullptr, *function = nullptr;
  int line = 0;
  if (!PyArg_ParseTuple(args, "ssis", &boundary, &path, &line, &function)) return nullptr;
  if (recorder().on() && recorder().unlocated(boundary)) {
    Location at;
    at.path = at.file = path;
    at.line = line > 0 ? static_cast<uint32_t>(line) : 0;
    at.function = function;
    recorder().locate(boundary, at);
  }
  Py_RETURN_NONE;
}

PyObject* mark_step(PyObject*, PyObject*) {
  if (recorder().alive() && !recorder().thread().inside) {
    OwnWork work;
    recorder().mark_step();
  }
  Py_RETURN_NONE;
}

PyObject* mark_micro_batch(PyObject*, PyObject*) {
  if (recorder().alive() && !recorder().thread().inside) {
    OwnWork work;
    recorder().mark_micro_batch();
  }
  Py_RETURN_NONE;
}

PyObject* enter_closure(PyObject*, PyObject*) {
  closure_begins();
  Py_RETURN_NONE;
}

PyObject* torch_native_of(PyObject*, PyObject* allow) {
  return PyBool_FromLong(torch_native(PyObject_IsTrue(allow) == 1));
}

PyObject* leave_closure(PyObject*, PyObject*) {
  closure_ended();
  Py_RETURN_NONE;
}

// The limited API has one type for methods of every kind.
template <typename F>
PyCFunction method(F function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef g_module_methods[] = {
    {"probe", method(probe), METH_FASTCALL,
     "probe(id, operand): stands for it during one operator"},
    {"name", method(name), METH_FASTCALL,
     "name(id, operand): to be followed by .iadd and its like"},
    {"probe_writes", method(probe_writes), METH_FASTCALL,
     "probe_writes(id, callee): it changes arguments unseen"},
    {"probe_step", method(probe_step), METH_FASTCALL, "probe_step(id, operand): ends a step"},
    {"probe_micro_batch", method(probe_micro_batch), METH_FASTCALL,
     "probe_micro_batch(id, operand): ends a micro-batch"},
    {"aug", method(aug), METH_FASTCALL, "aug(id, owner): its attributes and items take a probe"},
    {"start", start, METH_VARARGS,
     "start(dir, rank, world, mode, primitives, settings, names, states): record from now on"},
    {"watch", watch, METH_VARARGS,
     "watch(captures, transplants, dir, rank): tensors to write, and values to replace"},
    {"keep", keep, METH_VARARGS,
     "keep(limits, spool): of each log the end alone, as 20GB,6h; or all of it, of which so much "
     "waits to be uploaded, as 4GB; before start()"},
    {"hold_against", hold_against, METH_VARARGS,
     "hold_against(index, callback): compare each step with an earlier run's; "
     "callback(step, first step that differs or -1)"},
    {"end_after", end_after, METH_VARARGS,
     "end_after(step, callback): call it once the step is over and recorded"},
    {"record_steps", record_steps, METH_VARARGS,
     "record_steps(window, first, marked, callback): record these steps only"},
    {"hold_steps", hold_steps, METH_VARARGS,
     "hold_steps(count, watchers): the last steps are held until a watcher wants them written"},
    {"write_ring", write_ring, METH_VARARGS, "write_ring(folder, why): what is held, at once"},
    {"at_work", at_work, METH_NOARGS, "at_work(): whether this thread is within the recorder"},
    {"progress", progress, METH_O, "progress(path): the file in which steps are counted"},
    {"device_plugins", device_plugins, METH_VARARGS,
     "device_plugins(paths, patience): libraries that read tensors on devices (device/plugin.h)"},
    {"device", device_state, METH_O,
     "device(type): why its tensors have no values, '' if they have"},
    {"read_on_device", read_on_device, METH_O,
     "read_on_device(tensor): its og1 by its device, which is waited for"},
    {"capture", begin_capture, METH_NOARGS,
     "capture() -> Capture or None: a device graph is captured from now on"},
    {"drill", drill, METH_VARARGS,
     "drill(selections, driller): executions whose ATen operators are recorded (drill.py)"},
    {"close", close, METH_NOARGS, "Write the end of the log; nothing is recorded after it"},
    {"rest", rest, METH_NOARGS, "Write the end of the log; start() may begin another one"},
    {"phase", phase, METH_NOARGS,
     "0 forward, 1 recompute, 2 backward, 3 optimizer: of an operator that begins now"},
    {"recording", recording, METH_NOARGS, "Do probes record?"},
    {"buffers", buffers, METH_O, "buffers(function): who finds the buffers of modules"},
    {"saved", saved, METH_O, "This is about to be written to a file"},
    {"loss", loss, METH_O, "A backward pass begins with these roots"},
    {"step", step, METH_NOARGS, "Training steps that are over"},
    {"sketch", sketch, METH_VARARGS, "From now on what is recorded is sketched too"},
    {"record_tensors", record_tensors, METH_VARARGS, "An event of tensors by name"},
    {"step_begins", step_begins, METH_O, "An optimizer's step begins"},
    {"step_ended", step_ended, METH_O, "An optimizer's step ended"},
    {"waiting", waiting, METH_O, "waiting(stand_in): it, which a graph break left on the stack"},
    {"graph_enter", method(graph_enter), METH_FASTCALL,
     "graph_enter(ring, values, numbers, site): a compiled graph's operator begins"},
    {"graph_leave", method(graph_leave), METH_FASTCALL,
     "graph_leave(ring, values, numbers, site): index of its event or -1"},
    {"graph_attach", method(graph_attach), METH_FASTCALL,
     "graph_attach(index, site, outputs, history): hook the outputs' autograd nodes"},
    {"graph_node", method(graph_node), METH_FASTCALL,
     "graph_node(forward, values, site): an autograd node in a compiled graph has run"},
    {"describe", describe, METH_O, "The text of a value that is no tensor"},
    {"locate", locate, METH_VARARGS, "locate(boundary, path, line, function)"},
    {"mark_step", mark_step, METH_NOARGS, "A training step ends here"},
    {"mark_micro_batch", mark_micro_batch, METH_NOARGS, "A micro-batch ends here"},
    {"closure_begins", enter_closure, METH_NOARGS, "An optimizer calls the program's closure"},
    {"closure_ended", leave_closure, METH_NOARGS, "The closure has returned"},
    {"fingerprint", method(fingerprint_of), METH_VARARGS,
     "fingerprint(x, kind='og1'): (h, m); an int for digest, xor32, xor64; for all (h, m, flat, "
     "pattern, digest)"},
    {"observation", observation_schema, METH_VARARGS,
     "observation(kind, fields) -> the number of this schema; a field 'name:bits' takes 64 bits"},
    {"observe", method(observe), METH_FASTCALL,
     "observe(schema, values): a row, where this step is recorded"},
    {"observing", observing, METH_NOARGS, "Are observations of this step recorded?"},
    {"fault", count_fault, METH_O, "fault(text): an error of ours, counted in the log's settings"},
    {"flush_soon", flush_soon, METH_NOARGS, "What was recorded is handed on soon, unwaited for"},
    {"row_hashes", row_hashes_of, METH_VARARGS,
     "row_hashes(tensors, most) -> a digest of each row of dimension 0, of all tensors together"},
    {"measures", measures_of, METH_O,
     "measures(tensors) -> (hashes, Euclidean lengths), None of what cannot be read here"},
    {"tell", tell_settings, METH_O, "tell(settings): what the log says of itself"},
    {"hashes", hashes_of, METH_O,
     "hashes(tensors): og1's h of each, None of one that cannot be read here"},
    {"lane_sums", method(lane_sums_of), METH_VARARGS,
     "lane_sums(name=''): versions of the inner loops; a name chooses one"},
    {"torch_native", torch_native_of, METH_O,
     "torch_native(allow): are tensors asked through torch's C++ functions? False: never again"},
    {"tensor_layout", tensor_layout_of, METH_O,
     "tensor_layout(probes or None) -> {field: offset, 'trusted': bool}: where torch keeps a "
     "tensor's fields (tensor_layout.py)"},
    {"collective", collective_launch, METH_VARARGS,
     "collective(boundary, group, sequence, inputs, outputs, scalars, structure) -> Flight or "
     "None"},
    {"read_log", python_read_log, METH_O,
     "read_log(path): (processes, events, records, observations)"},
    {"main_script", main_script, METH_VARARGS,
     "main_script(code, namespace): called, it runs the main script's code with nothing below it"},
    {"collectives_watched", collectives_watched, METH_NOARGS,
     "From now on every collective is announced"},
    {}};

PyModuleDef g_module = {PyModuleDef_HEAD_INIT,
                        "opguard._rt",
                        nullptr,
                        -1,
                        g_module_methods,
                        nullptr,
                        nullptr,
                        nullptr,
                        nullptr};

}  // namespace
}  // namespace opguard

PyMODINIT_FUNC PyInit__rt() {
  using namespace opguard;
  Ref module(PyModule_Create(&g_module));
  if (!module || !init_gradient_hooks() || !init_probe(module.get()) || !init_collective() ||
      !init_graph_capture() || !init_main_script() || !init_python_log())
    return nullptr;
  return module.release();
}
