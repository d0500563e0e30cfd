// Finds where torch's struct keeps its fields, by tensors of which the answers are known.
//
//   sizes      a tensor whose sizes and strides are all unlike: the words that hold just these
//   type       one tensor of each dtype: the two bytes that are unlike in all of them
//   storage    the word that is untyped_storage()._cdata
//   version    two tensors of one counter, a third of another: equal in two, unlike in the third
//
// A field must be found in exactly one place. Counterexample: an offset of 0 would be found
// wherever a word is 0. So that tensor has an offset that nothing else in it is.
//
// Then 64 tensors of the program are compared with what Python says of them, and one answer that
// differs turns it off for good. The search looks at no more bytes than such a struct has in any
// torch.
//
// The cost: the search and the comparisons once. Then some ten loads a tensor, and no call.
#include "runtime/host/tensor_layout.h"

#include <cstring>
#include <optional>
#include <vector>

#include "runtime/host/object.h"

namespace opguard {
namespace {

// From torch 2.1 to 2.13 a TensorImpl has 176 to 192 bytes. Of these 184 are its own wherever it
// lies: an allocation has no smaller size. A StorageImpl has 88 or more, a version counter 24 or
// 32.
constexpr int kImplBytes = 184, kStorageBytes = 88, kCounterBytes = 28;
constexpr size_t kInline = 5;  // dimensions kept within the struct
constexpr int kSizesBytes = 8 + 8 * 2 * static_cast<int>(kInline);

constexpr TensorType kReadable[] = {
    {"float32", 2 << 8 | 32, 4}, {"bfloat16", 4 << 8 | 16, 2}, {"float16", 2 << 8 | 16, 2},
    {"float64", 2 << 8 | 64, 8}, {"int64", 0 << 8 | 64, 8},    {"int32", 0 << 8 | 32, 4},
    {"int16", 0 << 8 | 16, 2},   {"int8", 0 << 8 | 8, 1},      {"uint8", 1 << 8 | 8, 1},
    {"uint16", 1 << 8 | 16, 2},  {"uint32", 1 << 8 | 32, 4},   {"uint64", 1 << 8 | 64, 8},
    {"bool", 6 << 8 | 8, 1},
};

template <typename T>
T at(const char* struct_, int offset) {
  T value;
  std::memcpy(&value, struct_ + offset, sizeof value);
  return value;
}

uint64_t word(const char* struct_, int offset) { return at<uint64_t>(struct_, offset); }

std::optional<std::vector<int64_t>> numbers(PyObject* tuple) {
  if (tuple == nullptr || !PyTuple_Check(tuple)) return {};
  std::vector<int64_t> all;
  for (Py_ssize_t i = 0, n = PyTuple_Size(tuple); i < n; ++i) {
    const auto value = number(PyTuple_GetItem(tuple, i));
    if (!value) return {};
    all.push_back(static_cast<int64_t>(*value));
  }
  return all;
}

PyObject* entry(PyObject* probes, const char* name) {
  return PyDict_Check(probes) ? PyDict_GetItemString(probes, name) : nullptr;
}

// The one offset of `bytes` bytes for which `fits` holds; -1: none, or more than one.
template <typename Fits>
int only(int bytes, int step, Fits fits) {
  int found = -1;
  for (int k = 0; k + step <= bytes; k += step) {
    if (!fits(k)) continue;
    if (found >= 0) return -1;
    found = k;
  }
  return found;
}

const TensorType* type_named(std::string_view name) {
  for (const TensorType& type : kReadable)
    if (type.dtype == name) return &type;
  return nullptr;
}

std::string dtype_of(PyObject* tensor) {
  Ref dtype = attribute(tensor, "dtype");
  Ref text(dtype ? PyObject_Str(dtype.get()) : nullptr);
  if (!text) PyErr_Clear();
  std::string_view name = utf8(text.get());
  if (name.starts_with("torch.")) name.remove_prefix(6);
  return std::string(name);
}

}  // namespace

const char* TensorLayout::impl_of(PyObject* plain) const {
  const char* object = reinterpret_cast<const char*>(plain);
  if (owned_at_ >= 0 && object[owned_at_] != 0) return nullptr;  // MaybeOwned, borrowed
  return at<const char*>(object, static_cast<int>(object_at_));
}

bool TensorLayout::ordinary(const char* impl) const {
  if (impl == nullptr || word(impl, 0) != class_) return false;
  const uint64_t keys = word(impl, keys_);
  for (uint64_t known : known_keys_)
    if (known == keys && known != 0) return true;
  return false;
}

bool TensorLayout::look(PyObject* plain, TensorFields& out) const {
  const char* impl = impl_of(plain);
  if (!ordinary(impl)) return false;
  const auto type = at<uint16_t>(impl, type_);
  out.type = type < kTypes ? types_[type] : nullptr;
  if (out.type == nullptr) return false;
  const char* storage = at<const char*>(impl, storage_);
  if (storage == nullptr) return false;
  for (int check : checks_)
    if (check >= 0 && storage[check] != 0) return false;
  out.storage = storage;
  out.dims = at<size_t>(impl, sizes_);
  if (out.dims <= kInline) {
    out.sizes = reinterpret_cast<const int64_t*>(impl + sizes_ + 8);
    out.strides = out.sizes + kInline;
  } else {
    out.sizes = at<const int64_t*>(impl, sizes_ + 8);
    out.strides = out.sizes + out.dims;
  }
  const char* data = at<const char*>(storage, data_);
  if (at<int64_t>(impl, numel_) == 0)
    out.data = nullptr;
  else if (data == nullptr)
    return false;  // freed, or not made yet
  else
    out.data = data + at<int64_t>(impl, offset_) * out.type->size;
  const char* counter = at<const char*>(impl, version_);
  out.counted = counter != nullptr;
  out.version = out.counted ? at<uint32_t>(counter, count_) : 0;
  out.outside_autograd = word(impl, autograd_) == 0;
  return true;
}

bool TensorLayout::version(PyObject* plain, uint32_t& out) const {
  if (!trusted_) return false;
  const char* impl = impl_of(plain);
  if (!ordinary(impl)) return false;
  const char* counter = at<const char*>(impl, version_);
  out = counter != nullptr ? at<uint32_t>(counter, count_) : 0;
  return true;
}

bool TensorLayout::outside_autograd(PyObject* plain, bool& out) const {
  if (!trusted_) return false;
  const char* impl = impl_of(plain);
  if (!ordinary(impl)) return false;
  out = word(impl, autograd_) == 0;
  return true;
}

const void* TensorLayout::storage(PyObject* plain) const {
  if (!trusted_) return nullptr;
  const char* impl = impl_of(plain);
  return ordinary(impl) ? at<const void*>(impl, storage_) : nullptr;
}

const void* TensorLayout::counter(PyObject* plain) const {
  if (!trusted_) return nullptr;
  const char* impl = impl_of(plain);
  return ordinary(impl) ? at<const void*>(impl, version_) : nullptr;
}

// --- comparing

// What Python says of a tensor that is ordinary by its struct; true of any other.
bool TensorLayout::agrees(PyObject* plain) const {
  const auto impl = number(plain, "_cdata");
  const auto shape = numbers(attribute(plain, "shape").get());
  const auto strides = numbers(answer(plain, "stride").get());
  const auto inference = answer(plain, "is_inference");
  const auto counted =
      inference.get() == Py_True ? std::optional<uint64_t>(0) : number(plain, "_version");
  const Ref node = attribute(plain, "grad_fn"), wanted = attribute(plain, "requires_grad"),
            here = attribute(plain, "is_cpu");
  const bool lazy =
      answer(plain, "is_neg").get() != Py_False || answer(plain, "is_conj").get() != Py_False;
  const std::string dtype = dtype_of(plain);
  const Ref storage = answer(plain, "untyped_storage");
  const auto block = storage ? number(storage.get(), "_cdata") : std::nullopt;
  const auto data = number(answer(plain, "data_ptr").get());
  // From here on nothing is asked: nothing may change meanwhile.
  const char* struct_ = impl_of(plain);
  if (struct_ == nullptr) return true;
  if (!impl || *impl != reinterpret_cast<uint64_t>(struct_)) return false;
  TensorFields fields;
  if (!look(plain, fields)) return true;
  const bool outside = node.get() == Py_None && wanted.get() == Py_False;
  return shape && strides && counted && block && data && !lazy && here.get() == Py_True &&
         inference.get() == (fields.counted ? Py_False : Py_True) && fields.type->dtype == dtype &&
         fields.dims == shape->size() && fields.dims == strides->size() &&
         std::memcmp(fields.sizes, shape->data(), fields.dims * 8) == 0 &&
         std::memcmp(fields.strides, strides->data(), fields.dims * 8) == 0 &&
         *block == reinterpret_cast<uint64_t>(fields.storage) &&
         *data == reinterpret_cast<uint64_t>(fields.data) && *counted == fields.version &&
         (!fields.outside_autograd || outside);
}

// Python is asked first, and lets other threads in meanwhile: they compare tensors of their own.
void TensorLayout::check(PyObject* plain) {
  const bool same = agrees(plain);
  if (left_ <= 0) return;
  if (!same) return distrust();
  trusted_ = --left_ == 0;
}

// --- finding

// The one place in the struct, outside of the sizes (whose unused ones are never written), for
// which `fits` holds. Where there is none, or more than one: -1.
template <typename Fits>
int TensorLayout::field(int step, Fits fits) const {
  return only(type_ >= 0 ? type_ : kImplBytes, step,
              [&](int k) { return (k < sizes_ || k >= sizes_ + kSizesBytes) && fits(k); });
}

// Behind the object's header: the pointer, or MaybeOwned's flag and then the pointer.
bool TensorLayout::find_object(PyObject* tensor) {
  const auto impl = number(tensor, "_cdata");
  const auto size = number(reinterpret_cast<PyObject*>(Py_TYPE(tensor)), "__basicsize__");
  if (!impl || !size || *impl == 0) return false;
  const auto first = static_cast<Py_ssize_t>(sizeof(PyObject));
  for (Py_ssize_t place : {first, first + Py_ssize_t{8}}) {
    if (static_cast<uint64_t>(place) + 8 > *size) break;
    if (word(reinterpret_cast<const char*>(tensor), static_cast<int>(place)) != *impl) continue;
    object_at_ = place;
    owned_at_ = place == first ? -1 : first;
    class_ = word(impl_of(tensor) == nullptr ? "\0\0\0\0\0\0\0" : impl_of(tensor), 0);
    return class_ != 0;
  }
  return false;
}

// types: a list of tensors of one shape, one of each type there is.
bool TensorLayout::find_types(PyObject* probes) {
  PyObject* list = entry(probes, "types");
  if (list == nullptr || !PyList_Check(list) || PyList_Size(list) < 8) return false;
  const Py_ssize_t count = PyList_Size(list);
  std::vector<const char*> impls;
  for (Py_ssize_t i = 0; i < count; ++i) impls.push_back(impl_of(PyList_GetItem(list, i)));
  for (const char* impl : impls)
    if (impl == nullptr) return false;
  type_ = field(2, [&](int k) {
    bool seen[kTypes] = {};
    for (const char* impl : impls) {
      const auto number = at<uint16_t>(impl, k);
      if (number >= kTypes || std::exchange(seen[number], true)) return false;
    }
    return true;
  });
  if (type_ < 0) return false;
  for (Py_ssize_t i = 0; i < count; ++i)
    types_[at<uint16_t>(impls[static_cast<size_t>(i)], type_)] =
        type_named(dtype_of(PyList_GetItem(list, i)));
  return true;
}

// strided: a tensor none of whose sizes, strides, elements and offset is another one's.
bool TensorLayout::find_sizes(PyObject* probes) {
  PyObject* strided = entry(probes, "strided");
  if (strided == nullptr) return false;
  const char* impl = impl_of(strided);
  const auto shape = numbers(attribute(strided, "shape").get());
  const auto strides = numbers(answer(strided, "stride").get());
  const auto offset = number(answer(strided, "storage_offset").get());
  const auto elements = number(answer(strided, "numel").get());
  if (!shape || !strides || !offset || !elements || shape->size() != 3 || impl == nullptr)
    return false;
  sizes_ = only(kImplBytes - kSizesBytes, 8, [&](int k) {
    return word(impl, k) == 3 && std::memcmp(impl + k + 8, shape->data(), 24) == 0 &&
           std::memcmp(impl + k + 8 + 8 * kInline, strides->data(), 24) == 0;
  });
  if (sizes_ < 0 || !find_types(probes)) return false;
  offset_ = field(8, [&](int k) { return word(impl, k) == *offset; });
  numel_ = field(8, [&](int k) { return word(impl, k) == *elements; });
  return offset_ >= 0 && numel_ >= 0;
}

// foreign: a tensor over another object's memory, so that its context is not its address.
bool TensorLayout::find_storage(PyObject* probes) {
  PyObject* foreign = entry(probes, "foreign");
  if (foreign == nullptr) return false;
  const char* impl = impl_of(foreign);
  const Ref storage = answer(foreign, "untyped_storage");
  const auto block = storage ? number(storage.get(), "_cdata") : std::nullopt;
  const auto data = storage ? number(answer(storage.get(), "data_ptr").get()) : std::nullopt;
  if (impl == nullptr || !block || !data || *block == 0 || *data == 0) return false;
  storage_ = field(8, [&](int k) { return word(impl, k) == *block; });
  if (storage_ < 0) return false;
  const char* struct_ = at<const char*>(impl, storage_);
  data_ = only(kStorageBytes, 8, [&](int k) { return word(struct_, k) == *data; });
  return data_ >= 0;
}

// `written` and `shared` are two tensors of one version counter, `other` is one of another version.
// `plain` is never followed: only what the two have in common and nothing else has.
bool TensorLayout::find_version(PyObject* probes) {
  PyObject *written = entry(probes, "written"), *shared = entry(probes, "shared"),
           *other = entry(probes, "other");
  if (written == nullptr || shared == nullptr || other == nullptr) return false;
  const char *a = impl_of(written), *b = impl_of(shared), *c = impl_of(other);
  const auto of_a = number(written, "_version"), of_c = number(other, "_version");
  if (a == nullptr || b == nullptr || c == nullptr || !of_a || !of_c || *of_a == *of_c)
    return false;
  version_ = field(8, [&](int k) {
    return k != storage_ && word(a, k) == word(b, k) && word(a, k) != word(c, k) &&
           word(a, k) != 0 && word(c, k) != 0 && word(a, k) % 8 == 0 && word(c, k) % 8 == 0;
  });
  if (version_ < 0) return false;
  const char *counter = at<const char*>(a, version_), *another = at<const char*>(c, version_);
  count_ = only(kCounterBytes, 4, [&](int k) {
    return at<uint32_t>(counter, k) == *of_a && at<uint32_t>(another, k) == *of_c;
  });
  return count_ >= 0;
}

// other and leaf: of one shape, without and with requires_grad.
bool TensorLayout::find_autograd(PyObject* probes) {
  PyObject *other = entry(probes, "other"), *leaf = entry(probes, "leaf");
  if (other == nullptr || leaf == nullptr) return false;
  const char *a = impl_of(other), *b = impl_of(leaf);
  if (a == nullptr || b == nullptr) return false;
  autograd_ = field(8, [&](int k) { return word(a, k) == 0 && word(b, k) != 0; });
  return autograd_ >= 0;
}

// keys: {"other": .., "inference": .., "negated": ..}, torch's number of their dispatch keys, each
// a part of the next but one's; empty where this torch does not tell. Those of `ordinary` are known
// from here on.
bool TensorLayout::find_keys(PyObject* probes) {
  PyObject *told = entry(probes, "keys"), *known = entry(probes, "ordinary");
  if (told == nullptr || known == nullptr || !PyDict_Check(told) || !PyList_Check(known))
    return false;
  const char* impls[3];
  std::optional<uint64_t> keys[3];
  for (size_t i = 0; i < 3; ++i) {
    constexpr const char* kNames[] = {"inference", "other", "negated"};
    PyObject* tensor = entry(probes, kNames[i]);
    impls[i] = tensor != nullptr ? impl_of(tensor) : nullptr;
    if (impls[i] == nullptr) return false;
    if (PyObject* number_of = PyDict_GetItemString(told, kNames[i])) keys[i] = number(number_of);
  }
  // An inference tensor lacks keys of an ordinary one, which lacks the one that says "negated".
  // The struct's last field, behind type, device and flags, which share eight bytes.
  keys_ = (type_ & ~7) + 8;
  const uint64_t fewer = word(impls[0], keys_), usual = word(impls[1], keys_),
                 more = word(impls[2], keys_);
  for (size_t i = 0; i < 3; ++i)
    if (keys[i] && *keys[i] != word(impls[i], keys_)) return false;
  if (fewer == 0 || fewer == usual || (fewer & usual) != fewer || usual == more ||
      (usual & more) != usual)
    return false;
  const Py_ssize_t count = PyList_Size(known);
  if (count == 0 || static_cast<size_t>(count) > kKeys) return false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    const char* impl = impl_of(PyList_GetItem(known, i));
    if (impl == nullptr || word(impl, 0) != class_) return false;
    known_keys_[i] = word(impl, keys_);
  }
  return true;
}

