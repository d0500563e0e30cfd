// Each thread has 64 decoded chunks, in 16 sets of 4. A chunk's place is in one of the sets, where
// the one used longest ago gives way.
//
//   slots 0 to 811 of a chunk      the first look-up decodes it, the others find it
//   flag_garbage()                 the table gets another id, so that all is decoded anew
//
// Where the next look-up falls is guessed: in the chunk of the last one, or the one behind it. Else
// it is found by halving.
#include "record/slot_table.h"

#include <algorithm>

#include "record/event_code.h"

namespace opguard {
namespace {

std::atomic<uint64_t> next_id{1};

// The chunks a thread decoded last.
class Cache {
 public:
  struct Entry {
    uint64_t table = 0;
    uint32_t chunk = 0;
    uint64_t used = 0;
    DecodedSlots slots;
  };

  // The entry of a chunk; `fresh`: what is in it is of another one.
  Entry& find(uint64_t table, uint32_t chunk, bool& fresh) {
    uint64_t place = (table * 0x9e3779b97f4a7c15ull) ^ (chunk * 0xbf58476d1ce4e5b9ull);
    place ^= place >> 32;
    Entry* set = entries_ + place % kSets * kWays;
    Entry* oldest = set;
    for (Entry* e = set; e != set + kWays; ++e) {
      if (e->table == table && e->chunk == chunk) {
        e->used = ++clock_;
        fresh = false;
        return *e;
      }
      if (e->used < oldest->used) oldest = e;
    }
    oldest->table = table;
    oldest->chunk = chunk;
    oldest->used = ++clock_;
    fresh = true;
    return *oldest;
  }

  EventDecoder decoder;

