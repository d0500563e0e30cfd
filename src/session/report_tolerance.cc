// Before anything is compared the logs have to fit each other. What does not fit is inconclusive
// and told as a reason, since a distance measured on such logs would be a number without a meaning:
//
//   a side without sketches         it was not recorded in mode sketch
//   a hole, or a log cut short      a missing tensor would pass for an equal one
//   a side with jitter              its distance is noise; only the noise runs may have it
//   a reference of other pieces     it was recorded for another candidate, as the digests say
#include <memory>
#include <utility>

#include "align/judge/conclude.h"
#include "align/pair/settings.h"
#include "align/tolerance/judge_tolerance.h"
#include "align/tolerance/reference_tensors.h"
#include "session/remote_logs.h"
#include "session/report_verdict.h"
#include "session/slices.h"
#include "support/exit_code.h"
#include "support/progress.h"
#include "support/url.h"

namespace opguard {
namespace {

// Of the first process that has it; "" where none has.
std::string recorded_setting(const Run& run, const char* key) {
  for (const ProcessLog& log : run.processes)
    if (const auto known = log.settings.find(key); known != log.settings.end())
      return known->second;
  return "";
}

// Logs that cannot be compared within rounding, and why; else no reason.
Reasons unfit(const Run& a, const Run& b, const ToleranceLogs& logs,
              const std::vector<Run>& noise) {
  for (const int side : {0, 1}) {
    const int32_t process = only_process(side == 0 ? a : b);
    if (process == -1) return {{.kind = ReasonKind::no_sketches, .side = side}};
    for (const ProcessLog& log : (side == 0 ? a : b).processes)
      if (log.cut_short() || !log.gaps.empty() || log.lost > 0)
        return {{.kind = ReasonKind::hole_in_log, .side = side, .names = {log.path}}};
    if (side == 0 && !are_replicas(a)) return {{.kind = ReasonKind::several_processes, .side = 0}};
    if (!recorded_setting(side == 0 ? a : b, "jitter").empty())
      return {{.kind = ReasonKind::jittered, .side = side}};
  }
  for (size_t i = 0; i < noise.size(); ++i)
    if (recorded_setting(noise[i], "jitter").empty())
      return {{.kind = ReasonKind::not_jittered, .names = {url_name(logs.noise[i])}}};
  // Of a candidate of one process no piece is asked for.
  const std::string slices = recorded_setting(a, "slices");
  if (only_process(b) == -2 && slices != slices_digest(slices_of(b)) &&
      slices != slices_digest(even_slices_of(b)))
    return {{.kind = ReasonKind::other_slices, .names = {url_name(logs.b)}}};
  return {};
}

}  // namespace

int report_tolerance(const ToleranceLogs& logs, const Coverage& coverage,
                     const ToleranceOptions& tolerance, const ReportOptions& options,
                     const Isolate& isolate) {
  auto progress =
      std::make_unique<Progress>("comparing " + url_name(logs.a) + " and " + url_name(logs.b));
  std::vector<std::string> folders = logs.noise;
  folders.insert(folders.end(), {logs.a, logs.b});
  auto remote = RemoteLogs::open(folders, options.python);
  if (!remote) return fail(llvm::toString(remote.takeError()));
  llvm::Expected<Run> a = (*remote)->load(logs.a);
  if (!a) return fail(llvm::toString(a.takeError()));
  llvm::Expected<Run> b = (*remote)->load(logs.b);
  if (!b) return fail(llvm::toString(b.takeError()));
  std::vector<Run> noise;
  for (const std::string& dir : logs.noise) {
    llvm::Expected<Run> run = (*remote)->load(dir);
    if (!run) return fail(llvm::toString(run.takeError()));
    noise.push_back(std::move(*run));
  }
  Verdict verdict;
  Comparison comparison;
  if (Reasons why = unfit(*a, *b, logs, noise); !why.empty()) {
    verdict.why = std::move(why);
  } else {
    comparison = compare_tensors(*a, *b, noise, tolerance);
    verdict = judge_tolerance(*a, *b, comparison);
  }
  Examined examined;
  if (isolate && verdict.outcome == Outcome::diverged) {
    progress.reset();
    examined = isolate(*a, *b, noise, comparison, verdict);
  }
  const Alignment none;
  const Report report{.a = *a,
                      .b = *b,
                      .alignment = none,
                      .verdict = verdict,
                      .coverage = coverage,
                      .explain = options.explain,
                      .confirmations = std::move(examined.confirmations),
                      .proof = std::move(examined.proof),
                      .tolerance = &comparison,
                      .isolation = std::move(examined.isolation)};
  progress.reset();
  if (llvm::Error error = present(report, options)) return fail(llvm::toString(std::move(error)));
  return exit_code(verdict, options.strict);
}

}  // namespace opguard
