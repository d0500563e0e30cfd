// runtime/recorder/python_fingerprint.h: the fingerprints as functions of the module.
#pragma once

#include "runtime/host/py.h"
#include "runtime/host/tensor_view.h"

namespace opguard {

// Threads that may read this tensor: as many as torch would use here, one for a small one. Call it
// with the GIL held.
unsigned threads_for(const TensorView& view);

// While it lives other threads of the program go on, unless the tensor is so small that taking the
// lock again would cost more.
class WhileReading {
 public:
  explicit WhileReading(const TensorView& view);
  WhileReading(const WhileReading&) = delete;
  WhileReading& operator=(const WhileReading&) = delete;
  ~WhileReading();

 private:
  PyThreadState* released_ = nullptr;
};

// fingerprint(x, kind="og1"), x a tensor or numpy array; None where it cannot be read:
//   "og1"              (h, m)
//   "xor32", "xor64"   int
//   "digest"           int or None
//   "all"              (h, m, flat, pattern or None, digest or None)
//   "sketch"           os1's 64 sums; None of what is not floating point
PyObject* fingerprint_of(PyObject* module, PyObject* args);

// lane_sums(name=None) -> the versions of the inner loops this processor can run, the best first.
// One that is given, or the best for "", is used from now on.
PyObject* lane_sums_of(PyObject* module, PyObject* args);

}  // namespace opguard
