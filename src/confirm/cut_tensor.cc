// A piece is one box of the whole, or two. Each is copied row by row of its last dimension.
//
//   [8, 64], grid of [4, 64], piece 1      a box from [4, 0] on, to [0, 0]
//   [8, 64], halves of [4, 64], 0 and 3    2 rows from [0, 0] to [0, 0], 2 from [6, 0] to [2, 0]
//
// Where the rank has another type, each element is rounded to it; what is a number of that type
// already stays.
#include "confirm/cut_tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "tensor/elements.h"

namespace opguard {
namespace {

using Shape = std::vector<int64_t>;

// A box of one array to a place in another, both row-major.
struct BoxCopy {
  const unsigned char* from;
  unsigned char* to;
  const Shape &whole, &local;  // shapes of both
  const Shape& box;
  uint64_t element;

  // All that lies below dimension d, of which at_from and at_to are the indexes so far.
  void copy(size_t d, uint64_t at_from, uint64_t at_to, const Shape& first,
            const Shape& place) const {
    if (d == box.size()) {
      std::memcpy(to + at_to * element, from + at_from * element, element);
      return;
    }
    const auto size_from = static_cast<uint64_t>(whole[d]),
               size_to = static_cast<uint64_t>(local[d]);
    if (d + 1 == box.size()) {
      std::memcpy(to + (at_to * size_to + static_cast<uint64_t>(place[d])) * element,
                  from + (at_from * size_from + static_cast<uint64_t>(first[d])) * element,
                  static_cast<uint64_t>(box[d]) * element);
      return;
    }
    for (int64_t i = 0; i < box[d]; ++i)
      copy(d + 1, at_from * size_from + static_cast<uint64_t>(first[d] + i),
           at_to * size_to + static_cast<uint64_t>(place[d] + i), first, place);
  }
};

// Where a piece of a grid begins; empty: there is no such piece.
Shape begin_of(uint64_t number, const Shape& parts, const Shape& piece) {
  Shape first(parts.size());
  for (size_t d = parts.size(); d-- > 0;) {
    first[d] = static_cast<int64_t>(number % static_cast<uint64_t>(parts[d])) * piece[d];
    number /= static_cast<uint64_t>(parts[d]);
  }
  return number > 0 ? Shape() : first;
}

uint64_t product(const Shape& shape) {
  uint64_t n = 1;
  for (const int64_t d : shape) n *= static_cast<uint64_t>(d);
  return n;
}

// In the whole's own type.
std::optional<std::vector<unsigned char>> piece_of(const Tensor& whole, const TensorCut& cut) {
  if (cut.set == SketchSetKind::whole) {
    if (product(cut.local) != whole.count()) return std::nullopt;
    return std::vector<unsigned char>(whole.data, whole.data + whole.size_bytes());
  }
  Shape parts, box = cut.local, place(cut.local.size(), 0);
  if (cut.local.size() != whole.shape.size()) return std::nullopt;
  for (size_t d = 0; d < cut.local.size(); ++d) {
    if (cut.local[d] <= 0 || whole.shape[d] % cut.local[d] != 0) return std::nullopt;
    parts.push_back(whole.shape[d] / cut.local[d]);
  }
  std::vector<unsigned char> bytes(product(cut.local) * whole.dtype->size_bytes);
  const BoxCopy copy{whole.data, bytes.data(), whole.shape,
                     cut.local,  box,          whole.dtype->size_bytes};
  if (cut.set == SketchSetKind::grid) {
    const Shape first = begin_of(cut.pieces.first, parts, cut.local);
    if (first.empty()) return std::nullopt;
    copy.copy(0, 0, 0, first, place);
    return bytes;
  }
  if (cut.set != SketchSetKind::halves || cut.dim >= box.size() || box[cut.dim] % 2 != 0)
    return std::nullopt;
  const int64_t along = parts[cut.dim] * 2;
  parts[cut.dim] = 1;
  box[cut.dim] /= 2;
  for (const uint32_t number : {cut.pieces.first, cut.pieces.second}) {
    Shape first = begin_of(number / static_cast<uint64_t>(along), parts, cut.local);
    if (first.empty()) return std::nullopt;
    first[cut.dim] = number % along * box[cut.dim];
    copy.copy(0, 0, 0, first, place);
    place[cut.dim] = box[cut.dim];
  }
  return bytes;
}

// The bits of a number that is one of the format's already.
uint64_t bits_of(double value, const FloatFormat& format) {
  const uint64_t sign =
      std::signbit(value) ? uint64_t{1} << (format.exponent_bits + format.mantissa_bits) : 0;
  const uint64_t ones = ((uint64_t{1} << format.exponent_bits) - 1) << format.mantissa_bits;
  value = std::fabs(value);
  if (std::isnan(value)) return sign | ones | uint64_t{1} << (format.mantissa_bits - 1);
  if (std::isinf(value)) return sign | ones;
  if (value == 0) return sign;
  int exponent = 0;
  std::frexp(value, &exponent);
  const int biased = exponent - 1 + format.bias;
  if (biased <= 0)
    return sign | static_cast<uint64_t>(std::ldexp(value, format.bias - 1 + format.mantissa_bits));
  const auto mantissa =
      static_cast<uint64_t>(std::ldexp(value, format.mantissa_bits - exponent + 1)) &
      ((uint64_t{1} << format.mantissa_bits) - 1);
  return sign | static_cast<uint64_t>(biased) << format.mantissa_bits | mantissa;
}

// Floats to floats alone, a block at a time.
std::optional<std::vector<unsigned char>> converted(const Tensor& from, const Dtype& type) {
  const auto is_ieee = [](const Dtype& d) {
    return d.kind == Dtype::floating && d.format->specials == FloatFormat::ieee;
  };
  if (!is_ieee(*from.dtype) || !is_ieee(type)) return std::nullopt;
  const Elements1D elements(from);
  std::vector<unsigned char> bytes(elements.count() * type.size_bytes);
  uint64_t bits[kBlock];
  double values[kBlock];
  for (uint64_t first = 0; first < elements.count(); first += kBlock) {
    const auto count = static_cast<size_t>(std::min<uint64_t>(kBlock, elements.count() - first));
    elements.bits(first, count, bits);
    elements.values(bits, count, values);
    for (size_t i = 0; i < count; ++i) {
      const uint64_t made =
          bits_of(rounded(values[i], *type.format, Rounding::nearest_even), *type.format);
      std::memcpy(bytes.data() + (first + i) * type.size_bytes, &made, type.size_bytes);
    }
  }
  return bytes;
}

}  // namespace

std::optional<std::vector<unsigned char>> cut_tensor(const Tensor& whole, const TensorCut& cut,
                                                     const Dtype& type) {
  auto bytes = piece_of(whole, cut);
  if (!bytes) return bytes;
  if (&type != whole.dtype) {
    bytes = converted({whole.name, whole.dtype, cut.local, bytes->data()}, type);
    if (!bytes) return bytes;
  }
  if (cut.zeros) std::fill(bytes->begin(), bytes->end(), static_cast<unsigned char>(0));
  return bytes;
}

}  // namespace opguard
