// Diagnostics name files as they are shown, by their paths. An answer names them by package and
// name below the root: nothing in a plan is an absolute path.
#include "session/skipped.h"

#include <map>
#include <string_view>

namespace opguard {
namespace {

constexpr const char* kSkipped = "; the file is skipped";

// Nothing in a plan or an answer is an absolute path.
std::string below_root(const SourceSet& sources, const UnreadPath& unread) {
  for (const SourceRoot& root : sources.roots)
    if (root.package == unread.package && unread.path.starts_with(root.dir + "/"))
      return unread.path.substr(root.dir.size() + 1);
  return unread.path.substr(unread.path.rfind('/') + 1);
}

}  // namespace

std::vector<SkippedFile> skip_files(const SourceSet& sources, const Diagnostics& found,
                                    Diagnostics& diags) {
  std::map<std::string_view, const SourceFile*> by_path;
  for (const SourceFile& file : sources.files) by_path[file.path] = &file;
  std::vector<SkippedFile> skipped;
  for (const UnreadPath& unread : sources.unread) {
    skipped.push_back({unread.package, below_root(sources, unread), 0, unread.why});
    Diagnostic item;
    item.severity = Severity::warning;
    item.file = unread.path;
    item.message = "cannot be read: " + unread.why + kSkipped;
    diags.add(std::move(item));
  }
  for (Diagnostic item : found.items()) {
    if (item.severity == Severity::error) {
      if (auto at = by_path.find(item.file); at != by_path.end())
        skipped.push_back({at->second->package, at->second->name, item.line, item.message});
      item.severity = Severity::warning;
      item.message += kSkipped;
    }
    diags.add(std::move(item));
  }
  return skipped;
}

}  // namespace opguard
