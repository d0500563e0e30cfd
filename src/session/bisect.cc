// The search is a loop over a pure function. bisect_step() says by the marks what to try next,
// children try it, and what they leave in result.json are the next marks.
//
//   ? ? ? ? ? ? ? ?    try the 4th
//   ? ? ? g ? ? ? ?    try the 6th
//   ? ? ? g ? b ? ?    try the 5th
//
// Each try is a process of its own (child_jobs.h), and its result lies in a file before it ends. So
// a search that was stopped goes on by reading the same files.
//
// `until_` is the earliest step in which a bad commit differs: no later run needs a step behind it.
// Counterexample: a commit whose only difference shows in a later step. It counts as good from then
// on, for the difference that is looked for is the one in that step.
#include "session/bisect.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "preflight/control.h"
#include "session/bisect_judge.h"
#include "session/bisect_result.h"
#include "session/bisect_subjects.h"
#include "session/child_jobs.h"
#include "session/diff.h"
#include "session/kept_run.h"
#include "session/recorded_side.h"
#include "session/work_folder.h"
#include "support/exit_code.h"
#include "support/kept_input.h"
#include "support/progress.h"
#include "support/say.h"
#include "support/text.h"
#include "support/write_file.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// A side as `diff` has it, of what prepare() has made.
DiffSide side_of(const Prepared& prepared, const std::string& name, const std::string& work) {
  DiffSide side;
  side.name = name;
  side.tree = prepared.provenance.tree;
  side.command = prepared.command;
  side.work = work;
  side.provenance = prepared.provenance;
  side.provenance.command = quote(prepared.command);
  return side;
}

// "" where there is none.
std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

llvm::Error make_folder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return make_error("cannot make '" + folder + "': " + error.message());
  return llvm::Error::success();
}

class Bisection {
 public:
  Bisection(const BisectOptions& options, const Subjects& subjects,
            const TemplateLibrary& templates)
      : options_(options), subjects_(subjects), templates_(templates) {
    marks_.assign(subjects.all.size(), CommitMark::unknown);
    if (options.deterministic) environment_ = control_environment(options.seed);
  }

  // GOOD and BAD may hold the same files, as after a revert. Then nothing is run at all.
  llvm::Expected<BisectResult> run() {
    const auto begin = Clock::now();
    if (const std::string& content = subjects_.all.back().content;
        !content.empty() && content == subjects_.good.content) {
      take_like(static_cast<uint32_t>(subjects_.all.size() - 1));
      result_.outcome = BisectOutcome::no_difference;
      return std::move(result_);
    }
    result_.reference_runs = 1;
    if (auto error = record_reference()) return error;
    for (uint32_t i = 0; i < subjects_.all.size(); ++i)
      if (auto kept = read_result(folder_of(i))) take(i, *kept, true);
    if (!result_.tried.empty())
      say_step(counted(result_.tried.size(), "result") + " of an earlier call taken");
    if (auto error = search()) return error;
    const BisectStep end = bisect_step(subjects_.parents, marks_);
    result_.suspects = end.suspects;
    result_.outcome = BisectOutcome::remain;
    if (end.suspects.size() == 1 && marks_[end.suspects[0]] == CommitMark::bad) {
      result_.outcome = BisectOutcome::found;
      if (options_.name)
        if (auto error = name(end.suspects[0])) return error;
    } else if (end.suspects.size() == 1 && marks_[end.suspects[0]] == CommitMark::good) {
      result_.outcome = BisectOutcome::no_difference;
      result_.suspects.clear();
    }
    result_.seconds = seconds_since(begin);
    return std::move(result_);
  }

 private:
  std::string folder_of(uint32_t subject) const {
    return options_.work + "/commits/" + subjects_.all[subject].key;
  }
  std::string reference_folder() const { return options_.work + "/reference"; }

  // Fills reference_ and plan_; nothing is run where an earlier call has kept it.
  llvm::Error record_reference();
  // Until bisect_step() has nothing more to try.
  llvm::Error search();
  // Fills result_.naming: `diff` of the first bad one with one before it.
  llvm::Error name(uint32_t found);
  llvm::Expected<Judged> judge(uint32_t subject) const;
  // judge(), and what it found written to the commit's result.json.
  void judge_apart(uint32_t subject) const;
  void take(uint32_t subject, const Judged& judged, bool kept);
  // False: nobody with the same files has a mark yet.
  bool take_like(uint32_t subject);

