#include "runtime/transplant.h"

#include <cinttypes>
#include <cstdio>
#include <memory>

#include "runtime/capture.h"
#include "runtime/collective.h"
#include "runtime/object.h"

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
                          const TransplantValue& value) {
  Slot unused;
  if (!view.readable) return "its bytes on device " + view.meta.device + " cannot be reached";
  if (view.meta.dtype != value.dtype->name || view.elements.size != value.dtype->size_bytes)
    return "it is " + view.meta.dtype + ", the file's value is " + value.dtype->name;
  if (view.elements.shape != value.shape)
    return "its shape is " + dims(view.elements.shape) + ", the file's value has " +
           dims(value.shape);
  if (read_in_flight(view, unused)) return "a collective in flight is writing it";
  uintptr_t low = 0, high = 0;
  if (!bounds(view.elements, low, high)) return "";  // without elements: it is that value
  if (Ref flags = is_numpy_array(object) ? attribute(object, "flags") : Ref(); flags)
    if (attribute(flags.get(), "writeable").get() != Py_True) return "the array is read-only";
  if (std::string why = unwritable(low, high); !why.empty()) return why;
  std::vector<unsigned char> before = gather(view.elements);
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

}  // namespace opguard
