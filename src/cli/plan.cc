// opguard plan: sources alone -> a plan of every operator a template names. Runs nothing.
//
//   opguard plan --static . -o plan.json                    all files of the tree
//   opguard plan --static . -o plan.json --only model.py    boundaries of one file
//
// Counterexample: an operator that no template names. Only a run tells that a call dispatches one
// (`preflight`); --all-calls takes every call instead, and most of them are none.
//
// The cost: every file is parsed; with --only the whole tree is, for what reads like one of the
// boundaries.
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/help_text.h"
#include "cli/report_options.h"
#include "matcher/template.h"
#include "parser/parse.h"
#include "plan/plan.h"
#include "preflight/build_plan.h"
#include "session/leave_out.h"
#include "session/look_alikes.h"
#include "session/skipped.h"
#include "support/install.h"
#include "support/say.h"
#include "support/version.h"

namespace opguard {
namespace {

struct PlanOptions {
  std::string tree, out, templates;
  SourceChoice sources;
  std::vector<std::string> only;  // names below the tree
  bool all_calls = false;
};

// These files of the tree. Error: it has no such file.
llvm::Expected<SourceSet> only_of(const SourceSet& sources, const std::vector<std::string>& names) {
  SourceSet some{sources.roots, {}, {}};
  for (const std::string& name : std::set<std::string>(names.begin(), names.end())) {
    const SourceFile* file = sources.find("", name);
    if (!file) return make_error("the tree has no Python file '" + name + "'");
    some.files.push_back(*file);
  }
  return some;
}

int run_plan(const PlanOptions& opt) {
  Diagnostics diags;
  auto give_up = [&](llvm::Error error) {
    print_diagnostics(diags.text());
    return fail(llvm::toString(std::move(error)));
  };
  // First what can be refused cheaply: a fault in a template before a large tree is read.
  llvm::Expected<TemplateLibrary> templates =
      read_templates(opt.templates.empty() ? templates_dir() : opt.templates, diags);
  if (!templates) return give_up(templates.takeError());
  llvm::Expected<SourceSet> whole = read_sources({SourceRoot{"", opt.tree, ""}});
  if (!whole) return give_up(whole.takeError());
  leave_out(*whole, opt.sources);
  leave_out_unasked(*whole, opt.sources);
  llvm::Expected<SourceSet> sources =
      opt.only.empty() ? std::move(whole) : only_of(*whole, opt.only);
  if (!sources) return give_up(sources.takeError());
  Diagnostics found;
  std::vector<Site> sites = parse_sites(*sources, found);
  const std::vector<SkippedFile> skipped = skip_files(*sources, found, diags);
  const size_t parsed = sources->files.size() + sources->unread.size() - skipped.size();
  if (parsed == 0) return give_up(make_error("no file of the tree is Python; no plan was written"));
  Plan plan = static_plan(*sources, sites, *templates, opt.all_calls);
  // Of the whole tree every site that reads like a boundary is one.
  if (!opt.only.empty()) plan.elsewhere = look_alikes(*whole, plan);
  // A plan without them would look complete.
  for (const SkippedFile& file : skipped)
    plan.unwrapped.push_back({file.package, file.file, file.line, "skipped: " + file.why, "", 0});
  plan.opguard = version();
  if (llvm::Error error = write_plan(plan, opt.out)) return give_up(std::move(error));
  print_diagnostics(diags.text());
  std::fprintf(stderr, "opguard: %zu boundaries of %zu sites in %zu files%s: %s\n",
               plan.boundaries.size(), sites.size(), parsed,
               skipped.empty() ? "" : (", " + std::to_string(skipped.size()) + " skipped").c_str(),
               opt.out.c_str());
  return kYes;
}

}  // namespace

void add_plan(CLI::App& app, Pipeline& run) {
  auto opt = std::make_shared<PlanOptions>();
  CLI::App* plan = app.add_subcommand("plan", "Write a plan from sources alone, running nothing");
  describe(*plan, {"", {"opguard plan --static . -o plan.json --only model.py"}});
  plan->add_option("--static", opt->tree, "Tree of Python files")->type_name("TREE")->required();
  plan->add_option("-o,--output", opt->out, "The plan to write")->type_name("FILE")->required();
  plan->add_flag("--all-calls", opt->all_calls, "Take every call, not only what a template names");
  plan->add_option("--only", opt->only, "Take boundaries of this file of the tree only; repeatable")
      ->type_name("FILE")
      ->allow_extra_args(false);
  plan->add_option("--templates", opt->templates, "Take operator templates from this folder")
      ->type_name("DIR");
  add_source_options(*plan, opt->sources);
  plan->callback([opt, &run] { run = [opt] { return run_plan(*opt); }; });
}

}  // namespace opguard
