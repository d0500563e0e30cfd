// A check ends in one of four states, and the table has one line for it:
//
//   certified       the values are those; with a certificate, where its inputs are known
//   not certified   they are not, and nobody has accepted it
//   accepted        they are not; an entry of opguard-certified.json says until when, and why
//   undecided       it could not be run or compared; the sentence is the error's first line
//
// Counterexample: an entry whose day has passed. The check is not certified, and its sentence says
// until when it had been accepted.
//
// Default paths run first. A check that wants no plan can use their recording. The other way round
// it would not do.
#include "session/certify.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <optional>
#include <utility>

#include "certify/read_checks.h"
#include "certify/recorded_values.h"
#include "certify/write_results.h"
#include "report/identity.h"
#include "session/run_check.h"
#include "session/side_trees.h"
#include "session/work_folder.h"
#include "settings/find_file.h"
#include "settings/settings_file.h"
#include "support/diagnostics.h"
#include "support/exit_code.h"
#include "support/kept_input.h"
#include "support/say.h"
#include "support/write_file.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;

constexpr int kAcceptedDays = 90;  // of --update without --until
constexpr size_t kDateLength = 10;

std::string today() { return identity_now().date.substr(0, kDateLength); }

std::string day_from_now(int days) {
  const std::time_t then = std::time(nullptr) + std::time_t(days) * 24 * 3600;
  std::tm parts{};
  gmtime_r(&then, &parts);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &parts);
  return text;
}

// What is known before anything runs. `checks`: also those that were not asked for by name.
struct Setup {
  std::string tree, recorded_path, store_folder;
  std::vector<Check> checks;  // all
  RecordedValues recorded;
};

// The tree is the folder of the settings file, else the one we are in.
llvm::Expected<Setup> set_up(const CertifyOptions& opt) {
  Setup setup;
  Diagnostics diags;
  std::optional<SettingsFile> file;
  std::string folder = ".";
  if (const auto found = find_settings_file(".")) {
    file = read_settings_file(found->path, found->path.ends_with(kOwnFile), diags);
    if (file) folder = file->folder;
  }
  auto tree = canonical_tree(folder);
  if (!tree) return tree.takeError();
  setup.tree = *tree;
  CheckDefaults defaults{command_text(opt.command), opt.against, opt.packages, !opt.no_control,
                         opt.seed};
  setup.checks = read_checks(file ? &*file : nullptr, defaults, diags);
  print_diagnostics(diags.text());
  if (diags.has_errors()) return make_error("the checks cannot be read (opguard help certify)");
  for (const Check& check : setup.checks)
    if (check.command.empty())
      return make_error("the program is missing: give it after --, or as 'command' in [certify]");
  setup.recorded_path = setup.tree + "/" + kRecordedFile;
  auto recorded = read_recorded(setup.recorded_path);
  if (!recorded) return recorded.takeError();
  setup.recorded = std::move(*recorded);
  setup.store_folder = RunStore::find_folder(setup.tree, opt.store);
  return setup;
}

CheckResult reused(const Check& check, const Certificate& certificate) {
  CheckResult result;
  result.check = check;
  result.outcome = Certified::yes;
  result.reused = true;
  result.sentence = certificate.sentence;
  result.compared = certificate.compared;
  return result;
}

// An error of two lines becomes a sentence and a report: the lines behind the first are the
// program's last.
CheckResult undecided(const Check& check, llvm::Error error) {
  CheckResult result;
  result.check = check;
  const std::string text = llvm::toString(std::move(error));
  const size_t end = text.find('\n');
  result.sentence = text.substr(0, end);
  if (end != std::string::npos) result.report = text.substr(end + 1) + "\n";
  return result;
}

// A difference that somebody has accepted, with a reason, for a time.
void apply_accepted(const RecordedValues& recorded, CheckRun& run) {
  CheckResult& result = run.result;
  if (result.outcome != Certified::no || run.drift.values.empty()) return;
  const DriftAnswer answer = find_drift(recorded.accepted, run.drift, today());
  if (answer.drift == Drift::other) return;
  if (answer.drift == Drift::expired) {
    result.sentence +=
        "; it was accepted until " + answer.entry->until + ": " + answer.entry->reason;
    return;
  }
  result.outcome = Certified::accepted;
  result.sentence = "accepted until " + answer.entry->until + ": " + answer.entry->reason;
  result.report.clear();
}

class Certifier {
 public:
  Certifier(const CertifyOptions& opt, Setup& setup, CheckRunner& runner, std::string store)
      : opt_(opt), setup_(setup), runner_(runner), store_(std::move(store)) {}

  // In the order of `checks`; default paths run first, for others may use their recording.
  std::vector<CheckResult> run(const std::vector<Check>& checks) {
    std::vector<std::optional<CheckResult>> results(checks.size());
    for (const bool first : {true, false})
      for (size_t i = 0; i < checks.size(); ++i)
        if ((checks[i].kind == CheckKind::default_path) == first) results[i] = run_one(checks[i]);
    std::vector<CheckResult> all;
    for (auto& result : results) all.push_back(std::move(*result));
    return all;
  }

  // Of the last check that ran.
  const std::optional<CheckRun>& last() const { return last_; }

