// opguard preflight -o plan.json [--tree DIR] [--with PKG]... [--steps N] -- CMD
#include <cstdio>
#include <filesystem>
#include <memory>

#include "cli/command.h"
#include "cli/survey.h"
#include "matcher/template.h"
#include "preflight/launch.h"
#include "support/diagnostics.h"
#include "support/install.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;

struct PreflightCommand {
  std::string out, tree = ".", work;
  std::vector<std::string> packages, command;
  uint64_t steps = 0;
  bool quiet = false;
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
  auto tree = canonical_tree(opt.tree);
  if (!tree) return fail(llvm::toString(tree.takeError()));
  // Before the program's minutes are spent.
  fs::path out_dir = fs::absolute(opt.out).parent_path();
  if (!fs::is_directory(out_dir)) return fail("no such folder: " + out_dir.string());
  Diagnostics diags;
  auto templates = read_templates(templates_dir(), diags);
  if (!templates) {
    std::fputs(diags.text().c_str(), stderr);
    return fail(llvm::toString(templates.takeError()));
  }
  auto work = opt.work.empty() ? WorkFolder::temporary() : WorkFolder(opt.work);
  if (!work) return fail(llvm::toString(work.takeError()));

  std::fprintf(stderr, "opguard: preflight in %s: %s\n", tree->c_str(), quote(opt.command).c_str());
  auto seen = survey({.command = opt.command,
                      .tree = *tree,
                      .packages = opt.packages,
                      .steps = opt.steps,
                      .work = work->path(),
                      .quiet = opt.quiet},
                     *templates, diags);
  std::fputs(diags.text().c_str(), stderr);
  if (!seen) return fail(llvm::toString(seen.takeError()));
  if (auto error = write_plan(seen->plan, opt.out)) return fail(llvm::toString(std::move(error)));
  print_summary(opt, seen->trace, seen->plan);
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
  command->add_option("--work", opt->work, "Keep the traces, in this folder's trace/");
  command->add_flag("--quiet", opt->quiet, "Do not show the program's output");
  command->footer("After --: the program, as you start it.");
  command->callback([opt, &run] {
    opt->command = program_words("preflight");
    run = [opt] { return preflight(*opt); };
  });
}

}  // namespace opguard
