// A chunk, in bytes:
//
//   3 "opg"   1 type   4 length   4 count   4 checksum   4 checksum of the payload   payload
//
// The first checksum is of the twelve bytes before it, and begins with the salt. The second goes on
// from the first: a good payload behind another header is noticed.
#include "record/format.h"

#include "record/crc.h"

namespace opguard::format {

const char* chunk_name(Chunk type) {
  switch (type) {
    case Chunk::process:
      return "process";
    case Chunk::settings:
      return "settings";
    case Chunk::strings:
      return "strings";
    case Chunk::metas:
      return "metas";
    case Chunk::locations:
      return "locations";
    case Chunk::events:
      return "events";
    case Chunk::sketches:
      return "sketches";
    case Chunk::observations:
      return "observations";
    case Chunk::schemas:
      return "schemas";
    case Chunk::lost:
      return "lost";
    case Chunk::segments:
      return "segments";
    case Chunk::removed:
      return "removed segments";
    case Chunk::end:
      return "end";
  }
  return "unknown";
}

void put_header(std::string& out, uint32_t salt, uint32_t version) {
  size_t begin = out.size();
  out.append(kMagic, sizeof kMagic);
  put_u32(out, version);
  put_u32(out, salt);
  put_u32(out, crc32c(0, out.data() + begin, out.size() - begin));
}

void put_chunk(std::string& out, uint32_t salt, Chunk type, uint32_t count,
               std::string_view payload) {
  size_t begin = out.size();
  out.append(kMark, sizeof kMark);
  out.push_back(static_cast<char>(type));
  put_u32(out, static_cast<uint32_t>(payload.size()));
  put_u32(out, count);
  // The header has a checksum of its own. A flipped length must not be believed. Nor need a search
  // for the next whole chunk read a payload for every three bytes that look like a mark.
  uint32_t crc = crc32c(salt, out.data() + begin, 12);
  put_u32(out, crc);
  put_u32(out, crc32c(crc, payload.data(), payload.size()));
  out.append(payload);
}

}  // namespace opguard::format
