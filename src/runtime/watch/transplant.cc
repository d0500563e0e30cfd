// Puts bytes where the tensor's are, and then looks whether the program reads them there.
//
//   [4, 8] float32, the file's value alike     the bytes are put, row by row as it lies
//   it holds them already                      "same": nothing is touched
//   x.expand(4, 8)                             put, read back, unlike: the old bytes come back
//   a tensor over a mapped file                refused: the file would change
//   on a device                                torch's copy_ on `data`, which counts no version
//
// Counterexample: to trust the write. Elements that share memory, or are computed when they are
// read, hold something else than what was put, and the proof would be of nothing.
//
// /proc/self/maps says what may be written: memory that is read-only would end the program. The
// cost: the tensor is read three times and written once.
#include "runtime/watch/transplant.h"

#include <cinttypes>
#include <cstdio>
#include <memory>

#include "runtime/entries/collective.h"
#include "runtime/host/object.h"
#include "runtime/recorder/recorder.h"
#include "runtime/watch/capture.h"

namespace opguard {
namespace {

std::string dims(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t d = 0; d < shape.size(); ++d) text += (d ? ", " : "") + std::to_string(shape[d]);
  return text + "]";
}

// Writing to memory mapped from a file would change that file, or end the program.
std::string unwritable(uintptr_t low, uintptr_t high) {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> maps(std::fopen("/proc/self/maps", "re"),
                                                       std::fclose);
  if (!maps) return "the process's memory map cannot be read";
  char line[4400];
  uintptr_t covered = low;
  while (covered < high && std::fgets(line, sizeof line, maps.get())) {
    uintptr_t from = 0, to = 0;
    char access[5] = {}, path[2] = {};
    if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*s %*s %*s %1s", &from, &to, access,
                    path) < 3)
      continue;
    if (to <= covered || from > covered) continue;
    if (access[1] != 'w') return "its memory is read-only";
    std::string_view text(line);
    auto under = [&](const char* place) { return text.find(place) != text.npos; };
    // Shared between processes is as writable as any other; a file is the user's.
    if (access[3] == 's' && path[0] == '/' && !under(" /dev/shm/") && !under(" /memfd:") &&
        !under(" /dev/zero") && !under(" /SYSV"))
      return "its memory is a file's";
    covered = to;
  }
  return covered >= high ? "" : "its memory is not the process's own";
}

// Of a Python error, which is cleared: its message.
std::string said() {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  const Ref t(type), v(value), at(trace);
  Ref text(v ? PyObject_Str(v.get()) : nullptr);
  std::string what(text ? utf8(text.get()) : "torch has refused");
  PyErr_Clear();
  return what.substr(0, what.find('\n'));
}

// A tensor of the processor's, of the type and shape of `like`.
Ref made_of(const std::vector<unsigned char>& bytes, PyObject* like) {
  const Ref name(PyUnicode_FromString("torch"));
  const Ref torch(name ? PyImport_GetModule(name.get()) : nullptr);
  const Ref memory(PyByteArray_FromStringAndSize(reinterpret_cast<const char*>(bytes.data()),
                                                 static_cast<Py_ssize_t>(bytes.size())));
  if (!torch || !memory) return {};
  const Ref byte = attribute(torch.get(), "uint8"), dtype = attribute(like, "dtype"),
            shape = attribute(like, "shape");
  const Ref arguments(Py_BuildValue("(O)", memory.get())), keywords(PyDict_New());
  if (!byte || !dtype || !shape || !arguments || !keywords ||
      PyDict_SetItemString(keywords.get(), "dtype", byte.get()) < 0)
    return {};
  const Ref from = attribute(torch.get(), "frombuffer");
  const Ref flat(from ? PyObject_Call(from.get(), arguments.get(), keywords.get()) : nullptr);
  const Ref typed(flat ? PyObject_CallMethod(flat.get(), "view", "O", dtype.get()) : nullptr);
  return Ref(typed ? PyObject_CallMethod(typed.get(), "reshape", "O", shape.get()) : nullptr);
}

// The bytes of what the program reads there; waits for the device.
bool holds(const TorchApi& torch, PyObject* object, const std::vector<unsigned char>& bytes) {
  const TensorView there = view_tensor(torch, object);
  PyObject* plain = there.keep ? there.keep.get() : object;
  const Ref apart(PyObject_CallMethod(plain, "detach", nullptr));
  const Ref copy(apart ? PyObject_CallMethod(apart.get(), "cpu", nullptr) : nullptr);
  if (!copy) return false;
  const TensorView here = view_tensor(torch, copy.get());
  return here.readable && gather(here.elements) == bytes;
}

