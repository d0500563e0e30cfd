// Two folders of logs -> both runs, what is told of them, and what running them again tells
// (report_verdict.h).
//
//   read      from here or from object storage; from then on names are the user's
//   judge     align/judge/compare_runs.h
//   examine   further runs, only where the runs diverged
//   behind    what of the texts may be the cause, of the candidates in their last order
#include <memory>
#include <utility>

#include "session/remote_logs.h"
#include "session/report_verdict.h"
#include "support/diagnostics.h"
#include "support/progress.h"
#include "support/say.h"
#include "support/url.h"

namespace opguard {

llvm::Expected<std::unique_ptr<ComparedRuns>> compare_logs(const LogPair& logs,
                                                           const ReportOptions& options,
                                                           const Examine& examine,
                                                           const FindBackgrounds& backgrounds) {
  auto rules = read_rules(options);
  if (!rules) return rules.takeError();
  auto progress =
      std::make_unique<Progress>("comparing " + url_name(logs.a) + " and " + url_name(logs.b));
  auto remote = RemoteLogs::open({logs.a, logs.b}, options.python);
  if (!remote) return remote.takeError();
  auto judged =
      compare_runs((*remote)->here(logs.a), (*remote)->here(logs.b), *rules,
                   {options.read, logs.failures, options.without, {}, {}, (*remote)->bring()});
  if (!judged) return make_error((*remote)->as_given(llvm::toString(judged.takeError())));
  (*remote)->name_as_given(*judged);
  auto compared = std::make_unique<ComparedRuns>();
  static_cast<JudgedRuns&>(*compared) = std::move(*judged);
  compared->coverage = logs.coverage;
  compared->refused = !compared->settings.refused.empty();
  compared->differing = compared->settings.all();
  if ((*remote)->bring() != nullptr) say("note: " + (*remote)->told());
  Verdict& verdict = compared->found.verdict;
  if (verdict.outcome != Outcome::diverged) return compared;
  if (examine) {
    progress.reset();
    compared->examined = examine(*compared->a, *compared->b, compared->found.alignment, verdict);
  }
  // Proving may put the candidates in another order.
  if (backgrounds)
    compared->behind = backgrounds(*compared->a, *compared->b, compared->found.alignment, verdict);
  return compared;
}

}  // namespace opguard
