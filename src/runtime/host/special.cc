// `with x` looks __enter__ up on x's type. An attribute of x itself with that name is not asked,
// nor is __getattr__. So the search goes by the types' own dicts, in the order of __mro__.
//
//   class A: __enter__ = lambda self: 1
//   a.__enter__ = None           special_method(a, "__enter__") is A's, bound to a
//
// Nothing found is no error: the reference is empty, and no exception is set.
#include "runtime/host/special.h"

namespace opguard {

Ref special_method(PyObject* object, const char* name) {
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(object));
  Ref bases(PyObject_GetAttrString(type, "__mro__"));
  if (!bases || !PyTuple_Check(bases.get())) return {};
  for (Py_ssize_t i = 0, n = PyTuple_Size(bases.get()); i < n; ++i) {
    Ref names(PyObject_GetAttrString(PyTuple_GetItem(bases.get(), i), "__dict__"));
    if (!names) return {};
    Ref found(PyMapping_GetItemString(names.get(), name));
    if (!found) {
      if (!PyErr_ExceptionMatches(PyExc_KeyError)) return {};
      PyErr_Clear();
      continue;
    }
    auto bind = type_slot<descrgetfunc>(found.get(), Py_tp_descr_get);
    return bind ? Ref(bind(found.get(), object, type)) : std::move(found);
  }
  return {};
}

// By the interpreter's own tables: "UNPACK_SEQUENCE", "LIST_EXTEND". "" where the frame does not
// tell.
std::string running_opcode() {
  Ref frame = Ref::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  Ref at = frame ? attribute(frame.get(), "f_lasti") : Ref();
  Ref code = frame ? attribute(frame.get(), "f_code") : Ref();
  Ref bytes = code ? attribute(code.get(), "co_code") : Ref();
  Ref opcodes(PyImport_ImportModule("opcode"));
  Ref names = opcodes ? attribute(opcodes.get(), "opname") : Ref();
  std::string result;
  if (at && bytes && names) {
    Ref op(PyObject_GetItem(bytes.get(), at.get()));
    Ref name(op ? PyObject_GetItem(names.get(), op.get()) : nullptr);
    if (name) result = utf8(name.get());
  }
  PyErr_Clear();
  return result;
}

}  // namespace opguard
