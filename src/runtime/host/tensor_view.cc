// Three ways to the same TensorView. Each speaks for what the one before it does not.
//
//   a plain tensor of the processor     torch's own struct (tensor_layout.h)
//   a plain tensor on cuda:0            DLPack's table, where torch has it
//   any other                           Python attributes: dtype, shape, stride(), data_ptr()
//
// A DTensor is its local shard, since that is what this rank computed. What is conjugated or
// negated lazily is resolved into a copy, which `keep` holds: the bytes in memory are not its
// values.
//
// Counterexample: a storage that was freed, as FSDP does, still has its shape. It is shown with
// that shape and as not readable; its address leads nowhere.
//
// Sizes that are symbolic are no int, and not asked: that would add a guard to the program's graph.
#include "runtime/host/tensor_view.h"

#include <cstdlib>
#include <unordered_map>

#include "runtime/host/object.h"

namespace opguard {
namespace {

bool is_true(PyObject* object, const char* name) {
  Ref value = attribute(object, name);
  return value.get() == Py_True;
}

bool take_ints(PyObject* tuple, std::vector<int64_t>& out) {
  if (tuple == nullptr || !PyTuple_Check(tuple)) {
    PyErr_Clear();
    return false;
  }
  Py_ssize_t n = PyTuple_Size(tuple);
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = PyTuple_GetItem(tuple, i);
    // A symbolic size is no int: asking for its value would add a guard to the program's graph.
    if (!PyLong_Check(item)) return false;
    out.push_back(PyLong_AsLongLong(item));
  }
  if (PyErr_Occurred()) {
    PyErr_Clear();
    return false;
  }
  return true;
}

// dtypes are few and live for ever, so their names are kept by address.
const std::string& dtype_name(PyObject* dtype) {
  static std::unordered_map<PyObject*, std::string> names;
  auto [it, fresh] = names.try_emplace(dtype);
  if (fresh) {
    Py_INCREF(dtype);
    Ref text(PyObject_Str(dtype));
    if (!text) PyErr_Clear();
    std::string_view name = utf8(text.get());
    if (name.starts_with("torch.")) name.remove_prefix(6);
    it->second = name;
  }
  return it->second;
}

std::string device_name(PyObject* tensor) {
  if (is_true(tensor, "is_cpu")) return "cpu";
  Ref device = attribute(tensor, "device");
  if (!device) return "";
  Ref text(PyObject_Str(device.get()));
  if (!text) PyErr_Clear();
  return std::string(utf8(text.get()));
}

// A functional collective's result: its tensor, once it has been waited for.
Ref awaited(PyObject* tensor) {
  Ref element;
  if (is_true(tensor, "completed")) element = attribute(tensor, "elem");
  return element;
}

// A subclass that answers operators itself has no bytes of its own to read.
bool has_own_dispatch(const TorchApi& torch, PyObject* tensor) {
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(tensor));
  if (type == torch.tensor_type || type == torch.parameter_type) return false;
  Ref dispatch = attribute(type, "__torch_dispatch__");
  return dispatch && dispatch.get() != torch.default_dispatch;
}

// Only of the quantized types: torch's own packed ones (float4_e2m1fn_x2, bits4x2) count bytes as
// their elements.
int64_t elements_a_byte(std::string_view dtype) {
  return dtype == "quint4x2" ? 2 : dtype == "quint2x4" ? 4 : 1;
}

uint64_t as_u64(PyObject* number) {
  if (number == nullptr) {
    PyErr_Clear();
    return 0;
  }
  unsigned long long v = PyLong_AsUnsignedLongLong(number);
  if (PyErr_Occurred()) PyErr_Clear();
  return v;
}

}  // namespace

uint64_t TensorView::span_bytes() const {
  uint64_t last = elements.size;
  for (size_t d = 0; d < elements.shape.size() && d < elements.strides.size(); ++d) {
    if (elements.shape[d] == 0) return 0;
    last += static_cast<uint64_t>(elements.shape[d] - 1) *
            static_cast<uint64_t>(std::abs(elements.strides[d]));
  }
  return last;
}

bool TensorView::in_memory_order() const {
  const Elements& e = elements;
  int64_t inner = e.size;  // bytes that one step of the dimension before must pass over
  for (size_t d = e.shape.size(); d-- > 0;) {
    if (e.shape[d] == 0) return true;
    if (e.shape[d] == 1) continue;
    if (e.strides[d] < inner) return false;
    inner = e.strides[d] * e.shape[d];
  }
  return true;
}

