// How events become those of a file that begins with the first step that is held:
//
//   added as                41    42    43    44    45
//   held                    -     -     43    44    45     43 is the first
//   in the file                         0     1     2
//   45 is inside 42..44     its `begin` becomes 0, the first there is
//   45 belongs to 41        its `forward` becomes none
//
// Occurrences are counted anew. An event that began in a forgotten step is not written, and those
// behind it move up.
#include "record/step_ring.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace opguard {
namespace {

constexpr size_t kFlushBytes = size_t{8} << 20;  // a writer's queue is bounded, and drops beyond
constexpr uint32_t kNumbers = 0x7fffffff;        // above are those of captured graphs

}  // namespace

size_t StepRing::Step::size_bytes() const {
  return events.size() * sizeof(Event) + slots.size() * sizeof(Slot) + sketches.size() +
         sketch_sizes.size() * sizeof(uint32_t) + observations.size() * sizeof(ObservedHead) +
         observed.size();
}

void StepRing::begin(uint32_t steps, size_t most_bytes) {
  steps_ = steps;
  most_bytes_ = most_bytes;
  clear();
}

void StepRing::clear() {
  held_.clear();
  bytes_ = 0;
  went_early_ = 0;
}

bool StepRing::empty() const {
  return std::all_of(held_.begin(), held_.end(),
                     [](const Step& s) { return s.events.empty() && s.observations.empty(); });
}

void StepRing::forget_first() {
  bytes_ -= held_.front().size_bytes();
  held_.pop_front();
}

// A step in which nothing happened leaves no trace. The bound is looked at here, so a step is
// forgotten as a whole.
void StepRing::begin_step(uint32_t step) {
  if (!held_.empty() && held_.back().events.empty() && held_.back().observations.empty() &&
      held_.back().lost == 0)
    held_.pop_back();
  if (!held_.empty()) {
    held_.back().slots.shrink_to_fit();
    bytes_ += held_.back().size_bytes();
  }
  while (held_.size() >= steps_ && !held_.empty()) forget_first();
  for (; bytes_ > most_bytes_ && !held_.empty(); ++went_early_) forget_first();
  Step& begun = held_.emplace_back();
  begun.step = step;
  begun.first = added_;
}

// The step in progress alone may fill the ring: then it loses what comes.
uint32_t StepRing::add(const Event& event, const std::vector<Slot>& slots,
                       std::string_view sketches) {
  if (held_.empty()) begin_step(event.step);
  Step& now = held_.back();
  if (now.size_bytes() > most_bytes_) {
    now.lost += std::max<uint64_t>(slots.size(), 1);
    return kNone;
  }
  now.events.push_back(event);
  now.events.back().slot_count = static_cast<uint32_t>(slots.size());
  now.slots.insert(now.slots.end(), slots.begin(), slots.end());
  if (!sketches.empty()) {
    now.sketch_sizes.resize(now.events.size());
    now.sketch_sizes.back() = static_cast<uint32_t>(sketches.size());
    now.sketches += sketches;
  }
  return static_cast<uint32_t>(added_++ & kNumbers);
}

void StepRing::observe(const ObservedHead& head, std::string_view values) {
  if (held_.empty()) begin_step(head.step);
  Step& now = held_.back();
  if (now.size_bytes() > most_bytes_) {
    ++now.lost;
    return;
  }
  now.observations.push_back(head);
  now.observed += values;
}

// Slots that turn out to be none are taken out, and what is behind them moves up.
void StepRing::settle(LateValues& late) {
  for (size_t i = 0; i + 1 < held_.size(); ++i) {
    Step& step = held_[i];
    const bool waits = std::any_of(step.slots.begin(), step.slots.end(),
                                   [](const Slot& slot) { return slot.flags & kPending; });
    if (!waits || !late.fetch(step.slots, 0)) continue;
    bytes_ -= step.size_bytes();
    size_t from = 0, to = 0;
    for (Event& event : step.events) {
      const size_t count = event.slot_count;
      const CompletedSlots done = complete_slots(late, event, step.slots.data() + from);
      step.lost += done.lost;
      std::move(step.slots.begin() + from, step.slots.begin() + from + done.left,
                step.slots.begin() + to);
      from += count;
      to += done.left;
    }
    step.slots.resize(to);
    bytes_ += step.size_bytes();
  }
}

StepWindow StepRing::window() const {
  StepWindow window;
  bool any = false;
  for (const Step& step : held_) {
    if (step.events.empty() && step.observations.empty()) continue;
    if (!std::exchange(any, true)) window.from = step.step;
    window.to = step.step;
  }
  return window;
}

// before: as in write().
void StepRing::write_observations(const Step& step, const std::vector<uint32_t>& before,
                                  uint32_t written, LogWriter& writer) const {
  const uint64_t first = held_.front().first;
  std::string_view values = step.observed;
  size_t queued = 0;
  for (ObservedHead head : step.observations) {
    const uint64_t event = head.event > first ? head.event - first : 0;
    head.event = event < before.size() ? before[event] : written;
    writer.observe(head, values.substr(0, head.bytes));
    values.remove_prefix(head.bytes);
    queued += sizeof head + head.bytes;
    if (queued < kFlushBytes) continue;
    writer.flush();
    queued = 0;
  }
}

void StepRing::write(LogWriter& writer) const {
  if (held_.empty()) return;
  const uint64_t first = held_.front().first;
  const auto first_number = static_cast<uint32_t>(first & kNumbers);
  std::map<std::tuple<uint32_t, EventKind, Phase, uint32_t>, uint32_t> occurrences;
  std::vector<Slot> slots;
  std::vector<uint32_t> numbers;  // in the file, of each event that is held; kNone: not written
  std::vector<uint32_t> before;   // of each: how many are written before it
  uint32_t written = 0;
  size_t queued = 0;
  for (const Step& step : held_) {
    size_t slot = 0, sketch = 0;
    for (size_t i = 0; i < step.events.size(); ++i) {
      Event event = step.events[i];
      const size_t from = slot, of_sketch = sketch;
      const uint32_t size = i < step.sketch_sizes.size() ? step.sketch_sizes[i] : 0;
      slot += event.slot_count;
      sketch += size;
      before.push_back(written);
      // One that ended here began in a step that is forgotten.
      numbers.push_back(event.step < held_.front().step ? kNone : written);
      if (numbers.back() == kNone) continue;
      const uint64_t begin = event.begin > first ? event.begin - first : 0;
      event.begin = begin < before.size() ? before[begin] : written;
      if (event.forward != kNone) {
        const uint32_t forward = (event.forward - first_number) & kNumbers;
        event.forward = forward + 1 < numbers.size() ? numbers[forward] : kNone;
      }
      event.occurrence = occurrences[{event.boundary, event.kind, event.phase, event.node}]++;
      slots.assign(step.slots.begin() + from, step.slots.begin() + slot);
      writer.add(event, slots, std::string_view(step.sketches).substr(of_sketch, size));
      ++written;
      queued += sizeof(Event) + slots.size() * sizeof(Slot) + size;
      if (queued < kFlushBytes) continue;
      writer.flush();
      queued = 0;
    }
    write_observations(step, before, written, writer);
    if (step.lost > 0) writer.lose(step.lost);
  }
  writer.flush();
}

}  // namespace opguard
