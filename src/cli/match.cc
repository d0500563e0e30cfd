#include <memory>

#include "cli/command.h"
#include "session/match_tree.h"

namespace opguard {

void add_match(CLI::App& app, Pipeline& run) {
  auto opt = std::make_shared<MatchOptions>();
  CLI::App* match = app.add_subcommand("match", "Find the boundaries of a plan in a tree");
  match->add_option("--plan", opt->plan, "The plan")->required();
  match->add_option("tree", opt->tree, "Tree of Python files")->required();
  match->add_option("--json", opt->json, "Write the matches as JSON ('-': to stdout)");
  match->add_option("--templates", opt->templates, "Folder of templates instead of opguard's own");
  match->add_option("--explain", opt->explain, "Say why this boundary matched or did not");
  match->callback([opt, &run] { run = [opt] { return match_tree(*opt); }; });
}

}  // namespace opguard
