// A search by halves of likelihood (suspects/exchange_search.h), of which each question is a run of
// b:
//
//   groups, likelihood     1: 16   2: 8   3: 1   4: 1
//   run 1, groups 1        healed: the cause is group 1, and no further run is made
//   run 1, groups 1        not healed: 2, 3, 4 are left, if text is it at all
//
// With values still to be tried (kept), the first run may ask another question: all groups at once,
// is it text at all? It does so unless the likelier half weighs three quarters of the whole.
//
// Counterexample: a run in which the program fails. Before anything was healed it ends the search,
// as nothing is known; later the other half is asked, which tells as much.
//
// The cost: one run of b a question, to the end of the judged step; each parses b's sources anew.
#include "session/exchange_text.h"

#include <algorithm>
#include <cstdio>

#include "align/judge/pivot_view.h"
#include "align/pair/run.h"
#include "confirm/exchanged.h"
#include "matcher/match.h"
#include "parser/parse.h"
#include "patcher/patch.h"
#include "report/proof_text.h"
#include "session/rerun.h"
#include "support/diagnostics.h"
#include "support/say.h"
#include "suspects/exchange_search.h"
#include "suspects/text_question.h"

namespace opguard {
namespace {

constexpr double kLikely = 0.75;  // that the cause is in what is asked first
constexpr double kNamed = 0.5;    // that it is the line which is named

// A side's first line of a part, as a place to name.
std::optional<Location> location(const ExchangePart& part, int side) {
  if (part.count[side] == 0) return std::nullopt;
  const SourceFile& file = *part.file[side];
  const std::string_view line = file.line_text(part.first[side]);
  const size_t indent = std::min(line.find_first_not_of(" \t"), line.size());
  Location at;
  at.package = file.package;
  at.file = file.name;
  at.path = file.path;
  at.line = at.end_line = part.first[side];
  at.column = static_cast<uint32_t>(indent);
  at.text = line.substr(indent);
  // Columns count characters.
  at.end_column =
      at.column + static_cast<uint32_t>(std::count_if(at.text.begin(), at.text.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
      }));
  return at;
}

// The first suspect that has lines on this side. Without one it is the first part, which may have
// lines on the other side alone.
const ExchangePart& first_with_lines(const std::vector<ExchangePart>& parts, int side) {
  const auto at = std::find_if(parts.begin(), parts.end(), [&](const ExchangePart& part) {
    return part.suspect && part.count[side] > 0;
  });
  return at == parts.end() ? parts.front() : *at;
}

// By b's lines, or by a's where b has none of it.
TextPlace text_place(const ExchangePart& part) {
  const int side = part.count[1] == 0 ? 0 : 1;
  return {part.file[side]->name, part.first[side], part.first[side] + part.count[side] - 1};
}

std::vector<TextPlace> places(const std::vector<ExchangeGroup>& groups) {
  std::vector<TextPlace> all;
  for (const ExchangeGroup& group : groups)
    for (const ExchangePart& part : group.parts) all.push_back(text_place(part));
  return all;
}

// How likely the line to be named is the cause, among all that healed it together.
double share_of_first(const std::vector<ExchangeGroup>& groups) {
  double groups_all = 0, parts_all = 0;
  for (const ExchangeGroup& group : groups) groups_all += group.likelihood;
  for (const ExchangePart& part : groups.front().parts) parts_all += part.likelihood;
  const double first = groups.front().parts.front().likelihood;
  const double in_group = parts_all == 0 ? 1 : first / parts_all;
  return groups.front().likelihood / groups_all * in_group;
}

ProofReason exchanged(const std::vector<ExchangeGroup>& groups, const Outcomes& outcomes) {
  return {.kind = ProofReasonKind::exchanged, .outcomes = outcomes, .places = places(groups)};
}

class Exchanger {
 public:
  Exchanger(const ExchangeText& source, const Run& a, const Run& b, const Alignment& alignment,
            Verdict& verdict, const ExchangeBudget& budget)
      : source_(source),
        a_(a),
        b_(b),
        timeline_(a, b, alignment),
        index_{ValueIndex(a), ValueIndex(b)},
        verdict_(verdict),
        budget_(budget),
        left_(budget.runs) {}

  // No proof where the pivot is a race, where no model value differs, or where no hunk stands
  // behind it.
  Exchanged run(const Alignment& alignment) {
    Exchanged done;
    const Pivot& pivot = verdict_.candidates.front();
    if (pivot.kind == PivotKind::race) return done;
    difference_ =
        compare_model_values(index_[0], index_[1], timeline_, HiddenRecords({}, a_, b_)).first;
    if (!difference_) return done;
    Verdict only = verdict_;
    only.candidates.resize(1);
    const std::vector<Background> behind = source_.backgrounds(a_, b_, alignment, only);
    if (behind.empty()) return done;
    const auto question =
        (budget_.own ? own_text_question : text_question)(a_, b_, pivot, *source_.texts, behind[0]);
    if (!question) return done;
    const std::vector<ExchangeGroup>& groups = question->groups;
    const uint32_t kept = question->values_lead_nowhere ? 0 : budget_.kept;
    std::vector<double> weights;
    for (const ExchangeGroup& group : groups) weights.push_back(group.likelihood);
    ExchangeSearch search(weights);
    while (left_ > 0) {
      std::vector<size_t> asked = search.next();
      if (asked.empty()) break;
      // If one run is all that text has, it asks whether text is it at all.
      if (made_ == 0 && kept > 0 && search.share(asked) < kLikely) asked = search.left();
      // What one run has not found is seldom found by the next.
      if (made_ > 0 && search.healed().empty() && left_ == kept) break;
      std::vector<ExchangeGroup> chosen;
      for (size_t i : asked) chosen.push_back(groups[i]);
      const Outcomes found = ask(chosen);
      if (found.effect == Effect::unknown) {
        if (search.healed().empty()) break;
        search.failed(asked);
        continue;
      }
      search.tell(asked, found.effect == Effect::healed);
      if (found.effect == Effect::healed) healed_ = found;
    }
    done.runs = made_;
    if (const auto healed = search.healed(); !healed.empty()) {
      std::vector<ExchangeGroup> chosen;
      for (size_t i : healed) chosen.push_back(groups[i]);
      done.proof = name(chosen);
    }
    return done;
  }

