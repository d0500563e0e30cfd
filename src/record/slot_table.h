// record/slot_table.h: the slots of a log: in memory, or in its file and decoded where asked for.
//
// Chunks of events decode independently, so a long log need not be in memory. A table knows where
// its chunks are, and each thread keeps the chunks it decoded last, of whatever log (about 16 MB).
// An event's slots are read through a handle, which keeps its chunk longer (event_slots.h). Read by
// any number of threads; changed by one, while nobody holds a handle.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "record/event.h"
#include "record/event_slots.h"
#include "record/file_map.h"

namespace opguard {

class SlotTable {
 public:
  SlotTable() = default;
  SlotTable(const SlotTable& other) { *this = other; }
  SlotTable& operator=(const SlotTable& other);
  SlotTable(SlotTable&& other) noexcept { *this = std::move(other); }
  SlotTable& operator=(SlotTable&& other) noexcept;

  uint64_t size() const { return file_ ? size_ - hidden_ : held_.size(); }
  bool empty() const { return size() == 0; }
  Slot operator[](uint64_t index) const { return file_ ? decoded(index, 1)[0] : held_[index]; }
  Slot back() const { return (*this)[size() - 1]; }

  // So many of one event: ProcessLog::slots_of().
  EventSlots range(uint64_t first, uint32_t count) const& {
    if (file_ && count != 0) return decoded(first, count);
    return {DecodedSlots(), file_ ? nullptr : held_.data() + first, first, count};
  }
  EventSlots range(uint64_t first, uint32_t count) const&& = delete;

  // Leaves the first `slots`.
  void truncate(uint64_t slots);
  // All of them to be changed freely, by whoever makes up a log: in memory from then on.
  std::vector<Slot>& edit();

  // What torch.empty left is garbage wherever it is read, in whatever shape, until something writes
  // there. Every slot with such elements in that block is flagged kUninitialised from now on. Where
  // the block is not known, every slot with such a value and meta.
  void flag_garbage();

  bool operator==(const SlotTable& other) const;

  // ---- For the reader.

  // Where the events of a chunk lie in the file.
  struct Chunk {
    std::string_view payload;  // behind its two counts
    uint32_t events = 0;
    uint64_t first_event = 0;  // own index
    uint64_t first_slot = 0;   // place in this table
  };
  // The chunks to come lie in this file.
  void set_file(std::shared_ptr<const FileMap> file) { file_ = std::move(file); }
  // The next chunk and what is in it. Of a table without a file only the slots are kept.
  void add(Chunk chunk, const std::vector<Slot>& slots);
  // How many strings and metas the log has: what a slot may refer to.
  void finish(uint64_t strings, uint64_t metas);

 private:
  // Block and elements; of an unknown block (0) value and meta.
  using Garbage = std::set<std::tuple<uint32_t, uint64_t, Fingerprint, uint32_t>>;

  static Garbage::value_type garbage_of(const Slot& slot);
  void note_garbage(const std::vector<Slot>& slots);
  bool is_garbage(const Slot& slot) const;

  // So many of one chunk.
  EventSlots decoded(uint64_t first, uint32_t count) const;
  uint32_t chunk_of(uint64_t index) const;
  void decode(const Chunk& chunk, uint64_t slots, std::vector<Slot>& out) const;

  std::vector<Slot> held_;
  std::shared_ptr<const FileMap> file_;
  std::vector<Chunk> chunks_;
  uint64_t size_ = 0;    // in the chunks
  uint64_t hidden_ = 0;  // of these, at their end, that truncate() leaves out
  uint64_t strings_ = 0, metas_ = 0;
  uint64_t id_ = 0;  // of this content, in the threads' caches
  Garbage uninitialised_;
  bool flagged_ = false;
  mutable std::atomic<uint32_t> last_{0};  // a guess where the next look-up falls
};

}  // namespace opguard
