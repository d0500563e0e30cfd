// The order matters: all that can be refused is refused before the program starts, since it may run
// for days. Behind the run most of what goes wrong is a warning, since the log is paid for.
//
//   opguard run --log run_a --steps 10..20 -- python train.py
//
//   check      selections, windows, watchers, the earlier run's logs
//   prepare    the folder, the environment, rules, the helper that uploads
//   run        with the user's own terminal; its exit code is ours where it is not 0
//   tell       what was recorded, what is missing, what to do next
//
// An empty value takes a variable away. So a program that is itself started below `opguard run`
// takes no mode, window or selection over from the run around it.
#include "session/record_program.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

#include "align/pair/provenance_file.h"
#include "preflight/control.h"
#include "preflight/reach.h"
#include "record/keep_text.h"
#include "record/record.h"
#include "record/step_index.h"
#include "record/step_window.h"
#include "session/check.h"
#include "session/earlier_run.h"
#include "session/follow_run.h"
#include "session/log_folder.h"
#include "session/program_texts.h"
#include "session/read_rules.h"
#include "session/remote_logs.h"
#include "session/side_trees.h"
#include "session/slices.h"
#include "session/upload_run.h"
#include "support/exit_code.h"
#include "support/launch.h"
#include "support/say.h"
#include "support/text.h"
#include "support/url.h"
#include "tensor/selection.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;

// Also one that was not closed: it is somebody's run all the same.
bool holds_logs(const fs::path& dir) {
  std::error_code ec;
  for (fs::directory_iterator it(dir, ec), end; !ec && it != end; it.increment(ec)) {
    std::string name = it->path().filename().string();
    if (name.ends_with(".log") || name.ends_with(".log.incomplete")) return true;
  }
  return false;
}

// Where the logs lie now; says so where that is not where the user wanted them. Nothing: they were
// deleted with their folder.
std::optional<fs::path> find_logs(const LogFolder& folder, const fs::path& wanted) {
  const std::optional<fs::path> now = folder.now();
  if (!now)
    say("warning: the log folder was deleted while the program ran, and what had been recorded "
        "with it: " +
        wanted.string());
  else if (*now != wanted)
    say("warning: the log folder was moved while the program ran: " + wanted.string() + " is " +
        now->string() + " now");
  return now;
}

// Of a log's header; nullptr: the process has not said.
const std::string* setting(const ProcessLog& process, const std::string& key) {
  auto at = process.settings.find(key);
  return at == process.settings.end() ? nullptr : &at->second;
}

// A selection that met no event may be a slip in its name. It is a warning, as the run is whole.
void print_captures(const RecordOptions& opt, const Run& recorded) {
  for (const ProcessLog& process : recorded.processes)
    if (const std::string* text = setting(process, "capture"))
      std::fprintf(stderr, "opguard: rank %d: captured %s\n", process.rank, shown(*text).c_str());
  for (size_t i = 0; i < opt.captures.size(); ++i) {
    bool reached = false;
    for (const ProcessLog& process : recorded.processes) {
      const std::string* events = setting(process, "capture." + std::to_string(i));
      reached |= events != nullptr && *events != "0";
    }
    if (!reached)
      std::fprintf(stderr, "opguard: warning: nothing to capture: %s was never reached\n",
                   opt.captures[i].c_str());
  }
}

// Done where some process did it and none had to refuse.
//   transplant.0 = "done"          some process has put the value in place
//   transplant.0 = "not reached"   this one never came there: another may have
//   transplant.0 = anything else   why it was refused
bool transplants_done(const RecordOptions& opt, const Run& recorded) {
  bool all = true;
  for (size_t i = 0; i < opt.transplants.size(); ++i) {
    bool done = false;
    std::string why;
    for (const ProcessLog& process : recorded.processes) {
      const std::string* fate = setting(process, "transplant." + std::to_string(i));
      if (fate == nullptr || *fate == "not reached") continue;
      if (*fate == "done")
        done = true;
      else if (why.empty())
        why = *fate;
    }
    if (done && why.empty()) continue;
    all = false;
    std::fprintf(stderr, "opguard: error: no transplant of %s: %s\n", opt.transplants[i].c_str(),
                 why.empty() ? "never reached" : shown(why).c_str());
  }
  if (all && !opt.transplants.empty())
    std::fprintf(stderr, "opguard: transplants done: %zu\n", opt.transplants.size());
  return all;
}

