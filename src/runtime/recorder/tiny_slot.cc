// A tensor of few numbers, where all that a slot says of it is in torch's struct and in one row of
// memory. An operator of two such costs about as much as its probe, so nothing is made on the way.
#include "runtime/entries/collective.h"
#include "runtime/fingerprint/fingerprint.h"
#include "runtime/recorder/recorder.h"
#include "runtime/recorder/sketches.h"

namespace opguard {
namespace {

// Its numbers one behind the other, all dimensions but the last 1; 0: not so.
int64_t numbers_in_a_row(const TensorFields& t) {
  const int64_t count = t.dims == 0 ? 1 : t.sizes[t.dims - 1];
  for (size_t d = 0; d + 1 < t.dims; ++d)
    if (t.sizes[d] != 1) return 0;
  return count == 1 || t.strides[t.dims - 1] == 1 ? count : 0;
}

// Types are objects that stay where they are, and few: each is found by its address.
const NumberType& number_type(const TensorType& type) {
  struct Known {
    const TensorType* type = nullptr;
    NumberType numbers;
  };
  static Known all[16];
  Known& known = all[reinterpret_cast<uintptr_t>(&type) / sizeof(TensorType) % 16];
  if (known.type != &type) known = {&type, NumberType(type.dtype, type.size)};
  return known.numbers;
}

}  // namespace

// The shape is ones and the count, so these two numbers stand for it.
uint32_t Recorder::meta_of_row(const TensorType& type, size_t dims, int64_t count) {
  const uint64_t hash =
      (static_cast<uint64_t>(count) << 8 ^ dims << 20 ^ type.code) * 0x9e3779b97f4a7c15u;
  KnownRow& known = known_rows_[hash >> 56];
  if (known.generation == generation_ && known.type == &type && known.dims == dims &&
      known.count == count)
    return known.index;
  Meta meta{std::string(type.dtype), "cpu", std::vector<int64_t>(dims, 1)};
  if (dims > 0) meta.shape.back() = count;
  known = {generation_, &type, dims, count, writer_->meta(meta)};
  return known.index;
}

// False, and nothing has been done: it goes the way of all tensors. So it does while a collective
// is in flight, where sketches are taken, and where a device reads memory of the processor.
bool Recorder::tiny_slot(const TensorFields& tensor, PyObject* object, std::string_view name,
                         Slot& slot) {
  const int64_t count = numbers_in_a_row(tensor);
  if (count <= 0 || tensor.data == nullptr || processor_device() != nullptr ||
      anything_in_flight() || sketches().on())
    return false;
  const uint64_t bytes = static_cast<uint64_t>(count) * tensor.type->size;
  Digest d;
  const NumberType& type = number_type(*tensor.type);
  if (bytes > kTinyBytes || !tiny_digest(tensor.data, bytes, tensor.type->size, type, d))
    return false;
  slot.name = string(name);
  slot.meta = meta_of_row(*tensor.type, tensor.dims, count);
  slot.version = tensor.version;
  // As of any tensor too small to be looked up: only mode full says where it lies.
  if (mode_ == Mode::full && tensor.counted) slot.storage = storages().place_of(object).number;
  slot.value = d.value;
  slot.flat = d.flat;
  slot.has_digest = true;
  slot.digest = *d.elements;
  slot.address = reinterpret_cast<uint64_t>(tensor.data);
  slot.size_bytes = bytes;
  return true;
}

}  // namespace opguard
