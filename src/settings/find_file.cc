#include "settings/find_file.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace opguard {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

bool is_repository(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / ".git", error) || fs::exists(folder / ".hg", error);
}

// The repository that holds the folder, else the folder itself.
fs::path last_folder(const fs::path& folder) {
  for (fs::path at = folder;; at = at.parent_path()) {
    if (is_repository(at)) return at;
    if (at == at.parent_path()) return folder;
  }
}

// By words, not by parsing: a file with a fault that speaks of us is to be complained of, and
// another one is not ours.
bool speaks_of_us(const fs::path& path) {
  if (!is_file(path)) return false;
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const bool dotted = text.find("tool.opguard") != std::string::npos;
  return dotted ||
         (text.find("[tool]") != std::string::npos && text.find("opguard") != std::string::npos);
}

}  // namespace

std::optional<FoundFile> find_settings_file(const std::string& folder) {
  std::error_code error;
  const fs::path start = fs::absolute(folder, error).lexically_normal();
  // The last one that is looked into.
  const fs::path last = last_folder(start);
  for (fs::path at = start;; at = at.parent_path()) {
    const bool project = speaks_of_us(at / kProjectFile);
    if (is_file(at / kOwnFile)) return FoundFile{(at / kOwnFile).string(), project};
    if (project) return FoundFile{(at / kProjectFile).string()};
    if (at == last || at == at.parent_path()) return std::nullopt;
  }
}

}  // namespace opguard
