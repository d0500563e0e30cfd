// Selections travel in files, "@/w/run_b/proof_2/OPGUARD_CAPTURE.txt": one variable of the
// environment takes 128 KiB, and a question to every operator may be longer. Such a run is `apart`
// (support/launch.h). It has its own process group, which is ended as a whole when its step or its
// time is over.
#include "session/rerun.h"

#include <algorithm>
#include <filesystem>

#include "align/judge/pivot_view.h"
#include "confirm/experiment.h"
#include "support/diagnostics.h"
#include "support/write_file.h"
#include "tensor/safetensors.h"

namespace opguard {

namespace fs = std::filesystem;

// In seconds. The longest process's time goes from its first event to its last. Imports and a
// compiler's work before the first event are not in it, hence the minute.
uint64_t patience_s(const Run& run) {
  uint64_t longest = 0;
  for (const ProcessLog& log : run.processes)
    if (!log.events.empty()) {
      const Event first = log.events[0], last = log.events[log.events.size() - 1];
      longest = std::max(longest, last.end_ns - std::min(last.end_ns, first.start_ns));
    }
  return 60 + 5 * longest / 1'000'000'000;
}

llvm::Expected<std::string> run_again(const GuardedProgram& program, const RerunOptions& options) {
  const std::string dir = program.work + "/" + options.folder;
  std::error_code failed;
  fs::create_directories(dir, failed);
  Variables more;
  for (const auto& [variable, lines] : options.selections) {
    if (lines.empty()) continue;
    // In a file: the system takes 128 KiB a variable.
    const std::string file = dir + "/" + variable + ".txt";
    if (auto error = write_file(file, lines)) return error;
    more.push_back({variable, "@" + file});
  }
  if (options.until != kNone) more.push_back({"OPGUARD_UNTIL_STEP", std::to_string(options.until)});
  return run_guarded(program, options.folder, more, nullptr,
                     {true, options.until != kNone, options.timeout_s});
}

// The key of a file: boundary, kind, phase, node, rank, occurrence, and which of the rank's
// processes.
void Captures::read(const std::string& dir, const Run& run) {
  std::error_code failed;
  for (fs::directory_iterator it(dir, failed), end; !failed && it != end; it.increment(failed)) {
    const std::string path = it->path().string();
    if (!path.ends_with(".safetensors")) continue;
    SafetensorsFile file;
    std::string error;
    if (!file.open(path, error)) continue;
    const TensorMetadata& m = file.metadata();
    auto field = [&](const char* name) {
      auto at = m.find(name);
      return at == m.end() ? std::string() : at->second;
    };
    std::string process;
    for (size_t p = 0; p < run.processes.size(); ++p)
      if (std::to_string(run.processes[p].pid) == field("pid"))
        process = std::to_string(ordinal_of(run, static_cast<int32_t>(p)));
    auto [at, fresh] =
        paths_.try_emplace(Key{field("boundary"), field("kind"), field("phase"), field("node"),
                               field("rank"), field("occurrence"), process},
                           path);
    // Two of one name: which is meant cannot be told.
    if (!fresh) at->second.clear();
  }
}

std::string Captures::of(const Run& run, const EventRef& ref) const {
  const ProcessLog& log = run.processes[ref.process];
  const Event& e = log.events[ref.event];
  auto at = paths_.find({log.text(e.boundary), kind_name(e.kind), phase_name(e.phase),
                         log.text(e.node), std::to_string(log.rank), std::to_string(e.occurrence),
                         std::to_string(ordinal_of(run, ref.process))});
  return at == paths_.end() ? "" : at->second;
}

}  // namespace opguard