// The logs of a ring lie in folders of their own, `kept-step1203`.
bool print_kept(const fs::path& log) {
  std::vector<std::string> folders;
  std::error_code ec;
  for (fs::directory_iterator it(log, ec), end; !ec && it != end; it.increment(ec))
    if (it->is_directory(ec) && holds_logs(it->path())) folders.push_back(it->path().string());
  std::sort(folders.begin(), folders.end());
  for (const std::string& folder : folders) {
    Run kept;
    std::string error;
    if (!read_run(folder, kept, error)) {
      say("warning: " + error);
      continue;
    }
    const std::string* why = setting(kept.processes[0], "steps.kept");
    const std::string* steps = setting(kept.processes[0], "steps");
    say("kept steps " + shown(steps ? *steps : "?") + ", " + shown(why ? *why : "?") + ": " +
        folder);
  }
  if (folders.empty()) say("no watcher said anything: nothing was kept");
  return true;
}

// What was recorded and what was not. False: a transplant was not done.
bool print_recorded(const RecordOptions& opt, const LogFolder& folder, const fs::path& wanted) {
  if (opt.mode == "off") {
    std::fprintf(stderr, "opguard: mode off: nothing was recorded\n");
    return true;
  }
  const std::optional<fs::path> now = find_logs(folder, wanted);
  const fs::path log = now.value_or(wanted);  // a process that began later may have made it anew
  if (!holds_logs(log)) {
    if (!now) return opt.transplants.empty();
    if (opt.ring > 0) return print_kept(log);
    if (opt.from_step || !opt.steps.empty()) {
      say("no log in " + log.string() +
          ": none of the steps was reached that are to be recorded; steps are counted from 0, as "
          "optimizers of torch.optim step");
      return opt.transplants.empty();
    }
    std::fprintf(
        stderr,
        "opguard: no log in %s: no probe was reached. Is the program's source instrumented? "
        "(opguard-instrument --apply) If it is: %s\n",
        log.c_str(), unreached(log.string()).c_str());
    return opt.transplants.empty();
  }
  Run recorded;
  std::string error;
  ReadFrom read;
  if (!opt.upload.empty())  // the events are on their way, and their index tells how many there are
    for (const std::string& path : log_files(log.string(), error)) read.events[path] = kToEnd;
  if (!read_run(log.string(), recorded, error, read)) {
    say("warning: " + error);
    return opt.transplants.empty();
  }
  const std::string named = !opt.upload.empty() ? url_name(opt.upload)
                            : log == wanted     ? opt.log
                                                : log.string();
  uint64_t events = 0, records = 0, lost = 0, open = 0;
  for (const ProcessLog& process : recorded.processes) {
    events += process.events.size();
    records += process.slots.size();
    lost += process.lost;
    open += !process.closed;
    StepIndex index;
    if (opt.upload.empty() || !index.open(step_index_path(process.path)) || !index.end()) continue;
    events += index.end()->events;
    records += index.end()->records;
  }
  std::fprintf(stderr, "opguard: %s: %zu processes, %llu events, %llu records, %llu lost\n",
               opt.upload.empty() ? log.c_str() : named.c_str(), recorded.processes.size(),
               static_cast<unsigned long long>(events), static_cast<unsigned long long>(records),
               static_cast<unsigned long long>(lost));
  for (const ProcessLog& process : recorded.processes) {
    if (!opt.upload.empty()) break;
    if (process.removed.segments > 0)
      say(process.path + " begins behind step " + std::to_string(process.removed.last_step) + ": " +
          std::to_string(process.removed.records) + " records of earlier steps were removed");
    // What was removed is the first of them, and no loss.
    const size_t removed = process.removed.segments > 0 ? 1 : 0;
    if (process.gaps.size() <= removed) continue;
    std::fprintf(
        stderr,
        "opguard: records missing at %zu places of %s, the first before event %llu of %zu; "
        "nothing is certified across a hole\n",
        process.gaps.size() - removed, process.path.c_str(),
        static_cast<unsigned long long>(process.gaps[removed].event), process.events.size());
  }
  if (open > 0)
    say(std::to_string(open) +
        " of the logs were cut short: their processes were killed, or left without Python's end "
        "(os._exit, exec)");
  print_captures(opt, recorded);
  const bool done = transplants_done(opt, recorded);
  if (opt.hint && opt.against.empty())
    say("next: opguard align " + quote({named}) + " OTHER_LOG_DIR");
  return done;
}

// OPGUARD_CAPTURE and OPGUARD_TRANSPLANT take one selection a line.
std::string lines(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += text + "\n";
  return all;
}

