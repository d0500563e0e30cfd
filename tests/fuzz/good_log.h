// tests/fuzz/good_log.h: bytes that pass for a log's. Checksums would stop nearly every mutation,
// so they are made good first, chunk by chunk as far as the lengths lead. So is what binds the
// chunks at the end.
#pragma once

#include <string>
#include <string_view>

#include "fuzz/fuzz.h"
#include "record/chunk_chain.h"
#include "record/crc.h"
#include "record/format.h"
#include "record/record.h"

namespace opguard {

inline void put_at(std::string& bytes, size_t at, uint32_t value) {
  for (int i = 0; i < 4; ++i) bytes[at + i] = static_cast<char>(value >> (8 * i));
}

// The end's count and chain, in the room that its payload has for them.
inline void bind_end(std::string& bytes, size_t at, size_t length, const ChunkChain& chain) {
  format::Cursor in(std::string_view(bytes).substr(at, length));
  for (int i = 0; i < 4; ++i) in.varint();
  if (!in.ok() || in.left() < 9 || in.left() > 8 + 9) return;
  at += length - in.left();
  uint64_t count = chain.chunks();
  for (size_t left = in.left() - 8; left > 0; --left, count >>= 7)
    bytes[at++] = static_cast<char>((count & 0x7f) | (left > 1 ? 0x80 : 0));
  put_at(bytes, at, static_cast<uint32_t>(chain.value()));
  put_at(bytes, at + 4, static_cast<uint32_t>(chain.value() >> 32));
}

inline std::string with_checksums(std::string_view input, uint32_t version) {
  std::string bytes(input);
  if (bytes.size() < format::kHeaderSize) return bytes;
  bytes.replace(0, sizeof format::kMagic, format::kMagic, sizeof format::kMagic);
  put_at(bytes, 8, version);
  put_at(bytes, 16, crc32c(0, bytes.data(), 16));
  const uint32_t salt = format::load_u32(bytes.data() + 12);
  ChunkChain chain;
  for (size_t at = format::kHeaderSize; bytes.size() - at >= format::kChunkHeaderSize;) {
    bytes.replace(at, 3, format::kMark, 3);
    const size_t length = format::load_u32(bytes.data() + at + 4);
    const uint32_t crc = crc32c(salt, bytes.data() + at, 12);
    put_at(bytes, at + 12, crc);
    if (length > bytes.size() - at - format::kChunkHeaderSize) break;
    if (bytes[at + 3] == static_cast<char>(format::Chunk::end))
      bind_end(bytes, at + format::kChunkHeaderSize, length, chain);
    put_at(bytes, at + 16, crc32c(crc, bytes.data() + at + format::kChunkHeaderSize, length));
    chain.add(bytes.data() + at);
    at += format::kChunkHeaderSize + length;
  }
  return bytes;
}

// What holds of each log that was read, however little of it was.
inline void require_whole(const ProcessLog& log) {
  require(log.closed == log.damage.empty(), "closed, or told why not");
  uint64_t slots = 0;
  for (size_t i = 0; i < log.events.size(); ++i) {
    const Event& e = log.events[i];
    require(e.first_slot == slots && e.begin <= i, "events are where they say");
    require(e.forward == kNone || e.forward < log.events.size(), "forward is an event");
    require(e.boundary < log.strings.size(), "boundary is a string");
    for (uint32_t s : {e.node, e.scalars, e.results, e.group})
      require(s == kNone || s < log.strings.size(), "texts are strings");
    slots += e.slot_count;
  }
  require(slots == log.slots.size(), "slots belong to events");
  for (const Gap& gap : log.gaps) require(gap.event <= log.events.size(), "gaps are in the log");
}

}  // namespace opguard
