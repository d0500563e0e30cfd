// record/event_code.h: what both ends of a chunk of events remember while they code it.
//
//   out0 of matmul             place and value, about 25 bytes: from now on tensor 5 of the chunk
//   self of relu behind it     "tensor 5": 3 bytes, or some more where flags are set
//
// A chunk needs no other: all of this starts afresh in each, so a damaged one costs no more than
// itself. Counterexample: a table that lived through the file would code better, and a flipped bit
// would spoil every event behind it.
//
// The cost: 4096 addresses and the chunk's tensors, at each end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "record/event.h"

namespace opguard {

class ByteWriter;

// What the next event is coded against.
struct EventBase {
  uint8_t kinds = 0, flags = 0;
  uint32_t step = 0, micro_batch = 0, thread = 0, storage = 0;
  uint64_t end_ns = 0, device_end_ns = 0, address = 0;
};

// The address last seen of each storage, so that a tensor read again costs no address.
class StorageAddresses {
 public:
  // Of a storage not seen in this chunk: `fallback`. Remembers `address` afterwards through set().
  uint64_t get(uint32_t storage, uint64_t fallback) const {
    const Entry& e = entries_[place(storage)];
    return e.chunk == chunk_ && e.storage == storage ? e.address : fallback;
  }
  void set(uint32_t storage, uint64_t address) {
    entries_[place(storage)] = {chunk_, storage, address};
  }
  void clear() { ++chunk_; }

 private:
  // Storages are numbered one after the other, so the low bits spread them; of two that meet, the
  // later one stays. Both ends forget alike.
  static constexpr uint32_t kSize = 4096;
  static uint32_t place(uint32_t storage) { return storage % kSize; }
  struct Entry {
    uint64_t chunk = 0;
    uint32_t storage = 0;
    uint64_t address = 0;
  };
  std::vector<Entry> entries_ = std::vector<Entry>(kSize);
  uint64_t chunk_ = 1;
};

// The span last seen of each meta.
class MetaSizes {
 public:
  uint64_t get(uint32_t meta) const {
    return meta < entries_.size() && entries_[meta].chunk == chunk_ ? entries_[meta].size : 0;
  }
  void set(uint32_t meta, uint64_t size) {
    if (meta >= entries_.size()) entries_.resize(size_t{meta} + 1);
    entries_[meta] = {chunk_, size};
  }
  void clear() { ++chunk_; }

 private:
  struct Entry {
    uint64_t chunk = 0, size = 0;
  };
  std::vector<Entry> entries_;
  uint64_t chunk_ = 1;
};

// Events -> the payload of a chunk.
class EventEncoder {
 public:
  EventEncoder();
  // `index`: the event's in the log.
  void add(const Event& event, const Slot* slots, size_t slot_count, uint64_t index);

  std::string_view bytes() const { return {bytes_.data(), size_}; }
  uint32_t events() const { return events_; }
  uint64_t slots() const { return slots_; }
  void clear();

 private:
  void put_event(ByteWriter& out, const Event& event, size_t slot_count, uint64_t index);
  void put_slot(ByteWriter& out, const Slot& slot, uint16_t expected_index);

  std::vector<char> bytes_;  // of which `size_` are written; the rest is room
  size_t size_ = 0;
  uint32_t events_ = 0;
  uint64_t slots_ = 0;
  EventBase base_;
  StorageAddresses addresses_;
  MetaSizes sizes_;
  // The tensors of the chunk, and where each value was last.
  std::vector<Slot> tensors_;
  struct Known {
    uint64_t chunk = 0;
    uint32_t tensor = 0;
  };
  std::vector<Known> known_;
  uint64_t chunk_ = 1;
};

// The payload of a chunk -> events.
class EventDecoder {
 public:
  // Where the events of a log are: their own indexes (ProcessLog::events has no holes).
  struct Stretch {
    uint64_t first = 0;  // own index of its first event
    uint64_t at = 0;     // its place in ProcessLog::events
  };

  // What there is before a chunk.
  struct Before {
    uint64_t strings = 0, metas = 0;
    uint64_t events = 0, slots = 0;  // in ProcessLog
  };

  // `slots`: those of the `count` events of a chunk, in place of what was there. `events`: null, or
  // an empty list for the events themselves. "" or what is wrong; the caller then drops them.
  // `stretches`: the last one is this chunk's.
  std::string take(std::string_view payload, uint32_t count, const std::vector<Stretch>& stretches,
                   const Before& before, std::vector<Slot>& slots, std::vector<Event>* events);

 private:
  StorageAddresses addresses_;
  MetaSizes sizes_;
  std::vector<uint32_t> tensors_;  // of the chunk: its slots
};

}  // namespace opguard
