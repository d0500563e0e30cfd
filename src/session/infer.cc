// Each log is read into a table of its own, on a thread of its own, with its own numbers for texts.
// The tables are merged in the order of the logs, so the rules do not depend on which thread was
// first.
//
//   logs -> PatternTable each -> one table -> mine() -> severities -> --hypotheses -> a file
//
// Severity is by evidence. A general rule is a note until 10 programs have kept it. One of a single
// program is an error as soon as two of its runs have.
//
// Counterexample: one run of one program. What it keeps by chance is a rule too, and a warning says
// so.
#include "session/infer.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

#include "align/pair/run.h"
#include "invariants/builtin.h"
#include "invariants/explain_rule.h"
#include "invariants/mine.h"
#include "invariants/score_rules.h"
#include "invariants/views/read_views.h"
#include "report/identity.h"
#include "session/read_rules.h"
#include "support/diagnostics.h"
#include "support/exit_code.h"
#include "support/parallel.h"
#include "support/say.h"
#include "support/text.h"
#include "support/version.h"
#include "support/write_file.h"

namespace opguard {
namespace {

// A general rule that so many programs have kept is a warning; fewer, a note.
constexpr uint32_t kProgramsOfAWarning = 10;
// Of a rule for one program.
constexpr uint32_t kRunsOfAnError = 2;

struct LogOfProgram {
  std::string program, folder;
};

// One log, read. `failure`: one sentence, "" where it could be read.
struct ReadLog {
  CellTexts texts;
  std::unique_ptr<PatternTable> table;
  std::string failure, program;
};

// A log that is given twice, by itself and with its program's name, is one.
llvm::Expected<std::vector<LogOfProgram>> logs_of(const InferOptions& opt) {
  std::vector<LogOfProgram> logs;
  std::map<std::string, size_t> known;  // by where they lie
  auto add = [&](const std::string& program, const std::string& folder) {
    std::error_code ec;
    std::string at = std::filesystem::weakly_canonical(folder, ec).string();
    auto [it, fresh] = known.try_emplace(ec ? folder : at, logs.size());
    if (fresh)
      logs.push_back({program, folder});
    else if (!program.empty())
      logs[it->second].program = program;
  };
  for (const std::string& folder : opt.logs) add("", folder);
  for (const std::string& named : opt.programs) {
    const size_t at = named.find('=');
    if (at == std::string::npos || at == 0 || at + 1 == named.size())
      return make_error("--program takes NAME=LOG, not " + named);
    add(named.substr(0, at), named.substr(at + 1));
  }
  if (logs.empty()) return make_error("give the logs of at least one good run");
  return logs;
}

// Its own name where nobody gave it one: what ran, and where.
std::string program_name(const Run& run, const std::string& folder) {
  if (run.provenance->command.empty()) return folder;
  return run.provenance->command + " in " + run.provenance->home_path(run.provenance->tree);
}

// number: which of the logs; it stands for the run in the table.
void read_log_into(const LogOfProgram& from, uint32_t number, ReadLog& into) {
  auto run = load_run(from.folder);
  if (!run) {
    into.failure = llvm::toString(run.takeError());
    return;
  }
  into.program = from.program.empty() ? program_name(*run, from.folder) : from.program;
  if (observations_of(*run) == 0) {
    into.failure = from.folder + " holds no observations: record it with opguard run --observe";
    return;
  }
  into.table = std::make_unique<PatternTable>(views());
  into.table->begin(0, number);
  read_views(*run, into.texts, *into.table);
  if (into.table->rows() == 0) into.failure = from.folder + ": no step of training is in it";
}

// A rule by a range of numbers (`between`) keeps the severity it was mined with.
void set_severities(std::vector<Invariant>& rules) {
  for (Invariant& rule : rules) {
    if (rule.between) continue;
    if (rule.tier == InvariantTier::general)
      rule.severity = rule.evidence.programs >= kProgramsOfAWarning ? InvariantSeverity::warning
                                                                    : InvariantSeverity::note;
    if (rule.tier == InvariantTier::program)
      rule.severity = rule.evidence.runs >= kRunsOfAnError ? InvariantSeverity::error
                                                           : InvariantSeverity::warning;
  }
}

// A person's rules with what these runs say of them. One that a good program breaks is told.
void add_hypotheses(const InvariantsFile& written, const PatternTable& table,
                    const CellTexts& texts, const std::vector<std::string>& programs,
                    InvariantsFile& file) {
  ScoredRules scored = score_rules(written.invariants, table, texts, views());
  for (const GoodBreaker& breaker : scored.breakers)
    for (const Invariant& rule : scored.rules)
      if (rule.id == breaker.id)
        say("note: " + programs[breaker.program] + " breaks a rule in " + grouped(breaker.rows) +
            (breaker.rows == 1 ? " row: " : " rows: ") + rule.says + " [" + rule.id + "]");
  file.invariants = join_rules(std::move(scored.rules), file.invariants);
}

// Of one program's runs only: of several it may be the program that is unusual.
void tell_suspects(const PatternTable& table, const CellTexts& texts,
                   const std::vector<LogOfProgram>& logs) {
  for (const SuspectRun& suspect : suspect_runs(table, texts, views()))
    say("note: is " + logs[suspect.run].folder + " a good run? It alone breaks " +
        counted(suspect.rules, "rule") + " that all others keep");
}

llvm::Error explain_one(const InvariantsFile& file, const std::string& id,
                        const PatternTable& table, const CellTexts& texts,
                        const std::vector<std::string>& programs) {
  const Invariant* rule = find_invariant(file, id);
  if (!rule) return make_error("no rule, or more than one, has an id that begins with " + id);
  print_lines(reasons_words(*rule, explain_rule(*rule, table, texts, views()), programs));
  return llvm::Error::success();
}

llvm::Expected<int> infer_rules(const InferOptions& opt) {
  auto logs = logs_of(opt);
  if (!logs) return logs.takeError();
  std::vector<ReadLog> read(logs->size());
  parallel_for(
      read.size(), [&](size_t i) { read_log_into((*logs)[i], static_cast<uint32_t>(i), read[i]); },
      opt.threads);
  std::map<std::string, uint32_t> runs;
  for (const ReadLog& one : read) {
    if (!one.failure.empty()) return make_error(one.failure);
    ++runs[one.program];
  }
  InvariantsFile file;
  file.tool = version_text();
  file.programs.assign(runs.begin(), runs.end());
  std::vector<std::string> names;
  for (const auto& [name, count] : runs) names.push_back(name);

  PatternTable table(views());
  CellTexts texts;
  for (ReadLog& one : read) {
    const auto program = static_cast<uint32_t>(
        std::lower_bound(names.begin(), names.end(), one.program) - names.begin());
    table.merge(*one.table, one.texts, texts, program);
    one.table.reset();
  }
  MiningOptions mining{.min_programs = opt.min_programs, .one_program = names.size() == 1};
  if (mining.one_program && read.size() == 1)
    say("warning: one run of one program: what it keeps by chance is a rule too; give a second "
        "run with another seed");
  file.invariants = mine(table, texts, views(), mining);
  set_severities(file.invariants);
  if (names.size() == 1) tell_suspects(table, texts, *logs);
  if (!opt.hypotheses.empty()) {
    InvariantsFile written;
    if (opt.hypotheses == "builtin") {
      Diagnostics diags;
      parse_invariants("hypotheses", std::string(hypotheses_rules()), views(), written, diags);
    } else {
      auto given = read_rules_file(opt.hypotheses);
      if (!given) return given.takeError();
      written = std::move(*given);
    }
    add_hypotheses(written, table, texts, names, file);
  }
  if (file.invariants.empty())
    return make_error("nothing that these runs keep is a rule; " + grouped(table.rows()) +
                      " rows of " + counted(names.size(), "program"));
  if (auto failed = write_file(opt.out, format_invariants(file))) return failed;
  say(grouped(file.invariants.size()) + " rules from " + counted(read.size(), "run") + " of " +
      counted(names.size(), "program") + ", " + grouped(table.rows()) + " rows: " + opt.out);
  if (!opt.explain.empty())
    if (auto failed = explain_one(file, opt.explain, table, texts, names)) return failed;
  return kYes;
}

}  // namespace

int infer(const InferOptions& opt) {
  auto code = infer_rules(opt);
  return code ? *code : fail(llvm::toString(code.takeError()));
}

}  // namespace opguard
