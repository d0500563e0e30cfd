#include "support/install.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

namespace opguard {
namespace {

namespace fs = std::filesystem;

// Symbolic links are resolved, so a link to the program in another bin/ finds its own data.
fs::path executable_dir() {
  std::error_code ec;
  fs::path exe = fs::read_symlink("/proc/self/exe", ec);
  return ec ? fs::path() : exe.parent_path();
}

// PREFIX/lib/python3*/{site,dist}-packages/opguard, newest Python last in name order.
std::vector<fs::path> installed_packages(const fs::path& bin) {
  std::vector<fs::path> found;
  std::error_code ec;
  for (fs::directory_iterator it(bin.parent_path() / "lib", ec), end; !ec && it != end;
       it.increment(ec)) {
    if (it->path().filename().string().rfind("python3", 0) != 0) continue;
    for (const char* packages : {"site-packages", "dist-packages"})
      found.push_back(it->path() / packages / "opguard");
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool is_dir(const fs::path& path) {
  std::error_code ec;
  return fs::is_directory(path, ec);
}

}  // namespace

std::string templates_dir() {
  fs::path bin = executable_dir();
  if (!bin.empty()) {
    fs::path shared = bin.parent_path() / "share" / "opguard" / "templates";
    if (is_dir(shared)) return shared.string();
    for (const fs::path& package : installed_packages(bin))
      if (is_dir(package / "templates")) return (package / "templates").string();
  }
  return OPGUARD_SOURCE_DIR "/templates";
}

std::string python_package_dir() {
  fs::path bin = executable_dir();
  if (!bin.empty())
    // A folder of that name without boot/ is another distribution's: the name is taken on PyPI.
    for (const fs::path& package : installed_packages(bin))
      if (is_dir(package / "boot")) return package.string();
  return OPGUARD_BINARY_DIR "/python/opguard";
}

}  // namespace opguard
