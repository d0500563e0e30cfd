// opguard prove: a plan, a folder that was captured before, or the rules themselves.
//
//   opguard prove plan.py                     captured and checked
//   opguard prove plan.py --full              and compared with the program at the plan's own FULL
//   opguard prove --captured kept/            nothing runs
//   opguard prove --rules                     what operators mean, against torch
//
// Two options mean something without a value: --full is the plan's FULL, --accept-extent-1 any
// input. So what counts is whether they were given (count), and not what their string holds.
#include <memory>
#include <set>
#include <sstream>

#include "cli/command.h"
#include "cli/help_text.h"
#include "session/prove_plan.h"

namespace opguard {
namespace {

// "w,v" -> w and v.
std::set<std::string> words_of(const std::string& text) {
  std::set<std::string> words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, ',');)
    if (!word.empty()) words.insert(word);
  return words;
}

}  // namespace

void add_prove(CLI::App& app, Pipeline& run) {
  auto opt = std::make_shared<ProvePlanOptions>();
  CLI::App* command = app.add_subcommand(
      "prove", "Prove that a parallel plan computes what its model computes (opguard help prove)");
  describe(*command, {"", {"opguard prove plan.py", "opguard prove plan.py --dims heads=8"}});
  command->add_option("PLAN", opt->plan, "A Python file with logical(), plan() and WORLD");
  command->add_option("--dims", opt->dims, "Other sizes than the plan's, as hidden=16,heads=8")
      ->type_name("SIZES");
  auto full = std::make_shared<std::string>();
  CLI::Option* at_full =
      command
          ->add_option("--full", *full,
                       "Compare with the program at these dims, as hidden=4096; without a value: "
                       "with those of the plan's FULL")
          ->type_name("SIZES")
          ->expected(0, 1);
  auto extents = std::make_shared<std::string>();
  CLI::Option* of_1 =
      command
          ->add_option("--accept-extent-1", *extents,
                       "Prove although there is one element along a dimension of these inputs; "
                       "without a value: of any")
          ->type_name("NAMES")
          ->expected(0, 1);
  command
      ->add_option("--opaque", opt->grants.opaque,
                   "Let this operator without a meaning be a function of its whole inputs")
      ->type_name("OPERATOR")
      ->allow_extra_args(false);
  command
      ->add_option_function<std::vector<std::string>>(
          "--approx",
          [opt](const std::vector<std::string>& rules) {
            for (const std::string& rule : rules) {
              if (!rule.starts_with("drop=") || rule.size() == 5)
                throw CLI::ValidationError("--approx", rule + ": is none of drop=OUTPUT");
              opt->grants.dropped.insert(rule.substr(5));
            }
          },
          "drop=OUTPUT: this output of the model is not compared")
      ->type_name("RULE")
      ->allow_extra_args(false);
  command->add_flag("--blocking-sends", opt->grants.blocking_sends,
                    "Let a send wait for its receiver, as gloo's does");
  command->add_option("--python", opt->python, "Capture the plan with this interpreter")
      ->capture_default_str();
  command->add_option("--work", opt->work, "Keep what was captured in this new folder")
      ->type_name("DIR");
  command
      ->add_option("--captured", opt->captured,
                   "Prove what --work has kept in this folder; nothing runs")
      ->type_name("DIR")
      ->excludes("--work", "--dims", "--full");
  command->add_option("--json", opt->json, "Write the result to this file")->type_name("FILE");
  command->add_option("--html", opt->html, "As one page")->type_name("FILE");
  command->add_option("--sarif", opt->sarif, "As SARIF, for code review")->type_name("FILE");
  command
      ->add_option("--replay", opt->replay,
                   "Write what is refuted into this new folder, as a program that shows it running")
      ->type_name("DIR");
  command
      ->add_option("--solver", opt->solver,
                   "Ask this libz3 what is left open; none: ask no solver (default: the system's)")
      ->type_name("LIBRARY");
  auto rules = std::make_shared<bool>(false);
  command
      ->add_flag("--rules", *rules,
                 "Compare what operators mean here with what torch computes, and prove the algebra")
      ->excludes("PLAN", "--captured");
  command->footer("Exits with 0 proved, 1 refuted, 2 unknown, 3 bad input.");
  command->callback([opt, rules, full, at_full, extents, of_1, command, &run] {
    if (at_full->count() > 0) opt->full = *full;
    if (of_1->count() > 0) opt->grants.extents_of_1 = words_of(*extents);
    if (*rules) {
      run = [opt] { return prove_rules(*opt); };
      return;
    }
    if (opt->plan.empty() == opt->captured.empty())
      throw CLI::ValidationError(command->get_name(), "needs PLAN or --captured");
    run = [opt] { return prove_plan(*opt); };
  });
}

}  // namespace opguard
