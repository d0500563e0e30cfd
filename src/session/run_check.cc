// Three kinds of work are kept, each by what it depends on:
//
//   recorded_       this call      command, packages, control: replay and canaries share one
//   bases_          this call      check and commit
//   .opguard/bases  every call     a note with the id of the kept run, by the same key
//
// A base whose kept run is gone or damaged is made again without a word: it is a cache.
//
// Counterexample: a resume is recorded anew each time. Its program depends on what `first` has
// left.
#include "session/run_check.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "align/judge/pivot_view.h"
#include "align/pair/run.h"
#include "nlohmann/json.hpp"
#include "patcher/revision.h"
#include "preflight/control.h"
#include "preflight/reach.h"
#include "report/identity.h"
#include "report/reasons.h"
#include "report/sarif.h"
#include "session/canaries_now.h"
#include "session/compare_kept.h"
#include "session/side_trees.h"
#include "support/diagnostics.h"
#include "support/launch.h"
#include "support/say.h"
#include "support/text.h"
#include "support/write_file.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr uint32_t kProveByText = 3;
constexpr size_t kShortCommit = 12;
const std::string kWorkWord = "{work}";

// `{work}` in a command. The search goes on behind what was put in.
std::string with_work(std::string command, const std::string& work) {
  for (size_t at = command.find(kWorkWord); at != std::string::npos;
       at = command.find(kWorkWord, at + work.size()))
    command.replace(at, kWorkWord.size(), work);
  return command;
}

// A folder as it was saved, or empty.
llvm::Error renew_scratch(const std::string& scratch, const std::string& saved) {
  std::error_code error;
  fs::remove_all(scratch, error);
  fs::create_directories(scratch, error);
  if (!error && !saved.empty())
    fs::copy(saved, scratch,
             fs::copy_options::recursive | fs::copy_options::copy_symlinks |
                 fs::copy_options::overwrite_existing,
             error);
  return error ? make_error("cannot make '" + scratch + "': " + error.message())
               : llvm::Error::success();
}

std::string all_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

Variables control_of(const Check& check) {
  return check.deterministic ? control_environment(check.seed) : Variables();
}

// The first pivot's place, as an acceptance names it.
void note_place(const ComparedRuns& compared, CheckRun& run) {
  const Verdict& verdict = compared.found.verdict;
  if (verdict.candidates.empty()) return;
  const PivotView both = view(*compared.a, *compared.b, verdict.candidates.front());
  const EventView& at = both.b.location.file.empty() ? both.a : both.b;
  run.result.file = at.location.file;
  run.result.line = at.location.line;
  run.drift.place = at.location.file + ": " + at.operator_name;
}

// Inconclusive is no failure of the tree: the check is undecided, exit code 2.
Certified certified_by(Outcome outcome) {
  switch (outcome) {
    case Outcome::identical:
    case Outcome::equivalent:
      return Certified::yes;
    case Outcome::diverged:
      return Certified::no;
    case Outcome::inconclusive:
      return Certified::undecided;
  }
  return Certified::undecided;
}

}  // namespace

llvm::Expected<std::string> CheckRunner::base_of(const Check& check) const {
  if (check.kind != CheckKind::default_path) return std::string();
  auto base = merge_base_of(options_.tree, check.against);
  if (!base) return base.takeError();
  return base->commit;
}

SideRequest CheckRunner::request(const Check& check, const std::string& name,
                                 const std::string& command) {
  const std::string folder = options_.work + "/run_" + std::to_string(++folders_);
  const std::string scratch = folder + "/scratch";
  const std::string words = with_work(replace_tree(command, options_.tree), scratch);
  SideRequest made{.name = name,
                   .tree = options_.tree,
                   .command = {"/bin/sh", "-c", words},
                   .packages = check.packages,
                   .sources = options_.sources,
                   .environment = control_of(check),
                   .work = folder,
                   .provenance = provenance_of(options_.tree)};
  made.before_run = [scratch] { return renew_scratch(scratch, ""); };
  return made;
}

llvm::Expected<CheckRunner::Side> CheckRunner::record_now(const Check& check,
                                                          const std::string& command,
                                                          const Plan* share,
                                                          const std::string& saved) {
  std::string key =
      command + "\n" + std::to_string(check.deterministic) + std::to_string(check.seed);
  for (const std::string& package : check.packages) key += "\n" + package;
  // What was recorded by a plan serves those that want none.
  if (!share && saved.empty())
    if (const auto known = recorded_.find(key); known != recorded_.end()) return known->second;
  SideRequest wanted = request(check, check.name, command);
  if (!saved.empty())
    wanted.before_run = [scratch = wanted.work + "/scratch", saved] {
      return renew_scratch(scratch, saved);
    };
  Diagnostics diags;
  auto side = record_side(wanted, *options_.templates, diags, share);
  if (talk() != Talk::quiet) print_diagnostics(diags.text());
  if (!side) return side.takeError();
  if (!side->failure.empty())
    return make_error("the program ended with " + side->failure + ": " + command);
  auto made = std::make_shared<RecordedSide>(std::move(*side));
  if (saved.empty()) recorded_[key] = made;
  return made;
}

