// A text of 5 MB becomes its first 1024 bytes, "...#" and 16 digits. Two such texts that differ in
// their last byte alone stay two.
#include "record/limits.h"

#include <cinttypes>
#include <cstdint>
#include <cstdio>

namespace opguard {

std::string kept_text(std::string text, size_t longest) {
  if (text.size() <= longest) return text;
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3u;
  size_t cut = kKeptText;
  while (cut > 0 && (text[cut] & 0xc0) == 0x80) --cut;  // never inside a character
  char digest[24];
  std::snprintf(digest, sizeof digest, "...#%016" PRIx64, hash);
  return text.substr(0, cut) + digest;
}

}  // namespace opguard
