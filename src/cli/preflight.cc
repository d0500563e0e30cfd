// opguard preflight -o plan.json [--tree DIR] [--with PKG]... [--steps N] -- CMD
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "cli/command.h"
#include "matcher/template.h"
#include "parser/parse.h"
#include "preflight/build_plan.h"
#include "preflight/launch.h"
#include "preflight/preflight.h"
#include "support/diagnostics.h"
#include "support/install.h"

#ifndef OPGUARD_VERSION
#define OPGUARD_VERSION "unknown"
#endif

namespace opguard {
namespace {

namespace fs = std::filesystem;

struct PreflightCommand {
  std::string out, tree = ".", traces;
  std::vector<std::string> packages, command;
  uint64_t steps = 0;
  bool quiet = false;
};

// The traces' folder: the user's, or one that goes with the command.
class TraceDir {
 public:
  explicit TraceDir(const std::string& given) : path_(given) {
    if (!given.empty()) return;
    std::error_code ec;
    fs::path base = fs::temp_directory_path(ec);
    std::string pattern = ((ec ? fs::path("/tmp") : base) / "opguard-XXXXXX").string();
    if (mkdtemp(pattern.data())) path_ = pattern;
    ours_ = !path_.empty();
  }
  ~TraceDir() {
    std::error_code ec;
    if (ours_) fs::remove_all(path_, ec);
  }
  TraceDir(const TraceDir&) = delete;
  TraceDir& operator=(const TraceDir&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool ours_ = false;
};

void print_summary(const PreflightCommand& opt, const Trace& trace, const Plan& plan) {
  std::set<std::string> files;
  for (const Boundary& boundary : plan.boundaries)
    files.insert(boundary.site.package + ":" + boundary.site.file);
  double share = plan.activities ? 100.0 * plan.attributed / plan.activities : 0;
  std::printf("%s: %zu boundaries in %zu files, %llu optimizer steps\n", opt.out.c_str(),
              plan.boundaries.size(), files.size(), static_cast<unsigned long long>(trace.steps));
  std::printf("coverage: %llu of %llu activities belong to a boundary (%.1f %%)\n",
              static_cast<unsigned long long>(plan.attributed),
              static_cast<unsigned long long>(plan.activities), share);
  if (!trace.complete) std::printf("note: a process was killed before its trace was whole\n");
  std::printf("next: opguard-instrument %s --plan %s\n", quote({opt.tree}).c_str(),
              quote({opt.out}).c_str());
}

int preflight(const PreflightCommand& opt) {
  std::error_code ec;
  fs::path tree = fs::canonical(opt.tree, ec);
  if (ec || !fs::is_directory(tree)) return fail("no such folder: " + opt.tree);
  // Before the program's minutes are spent.
  fs::path out_dir = fs::absolute(opt.out).parent_path();
  if (!fs::is_directory(out_dir)) return fail("no such folder: " + out_dir.string());
  Diagnostics diags;
  llvm::Expected<TemplateLibrary> templates = read_templates(templates_dir(), diags);
  if (!templates) {
    std::fputs(diags.text().c_str(), stderr);
    return fail(llvm::toString(templates.takeError()));
  }
  TraceDir traces(opt.traces);
  if (traces.path().empty()) return fail("no temporary folder can be made");

  std::fprintf(stderr, "opguard: preflight in %s: %s\n", tree.c_str(), quote(opt.command).c_str());
  llvm::Expected<Preflight> ran = run_preflight(
      {opt.command, tree.string(), opt.packages, opt.steps, traces.path(), opt.quiet});
  if (!ran) return fail(llvm::toString(ran.takeError()));
  const Trace& trace = ran->trace;
  for (const std::string& name : trace.missing_packages)
    return fail("--with " + name + ": the program's interpreter has no such package");

  // Only what the program loaded: other files have no boundary.
  llvm::Expected<SourceSet> sources = read_sources(trace.roots, trace.files);
  if (!sources) return fail(llvm::toString(sources.takeError()));
  Diagnostics unparsed;
  std::vector<Site> sites = parse_sites(*sources, unparsed);
  Plan plan = build_plan(trace, *sources, sites, *templates);
  plan.opguard = OPGUARD_VERSION;
  plan.command = opt.command;
  plan.packages = opt.packages;
  // A file that ran is Python: one the parser cannot read costs coverage, not the plan.
  for (Diagnostic diagnostic : unparsed.items()) {
    diagnostic.severity = Severity::warning;
    diagnostic.message += "; its operators are no boundaries";
    diags.add(diagnostic);
  }
  std::fputs(diags.text().c_str(), stderr);
  if (plan.boundaries.empty())
    return fail("no operator was seen in the source below " + tree.string() +
                ": is the program's code there, or in a package to be named by --with?");
  if (llvm::Error error = write_plan(plan, opt.out)) return fail(llvm::toString(std::move(error)));
  print_summary(opt, trace, plan);
  return kYes;
}

}  // namespace

void add_preflight(CLI::App& app, Pipeline& run) {
  auto opt = std::make_shared<PreflightCommand>();
  CLI::App* command = app.add_subcommand(
      "preflight", "Run a program under the tracer and write its plan: every operator boundary");
  command->add_option("-o,--output", opt->out, "The plan to write")->required();
  command->add_option("--tree", opt->tree, "Folder of the program's source; CMD runs in it [.]");
  command
      ->add_option("--with", opt->packages, "Installed package that counts as source; repeatable")
      ->allow_extra_args(false);
  command->add_option("--steps", opt->steps, "Stop tracing after N optimizer steps [0: never]");
  command->add_option("--traces", opt->traces, "Keep the traces in this folder");
  command->add_flag("--quiet", opt->quiet, "Do not show the program's output");
  command->add_option("command", opt->command, "After --: the program, as you start it")
      ->required();
  command->callback([opt, &run] { run = [opt] { return preflight(*opt); }; });
}

}  // namespace opguard
