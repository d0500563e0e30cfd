#include "preflight/preflight.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "preflight/reach.h"
#include "support/diagnostics.h"
#include "support/install.h"
#include "support/launch.h"
#include "support/progress.h"
#include "support/say.h"
#include "support/write_file.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;

constexpr size_t kShownLines = 20;

std::string join(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ",") + word;
  return out;
}

std::vector<fs::path> traces_in(const std::string& dir) {
  std::vector<fs::path> found;
  std::error_code ec;
  for (fs::directory_iterator it(dir, ec), end; !ec && it != end; it.increment(ec)) {
    std::string name = it->path().filename().string();
    if (name.rfind("trace-", 0) == 0 && it->path().extension() == ".json")
      found.push_back(it->path());
  }
  return found;
}

bool holds_traces(const std::string& dir) { return !traces_in(dir).empty(); }

// python/opguard/trace/compiling.py leaves this file.
fs::path told_file(const std::string& dir) { return fs::path(dir) / "told-compiling"; }

bool was_told_compiling(const std::string& dir) {
  std::error_code ec;
  return fs::exists(told_file(dir), ec);
}

void remove_traces(const std::string& dir) {
  std::error_code ec;
  for (const fs::path& trace : traces_in(dir)) fs::remove(trace, ec);
  fs::remove(told_file(dir), ec);
}

// The driver's device files: NVIDIA's own, and that of Windows' Linux subsystem.
bool has_cuda_device() {
  return access("/dev/nvidiactl", F_OK) == 0 || access("/dev/dxg", F_OK) == 0;
}

// What brings opguard_inject.so into the program. Preloaded it intercepts launches, should CUPTI
// not be there: that shows only once the program runs, so it is there from the start.
void add_injection(const std::string& activities, Variables& environment) {
  environment.emplace_back("OPGUARD_ACTIVITIES", activities);
  std::string library = python_package_dir() + "/opguard_inject.so";
  if (activities == "operators" || access(library.c_str(), R_OK) != 0) return;
  // Another tool's injection stays.
  const char* injected = std::getenv("CUDA_INJECTION64_PATH");
  if (!injected || !*injected) environment.emplace_back("CUDA_INJECTION64_PATH", library);
  // Without a driver no kernel can be launched: a library less in every process of the program.
  bool may_need = activities == "launches" || (activities == "auto" && has_cuda_device());
  if (may_need) add_preload(library, environment);
}

}  // namespace

llvm::Expected<Preflight> run_preflight(const PreflightOptions& options) {
  if (llvm::Error error = check_reachable(options.command)) return error;
  std::error_code ec;
  fs::create_directories(options.work_dir, ec);
  if (ec) return make_error("cannot make " + options.work_dir + ": " + ec.message());
  if (holds_traces(options.work_dir)) return make_error(options.work_dir + " already holds traces");

  std::string left_out;
  if (!options.left_out.empty()) {
    // In a file: the system takes 128 KiB a variable.
    const std::string file = fs::absolute(options.work_dir).string() + "/left_out.txt";
    std::string lines;
    for (const std::string& name : options.left_out) lines += options.tree + "/" + name + "\n";
    if (auto error = write_file(file, lines)) return error;
    left_out = "@" + file;
  }
  const std::string steps_file = fs::absolute(options.work_dir).string() + "/steps";
  LaunchOptions launched;
  launched.command = options.command;
  launched.cwd = options.tree;
  launched.output = options.quiet ? Output::capture : Output::to_stderr;
  launched.log = options.work_dir + "/output.txt";
  launched.environment = own_run_environment();
  for (auto& variable : Variables{
           {"OPGUARD_TRACE", fs::absolute(options.work_dir).string()},
           {"OPGUARD_TREE", options.tree},
           {"OPGUARD_WITH", join(options.packages)},
           {"OPGUARD_LEFT_OUT", left_out},
           {"OPGUARD_STEPS",
            options.steps == kUntilNothingNew ? "auto" : std::to_string(options.steps)},
           // What a surrounding run asked for is not asked here.
           {"OPGUARD_LOG", ""},
           {"OPGUARD_HOOK", options.hook},
           {"OPGUARD_PROGRESS", steps_file},
           {"OPGUARD_MODE", ""},
           {"TORCHDYNAMO_DISABLE", "1"},  // operators inside compiled regions would have no frame
       })
    launched.environment.push_back(variable);
  for (const auto& variable : options.environment) launched.environment.push_back(variable);
  add_injection(options.activities, launched.environment);

  llvm::Expected<LaunchResult> ran = launch(launched);
  if (!ran) return ran.takeError();
  if (auto stopped = ran->stopped()) return stopped;
  // A function that asks whether it is compiled may do what only a compiler can run. So it is asked
  // once more, and told no.
  if (!ran->failure().empty() && was_told_compiling(options.work_dir)) {
    say("the program failed under preflight, where it was told that it is being compiled; it runs "
        "once more and is not");
    remove_traces(options.work_dir);
    launched.environment.emplace_back("OPGUARD_COMPILING", "0");
    ran = launch(launched);
    if (!ran) return ran.takeError();
    if (auto stopped = ran->stopped()) return stopped;
  }
  std::string failure = ran->failure();
  if (!failure.empty() && !(options.to_its_end && holds_traces(options.work_dir))) {
    // Shown already unless quiet.
    std::string tail = options.quiet ? "\n" + last_lines(ran->output, kShownLines) : "";
    while (!tail.empty() && tail.back() == '\n') tail.pop_back();
    return make_error("the program failed under preflight: " + failure + ": " +
                      quote(options.command) + tail);
  }
  if (!holds_traces(options.work_dir))
    return make_error("no trace of " + quote(options.command) + ": " + unreached(options.work_dir));
  llvm::Expected<Trace> trace = read_traces(options.work_dir);
  if (!trace) return trace.takeError();
  Preflight out;
  out.trace = std::move(*trace);
  out.steps = steps_done(steps_file);
  out.exit_code = ran->exit_code;
  out.failure = std::move(failure);
  out.output_tail = std::move(ran->output);
  return out;
}

}  // namespace opguard
