// record/event_table.h: the events of a log in memory, 40 bytes each.
//
//   events 0 to 999 of one training loop        Packed     step, occurrence, times, first slot
//   the same boundary, thread, arguments, ...   Form       kept once, named by number
//
// What is the same in many events is kept once. Counterexample: times, step and occurrence differ
// in nearly every event, so they are not in a form. What few events have (a duration above 4 s, a
// collective's number, a device's times) lies in lists of its own.
//
// Read by any number of threads; changed by one. operator[] makes the Event anew, 112 bytes. Who
// looks at one field of every event asks for that one: kind, phase, step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "record/event.h"

namespace opguard {

class EventTable {
 public:
  uint64_t size() const { return is_loose_ ? loose_.size() : packed_.size(); }
  bool empty() const { return size() == 0; }
  Event operator[](uint64_t index) const { return is_loose_ ? loose_[index] : unpack(index); }
  Event back() const { return (*this)[size() - 1]; }

  // One field, for what looks at every event of a long log.
  EventKind kind(uint64_t index) const { return is_loose_ ? loose_[index].kind : form(index).kind; }
  Phase phase(uint64_t index) const { return is_loose_ ? loose_[index].phase : form(index).phase; }
  uint8_t flags(uint64_t index) const {
    return is_loose_ ? loose_[index].flags : form(index).flags;
  }
  uint32_t thread(uint64_t index) const {
    return is_loose_ ? loose_[index].thread : form(index).thread;
  }
  uint32_t step(uint64_t index) const {
    return is_loose_ ? loose_[index].step : packed_[index].step;
  }

  // The last event whose slots begin at `slot` or before it.
  uint64_t of_slot(uint64_t slot) const;

  // `event.begin` is at most its index.
  void push_back(const Event& event);
  void reserve(uint64_t events) { packed_.reserve(events); }
  // No further push_back: what only that needs is given back.
  void finish();
  // Leaves the first `events`.
  void truncate(uint64_t events);
  // All of them to be changed freely, by whoever makes up a log: 112 bytes each from then on.
  std::vector<Event>& edit();

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Event;
    using difference_type = std::ptrdiff_t;
    using pointer = const Event*;
    using reference = Event;
    Iterator(const EventTable& table, uint64_t at) : table_(&table), at_(at) {}
    Event operator*() const { return (*table_)[at_]; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    const EventTable* table_;
    uint64_t at_;
  };
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size()}; }

  bool operator==(const EventTable& other) const;

 private:
  // What recurs.
  struct Form {
    uint32_t boundary, node, scalars, results, group, micro_batch, thread, slot_count, stream;
    EventKind kind;
    Phase phase;
    uint8_t flags;
    bool operator==(const Form&) const = default;
  };
  struct Packed {
    uint32_t form, step, occurrence, forward;
    uint32_t inside;       // index - Event::begin
    uint32_t duration_ns;  // kLong: look in ends_
    uint64_t start_ns, first_slot;
  };
  static constexpr uint32_t kLong = 0xffffffffu;

  const Form& form(uint64_t index) const { return forms_[packed_[index].form]; }
  Event unpack(uint64_t index) const;
  // What few events have.
  void unpack_rare(uint64_t index, Event& event) const;
  uint32_t form_of(const Form& form);
  void grow_index();

  std::vector<Packed> packed_;
  std::vector<Form> forms_;
  std::vector<uint32_t> index_;  // forms by hash, open addressing; kNone: free
  // Of the few events that have them, by index.
  std::vector<std::pair<uint64_t, uint64_t>> ends_;       // Event::end_ns
  std::vector<std::pair<uint64_t, uint32_t>> sequences_;  // Event::sequence
  struct DeviceTimes {
    uint64_t start_ns = 0, end_ns = 0;
  };
  std::vector<std::pair<uint64_t, DeviceTimes>> device_times_;
  std::vector<Event> loose_;
  bool is_loose_ = false;
};

// Here, so that whoever looks at some fields of every event pays for those alone.
inline Event EventTable::unpack(uint64_t index) const {
  const Packed& p = packed_[index];
  const Form& f = forms_[p.form];
  Event e;
  e.boundary = f.boundary;
  e.kind = f.kind;
  e.phase = f.phase;
  e.flags = f.flags;
  e.step = p.step;
  e.micro_batch = f.micro_batch;
  e.occurrence = p.occurrence;
  e.thread = f.thread;
  e.begin = index - p.inside;
  e.forward = p.forward;
  e.node = f.node;
  e.scalars = f.scalars;
  e.results = f.results;
  e.group = f.group;
  e.start_ns = p.start_ns;
  e.end_ns = p.start_ns + p.duration_ns;
  e.first_slot = p.first_slot;
  e.slot_count = f.slot_count;
  if (p.duration_ns == kLong || (f.flags & (kCollective | kOnDevice))) unpack_rare(index, e);
  return e;
}

}  // namespace opguard
