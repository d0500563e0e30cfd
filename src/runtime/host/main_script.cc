// An object with the script's code and names. It is called once, as runpy's function would be, and
// evaluates the code in the call's own level. Whatever the code raises or returns is the caller's.
#include "runtime/host/main_script.h"

#include <structmember.h>

#include <cstddef>

#include "runtime/host/vector_call.h"

namespace opguard {
namespace {

PyTypeObject* g_script_type = nullptr;

// A vector call costs no level: that of tp_call does.
struct MainScript {
  PyObject_HEAD VectorCall call;
  PyObject* code;
  PyObject* names;
};

PyObject* run(PyObject* self, PyObject* const*, size_t, PyObject*) {
  auto* script = reinterpret_cast<MainScript*>(self);
  return PyEval_EvalCode(script->code, script->names, script->names);
}

PyObject* call(PyObject* self, PyObject*, PyObject*) { return run(self, nullptr, 0, nullptr); }

void free_script(PyObject* self) {
  auto* script = reinterpret_cast<MainScript*>(self);
  Py_XDECREF(script->code);
  Py_XDECREF(script->names);
  PyTypeObject* type = Py_TYPE(self);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

PyMemberDef g_script_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(MainScript, call), READONLY, nullptr}, {}};

PyType_Slot g_script_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(free_script)},
                                {Py_tp_members, g_script_members},
                                {Py_tp_call, reinterpret_cast<void*>(call)},
                                {0, nullptr}};

PyType_Spec g_script_spec = {"opguard._rt.MainScript", sizeof(MainScript), 0,
                             Py_TPFLAGS_DEFAULT | kHasVectorCall, g_script_slots};

}  // namespace

PyObject* main_script(PyObject*, PyObject* args) {
  PyObject *code = nullptr, *names = nullptr;
  if (!PyArg_ParseTuple(args, "OO!", &code, &PyDict_Type, &names)) return nullptr;
  auto* script = reinterpret_cast<MainScript*>(PyType_GenericAlloc(g_script_type, 0));
  if (script == nullptr) return nullptr;
  script->call = run;
  script->code = Ref::borrow(code).release();
  script->names = Ref::borrow(names).release();
  return reinterpret_cast<PyObject*>(script);
}

bool init_main_script() {
  g_script_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&g_script_spec));
  return g_script_type != nullptr;
}

}  // namespace opguard
