// store/digest.h: what a folder holds, as a list of names, sizes and digests; and one digest of it.
//
//   kept.json 812 5c0d...                 manifest_of("runs/new-x1y2z3")
//   log/rank0.log 48211 91aa...
//   -> "f3a1c07e5d0b9c42..."              id_of(manifest)
//
// Two folders of one id hold the same bytes under the same names. The digest is XXH3's of 128 bits
// (Collet): it finds damage, and no attack.
//
// The cost: reading every byte, some gigabytes a second from memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "llvm/Support/Error.h"

namespace opguard {

struct FileDigest {
  std::string name;  // below the folder, '/' separated
  uint64_t bytes = 0;
  std::string digest;  // 32 hex digits
  bool operator==(const FileDigest&) const = default;
};

// 32 hex digits.
std::string digest_of(std::string_view bytes);
// Error: it cannot be read.
llvm::Expected<std::string> digest_of_file(const std::string& path);

// Of every regular file below the folder but `except`, sorted by name.
llvm::Expected<std::vector<FileDigest>> manifest_of(const std::string& folder,
                                                    const std::string& except = "");

// A line a file.
std::string format_manifest(const std::vector<FileDigest>& manifest);
// Error, one sentence: a line has another form.
llvm::Expected<std::vector<FileDigest>> parse_manifest(const std::string& text);

}  // namespace opguard
