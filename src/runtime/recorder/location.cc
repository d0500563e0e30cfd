// A place is asked for once for each boundary: without a probe nobody else says where it stands. Of
// a call that goes through torch it is the program's frame that counts:
//
//   train.py:40     loss.backward()       this one
//   torch/_tensor.py, contextlib, ...     stepped over
//
// Counterexample: a backward in a thread of the engine. There is no Python frame, and no place.
#include "runtime/recorder/location.h"

#include "runtime/host/object.h"
#include "runtime/recorder/recorder.h"

namespace opguard {

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

}  // namespace opguard
