#include "store/digest.h"

#include <algorithm>
#include <filesystem>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/xxhash.h"
#include "support/diagnostics.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;

constexpr size_t kHexDigits = 32;

}  // namespace

std::string digest_of(std::string_view bytes) {
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  const llvm::XXH128_hash_t hash = llvm::xxh3_128bits(llvm::ArrayRef<uint8_t>(data, bytes.size()));
  return llvm::utohexstr(hash.high64, /*LowerCase=*/true, kHexDigits / 2) +
         llvm::utohexstr(hash.low64, /*LowerCase=*/true, kHexDigits / 2);
}

// A large file is mapped and not copied (MemoryBuffer).
llvm::Expected<std::string> digest_of_file(const std::string& path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer) return make_error("cannot read '" + path + "': " + buffer.getError().message());
  const llvm::StringRef bytes = (*buffer)->getBuffer();
  return digest_of({bytes.data(), bytes.size()});
}

llvm::Expected<std::vector<FileDigest>> manifest_of(const std::string& folder,
                                                    const std::string& except) {
  std::vector<FileDigest> manifest;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code none;
    // A link counts as what it leads to; folders and pipes are left out, so an empty folder changes
    // no id.
    if (!it->is_regular_file(none)) continue;
    FileDigest file;
    file.name = it->path().lexically_relative(folder).generic_string();
    if (file.name == except) continue;
    file.bytes = it->file_size(none);
    auto digest = digest_of_file(it->path().string());
    if (!digest) return digest.takeError();
    file.digest = std::move(*digest);
    manifest.push_back(std::move(file));
  }
  if (error) return make_error("cannot read '" + folder + "': " + error.message());
  std::sort(manifest.begin(), manifest.end(),
            [](const FileDigest& a, const FileDigest& b) { return a.name < b.name; });
  return manifest;
}

std::string format_manifest(const std::vector<FileDigest>& manifest) {
  std::string text;
  for (const FileDigest& file : manifest)
    text += file.digest + " " + std::to_string(file.bytes) + " " + file.name + "\n";
  return text;
}

llvm::Expected<std::vector<FileDigest>> parse_manifest(const std::string& text) {
  std::vector<FileDigest> manifest;
  llvm::StringRef rest = text;
  for (size_t line = 1; !rest.empty(); ++line) {
    const auto [first, after] = rest.split('\n');
    rest = after;
    // At the first two blanks alone: a name may hold some.
    const auto [digest, sized] = first.split(' ');
    const auto [bytes, name] = sized.split(' ');
    FileDigest file{name.str(), 0, digest.str()};
    if (digest.size() != kHexDigits || bytes.getAsInteger(10, file.bytes) || name.empty())
      return make_error("line " + std::to_string(line) + " is not a digest, a size and a name");
    manifest.push_back(std::move(file));
  }
  return manifest;
}

}  // namespace opguard