  const BisectOptions& options_;
  const Subjects& subjects_;
  const TemplateLibrary& templates_;
  Variables environment_;
  KeptRun reference_;
  Plan plan_;
  std::vector<CommitMark> marks_;
  std::optional<uint32_t> until_;  // no later step need be run
  BisectResult result_;
};

llvm::Error Bisection::record_reference() {
  const std::string folder = reference_folder(), kept = folder + "/kept";
  result_.reference_kept = fs::exists(kept + "/kept.json");
  Diagnostics diags;
  if (!result_.reference_kept) {
    std::error_code ignored;
    fs::remove_all(kept, ignored);  // of one that was stopped
    fs::remove_all(folder + "/run", ignored);
    if (auto error = make_folder(kept)) return error;
    auto prepared = prepare(options_, subjects_, subjects_.good, folder);
    if (!prepared) return prepared.takeError();
    const std::string what = "the good " + noun_of(subjects_);
    if (!prepared->failure.empty()) return make_error(what + ": " + prepared->failure);
    auto recorded = record_side({.name = what,
                                 .tree = prepared->provenance.tree,
                                 .command = prepared->command,
                                 .packages = options_.packages,
                                 .sources = options_.sources,
                                 .steps = options_.steps,
                                 .environment = environment_,
                                 .work = folder + "/run",
                                 .provenance = prepared->provenance,
                                 .exported = !subjects_.releases},
                                templates_, diags);
    if (!recorded) return recorded.takeError();
    print_diagnostics(diags.text());
    if (!recorded->failure.empty())
      return make_error(what + " ended with " + recorded->failure +
                        ": nothing can be compared with half of a run");
    const std::string name = prepared->provenance.revision;
    if (auto error = keep_run(*recorded, {kept, name, {}})) return error;
  }
  auto read = read_kept_run(kept);
  if (!read) return read.takeError();
  reference_ = std::move(*read);
  auto plan = read_plan(reference_.plan_path(), diags);
  if (!plan) return plan.takeError();
  plan_ = std::move(*plan);
  return llvm::Error::success();
}

void Bisection::take(uint32_t subject, const Judged& judged, bool kept) {
  marks_[subject] = judged.mark;
  if (judged.step) until_ = std::min(until_.value_or(*judged.step), *judged.step);
  result_.tried.push_back({subject, judged, "", kept});
}

// A commit that holds the files of another one needs no run.
bool Bisection::take_like(uint32_t subject) {
  const std::string& content = subjects_.all[subject].content;
  if (content.empty()) return false;
  if (content == subjects_.good.content) {
    marks_[subject] = CommitMark::good;
    result_.tried.push_back({subject, {.mark = CommitMark::good}, subjects_.good.key, false});
    return true;
  }
  for (const Tried& tried : result_.tried) {
    if (subjects_.all[tried.subject].content != content) continue;
    Tried like{subject, tried.judged, subjects_.all[tried.subject].key, false};
    like.judged.runs = 0;
    like.judged.seconds = 0;
    marks_[subject] = like.judged.mark;
    result_.tried.push_back(std::move(like));
    return true;
  }
  return false;
}

llvm::Expected<Judged> Bisection::judge(uint32_t subject) const {
  const std::string folder = folder_of(subject);
  auto prepared = prepare(options_, subjects_, subjects_.all[subject], folder);
  if (!prepared) return prepared.takeError();
  Judged judged;
  judged.why = prepared->failure;
  if (!judged.why.empty()) return judged;
  // In a child, so the environment of the other tries stays as it is.
  for (const auto& [name, value] : prepared->environment) setenv(name.c_str(), value.c_str(), 1);
  return judge_commit({.reference = reference_,
                       .plan = plan_,
                       .templates = templates_,
                       .side = side_of(*prepared, subjects_.all[subject].key, folder),
                       .python = subjects_.python,
                       .packages = options_.packages,
                       .sources = options_.sources,
                       .environment = environment_,
                       .until = until_,
                       .report = options_.report});
}