uint64_t TensorView::first_byte() const {
  int64_t before = 0;
  for (size_t d = 0; d < elements.shape.size() && d < elements.strides.size(); ++d)
    if (elements.strides[d] < 0 && elements.shape[d] > 1)
      before += (elements.shape[d] - 1) * elements.strides[d];
  return reinterpret_cast<uint64_t>(elements.data) + static_cast<uint64_t>(before);
}

void TensorView::clear() {
  meta.dtype.clear();
  meta.device.clear();
  meta.shape.clear();
  elements.data = nullptr;
  elements.size = 0;
  elements.shape.clear();
  elements.strides.clear();
  version = 0;
  readable = counted = false;
  dtype_code = 0;
  device = nullptr;
  device_index = dlpack_type = 0;
  object = nullptr;
  keep = Ref();
}

uint64_t TensorView::content_bytes() const {
  uint64_t bytes = elements.size;
  for (int64_t n : elements.shape) bytes *= static_cast<uint64_t>(n);
  return bytes;
}

uint32_t tensor_version(PyObject* tensor) {
  const TorchApi* torch = torch_api();
  if (torch != nullptr && torch->plain(tensor) && torch->version) {
    uint32_t counted = 0;
    if (torch->layout.version(tensor, counted)) return counted;
    if (const void* native = torch->native.tensor(tensor)) {
      torch->native.version(native, counted);
      return counted;
    }
    Ref version = torch->version(tensor);
    return static_cast<uint32_t>(as_u64(version.get()));
  }
  Ref version = attribute(tensor, "_version");
  return static_cast<uint32_t>(as_u64(version.get()));
}

namespace {

// torch's name; nullptr for a type that DLPack cannot tell from another, or that is read otherwise.
const char* dtype_of(const DlpackTensor& t) {
  if (t.lanes != 1) return nullptr;
  auto sized = [&](const char* of8, const char* of16, const char* of32, const char* of64) {
    return t.bits == 8    ? of8
           : t.bits == 16 ? of16
           : t.bits == 32 ? of32
           : t.bits == 64 ? of64
                          : nullptr;
  };
  switch (t.code) {
    case 0:
      return sized("int8", "int16", "int32", "int64");
    case 1:
      return sized("uint8", "uint16", "uint32", "uint64");
    case 2:
      return sized(nullptr, "float16", "float32", "float64");
    case 4:
      return sized(nullptr, "bfloat16", nullptr, nullptr);
    case 6:
      return sized("bool", nullptr, nullptr, nullptr);
  }
  return nullptr;
}

// torch's device type by DLPack's number; nullptr for those that have several names.
const char* device_type_of(int32_t dlpack_type) {
  switch (dlpack_type) {
    case 1:
      return "cpu";
    case 2:   // CUDA
    case 10:  // ROCm, which torch calls by the same name
      return "cuda";
    case 14:  // oneAPI
      return "xpu";
  }
  return nullptr;
}

// Where its elements are, once they are known: here, on a device that reads them, or out of reach.
void place_view(TensorView& view, std::string_view type) {
  bool empty = false;
  for (int64_t n : view.elements.shape) empty |= n == 0;
  const bool there = empty || view.elements.data != nullptr;
  if (type == "cpu") {
    view.readable = there;
    if (there && !empty) view.device = processor_device();
  } else if (there) {
    // Nothing to read is read anywhere, as long as somebody could.
    view.device = device_of_type(type);
    if (empty && view.device != nullptr) view.readable = true;
    if (empty) view.device = nullptr;
  }
}

bool negated(const TorchApi& torch, PyObject* tensor) {
  Ref answer = torch.is_neg(tensor);
  PyErr_Clear();
  return answer.get() != Py_False;
}

// The same where it can be read without a call.
bool view_fields(const TorchApi& torch, PyObject* tensor, TensorView& view) {
  TensorFields t;
  if (!torch.layout.read(tensor, t)) return false;
  const int64_t size = t.type->size;
  view.meta.dtype = t.type->dtype;
  view.meta.device = "cpu";
  view.meta.shape.assign(t.sizes, t.sizes + t.dims);
  view.dtype_code = t.type->code;
  view.dlpack_type = 1;
  view.elements.size = t.type->size;
  view.elements.shape.assign(t.sizes, t.sizes + t.dims);
  view.elements.strides.resize(t.dims);
  for (size_t d = 0; d < t.dims; ++d) view.elements.strides[d] = t.strides[d] * size;
  view.elements.data = t.data;
  view.version = t.version;
  view.counted = t.counted;
  view.readable = true;  // or empty
  if (t.data != nullptr) view.device = processor_device();
  return true;
}

// A plain tensor of numbers, nothing lazy about it. False: not that, and nothing is known.
bool view_plain(const TorchApi& torch, PyObject* tensor, TensorView& view) {
  DlpackTensor t;
  if (torch.dlpack->tensor_of(tensor, &t) != 0) {
    PyErr_Clear();
    return false;
  }
  const char* dtype = dtype_of(t);
  const char* device = device_type_of(t.device_type);
  if (dtype == nullptr || device == nullptr) return false;
  const bool processor = t.device_type == 1;
  const void* native = torch.native.tensor(tensor);
  if (native != nullptr ? torch.native.is_negated(native) : negated(torch, tensor)) return false;
  view.meta.dtype = dtype;
  view.meta.device = processor ? device : device + (":" + std::to_string(t.device_id));
  view.meta.shape.assign(t.shape, t.shape + t.ndim);
  view.dtype_code = static_cast<uint16_t>(t.code << 8 | t.bits);
  view.device_index = t.device_id;
  view.dlpack_type = t.device_type;
  view.elements.size = t.bits / 8;
  view.elements.shape.assign(t.shape, t.shape + t.ndim);
  view.elements.strides.resize(static_cast<size_t>(t.ndim));
  for (int32_t d = 0; d < t.ndim; ++d)
    view.elements.strides[static_cast<size_t>(d)] = t.strides[d] * view.elements.size;
  view.elements.data = t.data == nullptr ? nullptr : static_cast<char*>(t.data) + t.byte_offset;
  place_view(view, device);
  if (native != nullptr) {
    view.counted = torch.native.version(native, view.version);
    return true;
  }
  Ref version = torch.version(tensor);
  if (version) {
    view.version = static_cast<uint32_t>(as_u64(version.get()));
    view.counted = true;
  } else {
    PyErr_Clear();  // an inference tensor
  }
  return true;
}

}  // namespace