// Refused before the program starts, which may run for long. Files get absolute paths, as the
// program may run elsewhere.
bool check_selections(RecordOptions& opt, std::string& error) {
  Selection selection;
  for (const std::string& text : opt.captures)
    if (!parse_selection(text, selection, error)) return false;
  for (std::string& text : opt.transplants) {
    Transplant transplant;
    SafetensorsFile file;
    if (!parse_transplant(text, transplant, error)) return false;
    std::error_code ec;
    transplant.file = fs::absolute(transplant.file, ec).string();
    if (!file.open(transplant.file, error) || !transplant_tensor(transplant, file, error))
      return false;
    text = transplant_text(transplant);
  }
  if (opt.mode != "off" || (opt.captures.empty() && opt.transplants.empty())) return true;
  error = "--capture and --transplant need probes that record: not with --mode off";
  return false;
}

// "nan,spike,signal=USR1". Whether there is such a signal is Python's to say, of its own platform.
bool are_watchers(std::string_view text) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    const std::string_view word = text.substr(0, end);
    if (word != "nan" && word != "spike" && word != "signal" && !word.starts_with("signal="))
      return false;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return true;
}

// What --from-step, --steps and --every say together.
bool read_window(const RecordOptions& opt, StepWindow& window, std::string& error) {
  if (!opt.steps.empty() && opt.from_step) {
    error = "--steps and --from-step both say where to begin: leave one out";
    return false;
  }
  if (!opt.steps.empty() && !parse_window(opt.steps, window, error)) {
    error = "--steps: " + error;
    return false;
  }
  if (opt.from_step) window.from = *opt.from_step;
  if (opt.every != 1) window.every = opt.every;
  // What comes before is not this run's. `every` counts from the window's beginning.
  if (window.from < opt.first_step && window.every == 1) window.from = opt.first_step;
  if (!are_watchers(opt.ring_on)) {
    error = "--on takes nan, spike and signal=NAME, separated by commas, not " + opt.ring_on;
    return false;
  }
  if (!opt.against.empty() && (opt.ring > 0 || !window.all())) {
    error = "--against compares every step: not with --ring, --steps, --from-step or --every";
    return false;
  }
  if (SegmentLimits kept; !opt.keep.empty() && !parse_keep(opt.keep, kept, error)) {
    error = "--keep: " + error;
    return false;
  }
  if (!opt.keep.empty() && opt.mode == "sketch") {
    error = "--keep removes what a comparison within rounding needs: not with --mode sketch";
    return false;
  }
  if (SegmentLimits spool; !opt.upload.empty() && !parse_spool(opt.spool, spool, error)) {
    error = "--spool: " + error;
    return false;
  }
  if (opt.ring == 0 || (opt.captures.empty() && opt.transplants.empty())) return true;
  error = "--ring keeps events alone: not with --capture or --transplant";
  return false;
}

}  // namespace

