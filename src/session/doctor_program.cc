// A run under observation leaves a file of facts for each process; two runs are two folders, and
// judge_determinism() makes findings of both. The second run is optional at three places: --once,
// an operator that has already stopped the first, and a second run that fails. The summary says
// then that the program was seen once, since findings that need two runs are missing.
//
// Counterexample: a program that loads what its first run has written. The second begins elsewhere,
// so the two are not compared.
#include "session/doctor_program.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "determinism/judge.h"
#include "determinism/words.h"
#include "preflight/control.h"
#include "preflight/reach.h"
#include "report/identity.h"
#include "session/work_folder.h"
#include "support/diagnostics.h"
#include "support/exit_code.h"
#include "support/kept_input.h"
#include "support/launch.h"
#include "support/progress.h"
#include "support/say.h"
#include "support/text.h"
#include "support/write_file.h"

namespace opguard {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr size_t kTailLines = 20;

struct Observed {
  RunFacts facts;
  std::string failure, tail;  // of a program that failed
};

std::string joined_names(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

// operators: deterministic algorithms are asked for. Cut behind `steps`, so `done` ends it as ended
// well.
llvm::Expected<Observed> observe(const DoctorProgramOptions& opt, const std::string& dir,
                                 bool operators) {
  std::error_code ec;
  std::filesystem::create_directories(dir, ec);
  if (ec) return make_error("cannot make '" + dir + "': " + ec.message());
  LaunchOptions launched;
  launched.command = opt.command;
  launched.output = talk() == Talk::verbose ? Output::to_stderr : Output::capture;
  launched.log = dir + "/output.txt";
  launched.apart = true;
  if (opt.steps > 0) launched.done = dir + "/ended";
  launched.environment = own_run_environment();
  if (opt.deterministic)
    for (auto& variable : control_environment(opt.seed)) launched.environment.push_back(variable);
  for (auto& variable : Variables{
           {"OPGUARD_OBSERVE", dir},
           {"OPGUARD_OBSERVE_OPERATORS", operators ? "1" : ""},
           {"OPGUARD_UNTIL_STEP", opt.steps > 0 ? std::to_string(opt.steps - 1) : ""},
           {"OPGUARD_TREE", std::filesystem::current_path(ec).string()},
           {"OPGUARD_WITH", joined_names(opt.packages)},
           // What a surrounding run asked for is not asked here.
           {"OPGUARD_TRACE", ""},
           {"OPGUARD_LOG", ""},
           {"OPGUARD_HOOK", ""},
           {"OPGUARD_MODE", ""},
       })
    launched.environment.push_back(variable);
  auto ran = [&] {
    const Progress progress(operators ? "second run" : "run");
    return launch(launched);
  }();
  if (!ran) return ran.takeError();
  if (auto stopped = ran->stopped()) return stopped;
  auto facts = read_facts(dir);
  if (!facts) return facts.takeError();
  Observed out{std::move(*facts), ran->failure(), ""};
  if (!out.failure.empty() && talk() != Talk::verbose)
    out.tail = "\n" + last_lines(ran->output, kTailLines);
  while (!out.tail.empty() && out.tail.back() == '\n') out.tail.pop_back();
  return out;
}

// A program that asked for deterministic algorithms, and was stopped by an operator without one.
bool stopped_by_operator(const RunFacts& facts) {
  for (const ProcessFacts& process : facts.processes)
    for (const Fact& fact : process.list("operators"))
      if (fact.flag("stopped")) return true;
  return false;
}

size_t count_of(const std::vector<Finding>& findings, Hold hold) {
  return static_cast<size_t>(std::count_if(findings.begin(), findings.end(),
                                           [&](const Finding& f) { return f.hold == hold; }));
}

std::string summary(const DoctorProgramOptions& opt, const std::vector<Finding>& findings,
                    const Observed& first, bool twice) {
  std::string text = "\n";
  for (const Hold hold : {Hold::violated, Hold::left, Hold::controlled})
    text += std::to_string(count_of(findings, hold)) + " " + hold_name(hold) +
            (hold == Hold::controlled ? "" : ", ");
  text += "; " + counted(first.facts.steps(), "step") + ", seen " + (twice ? "twice" : "once");
  if (first.facts.trained().size() > 1)
    text += ", on " + std::to_string(first.facts.trained().size()) + " ranks";
  text += "\n";
  if (count_of(findings, Hold::violated) > 0 && !opt.deterministic)
    text += "What control can hold: opguard doctor --deterministic -- " + quote(opt.command) + "\n";
  text +=
      "What differs all the same is not hidden: opguard noise . -- " + quote(opt.command) + "\n";
  return text;
}

llvm::Error write_json(const DoctorProgramOptions& opt, const std::vector<Finding>& findings,
                       const Observed& first, bool twice) {
  OrderedJson json = identity_json(identity_now());
  json["program"] = quote(opt.command);
  json["verdict"] = count_of(findings, Hold::violated) > 0 ? "violated" : "held";
  json["steps"] = first.facts.steps();
  json["ranks"] = first.facts.trained().size();
  json["runs"] = twice ? 2 : 1;
  json["deterministic"] = opt.deterministic;
  for (const Hold hold : {Hold::violated, Hold::left, Hold::controlled})
    json["counts"][hold_name(hold)] = count_of(findings, hold);
  json["findings"] = findings_array(findings);
  return write_file(opt.json,
                    json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + '\n');
}

// The exit code: kNo where something is violated. What is left as it is, or controlled, is no
// fault.
llvm::Expected<int> tell(const DoctorProgramOptions& opt, const std::string& work) {
  say_step("observing: " + quote(opt.command));
  auto first = observe(opt, work + "/1", false);
  if (!first) return first.takeError();
  const bool stopped = stopped_by_operator(first->facts);
  if (!first->failure.empty() && !stopped)
    return make_error("the program failed: " + first->failure + ": " + quote(opt.command) +
                      first->tail);
  if (first->facts.trained().empty())
    return make_error("nothing was seen of " + quote(opt.command) + ": " + unreached(work + "/1"));
  if (first->facts.steps() == 0)
    say("warning: no optimizer step was seen; what a step does is not told");
  std::optional<Observed> second;
  if (!opt.once && !stopped) {
    say_step("once more, with deterministic algorithms asked for");
    auto again = observe(opt, work + "/2", true);
    if (!again) return again.takeError();
    if (again->failure.empty())
      second = std::move(*again);
    else
      say("warning: the second run failed (" + again->failure +
          "): nothing is said of operators, or of what differs between two runs" + again->tail);
  }
  const std::vector<Finding> findings =
      judge_determinism(first->facts, second ? &second->facts : nullptr);
  std::error_code ec;
  print_lines(determinism_table(findings, std::filesystem::current_path(ec).string()) +
              summary(opt, findings, *first, second.has_value()));
  if (second && !loaded_alike(first->facts, second->facts))
    say("note: the second run loaded what the first had written, so the two are not compared");
  if (!opt.json.empty())
    if (auto error = write_json(opt, findings, *first, second.has_value())) return error;
  return count_of(findings, Hold::violated) > 0 ? kNo : kYes;
}

}  // namespace

// By the last word: "python3" is an interpreter, "train.py" and "run_python.sh" are programs.
bool names_interpreter(const std::vector<std::string>& words) {
  if (words.empty()) return true;
  const std::string name = std::filesystem::path(words.back()).filename().string();
  return name.find("python") != std::string::npos || name.starts_with("pypy")
             ? !name.ends_with(".py") && !name.ends_with(".sh")
             : false;
}

int doctor_program(const DoctorProgramOptions& opt) {
  keep_input();
  if (llvm::Error error = check_reachable(opt.command))
    return fail(llvm::toString(std::move(error)));
  return work_in(opt.work, "facts and outputs",
                 [&](const std::string& path) { return tell(opt, path); });
}

}  // namespace opguard
