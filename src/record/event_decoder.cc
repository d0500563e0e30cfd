// The mirror of event_encoder.cc. What does not make sense is refused, with the whole chunk.
//
// A log with holes has stretches: {0 at 0}, {500 at 300} says that events 300 to 499 are missing.
//
//   510    place 310
//   400    is not there; the first one behind it is at place 300
//
// An event's beginning may lie in a hole: then it is the first event behind. Its forward may not:
// then it has none.
#include <algorithm>

#include "record/event_code.h"
#include "record/format.h"

namespace opguard {

using namespace format;

namespace {

// Both ends of a reference into a log with holes. The place of the first event there whose own
// index is `index` or later.
uint64_t place_of(const std::vector<EventDecoder::Stretch>& stretches, uint64_t index) {
  size_t i = stretches.size() - 1;
  while (i > 0 && index < stretches[i].first) --i;
  const uint64_t place = stretches[i].at + (index - std::min(index, stretches[i].first));
  return i + 1 < stretches.size() ? std::min(place, stretches[i + 1].at) : place;
}

bool is_there(const std::vector<EventDecoder::Stretch>& stretches, uint64_t index) {
  size_t i = stretches.size() - 1;
  while (i > 0 && index < stretches[i].first) --i;
  return index >= stretches[i].first &&
         (i + 1 == stretches.size() ||
          index - stretches[i].first < stretches[i + 1].at - stretches[i].at);
}

}  // namespace

std::string EventDecoder::take(std::string_view payload, uint32_t count,
                               const std::vector<Stretch>& stretches, const Before& before,
                               std::vector<Slot>& slots, std::vector<Event>* events) {
  Cursor in(payload);
  EventBase base;
  size_t slot_count = 0;  // of the chunk so far
  addresses_.clear();
  sizes_.clear();
  tensors_.clear();
  const uint64_t strings = before.strings, metas = before.metas;
  bool known = true;  // all strings and metas are there
  for (uint32_t i = 0; i < count && in.ok(); ++i) {
    const uint64_t place = before.events + i;
    const uint64_t index = stretches.back().first + (place - stretches.back().at);
    Event e;
    e.boundary = in.varint32();
    const uint8_t fields = in.byte();
    if (fields & kKinds) {
      base.kinds = in.byte();
      base.flags = in.byte();
      if ((base.kinds & 15) > static_cast<uint8_t>(EventKind::state) ||
          (base.kinds >> 4) > static_cast<uint8_t>(Phase::optimizer))
        return "an event of an unknown kind";
    }
    if (fields & kSteps) {
      base.step += static_cast<uint32_t>(in.signed_varint());
      base.micro_batch += static_cast<uint32_t>(in.signed_varint());
    }
    if (fields & kThread) base.thread = in.varint32();
    e.kind = static_cast<EventKind>(base.kinds & 15);
    e.phase = static_cast<Phase>(base.kinds >> 4);
    e.flags = base.flags;
    e.step = base.step;
    e.micro_batch = base.micro_batch;
    e.thread = base.thread;
    const uint64_t inside = fields & kInside ? in.varint() : 0;
    const uint64_t back = fields & kForward ? in.varint() : 0;
    if (inside > index || back > index) return "an event refers to one before the log";
    if (events) e.begin = inside == 0 ? place : place_of(stretches, index - inside);
    if (events && back != 0 && is_there(stretches, index - back))
      e.forward = static_cast<uint32_t>(place_of(stretches, index - back));
    known &= e.boundary < strings;
    auto text = [&](uint8_t field, uint32_t& string) {
      if (!(fields & field)) return;
      string = in.varint32();
      known &= string < strings;
    };
    text(kNode, e.node);
    text(kScalars, e.scalars);
    text(kResults, e.results);
    if (e.flags & kCollective) {
      const uint64_t group = in.varint();
      known &= group <= strings;
      e.group = group == 0 ? kNone : static_cast<uint32_t>(group - 1);
      e.sequence = in.varint32();
    }
    e.occurrence = in.varint32();
    e.start_ns = base.end_ns + static_cast<uint64_t>(in.signed_varint());
    e.end_ns = base.end_ns = e.start_ns + static_cast<uint64_t>(in.signed_varint());
    if (e.flags & kOnDevice) {
      e.stream = in.varint32();
      e.device_start_ns = base.device_end_ns + static_cast<uint64_t>(in.signed_varint());
      e.device_end_ns = base.device_end_ns =
          e.device_start_ns + static_cast<uint64_t>(in.signed_varint());
    }
    e.first_slot = before.slots + slot_count;
    e.slot_count = in.varint32();
    uint16_t next[3] = {0, 0, 0};
    // Each takes two bytes at least: a false number allocates little, and ends behind the payload.
    const uint32_t room = static_cast<uint32_t>(std::min<size_t>(e.slot_count, in.left() / 2 + 1));
    if (slot_count + room > slots.size()) slots.resize(slot_count + room + slot_count / 8);
    Slot* const own = slots.data() + slot_count;
    for (uint32_t s = 0; s < room && in.ok(); ++s) {
      const uint64_t first = in.varint();
      const uint8_t kind = first & 3;
      const Form form = static_cast<Form>(first >> 2 & 3);
      if (kind > static_cast<uint8_t>(SlotKind::written)) return "a slot of an unknown kind";
      if (first / kFlagStep > kMostFlags) return "a slot of unknown flags";
      if (first & kIndexFollows) next[kind] = static_cast<uint16_t>(in.varint32());
      const uint32_t name = in.varint32();
      known &= name < strings;
      if ((first / kFlagStep & kUnreadable) && form != Form::row)
        return "an unreadable slot with a value";
      if ((first / kFlagStep & kDigestFollows) &&
          (form == Form::tensor || form == Form::value || (first / kFlagStep & kUnreadable)))
        return "a slot with a digest that it has no room for";
      Slot& slot = own[s];
      const Slot* source = nullptr;
      auto refer = [&] {
        const uint64_t distance = in.varint();
        if (distance == 0 || distance > tensors_.size()) return false;
        source = &slots[tensors_[tensors_.size() - distance]];
        return true;
      };
      if (form == Form::tensor) {
        if (!refer()) return "a slot refers to a tensor before the chunk";
        // Field by field, as they were written a moment ago: CMakeLists.txt.
        slot.meta = source->meta;
        slot.version = source->version;
        slot.storage = source->storage;
        slot.value.h = source->value.h;
        slot.value.m = source->value.m;
        slot.flat = source->flat;
        slot.digest = source->digest;
        slot.has_digest = source->has_digest;
        slot.pattern = source->pattern;
        slot.address = source->address;
        slot.size_bytes = source->size_bytes;
      } else {
        slot = {};
      }
      slot.kind = static_cast<SlotKind>(kind);
      const bool digest = first / kFlagStep & kDigestFollows;
      slot.flags = static_cast<SlotFlags>(first / kFlagStep & ~uint64_t{kDigestFollows});
      slot.index = next[kind]++;
      slot.name = name;
      if (!(slot.flags & kMask)) slot.pattern = 0;
      if (form != Form::tensor) {
        slot.meta = in.varint32();
        known &= slot.meta < metas;
        if (!known) break;  // before anything is sized by it
        slot.version = in.varint32();
        slot.storage = base.storage + static_cast<uint32_t>(in.signed_varint());
        slot.address =
            addresses_.get(slot.storage, base.address) + static_cast<uint64_t>(in.signed_varint());
        slot.size_bytes = sizes_.get(slot.meta) + static_cast<uint64_t>(in.signed_varint());
        base.storage = slot.storage;
        base.address = slot.address;
        addresses_.set(slot.storage, slot.address);
        sizes_.set(slot.meta, slot.size_bytes);
        if (!(slot.flags & kUnreadable)) {
          if (form == Form::value) {
            if (!refer()) return "a slot refers to a value before the chunk";
            slot.value = source->value;
            slot.flat = source->flat;
            slot.digest = source->digest;
            slot.has_digest = source->has_digest;
            if (slot.flags & kMask) slot.pattern = source->pattern;
          } else {
            slot.value.h = in.u64();
            slot.value.m = form == Form::full ? in.u64() : mix(slot.value.h);
            slot.flat = form == Form::full ? in.u64() : slot.value.h;
            if (digest) slot.digest = in.u64();
            slot.has_digest = digest;
            if (slot.flags & kMask) slot.pattern = in.u64();
          }
          tensors_.push_back(static_cast<uint32_t>(slot_count + s));
        }
      }
    }
    if (in.ok() && !known) return "an event refers to a string or shape that is not in the log";
    slot_count += room;
    if (events) events->push_back(e);
  }
  slots.resize(slot_count);
  return in.ok() && in.left() == 0 ? "" : "its length does not fit its content";
}

}  // namespace opguard
