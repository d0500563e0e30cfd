// Which form a slot is given:
//
//   a value that this chunk has not had    full; row, where h alone says the value
//   that tensor again                      tensor: how many tensors back
//   the same value at another place        value: the place, and how many tensors back
//   it cannot be read                      row, without a value
//
// A value is looked for by its hash, in one place of 8192. Where two meet there, the later one
// stays, and the earlier one is written once more if it comes again.
//
// Room for the largest event is made before it is written, so no byte is checked for room.
#include <algorithm>

#include "record/byte_writer.h"
#include "record/event_code.h"
#include "record/format.h"

namespace opguard {

using namespace format;

namespace {

// A chunk holds far fewer tensors; of two values that meet, the later one stays.
constexpr size_t kKnown = size_t{1} << 13;

// An event has 17 numbers and 3 bytes at most, a slot 8 numbers and 5 words. A number takes 10
// bytes at most; of a short one 8 are written.
constexpr size_t kMostOfEvent = 240, kMostOfSlot = 136;

size_t place_of_value(const Fingerprint& value) {
  return (value.h ^ value.m >> 7) * 0x9e3779b97f4a7c15u >> (64 - 13);
}

bool same_value(const Slot& a, const Slot& b) {
  constexpr SlotFlags kOfValue = kMask | kUnreadable;
  return a.value == b.value && a.flat == b.flat && a.has_digest == b.has_digest &&
         a.digest == b.digest && (a.flags & kOfValue) == (b.flags & kOfValue) &&
         (!(a.flags & kMask) || a.pattern == b.pattern);
}

bool same_place(const Slot& a, const Slot& b) {
  return a.meta == b.meta && a.version == b.version && a.storage == b.storage &&
         a.address == b.address && a.size_bytes == b.size_bytes;
}

}  // namespace

EventEncoder::EventEncoder() : known_(kKnown) {}

void EventEncoder::clear() {
  size_ = 0;
  events_ = 0;
  slots_ = 0;
  base_ = {};
  addresses_.clear();
  sizes_.clear();
  tensors_.clear();
  ++chunk_;
}

void EventEncoder::add(const Event& e, const Slot* slots, size_t slot_count, uint64_t index) {
  const size_t most = size_ + kMostOfEvent + slot_count * kMostOfSlot;
  if (bytes_.size() < most) bytes_.resize(std::max(most, 2 * bytes_.size()));
  ByteWriter out(bytes_.data() + size_);
  put_event(out, e, slot_count, index);
  uint16_t next[3] = {0, 0, 0};
  for (size_t i = 0; i < slot_count; ++i) {
    uint16_t& expected = next[static_cast<size_t>(slots[i].kind)];
    put_slot(out, slots[i], expected);
    expected = static_cast<uint16_t>(slots[i].index + 1);
  }
  size_ = static_cast<size_t>(out.at() - bytes_.data());
  ++events_;
  slots_ += slot_count;
}

void EventEncoder::put_event(ByteWriter& out, const Event& e, size_t slot_count, uint64_t index) {
  const uint8_t kinds =
      static_cast<uint8_t>(static_cast<uint8_t>(e.kind) | static_cast<uint8_t>(e.phase) << 4);
  const bool steps = e.step != base_.step || e.micro_batch != base_.micro_batch;
  const bool inside = e.begin < index, forward = e.forward < index;
  const uint8_t fields = static_cast<uint8_t>(
      (kinds != base_.kinds || e.flags != base_.flags ? kKinds : 0) | (steps ? kSteps : 0) |
      (e.thread != base_.thread ? kThread : 0) | (inside ? kInside : 0) | (forward ? kForward : 0) |
      (e.node != kNone ? kNode : 0) | (e.scalars != kNone ? kScalars : 0) |
      (e.results != kNone ? kResults : 0));
  out.varint(e.boundary);
  out.byte(fields);
  if (fields & kKinds) {
    out.byte(kinds);
    out.byte(e.flags);
  }
  if (steps) {
    out.signed_varint(int64_t{e.step} - base_.step);
    out.signed_varint(int64_t{e.micro_batch} - base_.micro_batch);
  }
  if (fields & kThread) out.varint(e.thread);
  if (inside) out.varint(index - e.begin);
  if (forward) out.varint(index - e.forward);
  for (uint32_t string : {e.node, e.scalars, e.results})
    if (string != kNone) out.varint(string);
  if (e.flags & kCollective) {
    out.varint(e.group == kNone ? 0 : uint64_t{e.group} + 1);
    out.varint(e.sequence);
  }
  out.varint(e.occurrence);
  out.signed_varint(static_cast<int64_t>(e.start_ns - base_.end_ns));
  out.signed_varint(static_cast<int64_t>(e.end_ns - e.start_ns));
  if (e.flags & kOnDevice) {
    out.varint(e.stream);
    out.signed_varint(static_cast<int64_t>(e.device_start_ns - base_.device_end_ns));
    out.signed_varint(static_cast<int64_t>(e.device_end_ns - e.device_start_ns));
    base_.device_end_ns = e.device_end_ns;
  }
  out.varint(slot_count);
  base_.kinds = kinds;
  base_.flags = e.flags;
  base_.step = e.step;
  base_.micro_batch = e.micro_batch;
  base_.thread = e.thread;
  base_.end_ns = e.end_ns;
}

void EventEncoder::put_slot(ByteWriter& out, const Slot& s, uint16_t expected_index) {
  const bool readable = !(s.flags & kUnreadable);
  const Slot* known = nullptr;
  uint64_t back = 0;
  Known& last = known_[place_of_value(s.value)];
  if (readable && last.chunk == chunk_ && same_value(tensors_[last.tensor], s)) {
    known = &tensors_[last.tensor];
    back = tensors_.size() - last.tensor;
  }
  Form form = Form::full;
  if (known)
    form = same_place(*known, s) ? Form::tensor : Form::value;
  else if (!readable || (s.flat == s.value.h && s.value.m == mix(s.value.h)))
    form = Form::row;
  const bool digest = s.has_digest && (form == Form::row || form == Form::full);
  const uint64_t flags = s.flags | (digest ? kDigestFollows : 0);
  out.varint(static_cast<uint64_t>(s.kind) + 4 * static_cast<uint64_t>(form) +
             (s.index != expected_index ? kIndexFollows : 0) + kFlagStep * flags);
  if (s.index != expected_index) out.varint(s.index);
  out.varint(s.name);
  if (form == Form::tensor) return out.varint(back);
  out.varint(s.meta);
  out.varint(s.version);
  out.signed_varint(int64_t{s.storage} - base_.storage);
  out.signed_varint(static_cast<int64_t>(s.address - addresses_.get(s.storage, base_.address)));
  out.signed_varint(static_cast<int64_t>(s.size_bytes - sizes_.get(s.meta)));
  base_.storage = s.storage;
  base_.address = s.address;
  addresses_.set(s.storage, s.address);
  sizes_.set(s.meta, s.size_bytes);
  if (!readable) return;
  if (form == Form::value) {
    out.varint(back);
  } else {
    out.u64(s.value.h);
    if (form == Form::full) {
      out.u64(s.value.m);
      out.u64(s.flat);
    }
    if (digest) out.u64(s.digest);
    if (s.flags & kMask) out.u64(s.pattern);
  }
  last = {chunk_, static_cast<uint32_t>(tensors_.size())};
  tensors_.push_back(s);
}

}  // namespace opguard