llvm::Expected<std::shared_ptr<CheckRunner::Base>> CheckRunner::find_base(
    const Check& check, const std::string& commit) {
  const std::string key = certificate_key(check, commit);
  if (const auto known = bases_.find(key); known != bases_.end()) return known->second;
  auto base = std::make_shared<Base>();
  const std::string note = options_.store->folder() + "/bases/" + key;
  std::string id = all_text(note);
  Diagnostics diags;
  auto read = [&](const std::string& folder) -> llvm::Error {
    auto kept = read_kept_run(folder);
    if (!kept) return kept.takeError();
    base->kept = std::move(*kept);
    auto plan = read_plan(base->kept.plan_path(), diags);
    if (!plan) return plan.takeError();
    base->plan = std::move(*plan);
    return llvm::Error::success();
  };
  if (!id.empty()) {
    auto stored = options_.store->find(id);
    llvm::Error failed = stored ? read(stored->folder) : stored.takeError();
    if (!failed) {
      say_step("the merge base's run is kept: " + id.substr(0, kShortCommit));
      bases_[key] = base;
      return base;
    }
    llvm::consumeError(std::move(failed));  // it is gone, or damaged: it is made again
  }
  const std::optional<WorkTree> tree = work_tree_of(options_.tree);
  if (!tree) return make_error("no git repository holds '" + options_.tree + "'");
  SideRequest wanted = request(check, "the merge base", check.command);
  const std::string exported = wanted.work + "/tree";
  if (auto done = export_revision(tree->root, commit, exported); !done) return done.takeError();
  // The tree may be a folder of the repository: the same folder of the exported commit is run.
  const std::string inside = fs::path(options_.tree).lexically_relative(tree->root).string();
  wanted.tree = inside == "." ? exported : exported + "/" + inside;
  std::error_code error;
  if (!fs::is_directory(wanted.tree, error))
    return make_error("the merge base " + commit.substr(0, kShortCommit) + " has no folder '" +
                      inside + "'");
  wanted.command = {"/bin/sh", "-c",
                    with_work(replace_tree(check.command, wanted.tree), wanted.work + "/scratch")};
  wanted.exported = true;
  Provenance& provenance = wanted.provenance;
  provenance = {};
  provenance.tree = wanted.tree;
  provenance.home = options_.tree;
  provenance.revision = commit.substr(0, kShortCommit);
  provenance.repository = tree->root;
  provenance.commit = commit;
  provenance.remote = tree->remote;
  auto side = record_side(wanted, *options_.templates, diags);
  if (!side) return side.takeError();
  if (!side->failure.empty())
    return make_error("at the merge base the program ended with " + side->failure);
  auto folder = options_.store->begin();
  if (!folder) return folder.takeError();
  KeepOptions keep{*folder, provenance.revision, {}};
  if (check.deterministic) keep.seed = check.seed;
  if (auto failed = keep_run(*side, keep)) return failed;
  auto added = options_.store->add(*folder, "");
  if (!added) return added.takeError();
  fs::create_directories(options_.store->folder() + "/bases", error);
  if (auto failed = write_file(note, *added)) return failed;
  auto stored = options_.store->find(*added);
  if (!stored) return stored.takeError();
  if (auto failed = read(stored->folder)) return failed;
  bases_[key] = base;
  return base;
}

llvm::Error CheckRunner::take(const ComparedRuns& compared, const std::string& against,
                              CheckRun& run) {
  const Report report = compared.report();
  const Verdict& verdict = report.verdict;
  CheckResult& result = run.result;
  result.outcome = certified_by(verdict.outcome);
  result.sentence = headline_of(report);
  result.compared =
      (result.outcome == Certified::yes ? grouped(report.alignment.pairs)
                                        : grouped(report.alignment.certified_prefix) + " of " +
                                              grouped(report.alignment.pairs)) +
      " pairs equal" + (against.empty() ? "" : ", " + against);
  run.certificate.prefix = report.alignment.certified_prefix;
  run.certificate.values = values_digest(*compared.b);
  if (!compared.b->processes.empty())
    run.certificate.settings = compared.b->processes.front().settings;
  if (result.outcome == Certified::yes) return llvm::Error::success();
  note_place(compared, run);
  run.drift.values = run.certificate.values;
  result.report = format_terminal(report, /*colour=*/false);
  result.json = format_json(report);
  result.sarif = format_sarif(report);
  return llvm::Error::success();
}

