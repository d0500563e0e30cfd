// Sources are read twice, for two questions. What the program loaded makes the plan: its sites and
// their signatures. All that lies below the roots makes `elsewhere`: what reads like a boundary and
// never ran. By it a later match is not led astray.
//
// Counterexample: a tree that carries probes. The program is traced with plain texts in their
// place, and the plan is of these. So a plan does not depend on whether probes were in.
#include "session/survey.h"

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "parser/parse.h"
#include "patcher/patch.h"
#include "preflight/build_plan.h"
#include "preflight/preflight.h"
#include "session/leave_out.h"
#include "session/look_alikes.h"
#include "session/skipped.h"
#include "support/install.h"
#include "support/say.h"
#include "support/version.h"
#include "support/write_file.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;

// The tree's files that carry probes, plain.
// A patch that is applied to no file: it holds the texts as they would be.
llvm::Expected<Patch> plain_texts(const std::string& tree) {
  auto sources = read_sources({{"", tree, ""}});
  if (!sources) return sources.takeError();
  Diagnostics unparsed;
  return strip_patch(*sources, unparsed);
}

// Gives files that carry probes their plain texts.
void put_plain(const Patch& plain, SourceSet& sources) {
  std::map<std::string, const FilePatch*> stripped;
  for (const FilePatch& file : plain.files) stripped[file.path] = &file;
  for (SourceFile& file : sources.files)
    if (auto at = stripped.find(file.path); at != stripped.end())
      file = make_source(file.package, file.name, file.path, at->second->after);
}

}  // namespace

llvm::Expected<TemplateLibrary> find_templates(const std::string& folder, Diagnostics& diags) {
  auto templates = read_templates(folder.empty() ? templates_dir() : folder, diags);
  if (!templates) print_diagnostics(diags.text());
  return templates;
}

//   {"files": {"/home/me/v2/model.py": "DIR/0.py", "/home/me/v2/train.py": "DIR/1.py"}}
llvm::Expected<std::string> write_hook(const Patch& patch, const std::string& dir) {
  std::error_code error;
  fs::create_directories(dir, error);
  if (error) return make_error("cannot make '" + dir + "': " + error.message());
  nlohmann::json files = nlohmann::json::object();
  for (size_t i = 0; i < patch.files.size(); ++i) {
    std::string path = dir + "/" + std::to_string(i) + ".py";
    if (auto failed = write_file(path, patch.files[i].after)) return failed;
    files[patch.files[i].path] = path;
  }
  std::string map = dir + "/hook.json";
  std::string text = nlohmann::json{{"files", files}}.dump(
      1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (auto failed = write_file(map, text)) return failed;
  return map;
}

std::string told_end(const Trace& trace) {
  if (!trace.ended) return "";
  return "tracing ended after " + std::to_string(trace.steps) +
         " optimizer steps: nothing new had come since step " + std::to_string(trace.newest) +
         "; operators that only come later have no probe (--steps 0 traces all)";
}

llvm::Expected<Survey> survey(const SurveyOptions& options, const TemplateLibrary& templates,
                              Diagnostics& diags) {
  // A tree that carries probes is traced without them: the plan is of the user's own text.
  auto plain = plain_texts(options.tree);
  if (!plain) return plain.takeError();
  std::string hook;
  if (!plain->files.empty()) {
    auto written = write_hook(*plain, options.work + "/plain");
    if (!written) return written.takeError();
    hook = *written;
  }
  auto preflight = run_preflight({.command = options.command,
                                  .tree = options.tree,
                                  .packages = options.packages,
                                  .left_out = options.left_out,
                                  .steps = options.steps,
                                  .work_dir = options.work + "/trace",
                                  .quiet = options.quiet,
                                  .activities = options.activities,
                                  .hook = hook,
                                  .environment = options.environment,
                                  .to_its_end = options.to_its_end});
  if (!preflight) return preflight.takeError();
  Survey survey{
      std::move(preflight->trace), {}, {}, {}, std::move(preflight->failure), preflight->steps};
  const Trace& trace = survey.trace;
  if (!trace.missing_packages.empty())
    return make_error("--with " + trace.missing_packages.front() +
                      ": the program's interpreter has no such package");

  // Only what the program loaded: other files have no boundary.
  auto sources = read_sources(trace.roots, trace.files);
  if (!sources) return sources.takeError();
  survey.sources = std::move(*sources);
  put_plain(*plain, survey.sources);

  Diagnostics unparsed;
  survey.sites = parse_sites(survey.sources, unparsed);
  skip_files(survey.sources, {}, diags);
  for (Diagnostic diagnostic : unparsed.items()) {
    diagnostic.severity = Severity::warning;
    diagnostic.message += "; its operators are no boundaries";
    diags.add(diagnostic);
  }
  survey.plan = build_plan(trace, survey.sources, survey.sites, templates);
  auto whole = read_sources(trace.roots);
  if (!whole) return whole.takeError();
  erase(*whole, options.left_out);
  put_plain(*plain, *whole);
  survey.plan.elsewhere = look_alikes(*whole, survey.plan);
  survey.plan.opguard = version();
  survey.plan.command = options.command;
  survey.plan.packages = options.packages;
  if (survey.plan.boundaries.empty() && !survey.failure.empty())
    return make_error("the program failed under preflight before its first operator: " +
                      survey.failure);
  if (survey.plan.boundaries.empty())
    return make_error("no operator was seen in the source below " + options.tree +
                      ": is the program's code there, or in a package to be named by --with?");
  return survey;
}

}  // namespace opguard
