// A chunk takes part by the two checksums of its header, which stand for all its bytes.
//
//   chain of A, B    mix((mix((0 + k) ^ a) + k) ^ b)
//   chain of B, A    another number: mix() is no sum
#include "record/chunk_chain.h"

#include "record/format.h"

namespace opguard {

using namespace format;

void ChunkChain::add(const char* header) {
  value_ = mix((value_ + 0x9e3779b97f4a7c15u) ^ load_u64(header + 12));  // both its checksums
  ++chunks_;
}

void ChunkChain::add_all(std::string_view chunks) {
  for (; !chunks.empty(); chunks.remove_prefix(kChunkHeaderSize + load_u32(chunks.data() + 4)))
    add(chunks.data());
}

}  // namespace opguard
