// A sketch, in bytes:
//
//   1 bits, 128 more where counts follow   3 counts: inf, -inf, nan   exponent   64 numbers
//
//   bits 40    numbers of 5 bytes, each a multiple of 2^exponent
//   bits 0     all are zero: 7 bytes of nothing instead
//
// The exponent is such that the largest number just fits. Sets and declarations are gone through
// once as the log is opened; what is asked for later is known to be whole.
#include "record/sketch_code.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <utility>

#include "record/format.h"
#include "record/limits.h"

namespace opguard {
namespace {

using format::Cursor;
using format::put_signed;
using format::put_varint;

constexpr uint8_t kCountsFollow = 0x80;
// Behind the head of a sketch of zeros only: what is decoded stays below 100 times the bytes.
constexpr unsigned kZeroPadding = 7;

// Of a piece, in a dimension.
constexpr uint64_t kMostStart = INT64_MAX;

constexpr unsigned bytes_of(unsigned bits) { return bits / 8; }

// x * 2^exponent. One product is exact wherever the power is a double: then it is ldexp's, which
// would be most of the time that reading takes.
class PowerOfTwo {
 public:
  explicit PowerOfTwo(int exponent)
      : exponent_(exponent),
        factor_(exponent >= -1074 && exponent <= 1023 ? std::ldexp(1.0, exponent) : 0) {}

  double times(double x) const { return factor_ != 0 ? x * factor_ : std::ldexp(x, exponent_); }