TensorView view_tensor(const TorchApi& torch, PyObject* tensor) {
  TensorView view;
  view_tensor(torch, tensor, view);
  return view;
}

void view_tensor(const TorchApi& torch, PyObject* tensor, TensorView& view) {
  view.clear();
  view.object = tensor;
  const bool plain = torch.plain(tensor);
  if (plain) bind_methods(tensor);
  if (plain && view_fields(torch, tensor, view)) return;
  if (plain && torch.dlpack != nullptr && view_plain(torch, tensor, view)) return;
  Ref dtype = attribute(tensor, "dtype");
  if (dtype) view.meta.dtype = dtype_name(dtype.get());
  view.meta.device = device_name(tensor);
  bool sized = take_ints(attribute(tensor, "shape").get(), view.meta.shape);
  Ref version = attribute(tensor, "_version");
  view.version = static_cast<uint32_t>(as_u64(version.get()));
  if (!sized) return;
  PyObject* source = tensor;
  if (has_own_dispatch(torch, tensor)) {
    // DTensor: this rank's shard is what this rank computed.
    Ref local = attribute(tensor, "_local_tensor");
    if (!local) local = awaited(tensor);
    if (local && has_own_dispatch(torch, local.get())) local = awaited(local.get());
    if (!local || !torch.is_tensor(local.get()) || has_own_dispatch(torch, local.get())) return;
    view.keep = local;
    source = local.get();
    view.meta.shape.clear();
    if (!take_ints(attribute(source, "shape").get(), view.meta.shape)) return;
  }
  const std::string type = view.meta.device.substr(0, view.meta.device.find(':'));
  if (type != "cpu") {
    if (device_of_type(type) == nullptr) return;
    const size_t colon = view.meta.device.find(':');
    if (colon != std::string::npos) view.device_index = std::atoi(&view.meta.device[colon + 1]);
    if (type == "cuda") view.dlpack_type = 2;
  }
  if (attribute(source, "layout").get() != torch.strided) return;
  // Lazily conjugated or negated: the bytes in memory are not the values.
  if ((view.meta.dtype.starts_with("complex") && says_true(source, "is_conj")) ||
      says_true(source, "is_neg")) {
    Ref plain(PyObject_CallMethod(source, "detach", nullptr));
    for (const char* resolve : {"resolve_conj", "resolve_neg"})
      if (plain) plain = Ref(PyObject_CallMethod(plain.get(), resolve, nullptr));
    if (!plain) {
      PyErr_Clear();
      return;
    }
    view.keep = plain;
    source = plain.get();
  }
  Ref size(PyObject_CallMethod(source, "element_size", nullptr));
  view.elements.size = static_cast<uint32_t>(as_u64(size.get()));
  view.elements.shape = view.meta.shape;
  Ref strides(PyObject_CallMethod(source, "stride", nullptr));
  if (!strides) PyErr_Clear();
  if (view.elements.size == 0 || view.elements.size > 16 ||
      !take_ints(strides.get(), view.elements.strides) ||
      view.elements.strides.size() != view.elements.shape.size())
    return;
  // Several elements a byte, each row its own bytes: the bytes are the elements. A last byte that
  // is not full is not written, and such a tensor has no views.
  if (int64_t packed = elements_a_byte(view.meta.dtype); packed > 1) {
    std::vector<int64_t>& shape = view.elements.shape;
    if (shape.empty() || shape.back() % packed != 0) return;
    shape.back() /= packed;
    int64_t step = 1;
    for (size_t d = shape.size(); d-- > 0; step *= shape[d]) view.elements.strides[d] = step;
  }
  for (int64_t& stride : view.elements.strides) stride *= view.elements.size;
  Ref pointer(PyObject_CallMethod(source, "data_ptr", nullptr));
  if (!pointer) {  // functorch and other wrappers have none
    PyErr_Clear();
    return;
  }
  view.elements.data = reinterpret_cast<const void*>(as_u64(pointer.get()));
  // A freed storage (resized to nothing, as FSDP does) still has its shape.
  place_view(view, type);
  view.counted = plain && version && !view.keep;
  return;
}