llvm::Error CheckRunner::run_default_path(const Check& check, const std::string& base,
                                          CheckRun& run) {
  auto good = find_base(check, base);
  if (!good) return good.takeError();
  auto side = record_now(check, check.command, &(*good)->plan);
  if (!side) return side.takeError();
  // A difference that was accepted here, bit for bit, is not proven again.
  const auto known = [&](const Run& seen) {
    AcceptedDrift drift = run.drift;
    drift.values = values_digest(seen);
    return is_accepted_here(options_.recorded->accepted, drift, identity_now().date);
  };
  auto compared = compare_with_kept((*good)->kept, (*good)->plan, **side, *options_.templates,
                                    kProveByText, {}, known);
  if (!compared) return compared.takeError();
  if (auto failed = note_inputs(**side, run.certificate)) return failed;
  return take(**compared, "against " + base.substr(0, kShortCommit), run);
}

// The second run is under the same probes: what differs then is the program's own doing.
llvm::Error CheckRunner::run_replay(const Check& check, CheckRun& run) {
  auto first = record_now(check, check.command, nullptr);
  if (!first) return first.takeError();
  const RecordedSide& side = **first;
  say_step("guarded run of " + check.name + ", again");
  if (auto failed = renew_scratch(side.side.work + "/scratch", "")) return failed;
  std::string failure;
  if (auto failed = record(side.side, side.program, side.bounds, side.survey, &failure, "again"))
    return failed;
  if (!failure.empty()) return make_error("the second run ended with " + failure);
  if (auto failed = note_inputs(side, run.certificate)) return failed;
  auto compared = compare_logs({side.log, side.side.work + "/again/log", {}, {}}, {});
  if (!compared) return compared.takeError();
  return take(**compared, "one run twice", run);
}

// `first` runs without probes. What it leaves in `saved` is copied for each run of `then`, the
// traced one and the guarded one, so that neither finds the other's.
llvm::Error CheckRunner::run_resume(const Check& check, CheckRun& run) {
  auto whole = record_now(check, check.command, nullptr);
  if (!whole) return whole.takeError();
  const std::string saved = options_.work + "/saved_" + std::to_string(++folders_);
  if (auto failed = renew_scratch(saved, "")) return failed;
  const std::string first = with_work(replace_tree(check.first, options_.tree), saved);
  say_step("the part before the resume: " + first);
  LaunchOptions launched;
  launched.command = {"/bin/sh", "-c", first};
  launched.cwd = options_.tree;
  launched.environment = own_run_environment();
  launched.output = Output::capture;
  launched.environment.push_back({"OPGUARD_MODE", "off"});
  for (auto& variable : control_of(check)) launched.environment.push_back(variable);
  auto done = launch(launched);
  if (!done) return done.takeError();
  if (auto stopped = done->stopped()) return stopped;
  if (const std::string how = done->failure(); !how.empty())
    return make_error("'first' ended with " + how + "\n" + last_lines(done->output, 20));
  auto rest = record_now(check, check.then, &(*whole)->survey.plan, saved);
  if (!rest) return rest.takeError();
  if (auto failed = note_inputs(**rest, run.certificate)) return failed;
  auto compared = compare_logs({(*whole)->log, (*rest)->log, {}, {}}, {});
  if (!compared) return compared.takeError();
  return take(**compared, "resumed", run);
}

