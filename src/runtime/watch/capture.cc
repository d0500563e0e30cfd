// A tensor's bytes in logical order, gathered from wherever they lie, and scattered back into it.
//
//   x.t() of float32 [2, 3]     pieces of 4 bytes, six of them
//   contiguous [2, 3]           one piece of 24 bytes
//
// Pieces are as long as trailing dimensions lie together. A name that is there already gets a
// number behind it: "out/out0~2".
#include "runtime/watch/capture.h"

#include <cctype>
#include <cstring>

#include "runtime/entries/collective.h"

namespace opguard {
namespace {

// f(place in memory, offset among the gathered bytes, bytes) for each piece contiguous in both.
template <typename F>
void each_piece(const Elements& e, F f) {
  uint64_t count = 1;
  for (int64_t n : e.shape) count *= static_cast<uint64_t>(n);
  if (count == 0) return;
  // Trailing dims that lie as the gathered ones do are one piece.
  size_t rank = e.shape.size();
  uint64_t piece = e.size;
  while (rank > 0 &&
         (e.shape[rank - 1] == 1 || e.strides[rank - 1] == static_cast<int64_t>(piece))) {
    piece *= static_cast<uint64_t>(e.shape[rank - 1]);
    --rank;
  }
  std::vector<int64_t> index(rank);
  auto* at = static_cast<unsigned char*>(const_cast<void*>(e.data));
  for (uint64_t offset = 0, total = count * e.size; offset < total; offset += piece) {
    f(at, offset, piece);
    for (size_t d = rank; d-- > 0;) {
      at += e.strides[d];
      if (++index[d] < e.shape[d]) break;
      at -= e.strides[d] * e.shape[d];
      index[d] = 0;
    }
  }
}

}  // namespace

std::vector<unsigned char> gather(const Elements& elements) {
  uint64_t size = elements.size;
  for (int64_t n : elements.shape) size *= static_cast<uint64_t>(n);
  std::vector<unsigned char> bytes(size);
  each_piece(elements, [&](unsigned char* at, uint64_t offset, uint64_t n) {
    std::memcpy(bytes.data() + offset, at, n);
  });
  return bytes;
}

void scatter(const std::vector<unsigned char>& bytes, const Elements& elements) {
  each_piece(elements, [&](unsigned char* at, uint64_t offset, uint64_t n) {
    std::memcpy(at, bytes.data() + offset, n);
  });
}

// False: `why` says what hinders it, and that is told in the file too.
bool TensorCopies::add(const TensorView& view, SlotKind kind, const std::string& name,
                       std::string& why) {
  Slot unused;
  const Dtype* dtype = dtype_named(view.meta.dtype);
  if (!view.readable)
    why = "its bytes on device " + view.meta.device + " cannot be read";
  else if (read_in_flight(view, unused))
    why = "a collective in flight is writing it";
  else if (dtype == nullptr || dtype->size_bytes != view.elements.size)
    why = "the dtype " + view.meta.dtype + " is not known";
  if (!why.empty()) {
    failed_.push_back({slot_kind_name(kind), name, why});
    return false;
  }
  std::string full = std::string(slot_kind_name(kind)) + "/" + name, unique = full;
  auto taken = [&] {
    for (const Copy& copy : copies_)
      if (copy.name == unique) return true;
    return false;
  };
  for (int n = 2; taken(); ++n) unique = full + "~" + std::to_string(n);
  copies_.push_back(
      {slot_kind_name(kind), name, unique, dtype, view.elements.shape, gather(view.elements)});
  return true;
}

const char* slot_kind_name(SlotKind kind) {
  static constexpr const char* kNames[] = {"in", "out", "written"};
  return kNames[static_cast<size_t>(kind)];
}

// What a file's name may hold everywhere; anything else is an underscore.
std::string file_name(std::string_view text) {
  std::string name;
  for (char c : text.substr(0, 120)) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) ||
                       std::string_view("._:@<>-").find(c) != std::string_view::npos;
    name += plain ? c : '_';
  }
  return name;
}

}  // namespace opguard
