// record/chunk_chain.h: what binds the chunks of a log to each other.
//
// Each chunk has checksums of its own, so one that is dropped, doubled or moved as a whole leaves
// all checksums good. The end of the log holds the chain of all chunks before it; a reader compares
// it with the chain of what it read.
//
// Not a CRC of the chunks: a CRC that runs over bytes and then over their CRC no longer depends on
// the bytes. The chain multiplies instead, which also tells one order from another.
// Cost: one multiplication a chunk.
#pragma once

#include <cstdint>
#include <string_view>

namespace opguard {

class ChunkChain {
 public:
  // The chunk that begins at `header`.
  void add(const char* header);
  // Whole chunks, one after the other.
  void add_all(std::string_view chunks);

  uint64_t chunks() const { return chunks_; }
  uint64_t value() const { return value_; }

 private:
  uint64_t chunks_ = 0, value_ = 0;
};

}  // namespace opguard
