// A rule is named by the beginning of its id, as a commit is in git: one that two rules share names
// none.
//
// The rules that come with opguard are in the tool and in no file. They can be listed, shown and
// merged, and not muted; --ignore leaves one out of a check.
#include "session/edit_invariants.h"

#include "session/read_rules.h"
#include "support/diagnostics.h"
#include "support/exit_code.h"
#include "support/say.h"
#include "support/text.h"
#include "support/write_file.h"

namespace opguard {
namespace {

//   [b23ae0bbdb5a] error, TIER: WHAT IT SAYS  (muted: own optimizer)
std::string rule_line(const Invariant& rule) {
  return shown("[" + rule.id + "] " + severity_name(rule.severity) + ", " + tier_name(rule.tier) +
               ": " + rule.says + (rule.muted.empty() ? "" : "  (muted: " + rule.muted + ")")) +
         "\n";
}

// The risk is told only where the rule was held against programs that it was not mined from
// (held_out).
std::string rule_text(const Invariant& rule) {
  std::string text = rule_line(rule);
  auto line = [&](const std::string& what) { text += "  " + shown(what) + "\n"; };
  for (const RuleView& view : views())
    if (view.name == rule.view) line(invariant_words(rule, view));
  line("view " + rule.view + ", relation " + rule.relation);
  line(evidence_words(rule.evidence));
  if (rule.evidence.held_out) {
    char risk[80];
    std::snprintf(risk, sizeof risk, "at most %.0f %% of other programs break it (95 %%)",
                  100 * risk_95(rule.evidence.held_out, rule.evidence.breaking));
    line(risk);
  }
  line(grouped(rule.evidence.against) + " rows outside its conditions have another value");
  return text;
}

llvm::Expected<int> edit(const EditInvariantsOptions& opt) {
  auto file = read_rules_file(opt.file);
  if (!file) return file.takeError();
  for (const std::string& note : file->notes) say("note: " + note);
  if (opt.action == InvariantsAction::list) {
    std::string text;
    for (const Invariant& rule : file->invariants) text += rule_line(rule);
    print_lines(text);
    return kYes;
  }
  if (opt.action == InvariantsAction::merge) {
    auto other = read_rules_file(opt.other);
    if (!other) return other.takeError();
    const InvariantsFile merged = merge_invariants(*file, *other);
    if (auto failed = write_file(opt.out, format_invariants(merged))) return failed;
    say(grouped(merged.invariants.size()) + " rules: " + opt.out);
    return kYes;
  }
  const Invariant* found = find_invariant(*file, opt.id);
  if (!found)
    return make_error("no rule, or more than one, of " + opt.file + " has an id that begins with " +
                      opt.id);
  if (opt.action == InvariantsAction::show) {
    print_lines(rule_text(*found));
    return kYes;
  }
  if (opt.file == "builtin")
    return make_error("the rules that come with opguard are no file; leave one out with --ignore " +
                      found->id);
  mute_invariant(*file, opt.id, opt.because);
  if (auto failed = write_file(opt.file, format_invariants(*file))) return failed;
  say("muted: " + found->says);
  return kYes;
}

}  // namespace

int edit_invariants(const EditInvariantsOptions& opt) {
  auto code = edit(opt);
  return code ? *code : fail(llvm::toString(code.takeError()));
}

}  // namespace opguard
