// Each kind in one pass, with as many threads as torch would use. Other threads of the program run
// meanwhile where that is worth two changes of the lock.
#include "runtime/recorder/python_fingerprint.h"

#include <optional>
#include <string_view>

#include "runtime/fingerprint/fingerprint.h"
#include "runtime/fingerprint/lane_sums.h"
#include "runtime/fingerprint/mask.h"
#include "runtime/fingerprint/sketch.h"
#include "runtime/fingerprint/xor.h"
#include "runtime/recorder/recorder.h"

namespace opguard {
namespace {

PyObject* number(uint64_t x) { return PyLong_FromUnsignedLongLong(x); }

// The 64 sums as floats.
PyObject* tuple_of(const Sketch& sketch) {
  Ref sums(PyList_New(0));
  for (const double y : sketch.sums) {
    Ref item(PyFloat_FromDouble(y));
    if (!sums || !item || PyList_Append(sums.get(), item.get()) < 0) return nullptr;
  }
  return PyList_AsTuple(sums.get());
}

// None of what is not floating point.
PyObject* sketch_sums(const TensorView& view, unsigned threads) {
  const FloatType type = float_type(view.meta.dtype);
  if (type == FloatType::none) Py_RETURN_NONE;
  Sketch found;
  {
    WhileReading reading(view);
    found = sketch(view.elements, type, nullptr, threads);
  }
  return tuple_of(found);
}

// (h, m, flat, pattern or None, digest or None).
PyObject* tuple_of(const Digest& d) {
  PyObject* sum = d.elements ? number(*d.elements) : Ref::borrow(Py_None).release();
  PyObject* pattern = d.pattern ? number(*d.pattern) : Ref::borrow(Py_None).release();
  return Py_BuildValue("KKKNN", static_cast<unsigned long long>(d.value.h),
                       static_cast<unsigned long long>(d.value.m),
                       static_cast<unsigned long long>(d.flat), pattern, sum);
}

// What mode `sketch` records, in one pass: the tuples of `all` and of `sketch`.
PyObject* record_of(const TensorView& view, unsigned threads) {
  const NumberType type(view.meta.dtype, view.elements.size);
  Digest d;
  Sketch found;
  {
    WhileReading reading(view);
    d = digest_and_sketch(view.elements, type, type.mask, threads, found);
  }
  return Py_BuildValue(
      "NN", tuple_of(d),
      type.mask == FloatType::none ? Ref::borrow(Py_None).release() : tuple_of(found));
}

}  // namespace

unsigned threads_for(const TensorView& view) {
  if (view.content_bytes() < kParallelBytes) return 1;
  // Asked each time: the count is the calling thread's, and the program may change it.
  Ref name(PyUnicode_FromString("torch"));
  Ref torch(name ? PyImport_GetModule(name.get()) : nullptr);
  Ref count(torch ? PyObject_CallMethod(torch.get(), "get_num_threads", nullptr) : nullptr);
  const long threads = count ? PyLong_AsLong(count.get()) : 1;
  if (PyErr_Occurred()) PyErr_Clear();
  return threads < 1 ? 1 : threads > 256 ? 256 : static_cast<unsigned>(threads);
}

WhileReading::WhileReading(const TensorView& view) {
  constexpr uint64_t kWorthReleasing = 64 << 10;  // some microseconds of reading
  if (view.content_bytes() >= kWorthReleasing && Py_IsInitialized())
    released_ = PyEval_SaveThread();
}

WhileReading::~WhileReading() {
  if (released_ != nullptr) PyEval_RestoreThread(released_);
}

PyObject* fingerprint_of(PyObject*, PyObject* args) {
  PyObject* value = nullptr;
  const char* name = "og1";
  if (!PyArg_ParseTuple(args, "O|s", &value, &name)) return nullptr;
  const std::string_view kind = name;
  if (kind != "og1" && kind != "xor32" && kind != "xor64" && kind != "digest" && kind != "all" &&
      kind != "sketch" && kind != "record") {
    PyErr_SetString(PyExc_ValueError, "kind is og1, digest, xor32, xor64, all, sketch or record");
    return nullptr;
  }
  OwnWork work;
  TensorView view;
  if (work.torch() != nullptr && work.torch()->is_tensor(value))
    view = view_tensor(*work.torch(), value);
  else
    view.readable = view_numpy(value, view);
  PyErr_Clear();
  if (!view.readable) Py_RETURN_NONE;
  const unsigned threads = threads_for(view);
  const Elements& elements = view.elements;
  if (kind == "sketch") return sketch_sums(view, threads);
  if (kind == "record") return record_of(view, threads);
  if (kind.starts_with("xor")) {
    uint64_t x;
    {
      WhileReading reading(view);
      x = kind == "xor64" ? xor64(elements, threads) : xor32(elements, threads);
    }
    return number(x);
  }
  Digest d;
  {
    WhileReading reading(view);
    if (kind == "all" || kind == "digest")
      d = digest(elements, view.meta.dtype, threads);
    else
      d.value = fingerprint(elements, nullptr, threads);
  }
  if (kind == "og1")
    return Py_BuildValue("KK", static_cast<unsigned long long>(d.value.h),
                         static_cast<unsigned long long>(d.value.m));
  if (kind == "digest") return d.elements ? number(*d.elements) : Ref::borrow(Py_None).release();
  return tuple_of(d);
}

PyObject* lane_sums_of(PyObject*, PyObject* args) {
  const char* name = nullptr;
  if (!PyArg_ParseTuple(args, "|s", &name)) return nullptr;
  if (name != nullptr && !choose_lane_sums(name)) {
    PyErr_Format(PyExc_ValueError, "this processor has no %s", name);
    return nullptr;
  }
  Ref names(PyList_New(0));
  for (const LaneSums* sums : lane_sums_here()) {
    Ref text(PyUnicode_FromString(sums->name));
    if (!names || !text || PyList_Append(names.get(), text.get()) < 0) return nullptr;
  }
  return PyList_AsTuple(names.get());
}

}  // namespace opguard
