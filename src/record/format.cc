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
    case Chunk::lost:
      return "lost";
    case Chunk::end:
      return "end";
  }
  return "unknown";
}

void put_chunk(std::string& out, Chunk type, uint32_t count, std::string_view payload) {
  size_t begin = out.size();
  put_u32(out, static_cast<uint32_t>(type));
  put_u32(out, static_cast<uint32_t>(payload.size()));
  put_u32(out, count);
  // The checksum covers the header too: a flipped length must not be believed.
  uint32_t crc = crc32c(0, out.data() + begin, 12);
  put_u32(out, crc32c(crc, payload.data(), payload.size()));
  out.append(payload);
}

}  // namespace opguard::format
