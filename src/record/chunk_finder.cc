// A chunk is checked from its front: the mark, the header's checksum, the length, the payload's
// checksum. The fault that is told is the first of these.
//
// next_chunk() tries each place where the mark stands, also within payloads. What it checksums in
// vain comes off a budget; once that is used up it finds nothing more.
#include "record/chunk_finder.h"

#include <algorithm>
#include <cstring>

#include "record/crc.h"

namespace opguard {

using namespace format;

std::string ChunkFinder::check_header(bool& cut) {
  const size_t n = std::min(bytes_.size(), sizeof kMagic);
  if (std::memcmp(bytes_.data(), kMagic, n) != 0) return "not an opguard log";
  cut = bytes_.size() < kHeaderSize;
  // The version first: what follows it may be laid out otherwise.
  if (bytes_.size() >= sizeof kMagic + 4) {
    const uint32_t version = load_u32(bytes_.data() + 8);
    // Formats 1 to 3 had 16 bytes of header, the checksum behind the version.
    const size_t covered = version < 4 ? 12 : 16;
    const bool whole = bytes_.size() >= covered + 4 &&
                       load_u32(bytes_.data() + covered) == crc32c(0, bytes_.data(), covered);
    if (!whole && !cut) return "the header (byte 0) is damaged";
    if (whole && (version < kOldestVersion || version > kVersion))
      return "log format version " + std::to_string(version) + "; this opguard reads versions " +
             std::to_string(kOldestVersion) + " to " + std::to_string(kVersion);
  }
  if (cut) return "";
  version_ = load_u32(bytes_.data() + 8);
  salt_ = load_u32(bytes_.data() + 12);
  return "";
}

std::string check_chunk_header(std::string_view bytes, uint32_t salt, RawChunk& chunk,
                               uint32_t& length) {
  if (bytes.size() < kChunkHeaderSize) return "cut short in the header of a chunk";
  const uint32_t crc = crc32c(salt, bytes.data(), 12);
  if (std::memcmp(bytes.data(), kMark, sizeof kMark) != 0 || crc != load_u32(bytes.data() + 12))
    return "the header of a chunk is damaged";
  chunk.type = static_cast<Chunk>(bytes[3]);
  chunk.count = load_u32(bytes.data() + 8);
  length = load_u32(bytes.data() + 4);
  if (length > kMaxPayload)
    return std::string("the chunk of ") + chunk_name(chunk.type) + " is longer than any";
  return "";
}

std::string check_chunk(std::string_view bytes, uint32_t salt, RawChunk& chunk) {
  uint32_t length = 0;
  if (std::string wrong = check_chunk_header(bytes, salt, chunk, length); !wrong.empty())
    return wrong;
  const std::string name = chunk_name(chunk.type);
  if (length > bytes.size() - kChunkHeaderSize) return "the chunk of " + name + " is cut short";
  chunk.payload = bytes.substr(kChunkHeaderSize, length);
  if (crc32c(load_u32(bytes.data() + 12), chunk.payload.data(), length) !=
      load_u32(bytes.data() + 16))
    return "the chunk of " + name + " is damaged (checksum)";
  return "";
}

std::string ChunkFinder::find_chunk(size_t at, RawChunk& chunk) const {
  return check_chunk(bytes_.substr(at), salt_, chunk);
}

size_t ChunkFinder::next_chunk(size_t at, RawChunk& chunk) {
  const std::string_view mark(kMark, sizeof kMark);
  for (; (at = bytes_.find(mark, at)) != std::string_view::npos; ++at) {
    chunk = {};
    if (find_chunk(at, chunk).empty()) return at;
    // A hostile file may promise long chunks everywhere.
    if (chunk.payload.size() > budget_) break;
    budget_ -= chunk.payload.size();
  }
  return bytes_.size();
}

}  // namespace opguard
