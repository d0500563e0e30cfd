// An event is taken in word by word, each behind the one before, in two states. What comes of it is
// added to its step. So within an event order counts, and among events it does not.
//
//   step 7 = e1 + e2 + e3 = e3 + e1 + e2
#include "record/step_digest.h"

#include <cstring>

#include "record/format.h"
#include "record/generators.h"

namespace opguard {

using namespace format;

namespace {

constexpr uint64_t kOdd = 0x9e3779b97f4a7c15u, kOtherOdd = 0xc2b2ae3d27d4eb4fu;
// Blocks are numbered anew for ever, so old ones are forgotten all together.
constexpr size_t kMostGarbage = 1 << 16;
constexpr size_t kMostGroups = 1 << 20;

// Two states that take in one word after the other.
void take_in(uint64_t& a, uint64_t& b, uint64_t word) {
  a = mix((a ^ word) + kOdd);
  b = mix((b + word) ^ kOtherOdd);
}

uint64_t hash_of(std::string_view bytes) {
  uint64_t a = bytes.size(), b = kOtherOdd;
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) take_in(a, b, load_u64(bytes.data()));
  char rest[8] = {};
  std::memcpy(rest, bytes.data(), bytes.size());
  take_in(a, b, load_u64(rest));
  return a ^ b;
}

// What two runs compare of a shape: its type and sizes. The device is none of it.
uint64_t meta_hash(Cursor& in) {
  uint64_t a = hash_of(in.text()), b = 1;
  in.text();
  const uint64_t dimensions = in.varint();
  take_in(a, b, dimensions);
  for (uint64_t i = 0; i < dimensions && in.ok(); ++i) take_in(a, b, in.varint());
  return a ^ b;
}

}  // namespace

uint64_t StepDigester::text(uint32_t string) const {
  return string < strings_.size() ? strings_[string] : kOtherOdd;
}

// By content: two logs number the same text differently.
void StepDigester::add_texts(const Batch& batch) {
  Cursor strings(batch.strings.bytes);
  for (uint32_t i = 0; i < batch.strings.count; ++i) {
    const std::string text = strings.text();
    if (of_generators(text)) of_generators_.insert(static_cast<uint32_t>(strings_.size()));
    strings_.push_back(hash_of(text));
    modules_.add_text(text);
  }
  Cursor metas(batch.metas.bytes);
  for (uint32_t i = 0; i < batch.metas.count; ++i) metas_.push_back(meta_hash(metas));
}

bool StepDigester::is_garbage(const Slot& slot) const {
  if (slot.storage == 0 || slot.flat == 0) return false;
  const auto at = garbage_.find(slot.storage);
  return at != garbage_.end() && at->second == slot.flat;
}

void StepDigester::note_garbage(const Slot& slot) {
  if (slot.storage == 0 || slot.flat == 0) return;
  if (garbage_.size() >= kMostGarbage) garbage_.clear();
  garbage_[slot.storage] = slot.flat;
}

void StepDigester::digest_slot(const Slot& slot, uint64_t& a, uint64_t& b) {
  const bool uninitialised = slot.flags & kUninitialised;
  if (uninitialised) note_garbage(slot);
  const bool has_value = !uninitialised && !(slot.flags & kUnreadable) && !is_garbage(slot);
  const uint64_t meta = slot.meta < metas_.size() ? metas_[slot.meta] : 0;
  const uint64_t place = uint64_t(slot.kind) | uint64_t{slot.index} << 8 |
                         uint64_t{slot.flags} << 24 | uint64_t{slot.has_digest} << 40 |
                         uint64_t{has_value} << 41;
  take_in(a, b, place ^ text(slot.name) ^ (meta << 21 | meta >> 43));
  if (!has_value) return;
  take_in(a, b, slot.value.h);
  take_in(a, b, slot.value.m);
}

bool StepDigester::is_moved(const Slot& slot) {
  GeneratorState& state = generators_.try_emplace(slot.name, slot.value).first->second;
  state.moved |= slot.value != state.first;
  return state.moved;
}

// exact: of the event without its slots. A generator that one run alone has is no difference, as
// long as nobody draws from it.
void StepDigester::add_generators(const Event& event, const Slot* slots, StepDigest exact) {
  StepDigest moved = exact;
  bool all_moved = true;
  for (uint32_t i = 0; i < event.slot_count; ++i) {
    if (slots[i].flags & kUnreadable) continue;
    Slot state = slots[i];
    state.index = 0;  // by name
    digest_slot(state, exact.a, exact.b);
    if (is_moved(state))
      digest_slot(state, moved.a, moved.b);
    else
      all_moved = false;
  }
  GeneratorDigest& now = now_.generators;
  now.moved += moved.a ^ moved.b;
  now.exact += exact.a ^ exact.b;
  now.unmoved += !all_moved;
  ++now.events;
}

// An event of an earlier step, which ended in this one, says by how many steps it is late.
void StepDigester::add(const Event& event, const Slot* slots) {
  if (!began_ || event.step > now_.step) {
    finish();
    now_.step = event.step;
    began_ = true;
  }
  uint64_t a = kOdd, b = kOtherOdd;
  take_in(a, b, text(event.boundary));
  take_in(a, b,
          uint64_t(event.kind) | uint64_t(event.phase) << 8 | uint64_t{event.flags} << 16 |
              uint64_t{now_.step - event.step} << 32);
  take_in(a, b, event.occurrence | uint64_t{event.micro_batch} << 32);
  // kNone is another text than any that a log has, the empty one too.
  for (const uint32_t string : {event.node, event.scalars, event.results, event.group})
    take_in(a, b, text(string));
  ++now_.events;
  now_.records += event.slot_count;
  if (event.kind == EventKind::state && of_generators_.contains(event.boundary))
    return add_generators(event, slots, {a, b});
  take_in(a, b, event.sequence | uint64_t{event.slot_count} << 32);
  for (uint32_t i = 0; i < event.slot_count; ++i) digest_slot(slots[i], a, b);
  now_.digest.a += a;
  now_.digest.b += b;
  if (now_.groups.size() <= kMostGroups)
    now_.groups.push_back({event.micro_batch, event.boundary, modules_.of(event.boundary),
                           event.phase, static_cast<uint32_t>(a)});
}

void StepDigester::finish() {
  if (!began_) return;
  if (now_.groups.size() > kMostGroups) now_.groups = {};
  const size_t groups = now_.groups.size();
  over_.push_back(std::exchange(now_, {}));
  now_.groups.reserve(groups);  // of a step like this one
  began_ = false;
}

}  // namespace opguard
