// record/chunk_finder.h: where the whole chunks of a log lie, be it cut or damaged.
//
//   header | strings | events (a bit flipped) | strings | events | end of file
//   find_chunk(at the first events)    "the chunk of events is damaged (checksum)"
//   next_chunk(one byte further)       the strings behind them
//
// What a chunk says of its length is believed only as far as its header's own checksum holds.
// Counterexample: the flipped bit may be the length's. To step over the chunk by it would leap over
// good chunks or into the middle of one.
//
// Cost: find_chunk() reads the chunk once. A search looks for the three bytes that a chunk begins
// with. What it checksums in vain is at most 8 times the file, also of a hostile one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "record/format.h"

namespace opguard {

// A chunk as it lies in the file, its checksums good.
struct RawChunk {
  format::Chunk type = format::Chunk::end;
  uint32_t count = 0;
  std::string_view payload;
  size_t size() const { return format::kChunkHeaderSize + payload.size(); }
};

// "" or what is wrong with the header of a chunk, at the beginning of `bytes`. It tells the type,
// the count and how long the payload is.
std::string check_chunk_header(std::string_view bytes, uint32_t salt, RawChunk& chunk,
                               uint32_t& length);
// The chunk at the beginning of `bytes`.
std::string check_chunk(std::string_view bytes, uint32_t salt, RawChunk& chunk);

class ChunkFinder {
 public:
  // `bytes`: a whole file, which stays where it is.
  explicit ChunkFinder(std::string_view bytes)
      : bytes_(bytes), budget_(8 * uint64_t{bytes.size()}) {}

  // Before all else. "" or why the file is no log this reader can read. `cut`: it ends in its
  // header; version() is known otherwise.
  std::string check_header(bool& cut);
  uint32_t version() const { return version_; }
  uint32_t salt() const { return salt_; }

  // "" or what is wrong with the chunk at `at`.
  std::string find_chunk(size_t at, RawChunk& chunk) const;
  // The first whole chunk at `at` or behind it; the file's size if there is none.
  size_t next_chunk(size_t at, RawChunk& chunk);

 private:
  std::string_view bytes_;
  uint64_t budget_;  // bytes a search may still checksum in vain
  uint32_t version_ = 0, salt_ = 0;
};

}  // namespace opguard
