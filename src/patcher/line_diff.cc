#include "patcher/line_diff.h"

#include "patcher/git.h"

namespace opguard {

std::vector<LineChange> changed_lines(std::string_view a, std::string_view b) {
  if (a == b) return {};
  start_git();
  git_diff_options options = GIT_DIFF_OPTIONS_INIT;
  options.flags = GIT_DIFF_INDENT_HEURISTIC;
  options.context_lines = 0;
  options.interhunk_lines = 0;
  git_patch* raw = nullptr;
  if (git_patch_from_buffers(&raw, a.data(), a.size(), "a", b.data(), b.size(), "b", &options) != 0)
    return {};
  const GitPatch patch(raw);
  std::vector<LineChange> changes;
  for (size_t i = 0; i < git_patch_num_hunks(raw); ++i) {
    const git_diff_hunk* hunk = nullptr;
    if (git_patch_get_hunk(&hunk, nullptr, raw, i) != 0) break;
    // git names the line before a stretch that is empty.
    const uint32_t old_lines = uint32_t(hunk->old_lines), new_lines = uint32_t(hunk->new_lines);
    changes.push_back({uint32_t(hunk->old_start) + (old_lines == 0), old_lines,
                       uint32_t(hunk->new_start) + (new_lines == 0), new_lines});
  }
  return changes;
}

}  // namespace opguard