 private:
  // No certificate is reused where the user asks for what is there now: --fresh, --update,
  // canaries.
  CheckResult run_one(const Check& check) {
    auto base = runner_.base_of(check);
    if (!base) return undecided(check, base.takeError());
    const bool update = opt_.update == check.name;
    if (!opt_.fresh && !update && check.kind != CheckKind::canaries)
      if (const auto known = valid_certificate(store_, certificate_key(check, *base), setup_.tree))
        return reused(check, *known);
    auto run = runner_.run(check, *base);
    if (!run) return undecided(check, run.takeError());
    apply_accepted(setup_.recorded, *run);
    const CheckResult result = run->result;
    if (result.outcome == Certified::yes && !run->certificate.files.empty() &&
        check.kind != CheckKind::canaries) {
      run->certificate.compared = result.compared;
      run->certificate.sentence = result.sentence;
      if (auto failed = write_certificate(run->certificate, check, store_))
        say("note: no certificate: " + llvm::toString(std::move(failed)));
    }
    last_ = std::move(*run);
    return result;
  }

  const CertifyOptions& opt_;
  Setup& setup_;
  CheckRunner& runner_;
  std::string store_;
  std::optional<CheckRun> last_;
};

// --update: what the check found is recorded, or accepted.
llvm::Expected<int> update(const CertifyOptions& opt, Setup& setup, const CheckRun& run) {
  const Check& check = run.result.check;
  RecordedValues& recorded = setup.recorded;
  if (check.kind == CheckKind::canaries) {
    Canaries& now = recorded.canaries[check.name];
    now = run.canaries;
    now.reason = opt.reason;
    if (auto failed = write_recorded(recorded, setup.recorded_path)) return failed;
    say("recorded in " + setup.recorded_path + ": " +
        std::to_string(now.numbers.size() + now.names.size()) + " values of " + check.name);
    return kYes;
  }
  if (run.result.outcome != Certified::no || run.drift.values.empty())
    return make_error("there is nothing to accept: " + check.name + " is " +
                      outcome_name(run.result.outcome) + ": " + run.result.sentence);
  AcceptedDrift drift = run.drift;
  drift.reason = opt.reason;
  drift.until = opt.until.empty() ? day_from_now(kAcceptedDays) : opt.until;
  std::erase_if(recorded.accepted, [&](const AcceptedDrift& other) {
    return other.check == drift.check && other.place == drift.place;
  });
  recorded.accepted.push_back(drift);
  if (auto failed = write_recorded(recorded, setup.recorded_path)) return failed;
  say("accepted until " + drift.until + " in " + setup.recorded_path + ": " + drift.place);
  return kYes;
}

// Each that has a path; the first that cannot be written ends it.
llvm::Error write_outputs(const CertifyOptions& opt, const std::vector<CheckResult>& results,
                          const std::string& title) {
  auto write = [](const std::string& path, const std::string& text) {
    return path.empty() ? llvm::Error::success() : write_file(path, text);
  };
  if (auto failed = write(opt.json, format_results(results, title))) return failed;
  if (auto failed = write(opt.junit, format_junit(results))) return failed;
  if (auto failed = write(opt.sarif, merge_sarif(results))) return failed;
  return write(opt.markdown, format_markdown(results, title));
}

llvm::Expected<int> certify_in(const CertifyOptions& opt, const std::string& work) {
  auto setup = set_up(opt);
  if (!setup) return setup.takeError();
  std::vector<std::string> names = opt.names;
  if (!opt.update.empty()) names = {opt.update};
  auto checks = chosen_checks(setup->checks, names);
  if (!checks) return checks.takeError();
  if (opt.list) {
    std::string text;
    for (const Check& check : *checks)
      text += check.name + "  " + kind_name(check.kind) + ", " + tier_name(check.tier) + ": " +
              check.command + "\n";
    print_lines(text);
    return kYes;
  }
  auto store = RunStore::make(setup->store_folder);
  if (!store) return store.takeError();
  Diagnostics diags;
  auto templates = find_templates(opt.templates, diags);
  if (!templates) return templates.takeError();
  CheckRunner runner({.tree = setup->tree,
                      .work = work,
                      .sources = opt.sources,
                      .store = &*store,
                      .templates = &*templates,
                      .recorded = &setup->recorded});
  Certifier certifier(opt, *setup, runner, setup->store_folder);
  const std::vector<CheckResult> results = certifier.run(*checks);
  if (!opt.update.empty()) {
    if (!certifier.last()) return make_error("nothing is recorded: " + results.front().sentence);
    return update(opt, *setup, *certifier.last());
  }
  const Provenance provenance = provenance_of(setup->tree);
  const std::string version = provenance.version();
  const std::string title = (version.empty() ? "" : version + " in ") + setup->tree;
  if (std::fputs(format_table(results).c_str(), stdout) < 0)
    return make_error("the output could not be written");
  if (auto failed = write_outputs(opt, results, title)) return failed;
  return exit_code(results);
}

}  // namespace

int certify(CertifyOptions opt) {
  if (!opt.update.empty() && opt.reason.empty())
    return fail("--update records or accepts something: say why by --reason");
  keep_input();
  return work_in(opt.work, "logs, plans and outputs",
                 [&](const std::string& work) { return certify_in(opt, work); });
}

}  // namespace opguard
