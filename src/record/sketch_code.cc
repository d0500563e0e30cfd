#include "record/sketch_code.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

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

unsigned bytes_of(unsigned bits) { return bits / 8; }

Sketch take_sketch(Cursor& in) {
  Sketch sketch;
  const uint8_t head = in.byte();
  const unsigned bits = head & 0x7f;
  if (head & kCountsFollow) {
    sketch.positive_infinite = in.varint();
    sketch.negative_infinite = in.varint();
    sketch.not_a_number = in.varint();
  }
  if (bits == 0) {
    for (unsigned i = 0; i < kZeroPadding; ++i) in.byte();
    return sketch;
  }
  if (bits != kWideSketch && bits != kNarrowSketch) {
    in.fail();
    return sketch;
  }
  const auto exponent = static_cast<int>(in.signed_varint());
  for (double& y : sketch.sums) {
    uint64_t word = 0;
    for (unsigned b = 0; b < bytes_of(bits); ++b) word |= uint64_t{in.byte()} << (8 * b);
    // The sign is in the topmost of `bits`.
    const auto value = static_cast<int64_t>(word << (64 - bits)) >> (64 - bits);
    y = std::ldexp(static_cast<double>(value), exponent);
  }
  return sketch;
}

SketchSet take_set(Cursor& in) {
  SketchSet set;
  const uint8_t kind = in.byte();
  if (kind > static_cast<uint8_t>(SketchSetKind::exchanged)) in.fail();
  set.kind = static_cast<SketchSetKind>(kind);
  if (set.kind == SketchSetKind::whole) {
    set.sketches.push_back(take_sketch(in));
    return set;
  }
  const uint64_t dims = in.varint();
  if (dims > kMostDimensions || dims > in.left()) in.fail();
  for (uint64_t d = 0; d < dims && in.ok(); ++d) set.local.push_back(in.signed_varint());
  set.dim = in.byte();
  const uint64_t count = in.varint();
  for (uint64_t i = 0; i < count && in.ok(); ++i) set.sketches.push_back(take_sketch(in));
  return set;
}

// Behind the event's index.
EventSketches take_event(Cursor& in) {
  EventSketches event;
  const uint64_t module = in.varint();
  event.module = module == 0 ? kNone : static_cast<uint32_t>(module - 1);
  const uint64_t slots = in.varint();
  for (uint64_t s = 0; s < slots && in.ok(); ++s) {
    SlotSketches slot;
    slot.slot = in.varint32();
    const uint64_t sets = in.varint();
    for (uint64_t i = 0; i < sets && in.ok(); ++i) slot.sets.push_back(take_set(in));
    event.slots.push_back(std::move(slot));
  }
  return event;
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
  const auto most = static_cast<double>((int64_t{1} << (bits - 1)) - 1);
  for (double y : sketch.sums) {
    const double scaled = std::nearbyint(std::ldexp(y, -exponent));
    const auto word = static_cast<uint64_t>(static_cast<int64_t>(std::clamp(scaled, -most, most)));
    for (unsigned b = 0; b < bytes_of(bits); ++b) out.push_back(static_cast<char>(word >> (8 * b)));
  }
}

void put_sketch_set(std::string& out, const SketchSet& set, unsigned bits) {
  out.push_back(static_cast<char>(set.kind));
  if (set.kind != SketchSetKind::whole) {
    put_varint(out, set.local.size());
    for (int64_t n : set.local) put_signed(out, n);
    out.push_back(static_cast<char>(set.dim));
    put_varint(out, set.sketches.size());
  }
  for (const Sketch& sketch : set.sketches) put_sketch(out, sketch, bits);
}

EventSketches SketchTable::of_event(uint64_t event) const {
  const auto it = std::lower_bound(entries_.begin(), entries_.end(), event,
                                   [](const Entry& e, uint64_t i) { return e.event < i; });
  if (it == entries_.end() || it->event != event) return {};
  Cursor in(std::string_view(it->at, it->bytes));
  return take_event(in);
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
    const EventSketches decoded = take_event(in);
    entry.bytes = static_cast<uint32_t>(before - in.left());
    if (decoded.module != kNone && decoded.module >= strings)
      return "it names a string that is not there";
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
