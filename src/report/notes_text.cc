// What lessens a verdict: records that were lost, logs that are damaged or were cut short, rules
// that hid something.
//
//   a, rank 0 (/runs/a/x.log): 12 records were lost; nothing is certified across a hole
//   'loader.copy_:q7k2:out0' (noise.rules:3) hides 12 differing records; why: padding
//   'old.mul:k2m4:out0' (noise.rules:9) names nothing in these runs: it can go; why: ...
//
// Each rule has a sentence, also one that did nothing, so that a list of rules can shrink.
// Counterexample: only those that hide. Nobody would learn that a rule names an operator that is
// gone.
#include "report/notes_text.h"

#include "support/text.h"

namespace opguard {
namespace {

void add_log_notes(const char* side, const Run& run, std::vector<std::string>& notes) {
  for (const ProcessLog& log : run.processes) {
    const std::string where =
        std::string(side) + ", rank " + std::to_string(log.rank) + " (" + log.path + ")";
    if (log.lost > 0)
      notes.push_back(where + ": " + counted(log.lost, "record") +
                      (log.lost == 1 ? " was" : " were") +
                      " lost; nothing is certified across a hole");
    // One of the three, the worst first.
    if (!log.damage.empty()) {
      notes.push_back(where + ": " + log.damage);
    } else if (!log.closed) {
      notes.push_back(where + ": the log was not closed; what it holds is compared");
    } else if (!log.bound) {
      notes.push_back(where +
                      ": written by an older opguard, whose logs do not notice a chunk of settings "
                      "or locations that is missing as a whole");
    }
  }
}

}  // namespace

std::vector<std::string> rule_sentences(const Report& report) {
  std::vector<std::string> sentences;
  if (!report.hidden) return sentences;
  for (size_t i = 0; i < report.hidden->rules().size(); ++i) {
    const Rule& rule = report.hidden->rules()[i];
    const RuleUse& use = report.hidden->uses()[i];
    std::string text = "'" + rule.text + "' (" + rule.place + ")";
    if (use.matched == 0)
      text += " names nothing in these runs: it can go";
    else if (use.hidden == 0)
      text += " hides nothing: the " + counted(use.matched, "record") + " it names " +
              (use.matched == 1 ? "agrees" : "agree");
    else
      text +=
          " hides " + counted(use.hidden, "differing record") +
          (use.model_values > 0 ? ", " + counted(use.model_values, "model value") + " among them"
                                : "");
    sentences.push_back(text + "; why: " + rule.why);
  }
  return sentences;
}

std::vector<std::string> log_notes(const Run& a, const Run& b) {
  std::vector<std::string> notes;
  add_log_notes("a", a, notes);
  add_log_notes("b", b, notes);
  return notes;
}

std::vector<std::string> log_notes(const Run& run) {
  std::vector<std::string> notes;
  add_log_notes("the run", run, notes);
  return notes;
}

uint64_t lost_records(const Run& run) {
  uint64_t records = 0;
  for (const ProcessLog& log : run.processes) records += log.lost;
  return records;
}

}  // namespace opguard
