#include "support/install.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

namespace opguard {
namespace {

// Symbolic links are resolved, so a link to the program in another bin/ finds its own data.
std::filesystem::path executable_dir() {
  std::error_code ec;
  std::filesystem::path exe = std::filesystem::read_symlink("/proc/self/exe", ec);
  return ec ? std::filesystem::path() : exe.parent_path();
}

// The package around a program that a wheel has put into opguard/bin, else
// PREFIX/lib/python3*/{site,dist}-packages/opguard, newest Python last in name order.
std::vector<std::filesystem::path> installed_packages(const std::filesystem::path& bin) {
  std::vector<std::filesystem::path> found;
  std::error_code ec;
  if (std::filesystem::is_directory(bin.parent_path() / "boot", ec)) return {bin.parent_path()};
  for (std::filesystem::directory_iterator it(bin.parent_path() / "lib", ec), end; !ec && it != end;
       it.increment(ec)) {
    if (it->path().filename().string().rfind("python3", 0) != 0) continue;
    for (const char* packages : {"site-packages", "dist-packages"})
      found.push_back(it->path() / packages / "opguard");
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool is_dir(const std::filesystem::path& path) {
  std::error_code ec;
  return std::filesystem::is_directory(path, ec);
}

}  // namespace

std::string templates_dir() {
  std::filesystem::path bin = executable_dir();
  if (!bin.empty()) {
    std::filesystem::path shared = bin.parent_path() / "share" / "opguard" / "templates";
    if (is_dir(shared)) return shared.string();
    for (const std::filesystem::path& package : installed_packages(bin))
      if (is_dir(package / "templates")) return (package / "templates").string();
  }
  return OPGUARD_SOURCE_DIR "/templates";
}

std::string python_package_dir() {
  std::filesystem::path bin = executable_dir();
  if (!bin.empty())
    // A folder of that name without boot/ is another distribution's: the name is taken on PyPI.
    for (const std::filesystem::path& package : installed_packages(bin))
      if (is_dir(package / "boot")) return package.string();
  return OPGUARD_BINARY_DIR "/python/opguard";
}

}  // namespace opguard