 private:
  int exponent_;
  double factor_;
};

// `word`: the 64 numbers, of so many bits each.
template <unsigned kBits>
void take_numbers(const char* at, const PowerOfTwo& power, SketchSums& sums) {
  for (size_t i = 0; i < kSketchNumbers; ++i, at += bytes_of(kBits)) {
    uint64_t word = 0;
    std::memcpy(&word, at, bytes_of(kBits));
    // The sign is in the topmost of `kBits`.
    const auto value = static_cast<int64_t>(word << (64 - kBits)) >> (64 - kBits);
    sums[i] = power.times(static_cast<double>(value));
  }
}

// into: nullptr to step over it.
void take_sketch(Cursor& in, Sketch* into) {
  const uint8_t head = in.byte();
  const unsigned bits = head & 0x7f;
  if (head & kCountsFollow) {
    uint64_t counts[3];
    for (uint64_t& n : counts) n = in.varint();
    if (into != nullptr) {
      into->positive_infinite = counts[0];
      into->negative_infinite = counts[1];
      into->not_a_number = counts[2];
    }
  }
  if (bits == 0) {
    in.bytes(kZeroPadding);
    return;
  }
  if (bits != kWideSketch && bits != kNarrowSketch) {
    in.fail();
    return;
  }
  const auto exponent = static_cast<int>(in.signed_varint());
  const char* numbers = in.bytes(kSketchNumbers * bytes_of(bits));
  if (numbers == nullptr || into == nullptr) return;
  if (bits == kWideSketch)
    take_numbers<kWideSketch>(numbers, PowerOfTwo(exponent), into->sums);
  else
    take_numbers<kNarrowSketch>(numbers, PowerOfTwo(exponent), into->sums);
}

// Where the pieces of an uneven set begin, by dimension.
void take_starts(Cursor& in, SketchSet& set) {
  const uint64_t dims = set.local.size() + (set.dim != 0 ? 1 : 0);
  set.starts.clear();
  for (uint64_t d = 0; d < dims && in.ok(); ++d) {
    const uint64_t count = in.varint();
    if (count > in.left()) in.fail();
    std::vector<int64_t>& starts = set.starts.emplace_back();
    for (uint64_t i = 0; i < count && in.ok(); ++i) {
      const uint64_t start = in.varint();
      if (start > kMostStart) in.fail();
      starts.push_back(static_cast<int64_t>(start));
    }
  }
}

// Cells of an uneven set; more than any log has where the product is too large.
uint64_t cells_of(const SketchSet& set) {
  uint64_t cells = 1;
  for (const std::vector<int64_t>& starts : set.starts)
    if (__builtin_mul_overflow(cells, uint64_t{starts.size()}, &cells)) return UINT64_MAX;
  return cells;
}

// wanted(set), of which kind, shape and dimension are known: whether its sketches are decoded.
template <typename Wanted>
bool take_set(Cursor& in, uint8_t kind, SketchSet& set, Wanted wanted) {
  if (kind > static_cast<uint8_t>(SketchSetKind::unpadded)) in.fail();
  set.kind = static_cast<SketchSetKind>(kind);
  uint64_t count = 1;
  if (set.kind != SketchSetKind::whole) {
    const uint64_t dims = in.varint();
    if (dims > kMostDimensions || dims > in.left()) in.fail();
    set.local.clear();
    for (uint64_t d = 0; d < dims && in.ok(); ++d) set.local.push_back(in.signed_varint());
    set.dim = in.byte();
    if (set.kind == SketchSetKind::uneven) take_starts(in, set);
    count = in.varint();
    if (set.kind == SketchSetKind::uneven && count != cells_of(set)) in.fail();
  }
  const bool decode = wanted(set);
  for (uint64_t i = 0; i < count && in.ok(); ++i)
    take_sketch(in, decode ? &set.sketches.emplace_back() : nullptr);
  return decode;
}

constexpr auto kEvery = [](const SketchSet&) { return true; };
constexpr auto kNotOne = [](const SketchSet&) { return false; };

// declared: nullptr where nobody asks what is.
template <typename Wanted>
std::vector<SketchSet> take_sets(Cursor& in, Wanted wanted, uint32_t* declared = nullptr) {
  std::vector<SketchSet> sets;
  const uint64_t count = in.varint();
  SketchSet set;
  for (uint64_t i = 0; i < count && in.ok(); ++i) {
    const uint8_t kind = in.byte();
    if (kind == kDeclaredSet) {
      const uint32_t string = in.varint32();
      if (declared != nullptr) *declared = string;
    } else if (take_set(in, kind, set, wanted)) {
      sets.push_back(std::exchange(set, {}));
    }
  }
  return sets;
}

uint32_t take_optional(Cursor& in) {
  const uint64_t code = in.varint();
  return code == 0 ? kNone : static_cast<uint32_t>(code - 1);
}

// Behind the event's index.
EventCode take_event(Cursor& in, std::string_view bytes, bool tells_calls) {
  EventCode event;
  event.module = take_optional(in);
  if (tells_calls) event.calls = take_optional(in);
  const uint64_t slots = in.varint();
  for (uint64_t s = 0; s < slots && in.ok(); ++s) {
    SlotCode slot;
    slot.slot = in.varint32();
    const size_t from = bytes.size() - in.left();
    take_sets(in, kNotOne, &slot.declared);
    slot.sets = bytes.substr(from, bytes.size() - in.left() - from);
    event.slots.push_back(slot);
  }
  return event;
}

// The 64 numbers, rounded to multiples of 2^exponent.
template <unsigned kBits>
void put_numbers(std::string& out, const SketchSums& sums, const PowerOfTwo& power) {
  // Added and taken away again it leaves a number below 2^51 without its fraction, rounded.
  constexpr double kRounder = 0x1.8p52;
  constexpr auto kMost = static_cast<double>((int64_t{1} << (kBits - 1)) - 1);
  char bytes[kSketchNumbers * bytes_of(kBits)];
  char* at = bytes;
  for (const double y : sums) {
    const double scaled = (power.times(y) + kRounder) - kRounder;
    const auto word = static_cast<int64_t>(std::clamp(scaled, -kMost, kMost));
    std::memcpy(at, &word, bytes_of(kBits));
    at += bytes_of(kBits);
  }
  out.append(bytes, sizeof bytes);
}

}  // namespace

void put_sketch(std::string& out, const Sketch& sketch, unsigned bits) {
  double largest = 0;
  for (double y : sketch.sums) largest = std::max(largest, std::fabs(y));
  const bool counts = !sketch.finite();
  out.push_back(static_cast<char>((largest > 0 ? bits : 0) | (counts ? kCountsFollow : 0)));
  if (counts)
    for (uint64_t n : {sketch.positive_infinite, sketch.negative_infinite, sketch.not_a_number})
      put_varint(out, n);
  if (largest == 0) {
    out.append(kZeroPadding, '\0');
    return;
  }
  int exponent;
  std::frexp(largest, &exponent);  // largest < 2^exponent
  exponent -= static_cast<int>(bits) - 1;
  put_signed(out, exponent);
  if (bits == kWideSketch)
    put_numbers<kWideSketch>(out, sketch.sums, PowerOfTwo(-exponent));
  else
    put_numbers<kNarrowSketch>(out, sketch.sums, PowerOfTwo(-exponent));
}

void put_sketch_set(std::string& out, const SketchSet& set, unsigned bits) {
  out.push_back(static_cast<char>(set.kind));
  if (set.kind != SketchSetKind::whole) {
    put_varint(out, set.local.size());
    for (int64_t n : set.local) put_signed(out, n);
    out.push_back(static_cast<char>(set.dim));
    for (const std::vector<int64_t>& starts : set.starts) {
      put_varint(out, starts.size());
      for (const int64_t start : starts) put_varint(out, static_cast<uint64_t>(start));
    }
    put_varint(out, set.sketches.size());
  }
  for (const Sketch& sketch : set.sketches) put_sketch(out, sketch, bits);
}

void put_declared(std::string& out, uint32_t string) {
  out.push_back(static_cast<char>(kDeclaredSet));
  put_varint(out, string);
}

std::vector<SketchSet> sets_of(const SlotCode& code,
                               const std::vector<std::vector<int64_t>>& locals) {
  Cursor in(code.sets);
  std::vector<SketchSet> sets = take_sets(in, [&](const SketchSet& set) {
    // A number is no piece of anything.
    return set.kind == SketchSetKind::whole || set.kind == SketchSetKind::unpadded ||
           (!set.local.empty() &&
            std::find(locals.begin(), locals.end(), set.local) != locals.end());
  });
  if (!sets.empty() && (sets[0].kind != SketchSetKind::whole || sets[0].sketches.empty()))
    sets.clear();
  return sets;
}

std::string_view SketchTable::bytes_of_event(uint64_t event) const {
  const auto it = std::lower_bound(entries_.begin(), entries_.end(), event,
                                   [](const Entry& e, uint64_t i) { return e.event < i; });
  if (it == entries_.end() || it->event != event) return {};
  return {it->at, it->bytes};
}

EventCode SketchTable::code_of_event(uint64_t event) const {
  const std::string_view bytes = bytes_of_event(event);
  if (bytes.empty()) return {};
  Cursor in(bytes);
  return take_event(in, bytes, tells_calls_);
}

// All of it, pieces too. sets_of() decodes those alone that somebody wants.
EventSketches SketchTable::of_event(uint64_t event) const {
  const EventCode code = code_of_event(event);
  EventSketches decoded{code.module, code.calls};
  for (const SlotCode& slot : code.slots) {
    Cursor in(slot.sets);
    decoded.slots.push_back({slot.slot, take_sets(in, kEvery), slot.declared});
  }
  return decoded;
}

std::string SketchTable::add(std::string_view payload, uint32_t count, uint64_t strings) {
  std::vector<Entry> fresh;
  if (!file_) {
    held_.push_back(std::make_shared<const std::string>(payload));
    payload = *held_.back();
  }
  Cursor in(payload);
  for (uint32_t i = 0; i < count && in.ok(); ++i) {
    Entry entry;
    entry.event = in.varint();
    const size_t before = in.left();
    entry.at = payload.data() + payload.size() - before;
    const EventCode decoded = take_event(in, payload, tells_calls_);
    entry.bytes = static_cast<uint32_t>(before - in.left());
    const auto unknown = [&](uint32_t string) { return string != kNone && string >= strings; };
    bool refused = unknown(decoded.module) || unknown(decoded.calls);
    for (const SlotCode& slot : decoded.slots) refused |= unknown(slot.declared);
    if (refused) return "it names a string that is not there";
    fresh.push_back(entry);
  }
  if (!in.ok() || in.left() != 0) return "its length does not fit its content";
  entries_.insert(entries_.end(), fresh.begin(), fresh.end());
  return "";
}

void SketchTable::finish(uint64_t events) {
  std::erase_if(entries_, [&](const Entry& e) { return e.event >= events; });
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const Entry& a, const Entry& b) { return a.event < b.event; });
  // An event has one entry.
  entries_.erase(std::unique(entries_.begin(), entries_.end(),
                             [](const Entry& a, const Entry& b) { return a.event == b.event; }),
                 entries_.end());
}

}  // namespace opguard