 private:
  // effect unknown: the program failed or could not be compared. The run is spent all the same.
  Outcomes ask(const std::vector<ExchangeGroup>& groups) {
    say(kProof + "run of b with " + words(places(groups)) + " as in a");
    --left_;
    ++made_;
    const std::string folder = "text_" + std::to_string(made_);
    auto program = source_.rewrite(exchange_text(groups), folder);
    if (!program) return unknown(program.takeError());
    const bool cut = difference_->longer < 0;
    auto log = run_again(*program, {folder, {}, cut ? last_step() : kNone, patience_s(b_)});
    if (!log) return unknown(log.takeError());
    auto again = load_run(*log);
    if (!again) return unknown(again.takeError());
    const Outcomes found = judge_exchanged({a_, b_, timeline_, *difference_, cut},
                                           verdict_.candidates.front(), *again);
    say(kProof + (found.effect == Effect::healed ? "proven: " : "not it alone: ") +
        words(a_, b_, exchanged(groups, found)));
    return found;
  }

  static Outcomes unknown(llvm::Error error) {
    say(kProof + "nothing proven: " + first_line(std::move(error)));
    return {};
  }

  // The judged step as b counts its own.
  uint32_t last_step() const {
    uint32_t last = 0;
    for (size_t p = 0; p < b_.processes.size(); ++p)
      last = std::max(last, timeline_.steps(1, int32_t(p)).step(1, difference_->position.step));
    return last;
  }

  // groups: one of them is the cause, the likeliest first.
  ProofReport name(const std::vector<ExchangeGroup>& groups) {
    // Lines in which the operator itself stands are told by the operator; those of one program
    // alone (a definition) not beside lines that both have.
    Pivot& pivot = verdict_.candidates.front();
    const std::vector<ExchangePart>& parts = groups.front().parts;
    const PivotView shown = view(a_, b_, pivot);
    auto of_both = [](const ExchangePart& part) { return part.count[0] > 0 && part.count[1] > 0; };
    const bool any_of_both = std::any_of(parts.begin(), parts.end(), of_both);
    // Of many that healed it together none is told: where it shows says more.
    if (share_of_first(groups) >= kNamed &&
        std::none_of(parts.begin(), parts.end(), [&](const ExchangePart& part) {
          return of_both(part) == any_of_both && stands_in(part, shown);
        }))
      for (int side : {0, 1}) pivot.text[side] = location(first_with_lines(parts, side), side);
    ProofReport proof;
    proof.state = ProofState::proven;
    proof.why = exchanged(groups, healed_);
    proof.runs = made_;
    proof.causes = {{0, ProofState::proven, false, Need::only}};
    return proof;
  }

  const ExchangeText& source_;
  const Run &a_, &b_;
  Timeline timeline_;
  ValueIndex index_[2];
  Verdict& verdict_;
  const ExchangeBudget& budget_;
  uint32_t left_, made_ = 0;
  std::optional<ModelDifference> difference_;
  Outcomes healed_;
};

}  // namespace

Exchanged exchange_text(const ExchangeText& source, const Run& a, const Run& b,
                        const Alignment& alignment, Verdict& verdict,
                        const ExchangeBudget& budget) {
  if (!source || verdict.candidates.empty() || budget.runs == 0) return {};
  return Exchanger(source, a, b, alignment, verdict, budget).run(alignment);
}

// Sites of the rewritten text get a's ids where the plan finds them. A line that is as in a is
// probed as a's line is. What is in no file of the patch is loaded as it is on disk.
RewriteProgram rewriter(const DiffSide& b, const GuardedProgram& program, const Plan& plan,
                        const SourceSet& sources_b, const TemplateLibrary& templates) {
  return [=](
             const std::map<std::string, std::string>& texts,
             const std::string& folder) -> llvm::Expected<GuardedProgram> {
    SourceSet sources = sources_b;
    for (SourceFile& file : sources.files)
      if (const auto at = texts.find(file.path); at != texts.end())
        file = make_source(file.package, file.name, file.path, at->second);
    Diagnostics diags;
    const std::vector<Site> sites = parse_sites(sources, diags);
    const MatchSet matches = match_sites(sites, templates, plan);
    std::vector<Wrap> wraps;
    for (const Bound& bound : share_boundaries(plan, matches, sites, Plan()))
      wraps.push_back({bound.boundary, bound.site, bound.variant});
    auto patch = make_patch(sources, wraps, diags);
    if (!patch) return patch.takeError();
    // A text without a site is b's other text all the same.
    for (const auto& [path, text] : texts)
      if (std::none_of(patch->files.begin(), patch->files.end(),
                       [&](const FilePatch& file) { return file.path == path; }))
        patch->files.push_back({"", path, path, text, text});
    auto hook = write_hook(*patch, b.work + "/" + folder + "/hook");
    if (!hook) return hook.takeError();
    GuardedProgram changed = program;
    for (auto& [name, value] : changed.environment)
      if (name == "OPGUARD_HOOK") value = *hook;
    return changed;
  };
}

}  // namespace opguard
