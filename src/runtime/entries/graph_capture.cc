// A Python object for each captured graph of a device, with what belongs to the replay under way.
//
//   begin_capture()    Capture, or None where nothing is recorded
//   capture.replays()  the tickets of this replay are issued
//   graph.replay()     torch's own
//   capture.replayed() its events are committed, or its tickets taken back if it failed
#include "runtime/entries/graph_capture.h"

#include "runtime/recorder/captured_graph.h"
#include "runtime/recorder/recorder.h"

namespace opguard {
namespace {

PyTypeObject* g_capture_type = nullptr;

struct Capture {
  std::shared_ptr<CapturedGraph> graph;
  Recorder::Replay replay;
};

struct CaptureObject {
  PyObject_HEAD Capture* capture;
};

Capture& capture_of(PyObject* self) { return *reinterpret_cast<CaptureObject*>(self)->capture; }

PyObject* capture_end(PyObject* self, PyObject*) {
  OwnWork work;
  recorder().end_capture(capture_of(self).graph);
  Py_RETURN_NONE;
}

PyObject* capture_replays(PyObject* self, PyObject*) {
  if (!recorder().alive() || recorder().thread().inside) Py_RETURN_NONE;
  OwnWork work;
  try {
    capture_of(self).replay = recorder().begin_replay(capture_of(self).graph);
  } catch (const std::exception& e) {
    recorder().fault(e.what());
  }
  Py_RETURN_NONE;
}

PyObject* capture_replayed(PyObject* self, PyObject* failed) {
  if (!recorder().alive() || recorder().thread().inside) Py_RETURN_NONE;
  OwnWork work;
  try {
    recorder().end_replay(capture_of(self).graph, capture_of(self).replay, failed == Py_True);
  } catch (const std::exception& e) {
    recorder().fault(e.what());
  }
  capture_of(self).replay = {};
  Py_RETURN_NONE;
}

void free_capture(PyObject* self) {
  Capture* capture = reinterpret_cast<CaptureObject*>(self)->capture;
  recorder().forget_graph(*capture->graph);
  delete capture;
  PyTypeObject* type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

PyMethodDef g_capture_methods[] = {
    {"end", capture_end, METH_NOARGS, "The capture ended, well or not"},
    {"replays", capture_replays, METH_NOARGS, "The graph is launched next"},
    {"replayed", capture_replayed, METH_O, "replayed(failed): it was, and its events are added"},
    {}};
PyType_Slot g_capture_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(free_capture)},
                         {Py_tp_methods, g_capture_methods},
                         {0, nullptr}};
PyType_Spec g_capture_spec = {"opguard._rt.Capture", sizeof(CaptureObject), 0, Py_TPFLAGS_DEFAULT, g_capture_slots};

}  // namespace

PyObject* begin_capture(PyObject*, PyObject*) {
  if (!recorder().alive() || recorder().thread().inside) Py_RETURN_NONE;
  OwnWork work;
  std::shared_ptr<CapturedGraph> graph = recorder().begin_capture();
  if (!graph) Py_RETURN_NONE;
  auto* object = PyObject_New(CaptureObject, g_capture_type);
  if (object == nullptr) return nullptr;
  object->capture = new Capture{graph, {}};
  return reinterpret_cast<PyObject*>(object);
}

bool init_graph_capture() {
  g_capture_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&g_capture_spec));
  return g_capture_type != nullptr;
}

}  // namespace opguard
