// The recorder's part for values. A slot's digest is read here, or carried over from what an
// earlier event says of the same memory. Or it is a ticket for what a device will say.
//
// Where a value of one slot comes from, cheapest first:
//
//   this event has read that tensor         the same value (Recent)
//   the very tensor, unwritten since        repeated, marked carried (not in mode `full`)
//   another tensor over the same bytes      its digest, or its rows' hashes folded anew
//   a tensor on a device                    a ticket; the encoding thread fills the value in
//   anything else                           read
//
// Mode `full` asks the first of these alone, and reads. What it knows of the same bytes spares it
// the digest, if what it read shows that they are the same.
#include <optional>

#include "device/plugin.h"
#include "runtime/entries/collective.h"
#include "runtime/fingerprint/fingerprint.h"
#include "runtime/fingerprint/sketch.h"
#include "runtime/recorder/python_fingerprint.h"
#include "runtime/recorder/recorder.h"
#include "runtime/recorder/sketches.h"
#include "runtime/recorder/tickets.h"
#include "runtime/recorder/values.h"

namespace opguard {
namespace {

// Bytes of a value: of less than this, reading costs no more than finding out that the same event
// has read it.
constexpr uint64_t kWorthFinding = 256;
static_assert(kTinyBytes < kWorthFinding);

// A place for each of DLPack's codes of types: a number below 8, and 8, 16, 32 or 64 bits.
constexpr size_t kTypePlaces = 128;
constexpr size_t place_of_type(uint16_t code) {
  return (code >> 8) % 8u * 16u + (code & 0xffu) / 8u % 16u;
}
static_assert(place_of_type(0) < kTypePlaces && place_of_type(0xffff) < kTypePlaces);
static_assert(place_of_type(2 << 8 | 32) != place_of_type(0 << 8 | 32));

// Found by its code, where a type has one.
NumberType number_type(const TensorView& view) {
  struct Known {
    uint16_t code = 0;
    NumberType type;
  };
  static Known all[kTypePlaces];
  if (view.dtype_code == 0) return {view.meta.dtype, view.elements.size};
  Known& known = all[place_of_type(view.dtype_code)];
  if (known.code != view.dtype_code)
    known = {view.dtype_code, NumberType(view.meta.dtype, view.elements.size)};
  return known.type;
}

// A value that is there. One that a device owes has a ticket in its place.
Value value_in(const Digest& d) {
  Value value{d.value, d.flat, d.pattern.value_or(0), d.pattern.has_value()};
  value.has_digest = d.elements.has_value();
  value.digest = d.elements.value_or(0);
  return value;
}

}  // namespace

// Other threads of the program go on meanwhile, as they do during the operators themselves. A
// loader's thread must not be held up by our reading. What an operator was given, its program
// cannot free before the operator has ended. A buffer of a module that works in another thread is
// nobody's here: `buffer.untyped_storage().resize_(0)` would take the memory from under us, so that
// thread waits.
Value Recorder::digest(const TensorView& view, Reading reading, const Value* known,
                       std::optional<Sketch>* sketch) {
  const unsigned threads = threads_for(view);
  NumberType type = number_type(view);  // while no other thread looks it up
  if (known != nullptr) type.element = OPGUARD_ELEMENT_NONE;
  Digest d;
  const size_t row_count = sketch == nullptr ? row_hashes(view.elements) : 0;
  RowHashes rows = row_count != 0 ? latest_rows_.room() : RowHashes();
  rows.hashes.resize(row_count);
  {
    std::optional<WhileReading> others;
    if (reading != Reading::aside) others.emplace(view);
    if (sketch != nullptr && type.mask != FloatType::none)
      d = digest_and_sketch(view.elements, type, type.mask, threads, sketch->emplace());
    else
      d = opguard::digest(view.elements, type, threads,
                          row_count != 0 ? rows.hashes.data() : nullptr);
  }
  if (known != nullptr && known->has_digest) d.elements = known->digest;
  Value value = value_in(d);
  if (row_count != 0) {
    rows.of(view.elements, d);
    value.reading = latest_rows_.add(std::move(rows));
  }
  return value;
}

// certain: nobody has written that memory since `known` was read of it. Else all is read, and
// believed is what that shows. Where og1 and the flat hash are still those of `known`, so are the
// elements, and so is the digest that no order changes. That spares half the arithmetic.
// Counterexample: memory that was overwritten behind torch's back is read twice.
Value Recorder::read_again(const TensorView& view, const Storages::Shared& like, bool certain) {
  const Value known = *like.value;
  if (certain) {
    if (like.whole) return known;
    const RowHashes* rows = latest_rows_.find(known.reading);
    if (const auto folded = rows != nullptr ? digest_of_rows(view.elements, *rows) : std::nullopt) {
      Value value = value_in(*folded);
      value.reading = known.reading;
      return value;
    }
    return digest(view, Reading::usual, &known);
  }
  if (!like.whole && !like.rows && !like.ordered) return digest(view);
  const Value now = digest(view, Reading::usual, &known);
  const bool same = like.whole  ? now.value == known.value && now.flat == known.flat
                    : like.rows ? now.value.m == known.value.m
                                : now.flat == known.flat;
  return same ? now : digest(view);
}

// Where it is read on a device, a ticket.
Value Recorder::read(const TensorView& view, ThreadState& of, Reading reading,
                     std::optional<Sketch>* sketch) {
  if (view.device == nullptr) return digest(view, reading, nullptr, sketch);
  const Launches::Stream& stream = of.launches.stream_of(view);
  Value value;
  value.stream = stream.number;
  value.ticket = of.launches.add(view, stream, graph_of_capture(stream));
  return value;
}

// What is repeated in a graph is what the graph itself has read.
bool Recorder::lasts(const Value& value, const TensorView& view, ThreadState& of) {
  if (view.device == nullptr) return value.there();
  if (value.there() || !tickets().lasts(value.ticket)) return false;
  const uint64_t graph = graph_of_capture(of.launches.stream_of(view));
  return graph == (value.ticket & Tickets::kOfGraph ? Tickets::graph_of(value.ticket) : 0);
}

// Fills in the block's number, and whether the value was carried over.
Value Recorder::value_of(const TensorView& view, PyObject* object, Reading reading, ThreadState& of,
                         Slot& slot, std::optional<Sketch>* sketch) {
  Recent& recent = of.recent;
  const bool carries = mode_ != Mode::full;
  if (object == nullptr || reading == Reading::compiled)
    return read(view, of, Reading::usual, sketch);
  const uint64_t bytes = view.content_bytes();
  if (carries && bytes < kWorthFinding && reading == Reading::usual && view.device == nullptr)
    return read(view, of, reading, sketch);
  const uint32_t meta = slot.meta;
  for (size_t i = 0; i < std::min(recent.count, Recent::kCount); ++i) {
    const Recent::Entry& e = recent.entries[i];
    if (e.tensor != object || e.version != view.version || e.meta != meta ||
        e.data != view.elements.data)
      continue;
    slot.storage = e.storage;
    // Its storage may have been declared written in between.
    if (carries && e.storage != 0)
      storages().remember(storages().place_of(object), object, view, meta, e.value);
    return e.value;
  }
  Storages::Place place;
  if (view.counted && (!carries || reading != Reading::usual || bytes >= kWorthCarrying))
    place = storages().place_of(object);
  slot.storage = place.number;
  const bool remembers = carries || (view.device == nullptr && bytes >= kWorthCarrying);
  Storages::Shared like;
  if (remembers && reading == Reading::usual) {
    const Value* known = storages().carried(place, object, view, meta);
    if (carries && known != nullptr && lasts(*known, view, of)) {
      slot.flags |= kCarried;
      return *known;
    }
    like = known != nullptr ? Storages::Shared{known, true}
                            : storages().shared(place, object, view, meta);
  }
  Value value;
  if (like.value == nullptr || !like.value->there() || view.device != nullptr ||
      sketch != nullptr) {
    value = read(view, of, reading, sketch);
  } else {
    if (carries && like.whole) slot.flags |= kCarried;
    value = read_again(view, like, carries || recent.has(*like.value));
  }
  if (remembers) storages().remember(place, object, view, meta, value);
  recent.entries[recent.count++ % Recent::kCount] = {object, view.elements.data, view.version,
                                                     meta,   place.number,       value};
  return value;
}

Slot Recorder::slot(const TensorView& view, SlotKind kind, uint16_t index, std::string_view name,
                    SlotFlags flags, PyObject* object, Reading reading, ThreadState* of) {
  Slot s;
  s.kind = kind;
  s.flags = flags;
  s.index = index;
  s.version = view.version;
  s.name = string(name);
  s.meta = meta(view);
  if (read_in_flight(view, s)) {
    // Another thread is writing these bytes.
  } else if (view.has_value()) {
    const bool sketched = sketches().on() && (kind != SlotKind::in || (flags & kModelValue));
    std::optional<Sketch> sketch;
    const Value value =
        value_of(view, object, reading, of ? *of : thread(), s, sketched ? &sketch : nullptr);
    if (value.there()) {
      if (view.device != nullptr) s.flags |= kUnreadable;  // it could not be launched
      s.value = value.value;
      s.flat = value.flat;
      s.has_digest = value.has_digest;
      s.digest = value.digest;
      if (value.mask) {
        s.pattern = value.pattern;
        s.flags |= kMask;
      }
    } else {
      s.flags |= kPending;
      s.value = {value.ticket, 0};
      s.pattern = value.stream;
    }
    if (sketched) s.sketch = sketches().take(view, name, reading == Reading::aside, sketch);
    s.address = view.first_byte();
    s.size_bytes = view.span_bytes();
    if (!view.in_memory_order()) s.flags |= kPermuted;
  } else {
    s.flags |= kUnreadable;
  }
  return s;
}

}  // namespace opguard