// Whatever `opguard diff` can do: by this program's own command.
llvm::Error CheckRunner::run_diff(const Check& check, const std::string& base, CheckRun& run) {
  const std::string folder = options_.work + "/run_" + std::to_string(++folders_);
  std::error_code error;
  fs::create_directories(folder, error);
  std::string other = options_.tree;
  if (!base.empty()) {
    const std::optional<WorkTree> tree = work_tree_of(options_.tree);
    other = folder + "/tree";
    if (auto done = export_revision(tree ? tree->root : options_.tree, base, other); !done)
      return done.takeError();
    if (tree)
      other = (fs::path(other) / fs::path(options_.tree).lexically_relative(tree->root))
                  .lexically_normal()
                  .string();
    while (other.ends_with('/') || other.ends_with("/.")) other.resize(other.rfind('/'));
  }
  const std::string second = check.kind == CheckKind::ranks ? check.many : check.command;
  const std::string json = folder + "/verdict.json", sarif = folder + "/verdict.sarif";
  std::vector<std::string> words = {fs::read_symlink("/proc/self/exe", error).string(), "diff"};
  for (const std::string& word :
       {other, options_.tree, std::string("--quiet"), std::string("--color"), std::string("never"),
        std::string("--run-a"), with_work(check.command, folder + "/scratch_a"),
        std::string("--run-b"), with_work(second, folder + "/scratch_b"), std::string("--json"),
        json, std::string("--sarif"), sarif})
    words.push_back(word);
  if (check.tier == Tier::tolerance) words.push_back("--tolerance");
  const auto each = [&words](const char* option, const std::vector<std::string>& values) {
    for (const std::string& value : values) words.insert(words.end(), {option, value});
  };
  if (check.deterministic) {
    words.push_back("--deterministic");
    each("--seed", {std::to_string(check.seed)});
  }
  each("--with", check.packages);
  each("--exclude", options_.sources.exclude);
  each("--extend-exclude", options_.sources.extend_exclude);
  each("--include", options_.sources.include);
  for (const char* scratch : {"/scratch_a", "/scratch_b"})
    if (auto failed = renew_scratch(folder + scratch, "")) return failed;
  say_step("diff of " + check.name + ": " + second);
  LaunchOptions launched;
  launched.command = words;
  launched.cwd = options_.tree;
  launched.output = Output::capture;
  auto done = launch(launched);
  if (!done) return done.takeError();
  if (auto stopped = done->stopped()) return stopped;
  const Json verdict = Json::parse(all_text(json), nullptr, /*allow_exceptions=*/false);
  if (!verdict.is_object())
    return make_error("diff ended with exit code " + std::to_string(done->exit_code) + "\n" +
                      last_lines(done->output, 20));
  CheckResult& result = run.result;
  const std::string outcome = verdict.value("verdict", "");
  result.outcome = done->exit_code == 0   ? Certified::yes
                   : done->exit_code == 1 ? Certified::no
                                          : Certified::undecided;
  result.sentence = outcome + ": " + verdict.value("why", "");
  result.compared = check.kind == CheckKind::ranks ? "one process, many" : "within rounding";
  if (result.outcome == Certified::yes) return llvm::Error::success();
  result.report = done->output;
  result.json = all_text(json);
  result.sarif = all_text(sarif);
  if (Json pivot = verdict.value("pivot", Json()); pivot.is_object()) {
    run.drift.place = pivot.value("boundary", "");
    const Json& side = pivot[pivot.value("b", Json()).is_object() ? "b" : "a"];
    if (side.is_object()) {
      result.file = side.value("file", "");
      result.line = side.value("line", 0u);
    }
    run.drift.values = run.drift.place;
  }
  return llvm::Error::success();
}

llvm::Error CheckRunner::run_canaries(const Check& check, CheckRun& run) {
  auto side = record_now(check, check.command, nullptr);
  if (!side) return side.takeError();
  auto now = canaries_of(**side);
  if (!now) return now.takeError();
  run.canaries = std::move(*now);
  if (auto failed = note_inputs(**side, run.certificate)) return failed;
  CheckResult& result = run.result;
  const auto known = options_.recorded->canaries.find(check.name);
  if (known == options_.recorded->canaries.end()) {
    result.outcome = Certified::undecided;
    result.sentence = "nothing is recorded yet: opguard certify --update " + check.name +
                      " --reason TEXT records what is now";
    return llvm::Error::success();
  }
  const std::vector<std::string> worse = compare_canaries(known->second, run.canaries);
  result.compared =
      counted(known->second.numbers.size() + known->second.names.size(), "recorded value");
  result.outcome = worse.empty() ? Certified::yes : Certified::no;
  result.sentence = worse.empty() ? "as recorded" : worse.front();
  for (const std::string& text : worse) result.report += "  " + shown(text) + "\n";
  return llvm::Error::success();
}

llvm::Expected<CheckRun> CheckRunner::run(const Check& check, const std::string& base) {
  CheckRun run;
  run.result.check = check;
  run.drift.check = check.name;
  run.drift.machine = environment_digest(check.command);
  run.certificate.key = certificate_key(check, base);
  const auto begin = std::chrono::steady_clock::now();
  llvm::Error failed = [&]() -> llvm::Error {
    if (check.kind == CheckKind::canaries) return run_canaries(check, run);
    if (check.kind == CheckKind::ranks || check.tier == Tier::tolerance)
      return run_diff(check, base, run);
    if (check.kind == CheckKind::replay) return run_replay(check, run);
    if (check.kind == CheckKind::resume) return run_resume(check, run);
    return run_default_path(check, base, run);
  }();
  if (failed) return failed;
  run.result.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return run;
}

}  // namespace opguard