// In a process of its own.
void Bisection::judge_apart(uint32_t subject) const {
  const auto begin = Clock::now();
  auto judged = judge(subject);
  if (!judged) {
    fail(llvm::toString(judged.takeError()));
    return;
  }
  judged->seconds = seconds_since(begin);
  if (auto error = write_result(folder_of(subject), *judged))
    fail(llvm::toString(std::move(error)));
}

// Marks change while children run, so `next` is asked anew after each that ends. What is running is
// not started twice; a commit that is no longer of use runs to its end all the same.
llvm::Error Bisection::search() {
  std::set<uint32_t> running;
  ChildJobs jobs;
  while (true) {
    const BisectStep step = bisect_step(subjects_.parents, marks_, options_.jobs);
    std::vector<uint32_t> next = step.next;
    // One that is left by logic alone is run all the same.
    if (next.empty() && step.suspects.size() == 1 &&
        marks_[step.suspects[0]] == CommitMark::unknown)
      next = step.suspects;
    bool told = false;
    for (uint32_t subject : next)
      if (!running.contains(subject)) told |= take_like(subject);
    if (told) continue;
    for (uint32_t subject : next) {
      if (running.contains(subject) || running.size() >= options_.jobs) continue;
      if (auto error = make_folder(folder_of(subject))) return error;
      say_step("try " + shown(subjects_.all[subject].key) + ": " +
               counted(step.suspects.size(), "suspect") + ", about " +
               counted(tries_left(step.suspects.size()), "more run"));
      if (auto error = jobs.start(subject, folder_of(subject) + "/output.txt",
                                  [&] { judge_apart(subject); }))
        return error;
      running.insert(subject);
    }
    if (running.empty()) return jobs.stopped();
    uint32_t ended;
    {
      const Progress progress("trying " + counted(running.size(), noun_of(subjects_)));
      ended = jobs.wait_for_one();
    }
    running.erase(ended);
    auto judged = read_result(folder_of(ended));
    if (auto error = jobs.stopped()) return error;
    if (!judged)
      return make_error("nothing was found out of " + subjects_.all[ended].key + ":\n" +
                        last_lines(read_text(folder_of(ended) + "/output.txt"), 5));
    take(ended, *judged, false);
    say_step(tried_line(subjects_, result_.tried.back()));
  }
}

// `diff` runs in a child, so that its output goes to a file and an end of it is not ours. An
// exported commit is given as a range, so that `diff` exports both sides itself. A release, or a
// commit with --setup, is given as two commands in the folders that are ready.
llvm::Error Bisection::name(uint32_t found) {
  const BisectSubject& bad = subjects_.all[found];
  // A parent that runs, else the reference.
  const BisectSubject* before = &subjects_.good;
  std::string before_folder = reference_folder();
  Naming naming;
  naming.parent = !bad.parents.empty() && bad.parents[0] == subjects_.good.id;
  if (!bad.parents.empty())
    for (uint32_t i = 0; i < subjects_.all.size(); ++i)
      if (subjects_.all[i].id == bad.parents[0] && marks_[i] != CommitMark::skipped) {
        before = &subjects_.all[i];
        before_folder = folder_of(i);
        naming.parent = true;
      }
  naming.with = before->id;

  const std::string folder = folder_of(found) + "/naming";
  const std::string report = folder + "/report.json";
  if (auto error = make_folder(folder)) return error;
  if (auto error = make_folder(before_folder)) return error;
  say_step("naming the operator: " + shown(bad.key) + " against " + shown(before->key));
  if (!fs::exists(report)) {
    ChildJobs jobs;
    auto work = [&] {
      std::error_code ignored;
      fs::remove_all(folder + "/work", ignored);
      DiffOptions diff_options;
      diff_options.command = options_.command;
      diff_options.packages = options_.packages;
      diff_options.sources = options_.sources;
      diff_options.steps = options_.steps;
      diff_options.work = folder + "/work";
      diff_options.templates = options_.templates;
      diff_options.deterministic = options_.deterministic;
      diff_options.seed = options_.seed;
      diff_options.examine.prove_runs = options_.prove_runs;
      diff_options.report = options_.report;
      diff_options.report.colour = "never";
      diff_options.report.json = report;
      diff_options.report.html = folder + "/report.html";
      if (!subjects_.releases && options_.setup.empty()) {
        diff_options.trees = {subjects_.root};
        diff_options.revisions = before->key + ".." + bad.key;
        diff_options.links = options_.links;
      } else {
        std::string* const commands[2] = {&diff_options.run_a, &diff_options.run_b};
        const BisectSubject* const sides[2] = {before, &bad};
        const std::string folders[2] = {before_folder, folder_of(found)};
        for (int side : {0, 1}) {
          auto prepared = prepare(options_, subjects_, *sides[side], folders[side]);
          if (!prepared) {
            fail(llvm::toString(prepared.takeError()));
            return;
          }
          if (!prepared->failure.empty()) {
            fail(prepared->failure);
            return;
          }
          *commands[side] = quote(prepared->command);
          diff_options.trees.push_back(prepared->provenance.tree);
        }
      }
      diff(std::move(diff_options));
    };
    if (auto error = jobs.start(0, folder + "/report.txt", work)) return error;
    const Progress progress("naming the operator");
    jobs.wait_for_one();
    if (auto error = jobs.stopped()) return error;
  }
  std::ifstream file(report);
  naming.verdict = nlohmann::ordered_json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!naming.verdict.is_object()) {
    naming.verdict = nullptr;
    naming.why = "not compared: " + last_lines(read_text(folder + "/report.txt"), 1);
  }
  // Two preflights and two guarded runs; what proving took, the report says.
  naming.runs = 4;
  if (naming.verdict.is_object() && naming.verdict.contains("proof") &&
      naming.verdict["proof"].is_object())
    naming.runs += naming.verdict["proof"].value("runs", 0);
  result_.naming = std::move(naming);
  return llvm::Error::success();
}