bool view_numpy(PyObject* array, TensorView& view) {
  Ref interface = attribute(array, "__array_interface__");
  if (!interface || !PyDict_Check(interface.get())) return false;
  PyObject* kind = PyDict_GetItemString(interface.get(), "typestr");
  PyObject* data = PyDict_GetItemString(interface.get(), "data");
  PyObject* shape = PyDict_GetItemString(interface.get(), "shape");
  PyObject* strides = PyDict_GetItemString(interface.get(), "strides");
  std::string_view code = utf8(kind);  // "<f4"
  if (code.size() < 3 || code[0] == '>' || data == nullptr || !PyTuple_Check(data)) return false;
  std::string bytes(code.substr(2));
  uint64_t size = std::strtoull(bytes.c_str(), nullptr, 10);
  if (size == 0 || size > 16 || !take_ints(shape, view.elements.shape)) return false;
  const char* name = nullptr;
  switch (code[1]) {
    case 'f':
      name = "float";
      break;
    case 'i':
      name = "int";
      break;
    case 'u':
      name = "uint";
      break;
    case 'c':
      name = "complex";
      break;
    case 'b':
      name = "bool";
      break;
    default:
      return false;
  }
  // torch's names, so that an array and the tensor made of it are one value.
  view.meta.dtype = code[1] == 'b' ? name : name + std::to_string(size * 8);
  view.meta.device = "cpu";
  view.meta.shape = view.elements.shape;
  view.elements.size = static_cast<uint32_t>(size);
  view.elements.data = reinterpret_cast<const void*>(as_u64(PyTuple_GetItem(data, 0)));
  if (strides != nullptr && strides != Py_None) {
    if (!take_ints(strides, view.elements.strides)) return false;
  } else {
    int64_t step = static_cast<int64_t>(size);
    view.elements.strides.resize(view.elements.shape.size());
    for (size_t d = view.elements.shape.size(); d-- > 0;) {
      view.elements.strides[d] = step;
      step *= view.elements.shape[d];
    }
  }
  view.readable = true;
  return view.elements.strides.size() == view.elements.shape.size();
}

}  // namespace opguard
