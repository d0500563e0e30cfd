// Texts wait as they came, events are coded as they come. A chunk of events is full at 64 KiB or
// 4096 events, and then all that waits is written before it.
//
// The salt is a checksum of what tells one process from all others: rank, world, pid and start.
#include "record/chunk_maker.h"

#include <utility>

#include "record/crc.h"
#include "record/format.h"

namespace opguard {

using namespace format;

namespace {

void append(ChunkText& to, const ChunkText& from) {
  to.bytes += from.bytes;
  to.count += from.count;
}

// A chunk of `text`, which is empty afterwards. first: the index of its first entry, where readers
// are told it; counted on.
void put_text_chunk(std::string& out, uint32_t salt, Chunk type, ChunkText& text,
                    uint32_t* first = nullptr) {
  if (text.count == 0) return;
  std::string payload;
  if (first != nullptr) put_varint(payload, std::exchange(*first, *first + text.count));
  payload += text.bytes;
  put_chunk(out, salt, type, text.count, payload);
  text.bytes.clear();
  text.count = 0;
}

}  // namespace

std::string ChunkMaker::start(int32_t rank, int32_t world, int64_t pid, int64_t start_ns,
                              bool cut) {
  std::string process, out;
  put_signed(process, rank);
  put_signed(process, world);
  put_signed(process, pid);
  put_signed(process, start_ns);
  salt_ = crc32c(0, process.data(), process.size());
  put_header(out, salt_, cut ? kVersion : kOneFileVersion);
  put_chunk(out, salt_, Chunk::process, 1, process);
  return out;
}

std::string ChunkMaker::end(const ChunkedSoFar& held, uint64_t lost, uint64_t chunks,
                            uint64_t chain) const {
  std::string payload, out;
  put_varint(payload, held.events);
  put_varint(payload, held.slots);
  put_varint(payload, lost);
  put_varint(payload, held.observations);
  put_varint(payload, chunks);
  put_u64(payload, chain);
  put_chunk(out, salt_, Chunk::end, 1, payload);
  return out;
}

void ChunkMaker::add_texts(const Batch& batch) {
  append(settings_, batch.settings);
  append(strings_, batch.strings);
  append(schemas_, batch.schemas);
  append(metas_, batch.metas);
  append(locations_, batch.locations);
  append(sketches_, batch.sketches);
  gaps_.insert(gaps_.end(), batch.gaps.begin(), batch.gaps.end());
}

void ChunkMaker::add(const Event& event, const Slot* slots) {
  encoder_.add(event, slots, event.slot_count, next_event());
  pending_records_ += records_of(event.slot_count);
  if (encoder_.bytes().size() >= chunk_bytes_ || sketches_.bytes.size() >= chunk_bytes_ ||
      encoder_.events() >= chunk_events_)
    finish_chunk();
}

void ChunkMaker::add(const ObservedHead& head, std::string_view values) {
  observations_.add(head, values);
  if (observations_.bytes().size() >= chunk_bytes_) finish_chunk();
}

void ChunkMaker::lose(uint64_t records) { gaps_.push_back({next_event(), records}); }

// Texts, losses, events, sketches, observations: each kind behind what it refers to.
void ChunkMaker::finish_chunk() {
  put_text_chunk(bytes_, salt_, Chunk::settings, settings_);
  put_text_chunk(bytes_, salt_, Chunk::strings, strings_, &first_string_);
  put_text_chunk(bytes_, salt_, Chunk::schemas, schemas_, &first_schema_);
  put_text_chunk(bytes_, salt_, Chunk::metas, metas_, &first_meta_);
  put_text_chunk(bytes_, salt_, Chunk::locations, locations_);
  // Losses before the events around them: a log cut behind this chunk shows a hole too many, never
  // one too few.
  if (!gaps_.empty()) {
    std::string payload;
    for (const Gap& gap : gaps_) {
      put_varint(payload, gap.event);
      put_varint(payload, gap.records);
    }
    put_chunk(bytes_, salt_, Chunk::lost, static_cast<uint32_t>(gaps_.size()), payload);
    gaps_.clear();
  }
  if (encoder_.events() > 0) put_events();
  put_text_chunk(bytes_, salt_, Chunk::sketches, sketches_);
  if (observations_.rows() > 0) put_observations();
}

// Where it begins is told in front: the event's number and the slot's.
void ChunkMaker::put_events() {
  std::string payload;
  payload.reserve(encoder_.bytes().size() + 16);
  put_varint(payload, chunked_.events);
  put_varint(payload, chunked_.slots);
  payload += encoder_.bytes();
  put_chunk(bytes_, salt_, Chunk::events, encoder_.events(), payload);
  chunked_.events += encoder_.events();
  chunked_.slots += encoder_.slots();
  chunked_.records += std::exchange(pending_records_, 0);
  encoder_.clear();
}

void ChunkMaker::put_observations() {
  std::string payload;
  payload.reserve(observations_.bytes().size() + 8);
  put_varint(payload, chunked_.observations);
  payload += observations_.bytes();
  put_chunk(bytes_, salt_, Chunk::observations, observations_.rows(), payload);
  chunked_.observations += observations_.rows();
  chunked_.records += observations_.rows();
  observations_.clear();
}

}  // namespace opguard
