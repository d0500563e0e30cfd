// A log of any bytes. Checksums would stop nearly every mutation, so they are made good first,
// chunk by chunk as far as the lengths lead. So is what binds the chunks at the end.
#include "fuzz/fuzz.h"
#include "record/chunk_chain.h"
#include "record/crc.h"
#include "record/format.h"
#include "record/record.h"

using namespace opguard;

namespace {

void put(std::string& bytes, size_t at, uint32_t value) {
  for (int i = 0; i < 4; ++i) bytes[at + i] = static_cast<char>(value >> (8 * i));
}

// The end's count and chain, in the room that its payload has for them.
void bind(std::string& bytes, size_t at, size_t length, const ChunkChain& chain) {
  format::Cursor in(std::string_view(bytes).substr(at, length));
  for (int i = 0; i < 4; ++i) in.varint();
  if (!in.ok() || in.left() < 9 || in.left() > 8 + 9) return;
  at += length - in.left();
  uint64_t count = chain.chunks();
  for (size_t left = in.left() - 8; left > 0; --left, count >>= 7)
    bytes[at++] = static_cast<char>((count & 0x7f) | (left > 1 ? 0x80 : 0));
  put(bytes, at, static_cast<uint32_t>(chain.value()));
  put(bytes, at + 4, static_cast<uint32_t>(chain.value() >> 32));
}

std::string with_checksums(std::string_view input) {
  std::string bytes(input);
  if (bytes.size() < format::kHeaderSize) return bytes;
  bytes.replace(0, sizeof format::kMagic, format::kMagic, sizeof format::kMagic);
  const bool cut = bytes[8] == static_cast<char>(format::kVersion);
  put(bytes, 8, cut ? format::kVersion : format::kOneFileVersion);
  put(bytes, 16, crc32c(0, bytes.data(), 16));
  const uint32_t salt = format::load_u32(bytes.data() + 12);
  ChunkChain chain;
  for (size_t at = format::kHeaderSize; bytes.size() - at >= format::kChunkHeaderSize;) {
    bytes.replace(at, 3, format::kMark, 3);
    const size_t length = format::load_u32(bytes.data() + at + 4);
    const uint32_t crc = crc32c(salt, bytes.data() + at, 12);
    put(bytes, at + 12, crc);
    if (length > bytes.size() - at - format::kChunkHeaderSize) break;
    if (bytes[at + 3] == static_cast<char>(format::Chunk::end))
      bind(bytes, at + format::kChunkHeaderSize, length, chain);
    put(bytes, at + 16, crc32c(crc, bytes.data() + at + format::kChunkHeaderSize, length));
    chain.add(bytes.data() + at);
    at += format::kChunkHeaderSize + length;
  }
  return bytes;
}

void look(std::string_view bytes, bool salvage) {
  ProcessLog log;
  std::string error;
  if (!parse_log(bytes, log, error, {.salvage = salvage})) {
    require(!error.empty(), "a refusal says why");
    return;
  }
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
  for (uint64_t i = 0; i < log.slots.size(); ++i) {
    const Slot slot = log.slots[i];
    require(slot.name < log.strings.size() && slot.meta < log.metas.size(),
            "slots refer to entries");
  }
  for (const Gap& gap : log.gaps) require(gap.event <= log.events.size(), "gaps are in the log");
  uint64_t rows = 0;
  ObservationCursor cursor(log.observations);
  for (Observation row; cursor.next(row); ++rows) {
    require(row.schema < log.observations.schemas().size(), "rows have a schema");
    require(row.event <= log.events.size(), "rows are in the log");
    for (const ObservedValue& value : row.values)
      require(value.kind != ObservedKind::text || value.text < log.strings.size(),
              "texts are strings");
    for (size_t i = 0; i < row.starts.size(); ++i)
      require(!row.field(i).empty(), "a field has a value");
  }
  require(rows == log.observations.size(), "all rows are there");
  dump(log);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = text_of(data, size);
  const std::string whole = with_checksums(input);
  for (bool salvage : {false, true}) {
    look(input, salvage);
    look(whole, salvage);
  }
  return 0;
}
