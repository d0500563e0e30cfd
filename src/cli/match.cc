// opguard match: the boundaries of a plan, looked for in another tree. It reads the tree as it lies
// there; a package of --with is not among its options.
//
//   opguard match --plan plan.json other/                            each boundary in a line
//   opguard match --plan plan.json other/ --json -                   for programs, on stdout
//   opguard match --plan plan.json other/ --explain model.mul:77ab   why this one did or did not
#include <memory>

#include "cli/command.h"
#include "cli/help_text.h"
#include "cli/report_options.h"
#include "session/match_tree.h"

namespace opguard {

void add_match(CLI::App& app, Pipeline& run) {
  auto opt = std::make_shared<MatchOptions>();
  CLI::App* match = app.add_subcommand("match", "Find the boundaries of a plan in a tree");
  describe(*match, {"", {"opguard match --plan plan.json other/"}});
  match->add_option("--plan", opt->plan, "The plan")->type_name("FILE")->required();
  match->add_option("TREE", opt->tree, "Tree of Python files")->required();
  match->add_option("--json", opt->json, "Write the matches as JSON ('-': to stdout)")
      ->type_name("FILE");
  match->add_option("--templates", opt->templates, "Take operator templates from this folder")
      ->type_name("DIR");
  match->add_option("--explain", opt->explain, "Tell why this boundary matched or did not")
      ->type_name("ID");
  add_exclude_options(*match, opt->sources);
  match->callback([opt, &run] { run = [opt] { return match_tree(*opt); }; });
}

}  // namespace opguard
