#include "session/slices.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>
#include <vector>

#include "align/pair/run.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/CRC.h"
#include "support/write_file.h"

namespace opguard {

std::string slices_of(const Run& candidate) {
  std::set<int32_t> ranks;
  std::set<std::vector<int64_t>> shapes;
  for (const ProcessLog& log : candidate.processes) {
    ranks.insert(log.rank);
    for (const Meta& meta : log.metas)
      if (!meta.shape.empty()) shapes.insert(meta.shape);
  }
  std::string text = "world " + std::to_string(std::max<size_t>(ranks.size(), 1)) + "\n";
  if (ranks.size() < 2) return text;
  for (const auto& shape : shapes) {
    text += "shape";
    for (const int64_t n : shape) text += " " + std::to_string(n);
    text += "\n";
  }
  return text;
}

std::string slices_digest(const std::string& text) {
  char digest[9];
  const llvm::ArrayRef<uint8_t> bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  std::snprintf(digest, sizeof digest, "%08x", llvm::crc32(bytes));
  return digest;
}

llvm::Expected<std::string> slices_file(const std::string& given, const std::string& file) {
  if (!std::filesystem::is_directory(given)) return std::filesystem::absolute(given).string();
  auto run = load_run(given);
  if (!run) return run.takeError();
  if (auto error = write_file(file, slices_of(*run))) return error;
  return file;
}

}  // namespace opguard