// `checked` is None where torch has no such thing, or a tensor whose storage says of each access to
// it. Its bytes that are then 1, and 0 in all the others' storages, tell such storages apart.
bool TensorLayout::find_checks(PyObject* probes) {
  PyObject *checked = entry(probes, "checked"), *all = entry(probes, "all");
  if (checked == nullptr || all == nullptr || !PyList_Check(all)) return false;
  if (checked == Py_None) return true;
  const char* impl = impl_of(checked);
  if (impl == nullptr) return false;
  const char* storage = at<const char*>(impl, storage_);
  std::vector<const char*> others;
  for (Py_ssize_t i = 0; i < PyList_Size(all); ++i)
    if (const char* other = impl_of(PyList_GetItem(all, i)); ordinary(other))
      others.push_back(at<const char*>(other, storage_));
  size_t found = 0;
  for (int k = data_ + 8; k < kStorageBytes; ++k) {
    bool tells = storage[k] == 1;
    for (const char* other : others) tells = tells && other[k] == 0;
    if (!tells) continue;
    if (found == kChecks) return false;
    checks_[found++] = k;
  }
  return found > 0;
}

bool TensorLayout::find(PyObject* probes) {
  distrust();
  PyObject* other = probes != nullptr ? entry(probes, "other") : nullptr;
  if (other == nullptr) return false;
  bool found = find_object(other) && find_sizes(probes) && find_storage(probes) &&
               find_version(probes) && find_autograd(probes) && find_keys(probes) &&
               find_checks(probes);
  // What was found by some must be so of all.
  PyObject* all = entry(probes, "all");
  found = found && all != nullptr && PyList_Check(all) && PyList_Size(all) > 0;
  for (Py_ssize_t i = 0; found && i < PyList_Size(all); ++i) found = agrees(PyList_GetItem(all, i));
  // The ordinary ones, at least, it must be able to read, and know of autograd that it is not
  // there.
  PyObject *known = entry(probes, "ordinary"), *leaf = entry(probes, "leaf");
  for (Py_ssize_t i = 0; found && i < PyList_Size(known); ++i) {
    TensorFields fields;
    found = look(PyList_GetItem(known, i), fields) && fields.outside_autograd;
  }
  TensorFields fields;
  found = found && look(leaf, fields) && !fields.outside_autograd;
  if (!found) {
    distrust();
    return false;
  }
  left_ = kCompared;
  return true;
}

int64_t TensorLayout::offset(std::string_view field) const {
  const std::pair<std::string_view, int64_t> all[] = {
      {"object", object_at_},  {"sizes", sizes_},     {"storage_offset", offset_},
      {"numel", numel_},       {"type", type_},       {"storage", storage_},
      {"autograd", autograd_}, {"version", version_}, {"keys", keys_},
      {"data", data_},         {"count", count_},     {"check", checks_[0]}};
  for (const auto& [name, value] : all)
    if (name == field) return value;
  return -1;
}

}  // namespace opguard
