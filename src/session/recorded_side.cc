// The steps of record_side() are: the files that are left out, the traced run, the match with the
// other's plan, the probes, the guarded run. A program that fails is recorded as far as it came,
// and `failure` says how it ended. What a caller makes of half of a run is its own rule: `bisect`
// refuses it, `record` keeps it.
#include "session/recorded_side.h"

#include "matcher/match.h"
#include "matcher/share.h"
#include "support/launch.h"
#include "support/say.h"

namespace opguard {
namespace {

// `before_run` is called here and before the guarded run: a resume finds the same checkpoint in
// both.
llvm::Expected<Survey> surveyed(const SideRequest& request, const TemplateLibrary& templates,
                                Diagnostics& diags) {
  auto left_out = left_out_of(request.tree, request.sources, request.command, request.exported);
  if (!left_out) return left_out.takeError();
  say_left_out(*left_out, request.sources);
  if (request.before_run)
    if (auto failed = request.before_run()) return failed;
  say_step("preflight of " + request.name + ": " + command_text(request.command));
  auto found = survey({.command = request.command,
                       .tree = request.tree,
                       .packages = request.packages,
                       .left_out = left_out->all(),
                       .steps = request.steps,
                       .work = request.work,
                       .quiet = talk() != Talk::verbose,
                       .to_its_end = true},
                      templates, diags);
  if (!found) return found.takeError();
  if (std::string end = told_end(found->trace); !end.empty()) say_step("note: " + end);
  if (!found->failure.empty())
    say("warning: " + request.name + " ended with " + found->failure +
        " under preflight; operators that only come later have no probe");
  return found;
}

}  // namespace

llvm::Expected<RecordedSide> record_side(const SideRequest& request,
                                         const TemplateLibrary& templates, Diagnostics& diags,
                                         const Plan* share) {
  auto survey = surveyed(request, templates, diags);
  if (!survey) return survey.takeError();
  RecordedSide made;
  made.side = {request.name, request.tree, request.command, request.work, request.provenance, {}};
  made.side.provenance.command = quote(request.command);
  made.survey = std::move(*survey);
  if (share) {
    // A boundary that only this side has keeps its own id, so that it is recorded too.
    const MatchSet matches = match_sites(made.survey.sites, templates, *share);
    made.bounds = share_boundaries(*share, matches, made.survey.sites, made.survey.plan);
    made.shared = matches.count(MatchStatus::matched);
    made.not_found = matches.matches.size() - made.shared;
  } else {
    made.bounds = bind(made.survey.plan);
  }
  auto hook = instrument_side(made.side, made.survey, made.bounds, diags);
  if (!hook) return hook.takeError();
  made.program = guarded(made.side, *hook, request.environment);
  if (request.before_run)
    if (auto failed = request.before_run()) return failed;
  say_step("guarded run of " + request.name);
  if (auto error = record(made.side, made.program, made.bounds, made.survey, &made.failure))
    return error;
  if (!made.failure.empty()) say("warning: run of " + request.name + " ended with " + made.failure);
  made.log = made.side.work + "/log";
  return made;
}

}  // namespace opguard