 private:
  static constexpr size_t kSets = 16, kWays = 4;
  Entry entries_[kSets * kWays];
  uint64_t clock_ = 0;
};

Cache& cache() {
  thread_local Cache cache;
  return cache;
}

}  // namespace

SlotTable& SlotTable::operator=(const SlotTable& other) {
  held_ = other.held_;
  file_ = other.file_;
  chunks_ = other.chunks_;
  size_ = other.size_;
  hidden_ = other.hidden_;
  strings_ = other.strings_;
  metas_ = other.metas_;
  id_ = other.id_;
  uninitialised_ = other.uninitialised_;
  flagged_ = other.flagged_;
  return *this;
}

SlotTable& SlotTable::operator=(SlotTable&& other) noexcept {
  held_ = std::move(other.held_);
  file_ = std::move(other.file_);
  chunks_ = std::move(other.chunks_);
  size_ = std::exchange(other.size_, 0);
  hidden_ = std::exchange(other.hidden_, 0);
  strings_ = other.strings_;
  metas_ = other.metas_;
  id_ = other.id_;
  uninitialised_ = std::move(other.uninitialised_);
  flagged_ = other.flagged_;
  return *this;
}

SlotTable::Garbage::value_type SlotTable::garbage_of(const Slot& slot) {
  if (slot.storage == 0 || slot.flat == 0) return {0, 0, slot.value, slot.meta};
  return {slot.storage, slot.flat, {}, 0};
}

void SlotTable::note_garbage(const std::vector<Slot>& slots) {
  const Slot* read = nullptr;  // garbage that the slot before this one reads
  for (const Slot& slot : slots) {
    // `empty(2, n)[0]`: what is handed on of the block in the same version is garbage as well.
    const bool view = read != nullptr && slot.kind == SlotKind::out && slot.storage != 0 &&
                      slot.storage == read->storage && slot.version == read->version;
    if (((slot.flags & kUninitialised) || view) && slot.value != Fingerprint{})
      uninitialised_.insert(garbage_of(slot));
    read = slot.kind == SlotKind::in && is_garbage(slot) ? &slot : nullptr;
  }
}

bool SlotTable::is_garbage(const Slot& slot) const {
  return uninitialised_.contains(garbage_of(slot));
}

void SlotTable::add(Chunk chunk, const std::vector<Slot>& slots) {
  note_garbage(slots);
  if (!file_) {
    held_.insert(held_.end(), slots.begin(), slots.end());
    return;
  }
  file_->give_back(chunk.payload);
  if (slots.empty()) return;
  chunk.first_slot = size_;
  chunks_.push_back(chunk);
  size_ += slots.size();
}

void SlotTable::finish(uint64_t strings, uint64_t metas) {
  strings_ = strings;
  metas_ = metas;
  id_ = next_id++;
}

uint32_t SlotTable::chunk_of(uint64_t index) const {
  auto holds = [&](uint64_t chunk) {
    return chunk < chunks_.size() && chunks_[chunk].first_slot <= index &&
           (chunk + 1 == chunks_.size() || index < chunks_[chunk + 1].first_slot);
  };
  const uint32_t guess = last_.load(std::memory_order_relaxed);
  if (holds(guess)) return guess;
  uint32_t found = guess + 1;
  if (!holds(found)) {
    auto after = std::upper_bound(chunks_.begin(), chunks_.end(), index,
                                  [](uint64_t i, const Chunk& c) { return i < c.first_slot; });
    found = static_cast<uint32_t>(after - chunks_.begin() - 1);
  }
  last_.store(found, std::memory_order_relaxed);
  return found;
}

// What an earlier handle holds stays as it is: the cache takes other memory where somebody still
// reads.
EventSlots SlotTable::decoded(uint64_t first, uint32_t count) const {
  const uint32_t at = chunk_of(first);
  bool fresh = false;
  Cache::Entry& entry = cache().find(id_, at, fresh);
  if (fresh) {
    const uint64_t end = at + 1 < chunks_.size() ? chunks_[at + 1].first_slot : size_;
    decode(chunks_[at], end - chunks_[at].first_slot, entry.slots.renew());
  }
  return {entry.slots, entry.slots.data() + (first - chunks_[at].first_slot), first, count};
}

void SlotTable::decode(const Chunk& chunk, uint64_t slots, std::vector<Slot>& out) const {
  Cache& mine = cache();
  const std::vector<EventDecoder::Stretch> stretches = {{chunk.first_event, 0}};
  const std::string wrong =
      mine.decoder.take(chunk.payload, chunk.events, stretches, {strings_, metas_}, out, nullptr);
  file_->give_back(chunk.payload);
  // It was whole when the log was read: someone has written into the file since.
  if (!wrong.empty() || out.size() != slots) {
    Slot lost;
    lost.flags = kUnreadable;
    lost.name = 0;
    lost.meta = 0;
    out.assign(slots, lost);
  }
  if (!flagged_) return;
  for (Slot& slot : out)
    if (is_garbage(slot)) slot.flags |= kUninitialised;
}

std::vector<Slot>& SlotTable::edit() {
  if (file_) {
    std::vector<Slot> all;
    all.reserve(size());
    for (uint64_t i = 0; i < size(); ++i) all.push_back((*this)[i]);
    *this = {};
    held_ = std::move(all);
  }
  return held_;
}

void SlotTable::truncate(uint64_t slots) {
  if (slots >= size()) return;
  // A chunk is decoded whole: what it holds beyond is only not shown.
  if (file_)
    hidden_ = size_ - slots;
  else
    held_.resize(slots);
}

void SlotTable::flag_garbage() {
  if (!file_) {
    note_garbage(held_);
    for (Slot& slot : held_)
      if (is_garbage(slot)) slot.flags |= kUninitialised;
    return;
  }
  if (uninitialised_.empty()) return;
  flagged_ = true;
  id_ = next_id++;
}

bool SlotTable::operator==(const SlotTable& other) const {
  if (size() != other.size()) return false;
  for (uint64_t i = 0; i < size(); ++i)
    if (!((*this)[i] == other[i])) return false;
  return true;
}

}  // namespace opguard
