// Both kinds become the same list: behind GOOD, parents before children, BAD the last. Releases are
// a chain, each with the one before as its parent.
//
// Counterexample: `content`, by which two subjects are known to run the same. A commit has the id
// of its tree; a release has none, so each release is run.
#include "session/bisect_subjects.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "patcher/history.h"
#include "patcher/revision.h"
#include "session/link_data.h"
#include "session/package_releases.h"
#include "session/side.h"
#include "session/work_folder.h"
#include "support/diagnostics.h"
#include "support/launch.h"
#include "support/write_file.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;

constexpr size_t kKeyDigits = 12;

BisectSubject subject_of(const Commit& commit) {
  return {commit.id.substr(0, kKeyDigits),
          commit.id,
          commit.author,
          commit.date,
          commit.title,
          commit.tree,
          commit.parents};
}

// GOOD and BAD, given as two words or one.
llvm::Expected<std::pair<std::string, std::string>> ends_of(const BisectOptions& options) {
  const std::vector<std::string>& words = options.revisions;
  if (words.size() == 2) return std::pair(words[0], words[1]);
  const size_t dots = words.size() == 1 ? words[0].find("..") : std::string::npos;
  if (dots == std::string::npos || dots == 0 || dots + 2 == words[0].size())
    return make_error("give a good and a bad one: GOOD BAD, or GOOD..BAD");
  return std::pair(words[0].substr(0, dots), words[0].substr(dots + 2));
}

// Refused beyond kMostCandidateCommits: the search holds a bit for each pair.
llvm::Expected<Subjects> commits_between(const BisectOptions& options, const std::string& good,
                                         const std::string& bad) {
  auto history = history_between(options.repository, good, bad, kMostCandidateCommits);
  if (!history) return history.takeError();
  Subjects found;
  found.good = subject_of(history->good);
  for (const Commit& commit : history->commits) found.all.push_back(subject_of(commit));
  found.parents = std::move(history->parents);
  found.root = history->root;
  found.remote = history->remote;
  found.base = history->base;
  return found;
}

// The interpreter that has the program's packages: BisectOptions::python, else the command's own,
// else python3.
std::string interpreter_of(const BisectOptions& options) {
  if (!options.python.empty()) return options.python;
  const std::string first = options.command.empty() ? "" : options.command.front();
  return first.substr(first.rfind('/') + 1).starts_with("python") ? first : "python3";
}

llvm::Expected<Subjects> releases_between(const BisectOptions& options, const std::string& good,
                                          const std::string& bad) {
  auto tree = canonical_tree(options.repository);
  if (!tree) return tree.takeError();
  Subjects found;
  found.releases = true;
  found.root = *tree;
  found.python = interpreter_of(options);
  auto listed = options.releases.empty()
                    ? list_releases(found.python, options.package)
                    : llvm::Expected<std::vector<std::string>>(options.releases);
  if (!listed) return listed.takeError();
  auto releases = releases_from_to(options.package, *listed, good, bad);
  if (!releases) return releases.takeError();
  for (const std::string& release : *releases) {
    BisectSubject subject;
    subject.key = subject.id = release;
    subject.title = options.package + " " + release;
    if (found.good.id.empty()) {
      found.good = subject;
      continue;
    }
    const auto number = static_cast<uint32_t>(found.all.size());
    subject.parents = {number == 0 ? found.good.id : found.all.back().id};
    found.parents.push_back(number == 0 ? std::vector<uint32_t>{}
                                        : std::vector<uint32_t>{number - 1});
    found.all.push_back(std::move(subject));
  }
  return found;
}

// `{tree}` in each word is the subject's tree.
std::vector<std::string> command_in(const BisectOptions& options, const std::string& tree) {
  std::vector<std::string> command;
  for (const std::string& word : options.command) command.push_back(replace_tree(word, tree));
  return command;
}

// `ready` is written last. A folder without it was stopped half-way, and is made anew.
llvm::Expected<Prepared> prepare_commit(const BisectOptions& options, const Subjects& subjects,
                                        const BisectSubject& commit, const std::string& folder) {
  Prepared made;
  const std::string tree = folder + "/tree", ready = folder + "/ready";
  made.provenance.tree = tree;
  made.provenance.home = made.provenance.repository = subjects.root;
  made.provenance.revision = commit.key;
  made.provenance.commit = commit.id;
  made.provenance.remote = subjects.remote;
  made.command = command_in(options, tree);
  if (fs::exists(ready)) return made;
  std::error_code error;
  fs::remove_all(tree, error);  // of one that was stopped
  if (auto commit_id = export_revision(subjects.root, commit.id, tree); !commit_id)
    return commit_id.takeError();
  if (auto failed = link_data(options.links, subjects.root, tree)) return failed;
  if (!options.setup.empty()) {
    LaunchOptions setup;
    setup.command = {"/bin/sh", "-c", replace_tree(options.setup, tree)};
    setup.cwd = tree;
    setup.output = Output::capture;
    setup.log = folder + "/setup.txt";
    setup.apart = true;
    auto result = launch(setup);
    if (!result) return result.takeError();
    if (auto stopped = result->stopped()) return stopped;
    if (std::string how = result->failure(); !how.empty()) {
      made.failure = "--setup ended with " + how;
      return made;
    }
  }
  if (auto failed = write_file(ready, "")) return failed;
  return made;
}

// The release's folder stands in front of the user's own PYTHONPATH, for the interpreter that looks
// for packages (environment) and for the program (command).
llvm::Expected<Prepared> prepare_release(const BisectOptions& options, const Subjects& subjects,
                                         const BisectSubject& release) {
  Prepared made;
  made.provenance.tree = made.provenance.home = subjects.root;
  made.provenance.revision = options.package + " " + release.id;
  const std::string folder = options.environments + "/" + options.package + "-" + release.id;
  auto failure = install_release(subjects.python, options.package, release.id, folder);
  if (!failure) return failure.takeError();
  made.failure = *failure;
  const char* own = std::getenv("PYTHONPATH");
  const std::string path = folder + (own && *own ? ":" + std::string(own) : std::string());
  made.environment = {{"PYTHONPATH", path}};
  made.command = {"/usr/bin/env", "PYTHONPATH=" + path};
  for (std::string& word : command_in(options, subjects.root)) made.command.push_back(word);
  return made;
}

}  // namespace

llvm::Expected<Subjects> find_subjects(const BisectOptions& options) {
  auto ends = ends_of(options);
  if (!ends) return ends.takeError();
  auto found = options.package.empty() ? commits_between(options, ends->first, ends->second)
                                       : releases_between(options, ends->first, ends->second);
  if (found && found->python.empty()) found->python = interpreter_of(options);
  return found;
}

std::string noun_of(const Subjects& subjects) { return subjects.releases ? "release" : "commit"; }

llvm::Expected<Prepared> prepare(const BisectOptions& options, const Subjects& subjects,
                                 const BisectSubject& subject, const std::string& folder) {
  return subjects.releases ? prepare_release(options, subjects, subject)
                           : prepare_commit(options, subjects, subject, folder);
}

}  // namespace opguard