// claimed: the folder is this bisection's. From then on "the same command goes on" is true.
llvm::Expected<int> bisect_in(BisectOptions options, bool& claimed) {
  if (auto rules = read_rules(options.report); !rules) return rules.takeError();
  auto subjects = find_subjects(options);
  if (!subjects) return subjects.takeError();
  if (auto error = claim_folder(options.work, options, *subjects)) return error;
  claimed = true;
  if (!options.package.empty() && options.environments.empty())
    options.environments = options.work + "/environments";
  if (!options.package.empty()) {
    std::string module = options.module.empty() ? options.package : options.module;
    std::replace(module.begin(), module.end(), '-', '_');
    options.packages.push_back(module);
    if (auto error = make_folder(options.environments)) return error;
    options.environments = fs::canonical(options.environments).string();
  }
  if (!subjects->base.empty())
    say("note: the good revision is no ancestor of the bad one; where they part (" +
        subjects->base.substr(0, 12) + ") is taken to be as good");
  Diagnostics diags;
  auto templates = find_templates(options.templates, diags);
  if (!templates) return templates.takeError();
  auto result = Bisection(options, *subjects, *templates).run();
  if (!result) return result.takeError();
  if (!print_lines(result_text(*subjects, *result))) return make_error("cannot write the result");
  if (!options.report.json.empty())
    if (auto error = write_file(options.report.json, result_json(*subjects, *result))) return error;
  switch (result->outcome) {
    case BisectOutcome::found:
      return kYes;
    case BisectOutcome::no_difference:
      return kNo;
    case BisectOutcome::remain:
      break;
  }
  return kCouldNotTell;
}

}  // namespace

// A kept folder that holds a bisection is taken up again; any other one has to be empty.
int bisect(BisectOptions options) {
  keep_input();
  const bool again = !options.work.empty() && fs::exists(options.work + "/bisect.json");
  auto work = again ? llvm::Expected<WorkFolder>(WorkFolder(fs::canonical(options.work).string()))
                    : WorkFolder::open(options.work);
  if (!work) return fail(llvm::toString(work.takeError()));
  const bool kept = !options.work.empty();
  options.work = work->path();
  bool claimed = false;
  auto code = bisect_in(options, claimed);
  if (!code) {
    fail(llvm::toString(code.takeError()));
    if (kept && claimed)
      say("what was found by then is in " + work->path() + ": the same command goes on");
    return kCouldNotTell;
  }
  if (kept) say("a report of each is in " + work->path() + "/commits");
  return *code;
}

}  // namespace opguard
