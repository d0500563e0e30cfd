#include "cli/side.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "align/run.h"
#include "parser/parse.h"
#include "patcher/patch.h"
#include "preflight/build_plan.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;

llvm::Error write_text(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.close();
  return out ? llvm::Error::success() : make_error("cannot write '" + path + "'");
}

// The expression as one line.
std::string one_line(const SourceFile& file, const Site& site) {
  std::string text = file.text.substr(site.start, site.end - site.start);
  std::string line;
  for (char c : text) {
    bool space = c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\\';
    if (!space) line += c;
    if (space && !line.empty() && line.back() != ' ') line += ' ';
  }
  return line;
}

std::map<std::string, Location> locate(const std::vector<Bound>& bounds, const SourceSet& sources) {
  std::map<std::string, Location> places;
  for (const Bound& bound : bounds) {
    const Site& site = bound.site;
    const SourceFile* file = sources.find(site.package, site.file);
    if (!file) continue;
    places[bound.boundary] = {site.package, site.file,     file->path,      site.line,
                              site.column,  site.end_line, site.end_column, one_line(*file, site),
                              site.callee,  site.scope};
  }
  return places;
}

}  // namespace

llvm::Expected<Survey> survey(const Side& side, const std::vector<std::string>& packages,
                              uint64_t steps, const TemplateLibrary& templates,
                              Diagnostics& diags) {
  auto preflight = run_preflight({.command = side.command,
                                  .tree = side.tree,
                                  .packages = packages,
                                  .steps = steps,
                                  .work_dir = side.work + "/trace",
                                  .quiet = false});
  if (!preflight) return preflight.takeError();
  const Trace& trace = preflight->trace;
  if (!trace.missing_packages.empty())
    return make_error("--with " + trace.missing_packages.front() + ": the interpreter of run " +
                      side.name + " has no such package");
  auto sources = read_sources(trace.roots, trace.files);
  if (!sources) return sources.takeError();

  Survey survey{std::move(*sources), {}, {}};
  Diagnostics unparsed;
  survey.sites = parse_sites(survey.sources, unparsed);
  for (Diagnostic diagnostic : unparsed.items()) {
    diagnostic.severity = Severity::warning;
    diagnostic.message += "; the file is left as it is";
    diags.add(diagnostic);
  }
  survey.plan = build_plan(trace, survey.sources, survey.sites, templates);
  if (survey.plan.boundaries.empty())
    return make_error("run " + side.name + " dispatched no operator from a file under '" +
                      side.tree + "'; name the packages to look into with --with");
  return survey;
}

llvm::Expected<std::string> write_hook(const Side& side, const Survey& survey,
                                       const std::vector<Bound>& bounds, Diagnostics& diags) {
  std::vector<Wrap> wraps;
  for (const Bound& bound : bounds) wraps.push_back({bound.boundary, bound.site});
  auto patch = make_patch(survey.sources, wraps, diags);
  if (!patch) return patch.takeError();

  std::error_code error;
  fs::create_directories(side.work + "/hook", error);
  if (error) return make_error("cannot make '" + side.work + "/hook': " + error.message());
  nlohmann::json files = nlohmann::json::object();
  for (size_t i = 0; i < patch->files.size(); ++i) {
    std::string path = side.work + "/hook/" + std::to_string(i) + ".py";
    if (auto failed = write_text(path, patch->files[i].after)) return failed;
    files[patch->files[i].path] = path;
  }
  std::string map = side.work + "/hook.json";
  std::string text = nlohmann::json{{"files", files}}.dump(
      1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (auto failed = write_text(map, text)) return failed;
  if (auto failed = write_text(side.work + "/probes.diff", format_diff(*patch))) return failed;
  return map;
}

llvm::Error record(const Side& side, const std::string& hook, const std::vector<Bound>& bounds,
                   const SourceSet& sources, const Variables& environment) {
  std::string log = side.work + "/log";
  std::error_code failed;
  fs::create_directories(log, failed);
  if (failed) return make_error("cannot make '" + log + "': " + failed.message());

  LaunchOptions options{.command = side.command,
                        .cwd = side.tree,
                        .environment = python_environment(),
                        .output = Output::capture,
                        .log = side.work + "/output.txt"};
  options.environment.insert(options.environment.end(), environment.begin(), environment.end());
  options.environment.push_back({"OPGUARD_LOG", log});
  options.environment.push_back({"OPGUARD_HOOK", hook});
  options.environment.push_back({"OPGUARD_TREE", side.tree});
  auto result = launch(options);
  if (!result) return result.takeError();
  if (std::string failure = result->failure(); !failure.empty())
    return make_error("run " + side.name + " ended with " + failure + "\n" +
                      last_lines(result->output, 20));
  return write_sites(log, locate(bounds, sources));
}

}  // namespace opguard
