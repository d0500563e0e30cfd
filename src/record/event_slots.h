// record/event_slots.h: the slots of one event, for as long as they are looked at.
//
// A log's slots are decoded chunk by chunk, and a thread keeps only the chunks it read last. This
// handle keeps the chunk of its event as well, so what it shows stays, whatever is read meanwhile:
//
//   for (const Slot& slot : log.slots_of(event))
//     if (made_before(slot)) ...   // reads other events: `slot` is as it was
//
//   const EventSlots slots = log.slots_of(event);   // with a name where an index is wanted
//   for (const Slot& slot : slots) found.push_back({ref, slots.index_of(slot)});
//
// A pointer into a handle that nobody holds does not compile: `log.slots_of(event).begin()`.
// A handle lives in the scope that read it: it is neither copied nor moved, so counting is not
// atomic. It costs that count beside the look-up. The table outlives it, unchanged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "record/event.h"

namespace opguard {

// Slots of a chunk, owned by those who hold it, of one thread: its cache, and handles.
class DecodedSlots {
 public:
  DecodedSlots() = default;
  DecodedSlots(const DecodedSlots& other) : chunk_(other.chunk_) {
    if (chunk_) ++chunk_->holders;
  }
  DecodedSlots& operator=(const DecodedSlots&) = delete;
  ~DecodedSlots() { let_go(); }

  const Slot* data() const { return chunk_->slots.data(); }
  // To be filled anew: in place, unless someone else still looks at what is there.
  std::vector<Slot>& renew() {
    if (!chunk_ || chunk_->holders > 1) {
      let_go();
      chunk_ = new Chunk;
    }
    return chunk_->slots;
  }

 private:
  struct Chunk {
    std::vector<Slot> slots;
    uint32_t holders = 1;
  };
  void let_go() {
    if (chunk_ && --chunk_->holders == 0) delete chunk_;
    chunk_ = nullptr;
  }

  Chunk* chunk_ = nullptr;
};

class EventSlots {
 public:
  // Not a pointer, which would let a std::span be made of a handle that is gone at once.
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Slot;
    using difference_type = std::ptrdiff_t;
    using pointer = const Slot*;
    using reference = const Slot&;
    Iterator() = default;
    explicit Iterator(const Slot* at) : at_(at) {}
    const Slot& operator*() const { return *at_; }
    const Slot* operator->() const { return at_; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) { return Iterator(at_++); }
    bool operator==(const Iterator&) const = default;

   private:
    const Slot* at_ = nullptr;
  };

  // `first` lies in `chunk`, or in memory that outlives the handle. In its log it is `index`.
  EventSlots(const DecodedSlots& chunk, const Slot* first, uint64_t index, uint32_t count)
      : chunk_(chunk), first_(first), index_(index), count_(count) {}
  EventSlots(const EventSlots&) = delete;
  EventSlots& operator=(const EventSlots&) = delete;

  uint32_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  const Slot& operator[](size_t place) const& { return first_[place]; }
  Slot operator[](size_t place) const&& { return first_[place]; }
  // Its index in ProcessLog::slots. `slot` is what this handle shows, no copy of it.
  uint64_t index_of(const Slot& slot) const { return index_ + uint64_t(&slot - first_); }
  uint64_t index_of(const Slot&&) const = delete;
  Iterator begin() const& { return Iterator(first_); }
  Iterator end() const& { return Iterator(first_ + count_); }
  Iterator begin() const&& = delete;
  Iterator end() const&& = delete;

 private:
  const DecodedSlots chunk_;
  const Slot* const first_;
  const uint64_t index_;
  const uint32_t count_;
};

}  // namespace opguard