// On the device, by torch, on the stream that the thread works on. `data` shares the memory and
// counts no version.
std::string replace_on_device(const TorchApi& torch, PyObject* object, const TensorView& view,
                              const std::vector<unsigned char>& bytes, bool& same) {
  if (recorder().capturing())
    return "a graph is being captured, which would copy it at each replay";
  same = holds(torch, object, bytes);
  PyErr_Clear();
  if (same) return "";
  PyObject* plain = view.keep ? view.keep.get() : object;
  const Ref data = attribute(plain, "data");
  const Ref before(data ? PyObject_CallMethod(data.get(), "clone", nullptr) : nullptr);
  const Ref value = before ? made_of(bytes, data.get()) : Ref();
  const Ref done(value ? PyObject_CallMethod(data.get(), "copy_", "O", value.get()) : nullptr);
  if (!done) return said();
  if (holds(torch, object, bytes)) return "";
  PyErr_Clear();
  Ref restored(PyObject_CallMethod(data.get(), "copy_", "O", before.get()));
  PyErr_Clear();
  return "its elements share memory, or are computed when they are read";
}

bool bounds(const Elements& e, uintptr_t& low, uintptr_t& high) {
  low = reinterpret_cast<uintptr_t>(e.data);
  high = low + e.size;
  for (size_t d = 0; d < e.shape.size(); ++d) {
    if (e.shape[d] == 0) return false;
    const int64_t reach = (e.shape[d] - 1) * e.strides[d];
    (reach > 0 ? high : low) += static_cast<uintptr_t>(reach);
  }
  return true;
}

}  // namespace

std::string load_value(const Transplant& transplant, TransplantValue& value) {
  SafetensorsFile file;
  std::string error;
  if (!file.open(transplant.file, error)) return error;
  const Tensor* tensor = transplant_tensor(transplant, file, error);
  if (tensor == nullptr) return error;
  value.dtype = tensor->dtype;
  value.shape = tensor->shape;
  value.bytes.assign(tensor->data, tensor->data + tensor->size_bytes());
  return "";
}

std::string replace_value(const TorchApi* torch, PyObject* object, const TensorView& view,
                          const TransplantValue& value, bool& same) {
  Slot unused;
  same = true;
  if (!view.has_value()) return "its bytes on device " + view.meta.device + " cannot be reached";
  if (view.meta.dtype != value.dtype->name || view.elements.size != value.dtype->size_bytes)
    return "it is " + view.meta.dtype + ", the file's value is " + value.dtype->name;
  if (view.elements.shape != value.shape)
    return "its shape is " + dims(view.elements.shape) + ", the file's value has " +
           dims(value.shape);
  if (read_in_flight(view, unused)) return "a collective in flight is writing it";
  uintptr_t low = 0, high = 0;
  if (!bounds(view.elements, low, high)) return "";  // without elements: it is that value
  if (!view.readable) return replace_on_device(*torch, object, view, value.bytes, same);
  if (view.device == nullptr) {
    same = gather(view.elements) == value.bytes;
    if (same) return "";
  }
  if (Ref flags = is_numpy_array(object) ? attribute(object, "flags") : Ref(); flags)
    if (attribute(flags.get(), "writeable").get() != Py_True) return "the array is read-only";
  if (std::string why = unwritable(low, high); !why.empty()) return why;
  // The processor's own memory as a device's, which a plugin serves.
  if (view.device != nullptr) return replace_on_device(*torch, object, view, value.bytes, same);
  const std::vector<unsigned char> before = gather(view.elements);
  scatter(value.bytes, view.elements);
  // Is it what the program reads now? Not where elements share memory (an expanded view), nor where
  // what we see is a copy (a lazy conjugate).
  TensorView now;
  if (torch != nullptr && torch->is_tensor(object))
    now = view_tensor(*torch, object);
  else
    view_numpy(object, now);
  if (now.readable && gather(now.elements) == value.bytes) return "";
  scatter(before, view.elements);
  return "its elements share memory, or are computed when they are read";
}

bool holds_value(const TorchApi& torch, PyObject* object, const TransplantValue& value) {
  const TensorView view = view_tensor(torch, object);
  if (!view.has_value() || view.meta.dtype != value.dtype->name ||
      view.elements.size != value.dtype->size_bytes || view.elements.shape != value.shape)
    return false;
  // What a capture of the device's stream would record is not asked.
  if (!view.readable && recorder().capturing()) return false;
  Slot unused;
  if (read_in_flight(view, unused)) return false;
  const bool same = view.readable && view.device == nullptr ? gather(view.elements) == value.bytes
                                                            : holds(torch, object, value.bytes);
  PyErr_Clear();
  return same;
}

}  // namespace opguard
