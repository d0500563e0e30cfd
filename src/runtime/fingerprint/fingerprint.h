// runtime/fingerprint/fingerprint.h: og1, the 128-bit digest of a tensor's logical content:
// docs/formats/record-format.md.
//
//   x of float32 [4, 8]         9f31...    as x.clone() and x.t().contiguous().t()
//   x.t()                       another    other bytes in logical order
//   x.reshape(8, 4)             another, but the same `flat`
//   a permutation of x          another, but the same `elements`
//
// All of a Digest comes from one pass over memory, whatever the layout. Counterexample: a sum of
// the elements would be the same for a permuted tensor; bench/blindspots.py has 35 such changes.
//
// The cost: 0.6 to 0.9 of torch.sum's speed on one thread, of rows of 128 bytes and more. From
// kParallelBytes on several threads share a tensor; the result does not depend on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "record/record.h"
#include "runtime/fingerprint/lane_sums.h"
#include "runtime/fingerprint/row_walk.h"

namespace opguard {

// What a record holds of a tensor.
struct Digest {
  Fingerprint value;
  std::optional<uint64_t> elements;  // the layout-free digest; none of a type that has no numbers
  uint64_t flat = 0;                 // h of the same elements as one row, which every reshape keeps
  std::optional<uint64_t> pattern;   // of an additive mask: mask.h
  bool operator==(const Digest&) const = default;
};

// Below this many bytes a second thread costs more than it saves.
constexpr uint64_t kParallelBytes = 2 << 20;

// What a type's elements may be: by torch's name of it without "torch.", "" if they are no masks.
struct NumberType {
  NumberType() = default;
  NumberType(std::string_view dtype, uint32_t element_bytes);

  FloatType mask = FloatType::none;
  uint32_t element = 0;  // opguard_element_type
};

// Everything in one pass over memory, whatever the layout. `dtype` is torch's name without
// "torch.", or "" if the elements are no masks. `threads` is how many may work on it, the caller
// included; the result does not depend on them. `hashes`: room for one a row, of two rows or more.
Digest digest(const Elements& elements, std::string_view dtype, unsigned threads = 1);
Digest digest(const Elements& elements, NumberType type, unsigned threads = 1,
              uint64_t* hashes = nullptr);

// Who reads the same rows while they are in the cache. A task is `rows` rows, a multiple of 8, the
// last one fewer. Its thread calls take(task, read). That calls read(n) for the next n rows until
// all are read, and may read them itself after that.
struct Beside {
  uint64_t rows = 8;
  std::function<void(size_t task, const std::function<void(uint64_t)>& read)> take;
};
Digest digest(const Elements& elements, NumberType type, unsigned threads, const Beside& beside);

// The same of `bytes` bytes in one row of elements of `size` bytes: a multiple of 8 up to
// kTinyBytes. It may not be a mask. False: not such, and nothing is known.
constexpr uint64_t kTinyBytes = 64;
bool tiny_digest(const char* data, uint64_t bytes, uint32_t size, NumberType type, Digest& result);

// og1 alone. flat, if given, gets Digest::flat.
Fingerprint fingerprint(const Elements& elements, uint64_t* flat = nullptr, unsigned threads = 1);

}  // namespace opguard
