// runtime/host/vector_call.h: PEP 590 for our own objects. The limited API of 3.10 has no word for
// it, and its types obey it all the same: a member `__vectorcalloffset__` and a flag.
#pragma once

#include "runtime/host/py.h"

namespace opguard {

using VectorCall = PyObject* (*)(PyObject*, PyObject* const*, size_t, PyObject*);

constexpr unsigned long kHasVectorCall = 1UL << 11;  // Py_TPFLAGS_HAVE_VECTORCALL

// A call's arguments as tuple and dict; `names` holds those of the last ones, or is null. False
// with an error set.
inline bool pack_arguments(PyObject* const* args, size_t count, PyObject* names, Ref& given,
                           Ref& named) {
  // The highest bit says that the caller lends the place before the first one.
  const auto positional = static_cast<Py_ssize_t>(count & ~(size_t{1} << (8 * sizeof count - 1)));
  given = Ref(PyTuple_New(positional));
  for (Py_ssize_t i = 0; given && i < positional; ++i)
    PyTuple_SetItem(given.get(), i, Ref::borrow(args[i]).release());
  const Py_ssize_t more = names != nullptr ? PyTuple_Size(names) : 0;
  if (!given || more == 0) return bool(given);
  named = Ref(PyDict_New());
  for (Py_ssize_t i = 0; named && i < more; ++i)
    if (PyDict_SetItem(named.get(), PyTuple_GetItem(names, i), args[positional + i]) != 0)
      named = Ref();
  return bool(named);
}

}  // namespace opguard
