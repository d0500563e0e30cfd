// Coverage is of both plans together: what share of the work of both programs stands in a boundary.
#include "session/compare_kept.h"

#include <utility>

#include "session/examine.h"
#include "session/exchange_text.h"
#include "session/program_texts.h"

namespace opguard {

llvm::Expected<std::unique_ptr<ComparedRuns>> compare_with_kept(
    const KeptRun& kept, const Plan& plan, const RecordedSide& b, const TemplateLibrary& templates,
    uint32_t prove_runs, const ReportOptions& options,
    const std::function<bool(const Run& b)>& known) {
  const auto texts = texts_of({kept.source_tree(), kept.sources, kept.read},
                              {b.side.tree, b.survey.sources, read_files(b.side.work + "/trace")});
  const FindBackgrounds backgrounds = backgrounds_of(texts);
  const RewriteProgram rewrite = rewriter(b.side, b.program, plan, b.survey.sources, templates);
  // A program that fails cannot be run again to prove anything.
  Examine examine;
  if (kept.failure.empty() && b.failure.empty())
    examine = examine_by_text(prove_runs, {texts, backgrounds, rewrite});
  if (examine && known)
    examine = [prove = std::move(examine), known](const Run& run_a, const Run& run_b,
                                                  const Alignment& alignment, Verdict& verdict) {
      return known(run_b) ? Examined{} : prove(run_a, run_b, alignment, verdict);
    };
  const Plan& own = b.survey.plan;
  const LogPair logs{
      kept.log(),
      b.log,
      {plan.activities() + own.activities(), plan.attributed() + own.attributed(), b.not_found},
      {kept.failure, b.failure}};
  return compare_logs(logs, options, examine, backgrounds);
}

}  // namespace opguard
