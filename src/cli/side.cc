#include "cli/side.h"

#include <filesystem>
#include <map>

#include "align/run.h"
#include "patcher/patch.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;

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

llvm::Expected<std::string> instrument_side(const DiffSide& side, const Survey& survey,
                                            const std::vector<Bound>& bounds, Diagnostics& diags) {
  std::vector<Wrap> wraps;
  for (const Bound& bound : bounds) wraps.push_back({bound.boundary, bound.site, bound.variant});
  auto patch = make_patch(survey.sources, wraps, diags);
  if (!patch) return patch.takeError();
  if (auto failed = write_text(side.work + "/probes.diff", format_diff(*patch))) return failed;
  return write_hook(*patch, side.work + "/hook");
}

llvm::Error record(const DiffSide& side, const std::string& hook, const std::vector<Bound>& bounds,
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
  // To convict, every input is read where it is used.
  options.environment.push_back({"OPGUARD_MODE", "full"});
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