// The exit code is the program's own where that is not 0: a script around us sees what it would
// have seen without us.
int record_program(RecordOptions opt) {
  // `python -I` takes nothing from us: it would run to its end and record nothing.
  if (llvm::Error error = check_reachable(opt.command))
    return fail(llvm::toString(std::move(error)));
  std::error_code ec;
  std::string wrong;
  if (!check_selections(opt, wrong)) return fail(wrong);
  std::unique_ptr<RemoteLogs> earlier_logs;  // as long as the program is held against them
  if (!opt.against.empty()) {
    auto opened = RemoteLogs::open({opt.against}, opt.report.python);
    if (!opened) return fail("--against: " + llvm::toString(opened.takeError()));
    earlier_logs = std::move(*opened);
    auto earlier = read_earlier_run(earlier_logs->here(opt.against), earlier_logs->bring());
    if (!earlier) return fail(earlier_logs->as_given(llvm::toString(earlier.takeError())));
    if (opt.mode_as_against && !earlier->mode.empty()) opt.mode = earlier->mode;
  }
  StepWindow window;
  if (!read_window(opt, window, wrong)) return fail(wrong);
  if (opt.mode != "sketch" && (!opt.slices.empty() || opt.jitter))
    return fail("--slices and --jitter need --mode sketch");
  fs::path log = fs::absolute(opt.log, ec);
  if (holds_logs(log))
    return fail(opt.log + " already holds logs; a run of its own needs a folder of its own");
  fs::create_directories(log, ec);
  if (ec) return fail("cannot make " + opt.log + ": " + ec.message());

  // From here on the folder is held, whatever the program does to its name.
  const LogFolder folder(log);
  Provenance provenance = provenance_of(fs::current_path().string());
  provenance.command = quote(opt.command);
  LaunchOptions launched;
  launched.command = opt.command;
  launched.environment = python_environment();
  launched.environment.emplace_back("OPGUARD_LOG", log.string());
  launched.environment.emplace_back("OPGUARD_TREE", fs::current_path().string());
  launched.environment.emplace_back("OPGUARD_MODE", opt.mode);
  launched.environment.emplace_back("OPGUARD_TRUSTED", opt.trusted);
  launched.environment.emplace_back("OPGUARD_TRACE", "");
  launched.environment.emplace_back("OPGUARD_CAPTURE", lines(opt.captures));
  launched.environment.emplace_back("OPGUARD_TRANSPLANT", lines(opt.transplants));
  launched.environment.emplace_back("OPGUARD_RECORD_STEPS",
                                    window.all() ? "" : window_text(window));
  launched.environment.emplace_back("OPGUARD_FIRST_STEP",
                                    opt.first_step ? std::to_string(opt.first_step) : "");
  launched.environment.emplace_back("OPGUARD_RING", opt.ring ? std::to_string(opt.ring) : "");
  launched.environment.emplace_back("OPGUARD_RING_ON", opt.ring ? opt.ring_on : "");
  launched.environment.emplace_back("OPGUARD_KEEP_EVENTS", opt.keep);
  launched.environment.emplace_back("OPGUARD_SPOOL", opt.upload.empty() ? "" : opt.spool);
  std::string slices;
  if (!opt.slices.empty()) {
    auto file = slices_file(opt.slices, (log / "slices.txt").string());
    if (!file) return fail(llvm::toString(file.takeError()));
    slices = "@" + *file;
  }
  launched.environment.emplace_back("OPGUARD_SLICES", slices);
  launched.environment.emplace_back("OPGUARD_JITTER",
                                    opt.jitter ? std::to_string(*opt.jitter) : "");
  launched.environment.emplace_back("OPGUARD_SIMULATE", opt.simulate ? "1" : "");
  if (opt.deterministic)
    for (auto& variable : control_environment(opt.seed)) launched.environment.push_back(variable);

  if (!opt.against.empty()) {
    if (!is_url(opt.against)) opt.against = fs::absolute(opt.against, ec).string();
    launched.environment.emplace_back("OPGUARD_AGAINST", earlier_logs->here(opt.against));
    launched.environment.emplace_back("OPGUARD_ON_PARTING", opt.on_parting);
  }

  InvariantsFile rules;
  std::unique_ptr<FollowedRun> followed;
  if (!opt.check.empty()) {
    auto read = read_rules_files(opt.check, {});
    if (!read) return fail(llvm::toString(read.takeError()));
    rules = std::move(*read);
    for (const std::string& note : rules.notes) say("note: " + note);
    std::string stop_file;
    if (opt.on_violation == "stop") stop_file = (log / "stop").string();
    launched.environment.emplace_back("OPGUARD_CHECK", "1");
    launched.environment.emplace_back("OPGUARD_CHECK_STOP", stop_file);
    followed = std::make_unique<FollowedRun>(log.string(), rules, stop_file, opt.violation_command);
  }
  if (opt.observe || followed) launched.environment.emplace_back("OPGUARD_OBSERVATIONS", "1");

  std::unique_ptr<UploadedRun> uploaded;
  if (!opt.upload.empty()) {
    auto began = UploadedRun::begin(log.string(), opt.upload, opt.report.python);
    if (!began) return fail("--upload: " + llvm::toString(began.takeError()));
    uploaded = std::move(*began);
  }

  say_step("running" + (opt.deterministic ? " with seed " + std::to_string(opt.seed) : "") + ": " +
           quote(opt.command));
  llvm::Expected<LaunchResult> ran = launch(launched);
  if (!ran) return fail(llvm::toString(ran.takeError()));
  if (followed) followed->finish();
  std::string failure = ran->failure();
  if (!failure.empty())
    std::fprintf(stderr, "opguard: the program ended with %s\n", failure.c_str());
  // The program may have moved the folder: what is written about the run goes where the logs are.
  if (const auto now = folder.now(); now && holds_logs(*now))
    if (llvm::Error error = write_provenance(now->string(), provenance))
      say("warning: " + llvm::toString(std::move(error)));
  const bool done = print_recorded(opt, folder, log);
  if (followed && !opt.json.empty())
    if (llvm::Error error = write_check_json(folder.now().value_or(log).string(), rules, opt.json))
      return fail(llvm::toString(std::move(error)));
  if (uploaded)
    if (llvm::Error error = uploaded->finish()) {
      say("warning: " + llvm::toString(std::move(error)));
      // The program went well, and its record is not where it was asked to be.
      if (ran->exit_code == 0) return kCouldNotTell;
    }
  if (ran->exit_code != 0) return ran->exit_code;
  if (!done) return kCouldNotTell;
  if (!opt.against.empty())
    return report_verdict(opt.against, uploaded ? opt.upload : folder.now().value_or(log).string(),
                          Coverage{}, opt.report, {}, {}, backgrounds_of_logs());
  return followed && followed->violated() && opt.on_violation != "warn" ? kNo : kYes;
}

}  // namespace opguard
