// Forms are found by hash, with open addressing; the index is twice as large as their number at
// least. What few events have is found by halving.
//
//   event 7, 3 ms                  its duration lies in Packed
//   event 9, 5 s                   kLong, and {9, end} in ends_
//   all of one operator's calls    one form, if thread, micro-batch and texts are equal as well
#include "record/event_table.h"

#include <algorithm>

namespace opguard {
namespace {

uint64_t mix_in(uint64_t state, uint64_t value) {
  uint64_t x = (state ^ value) * 0x9e3779b97f4a7c15ull;
  return x ^ (x >> 29);
}

// 0 where it has none.
template <typename Value>
Value rare(const std::vector<std::pair<uint64_t, Value>>& values, uint64_t index) {
  auto at = std::lower_bound(values.begin(), values.end(), index,
                             [](const auto& value, uint64_t i) { return value.first < i; });
  return at != values.end() && at->first == index ? at->second : Value{};
}

}  // namespace

void EventTable::unpack_rare(uint64_t index, Event& e) const {
  if (packed_[index].duration_ns == kLong) e.end_ns = rare(ends_, index);
  if (e.flags & kCollective) e.sequence = rare(sequences_, index);
  if (e.flags & kOnDevice) {
    const DeviceTimes times = rare(device_times_, index);
    e.stream = form(index).stream;
    e.device_start_ns = times.start_ns;
    e.device_end_ns = times.end_ns;
  }
}

uint64_t EventTable::of_slot(uint64_t slot) const {
  uint64_t first = 0, count = size();  // those before `first` begin at `slot` or before it
  while (count > 0) {
    const uint64_t half = count / 2, middle = first + half;
    const uint64_t begins = is_loose_ ? loose_[middle].first_slot : packed_[middle].first_slot;
    if (begins <= slot) {
      first = middle + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return first - 1;
}

void EventTable::push_back(const Event& e) {
  if (is_loose_) return loose_.push_back(e);
  const uint64_t index = packed_.size();
  if (e.sequence != 0) sequences_.push_back({index, e.sequence});
  if (e.flags & kOnDevice) device_times_.push_back({index, {e.device_start_ns, e.device_end_ns}});
  uint64_t duration = e.end_ns - e.start_ns;
  if (duration >= kLong) {
    duration = kLong;
    ends_.push_back({index, e.end_ns});
  }
  const uint32_t form = form_of({e.boundary, e.node, e.scalars, e.results, e.group, e.micro_batch,
                                 e.thread, e.slot_count, e.stream, e.kind, e.phase, e.flags});
  packed_.push_back({form, e.step, e.occurrence, e.forward, static_cast<uint32_t>(index - e.begin),
                     static_cast<uint32_t>(duration), e.start_ns, e.first_slot});
}

// The number of an equal form, or of this one from now on.
uint32_t EventTable::form_of(const Form& form) {
  if (forms_.size() * 2 >= index_.size()) grow_index();
  auto hash = [](const Form& f) {
    uint64_t h = mix_in(uint64_t{f.boundary} << 32 | f.node, uint64_t{f.scalars} << 32 | f.results);
    h = mix_in(h, uint64_t{f.group} << 32 | f.micro_batch);
    h = mix_in(h, uint64_t{f.thread} << 32 | f.slot_count);
    h = mix_in(h, f.stream);
    return mix_in(h, uint64_t(f.kind) << 16 | uint64_t(f.phase) << 8 | f.flags);
  };
  const size_t mask = index_.size() - 1;
  size_t at = hash(form) & mask;
  for (; index_[at] != kNone; at = (at + 1) & mask)
    if (forms_[index_[at]] == form) return index_[at];
  forms_.push_back(form);
  return index_[at] = static_cast<uint32_t>(forms_.size() - 1);
}

void EventTable::grow_index() {
  std::vector<Form> forms = std::move(forms_);
  forms_.clear();
  forms_.reserve(forms.size() + 1);
  index_.assign(std::max<size_t>(64, forms.size() * 4), kNone);
  for (const Form& form : forms) form_of(form);
}

// Room for events that never came stays: it was not touched, and to move the others is dear.
void EventTable::finish() { index_ = {}; }

void EventTable::truncate(uint64_t events) {
  if (events >= size()) return;
  if (is_loose_) return loose_.resize(events);
  packed_.resize(events);
  auto cut = [events](auto& rare) {
    while (!rare.empty() && rare.back().first >= events) rare.pop_back();
  };
  cut(ends_);
  cut(sequences_);
  cut(device_times_);
}

std::vector<Event>& EventTable::edit() {
  if (!is_loose_) {
    std::vector<Event> all;
    all.reserve(packed_.size());
    for (uint64_t i = 0; i < packed_.size(); ++i) all.push_back(unpack(i));
    *this = {};
    loose_ = std::move(all);
    is_loose_ = true;
  }
  return loose_;
}

bool EventTable::operator==(const EventTable& other) const {
  if (size() != other.size()) return false;
  for (uint64_t i = 0; i < size(); ++i)
    if (!((*this)[i] == other[i])) return false;
  return true;
}

}  // namespace opguard
