#include "patcher/abbreviation.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>

#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

namespace opguard {
namespace {

constexpr size_t kLeast = 7;                  // git's FALLBACK_DEFAULT_ABBREV
constexpr int64_t kMinimum = 4;               // git's MINIMUM_ABBREV
constexpr uint64_t kFanOutEnd = 8 + 255 * 4;  // gitformat-pack: the last entry is the count

// How many objects git thinks there are: those in packs.
uint64_t packed_objects(git_repository* repository) {
  std::string folder = std::string(git_repository_commondir(repository)) + "objects/pack";
  uint64_t count = 0;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator file(folder, error), end; file != end && !error;
       file.increment(error)) {
    if (!llvm::StringRef(file->path()).ends_with(".idx")) continue;
    auto last = llvm::MemoryBuffer::getFileSlice(file->path(), 4, kFanOutEnd);
    if (last && (*last)->getBufferSize() == 4)
      count += llvm::support::endian::read32be((*last)->getBufferStart());
  }
  return count;
}

// core.abbrev, or as repo_find_unique_abbrev_r() of git's object-name.c: half of the digits that
// the objects need to be numbered.
size_t least_digits(git_repository* repository) {
  GitHandle<git_config, git_config_free> config;
  git_config* raw = nullptr;
  if (git_repository_config_snapshot(&raw, repository) == 0) {
    config.reset(raw);
    const char* text = nullptr;
    if (git_config_get_string(&text, raw, "core.abbrev") == 0 && text != nullptr) {
      std::string value = llvm::StringRef(text).lower();
      int64_t digits = 0;
      int truth = 1;
      if (value == "auto") {
      } else if (git_config_parse_int64(&digits, text) == 0) {
        // git refuses numbers out of these bounds
        if (digits >= kMinimum && digits <= GIT_OID_HEXSZ) return static_cast<size_t>(digits);
      } else if (git_config_parse_bool(&truth, text) == 0 && !truth) {
        return GIT_OID_HEXSZ;
      }
    }
  }
  return std::max(kLeast,
                  (static_cast<size_t>(std::bit_width(packed_objects(repository))) + 1) / 2);
}

}  // namespace

Abbreviation::Abbreviation(git_repository* repository) {
  if (repository == nullptr) return;
  least_ = least_digits(repository);
  git_odb* raw = nullptr;
  if (git_repository_odb(&raw, repository) == 0) objects_.reset(raw);
}

std::string Abbreviation::of(std::string_view hex) const {
  git_oid own, prefix, found;
  size_t digits = std::min(least_, hex.size());
  if (!objects_ || git_oid_fromstrn(&own, hex.data(), hex.size()) != 0)
    return std::string(hex.substr(0, digits));
  for (; digits < hex.size(); ++digits) {
    if (git_oid_fromstrn(&prefix, hex.data(), digits) != 0) break;
    int code = git_odb_exists_prefix(&found, objects_.get(), &prefix, digits);
    if (code == GIT_ENOTFOUND || (code == 0 && git_oid_equal(&found, &own))) break;
  }
  return std::string(hex.substr(0, digits));
}

}  // namespace opguard
