// The calls of a log's writer: they append to memory, and count (writer.h).
//
// Two threads meet in batch_ alone, under `filling_`, for as long as a few copies take. A call that
// finds its batch full wakes the log's thread, and goes on.
//
//   64 MiB wait             what comes is dropped and counted: one gap
//   32 MiB wait             what comes is recorded again
//
// Counterexample: to begin again as soon as one record fits. There would be thousands of gaps.
#include <sched.h>

#include <utility>

#include "record/format.h"
#include "record/limits.h"
#include "record/writer.h"

namespace opguard {

using namespace format;

size_t LogWriter::MetaHash::operator()(const Meta& meta) const {
  uint64_t h = std::hash<std::string_view>()(meta.dtype) ^ meta.device.size();
  for (int64_t n : meta.shape) h = (h ^ static_cast<uint64_t>(n)) * 0x9e3779b97f4a7c15u;
  return static_cast<size_t>(h ^ h >> 32);
}

void LogWriter::set(const std::map<std::string, std::string>& settings) {
  const Filling filling(filling_);
  if (stopped_) return;
  for (const auto& [key, value] : settings) {
    format::put_text(batch_.settings.bytes, key);
    format::put_text(batch_.settings.bytes, value);
    ++batch_.settings.count;
  }
}

uint32_t LogWriter::string(std::string_view text) {
  if (auto it = string_index_.find(text); it != string_index_.end()) return it->second;
  const uint32_t index = static_cast<uint32_t>(string_index_.size());
  string_index_.emplace(text, index);
  const Filling filling(filling_);
  if (stopped_) return index;
  format::put_text(batch_.strings.bytes, text);
  ++batch_.strings.count;
  return index;
}

// A log holds shapes of so many dimensions at most (limits.h). The last is the product of what is
// beyond, so that the number of elements stays.
static Meta folded(Meta meta) {
  uint64_t rest = 1;
  for (; meta.shape.size() >= kMostDimensions; meta.shape.pop_back())
    rest *= static_cast<uint64_t>(meta.shape.back());
  meta.shape.push_back(static_cast<int64_t>(rest));
  return meta;
}

uint32_t LogWriter::meta(const Meta& meta) {
  if (meta.shape.size() > kMostDimensions) return this->meta(folded(meta));
  auto [it, fresh] = meta_index_.try_emplace(meta, static_cast<uint32_t>(meta_index_.size()));
  if (fresh) {
    const Filling filling(filling_);
    if (stopped_) return it->second;
    std::string& out = batch_.metas.bytes;
    format::put_text(out, meta.dtype);
    format::put_text(out, meta.device);
    put_varint(out, meta.shape.size());
    for (int64_t n : meta.shape) put_signed(out, n);
    ++batch_.metas.count;
  }
  return it->second;
}

void LogWriter::locate(const std::string& boundary, const Location& at) {
  const Filling filling(filling_);
  if (stopped_) return;
  std::string& out = batch_.locations.bytes;
  for (const std::string* s :
       {&boundary, &at.package, &at.file, &at.path, &at.text, &at.callee, &at.function})
    format::put_text(out, *s);
  for (uint32_t n : {at.line, at.column, at.end_line, at.end_column}) put_varint(out, n);
  ++batch_.locations.count;
}

uint32_t LogWriter::schema(const ObservationSchema& schema) {
  const uint32_t index = schemas_++;
  const Filling filling(filling_);
  if (stopped_) return index;
  std::string& out = batch_.schemas.bytes;
  put_varint(out, schema.kind);
  put_varint(out, schema.fields.size());
  for (const uint32_t field : schema.fields) put_varint(out, field);
  ++batch_.schemas.count;
  return index;
}

// Held for a few copies only: whoever finds it held has not long to wait.
LogWriter::Filling::Filling(std::atomic_flag& held) : held_(held) {
  while (held_.test_and_set(std::memory_order_acquire)) sched_yield();
}

// By the calls alone, which come one at a time: no other thread adds to it.
template <typename Count>
static Count count_on(std::atomic<Count>& count, Count more) {
  const Count before = count.load(std::memory_order_relaxed);
  count.store(before + more, std::memory_order_relaxed);
  return before;
}

bool LogWriter::dropping(size_t size) {
  const size_t used = queued_bytes_.load(std::memory_order_relaxed) + size;
  // Not one by one at the edge: a few long gaps say more than many short ones.
  dropping_ = used > (dropping_ ? limits_.queue_bytes / 2 : limits_.queue_bytes);
  return dropping_ || no_room_.load(std::memory_order_relaxed);
}

void LogWriter::note_loss(uint64_t records) {
  count_on(made_, records);
  dropped_.fetch_add(records, std::memory_order_relaxed);
  const uint64_t event = events_.load(std::memory_order_relaxed);
  if (!batch_.gaps.empty() && batch_.gaps.back().event == event)
    batch_.gaps.back().records += records;
  else
    batch_.gaps.push_back({event, records});
}

uint32_t LogWriter::add(const Event& event, const std::vector<Slot>& slots,
                        std::string_view sketches) {
  const uint64_t records = records_of(slots.size());
  uint32_t index = 0;
  bool first = false, full = false;
  {
    const Filling filling(filling_);
    if (stopped_.load(std::memory_order_relaxed)) {
      count_on(made_, records);
      return kNone;
    }
    const size_t size = batch_.size_bytes() + sizeof event + slots.size() * sizeof(Slot);
    if (dropping(size + sketches.size())) {
      note_loss(records);
      return kNone;
    }
    batch_.events.push_back(event);
    batch_.events.back().slot_count = static_cast<uint32_t>(slots.size());
    batch_.slots.insert(batch_.slots.end(), slots.begin(), slots.end());
    count_on(made_, records);
    index = count_on(events_, 1u);
    if (!sketches.empty()) {
      put_varint(batch_.sketches.bytes, index);
      batch_.sketches.bytes += sketches;
      ++batch_.sketches.count;
    }
    first = batch_.events.size() == 1;
    full = size + sketches.size() >= limits_.batch_bytes;
  }
  if ((first && limits_.thread) || full) pass_on(full);
  return index;
}

bool LogWriter::observe(const ObservedHead& head, std::string_view values) {
  bool first = false, full = false;
  {
    const Filling filling(filling_);
    if (stopped_.load(std::memory_order_relaxed)) {
      count_on<uint64_t>(made_, 1);
      return false;
    }
    const size_t size = batch_.size_bytes() + sizeof head + values.size();
    if (dropping(size)) {
      note_loss(1);
      return false;
    }
    batch_.observations.push_back(head);
    batch_.observed += values;
    count_on<uint64_t>(made_, 1);
    first = batch_.observations.size() == 1;
    full = size >= limits_.batch_bytes;
  }
  if ((first && limits_.thread) || full) pass_on(full);
  return true;
}

void LogWriter::lose(uint64_t records) {
  const Filling filling(filling_);
  if (stopped_.load(std::memory_order_relaxed))
    count_on(made_, records);
  else
    note_loss(records);
}

}  // namespace opguard
