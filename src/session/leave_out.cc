#include "session/leave_out.h"

#include <fnmatch.h>

#include "patcher/ignored.h"
#include "support/say.h"
#include "support/text.h"

namespace opguard {
namespace {

bool matches(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0 ||
         fnmatch((pattern + "/*").c_str(), name.c_str(), 0) == 0;
}

}  // namespace

void leave_out(SourceSet& sources, const std::vector<std::string>& patterns) {
  size_t all = 0;
  for (std::string pattern : patterns) {
    while (pattern.ends_with('/')) pattern.pop_back();
    size_t count =
        std::erase_if(sources.files, [&](const SourceFile& f) { return matches(pattern, f.name); });
    // What cannot be read is known by its whole path alone.
    count += std::erase_if(sources.unread,
                           [&](const auto& f) { return matches("*/" + pattern, f.path); });
    if (count == 0) say("note: --exclude " + pattern + " matches no file");
    all += count;
  }
  if (all > 0) say_step(counted(all, "file") + " left out by --exclude");
}

void leave_out_ignored(SourceSet& sources, const std::string& tree) {
  std::vector<std::string> paths;
  for (const SourceFile& file : sources.files) paths.push_back(file.path);
  for (const auto& file : sources.unread) paths.push_back(file.path);
  const std::vector<bool> ignored = ignored_by_git(tree, paths);
  size_t at = 0, count = 0;
  // A package was asked for by --with, wherever it lies.
  count += std::erase_if(sources.files,
                         [&](const SourceFile& f) { return ignored[at++] && f.package.empty(); });
  count += std::erase_if(sources.unread, [&](const auto&) { return ignored[at++]; });
  if (count > 0) say_step(counted(count, "file") + " left out, which git ignores");
}

}  // namespace opguard
