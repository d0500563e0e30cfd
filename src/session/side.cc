// A guarded run leaves three files beside its folder of logs:
//
//   run_b/proof_2/log/          the logs; sites.json, run.json
//   run_b/proof_2/output.txt    what the program printed
//   run_b/proof_2/steps         optimizer steps so far, for the line of progress
//   run_b/proof_2/peak_bytes    the most memory that one process of it held
#include "session/side.h"

#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "align/pair/provenance_file.h"
#include "align/pair/run.h"
#include "patcher/patch.h"
#include "preflight/find_calls.h"
#include "preflight/reach.h"
#include "session/tree_copy.h"
#include "support/progress.h"
#include "support/say.h"
#include "support/write_file.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;

// By boundary: the whole expression, with file, line and column. A bound site is a copy. So whether
// it draws random numbers is looked up by its place in the source, not by its number.
std::map<std::string, Location> locate(const std::vector<Bound>& bounds, const Survey& survey) {
  using Place = std::tuple<std::string_view, std::string_view, uint32_t, uint32_t, Form>;
  auto place = [](const Site& site) -> Place {
    return {site.package, site.file, site.start, site.end, site.form};
  };
  std::set<Place> drawing;
  for (uint32_t site : drawing_sites(survey.trace, survey.sources, survey.sites))
    drawing.insert(place(survey.sites[site]));
  std::map<std::string, Location> places;
  for (const Bound& bound : bounds) {
    const SourceFile* file = survey.sources.find(bound.site.package, bound.site.file);
    if (!file) continue;
    Location at = location_of(bound.site, *file);
    at.draws = drawing.contains(place(bound.site));
    places[bound.boundary] = std::move(at);
  }
  return places;
}

}  // namespace

// The search goes on behind what was put in: a tree whose own path holds "{tree}" ends no loop.
std::string replace_tree(std::string text, const std::string& tree) {
  for (size_t at = text.find("{tree}"); at != std::string::npos;
       at = text.find("{tree}", at + tree.size()))
    text.replace(at, 6, tree);
  return text;
}

llvm::Error renew_tree(const DiffSide& side) {
  if (side.copy_of.empty()) return llvm::Error::success();
  return renew_copy(side.copy_of, side.tree, fs::path(side.work).parent_path());
}

//   run_b/probes.diff        the same as a diff, for a reader; nothing reads it back
//   run_b/hook/hook.json     {"files": {"/home/me/v2/model.py": ".../run_b/hook/0.py"}}
llvm::Expected<std::string> instrument_side(const DiffSide& side, const Survey& survey,
                                            const std::vector<Bound>& bounds, Diagnostics& diags) {
  std::vector<Wrap> wraps;
  for (const Bound& bound : bounds) wraps.push_back({bound.boundary, bound.site, bound.variant});
  auto patch = make_patch(survey.sources, wraps, diags);
  if (!patch) return patch.takeError();
  if (auto failed = write_file(side.work + "/probes.diff", format_diff(*patch))) return failed;
  return write_hook(*patch, side.work + "/hook");
}

// Of two values of one variable the later one holds. So `environment` may not set the mode or the
// hook, and what a caller pushes behind (mode sketch, in tolerance.cc) does.
GuardedProgram guarded(const DiffSide& side, const std::string& hook,
                       const Variables& environment) {
  GuardedProgram program{side.name, side.command, side.tree, own_run_environment(), side.work};
  program.copy_of = side.copy_of;
  if (!side.copy_of.empty()) program.copy = side.tree;
  auto& all = program.environment;
  all.insert(all.end(), environment.begin(), environment.end());
  // To convict, every input is read where it is used.
  all.push_back({"OPGUARD_MODE", "full"});
  all.push_back({"OPGUARD_HOOK", hook});
  all.push_back({"OPGUARD_TREE", side.tree});
  return program;
}

llvm::Expected<std::string> run_guarded(const GuardedProgram& program, const std::string& folder,
                                        const Variables& more, std::string* failure,
                                        const Ending& ending) {
  if (!program.copy_of.empty())
    if (auto error =
            renew_copy(program.copy_of, program.copy, fs::path(program.work).parent_path()))
      return error;
  const std::string log = program.work + (folder.empty() ? "" : "/" + folder) + "/log";
  std::error_code failed;
  fs::create_directories(log, failed);
  if (failed) return make_error("cannot make '" + log + "': " + failed.message());

  LaunchOptions options{.command = program.command,
                        .cwd = program.cwd,
                        .environment = program.environment,
                        .output = talk() == Talk::verbose ? Output::to_stderr : Output::capture,
                        .log = log.substr(0, log.rfind('/')) + "/output.txt",
                        .timeout_s = ending.timeout_s,
                        .apart = ending.apart,
                        .done = ending.cut ? log + "/ended" : ""};
  const std::string steps = options.log.substr(0, options.log.rfind('/')) + "/steps";
  options.environment.push_back({"OPGUARD_LOG", log});
  options.environment.push_back({"OPGUARD_PROGRESS", steps});
  options.environment.insert(options.environment.end(), more.begin(), more.end());
  auto result = [&] {
    const Progress progress("run of " + program.name, {steps, ending.cut ? 0 : program.steps});
    return launch(options);
  }();
  if (!result) return result.takeError();
  if (auto stopped = result->stopped()) return stopped;
  const std::string peak = options.log.substr(0, options.log.rfind('/')) + "/peak_bytes";
  if (auto error = write_file(peak, std::to_string(result->peak_bytes) + "\n")) return error;
  if (std::string how = result->failure(); !how.empty()) {
    std::string last = last_lines(result->output, 20);
    if (failure == nullptr || fs::is_empty(log, failed))
      return make_error("run " + program.name + " ended with " + how + "\n" + last);
    if (talk() != Talk::verbose) std::fprintf(stderr, "%s\n", last.c_str());
    *failure = how;
  }
  return log;
}

// The runtime knows the line alone; the report underlines the expression by these columns.
llvm::Error write_places(const std::string& log, const std::vector<Bound>& bounds,
                         const Survey& survey) {
  return write_sites(log, locate(bounds, survey),
                     find_calls(survey.trace, survey.sources, survey.sites));
}

// The survey has counted the steps, so the line of progress can say how many are left.
llvm::Error record(const DiffSide& side, const GuardedProgram& program,
                   const std::vector<Bound>& bounds, const Survey& survey, std::string* failure,
                   const std::string& folder) {
  GuardedProgram counted = program;
  counted.steps = survey.steps;
  auto log = run_guarded(counted, folder, {}, failure);
  if (!log) return log.takeError();
  if (auto error = write_provenance(*log, side.provenance)) return error;
  return write_places(*log, bounds, survey);
}

}  // namespace opguard
