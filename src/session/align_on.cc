// The workers are Python's business: one script is handed the words for `opguard align --part`, a
// folder for the parts, and where the workers are. What it leaves is a file a part. These are
// merged as --merge merges them, so a distributed comparison has no verdict of its own.
//
// A part that is missing is no error here: its ranks stay open in the verdict, and the script has
// said why. Only if all are missing is there nothing to merge.
#include "session/align_on.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "session/remote_logs.h"
#include "session/work_folder.h"
#include "support/exit_code.h"
#include "support/launch.h"
#include "support/package_script.h"
#include "support/url.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMakeParts = R"(
from opguard import on_workers
program, a, b, folder, where, of, *more = sys.argv[1:]
of, missing = on_workers.make(program, a, b, folder, where, int(of), more)
for number in sorted(missing):
    sys.stderr.write("opguard: warning: part %d of %d is missing: %s\n" % (number, of, missing[number]))
sys.exit(2 if len(missing) == of else 0)
)";

// What the options say to `opguard align --part`.
std::vector<std::string> part_words(const PartOptions& opt) {
  std::vector<std::string> words;
  auto add = [&](const char* option, const std::string& value) {
    words.push_back(option);
    words.push_back(value);
  };
  add("--read", kReadNames[static_cast<size_t>(opt.report.read)]);
  for (const std::string& rule : opt.report.ignore) add("--ignore", rule);
  for (const std::string& file : opt.report.ignore_files)
    add("--ignore-file", fs::absolute(file).string());
  for (const HeuristicText& text : kHeuristics)
    if (opt.report.without.has(text.heuristic)) add("--without", std::string(text.name));
  if (!opt.pages.empty()) add("--pages", fs::absolute(opt.pages).string());
  if (is_url(opt.dir_a) || is_url(opt.dir_b)) add("--python", opt.report.python);
  return words;
}

// As workers find it, which have another working directory.
std::string from_anywhere(const std::string& dir) {
  return is_url(dir) ? dir : fs::absolute(dir).string();
}

}  // namespace

int align_on(const PartOptions& opt) {
  auto work = WorkFolder::temporary();
  if (!work) return fail(llvm::toString(work.takeError()));
  std::error_code error;
  std::vector<std::string> words = {fs::read_symlink("/proc/self/exe", error).string(),
                                    from_anywhere(opt.dir_a),
                                    from_anywhere(opt.dir_b),
                                    work->path(),
                                    opt.on,
                                    std::to_string(opt.parts)};
  for (std::string& word : part_words(opt)) words.push_back(std::move(word));
  LaunchOptions launched;
  launched.command = package_command(opt.report.python, kMakeParts, words);
  auto made = launch(launched);
  if (!made) return fail(llvm::toString(made.takeError()));
  if (auto stopped = made->stopped()) return fail(llvm::toString(std::move(stopped)));
  if (made->signal != 0) return fail(opt.report.python + ": " + made->failure());
  if (made->exit_code != 0) return kCouldNotTell;  // it has told why
  PartOptions merged = opt;
  for (const fs::directory_entry& part : fs::directory_iterator(work->path(), error))
    if (part.path().extension() == ".json") merged.merge.push_back(part.path().string());
  std::sort(merged.merge.begin(), merged.merge.end());
  return merge_part_files(merged);
}

}  // namespace opguard
