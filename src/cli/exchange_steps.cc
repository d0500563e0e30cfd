#include "cli/exchange_steps.h"

#include <algorithm>
#include <cstdio>

#include "align/judge/pivot_view.h"
#include "align/pair/run.h"
#include "cli/rerun.h"
#include "confirm/exchanged.h"
#include "matcher/match.h"
#include "parser/parse.h"
#include "patcher/patch.h"
#include "report/proof_text.h"

namespace opguard {
namespace {

void say(const std::string& line) { std::fprintf(stderr, "opguard: proof: %s\n", line.c_str()); }

std::string first_line(llvm::Error error) {
  const std::string text = llvm::toString(std::move(error));
  return text.substr(0, text.find('\n'));
}

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

TextPlace place(const ExchangePart& part) {
  const int side = part.count[1] == 0 ? 0 : 1;
  return {part.file[side]->name, part.first[side], part.first[side] + part.count[side] - 1};
}

// One side's operator, or the call it is named at.
bool stands_in(const ExchangePart& part, const PivotView& pivot, int side) {
  const EventView& event = side == 0 ? pivot.a : pivot.b;
  const Location& at = event.location;
  return event && at.path == part.file[side]->path &&
         at.line < part.first[side] + part.count[side] &&
         std::max(at.line, at.end_line) >= part.first[side];
}

bool stands_in(const ExchangePart& part, const PivotView& pivot) {
  return stands_in(part, pivot, 0) || stands_in(part, pivot, 1);
}

bool stands_in(const ExchangeGroup& group, const PivotView& pivot) {
  return std::any_of(group.parts.begin(), group.parts.end(),
                     [&](const ExchangePart& part) { return stands_in(part, pivot); });
}

// An operator of both runs that stands in one hunk of a and in another of b has moved: neither can
// be taken back alone.
//   a  173  d = m.add_(eps).sqrt()      b  191  max(m, v.add_(eps), out=m)
void join_places(const PivotView& pivot, std::vector<ExchangeGroup>& groups) {
  auto of = [&](int side) {
    return std::find_if(groups.begin(), groups.end(), [&](const ExchangeGroup& group) {
      return std::any_of(group.parts.begin(), group.parts.end(),
                         [&](const ExchangePart& part) { return stands_in(part, pivot, side); });
    });
  };
  auto into = of(0), from = of(1);
  if (into == groups.end() || from == groups.end() || into == from) return;
  if (from < into) std::swap(into, from);
  into->likelihood = std::max(into->likelihood, from->likelihood);
  into->reworded &= from->reworded;
  into->parts.insert(into->parts.end(), from->parts.begin(), from->parts.end());
  groups.erase(from);
}

constexpr double kUnlikely = 8;  // beside other groups

std::vector<TextPlace> places(const std::vector<ExchangeGroup>& groups) {
  std::vector<TextPlace> all;
  for (const ExchangeGroup& group : groups)
    for (const ExchangePart& part : group.parts) all.push_back(place(part));
  return all;
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
    if (behind.empty() || behind[0].more > 0) return done;
    // It was given what run a's was: only what it was made with can lie in the text.
    if (pivot.kind == PivotKind::value &&
        std::none_of(behind[0].suspects.begin(), behind[0].suspects.end(),
                     [](const Suspect& suspect) { return suspect.nearness == Nearness::origin; }))
      return done;
    std::vector<ExchangeGroup> groups = exchange_groups(*source_.texts, behind[0].suspects);
    if (is_told(pivot, behind[0], groups)) return done;
    join_places(view(a_, b_, pivot), groups);
    if (handed_over_alike(behind[0].numbers)) pass_over_its_statement(pivot, groups);
    const uint32_t kept = by_text_alone(pivot, behind[0], groups) ? 0 : budget_.kept;
    std::vector<double> weights;
    for (const ExchangeGroup& group : groups) weights.push_back(group.likelihood);
    ExchangeSearch search(weights);
    while (left_ > 0) {
      const std::vector<size_t> asked = search.next();
      if (asked.empty()) break;
      // What one run has not found is seldom found by the next.
      if (made_ > 0 && search.healed().empty() && left_ == kept) break;
      std::vector<ExchangeGroup> chosen;
      for (size_t i : asked) chosen.push_back(groups[i]);
      const Outcomes found = ask(chosen);
      if (found.effect == Effect::unknown) break;
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
  // The operator's own statement is another one in the two programs: no need to look elsewhere,
  // unless it was given another value, or has left the graph: no value put in place proves that.
  // Nor does it tell where a number comes from that both texts hand over alike:
  //   a  avg.add_(torch.sub(g, avg), alpha=rest)       b  avg.add_(g - avg, alpha=rest)
  bool is_told(const Pivot& pivot, const Background& behind,
               const std::vector<ExchangeGroup>& groups) const {
    if (pivot.kind == PivotKind::input || leaves_graph(pivot)) return false;
    if (pivot.kind == PivotKind::scalar && handed_over_alike(behind.numbers)) return false;
    const PivotView shown = view(a_, b_, pivot);
    return std::any_of(groups.begin(), groups.end(), [&](const ExchangeGroup& group) {
      return !group.reworded && stands_in(group, shown);
    });
  }

  static bool handed_over_alike(const std::vector<Number>& numbers) {
    return !numbers.empty() &&
           std::all_of(numbers.begin(), numbers.end(), [](const Number& number) {
             return !number.given[0].empty() && number.given[0] == number.given[1];
           });
  }

  // Another text beside a number that it hands over as the other program does is not where the
  // number comes from.
  void pass_over_its_statement(const Pivot& pivot, std::vector<ExchangeGroup>& groups) const {
    const PivotView shown = view(a_, b_, pivot);
    for (ExchangeGroup& group : groups)
      if (stands_in(group, shown)) group.likelihood /= kUnlikely;
    std::stable_sort(groups.begin(), groups.end(),
                     [](const auto& x, const auto& y) { return x.likelihood > y.likelihood; });
  }

  // The same text ran an operator in one run alone, or handed it another number, or the operator's
  // result left the graph: what decided that is no tensor's value, and no value put in place leads
  // there.
  bool by_text_alone(const Pivot& pivot, const Background& behind,
                     const std::vector<ExchangeGroup>& groups) const {
    if (pivot.kind == PivotKind::scalar && handed_over_alike(behind.numbers)) return true;
    if (leaves_graph(pivot)) return true;
    const bool alone = pivot.a.process < 0 || pivot.b.process < 0;
    if (pivot.kind != PivotKind::scalar && (pivot.kind != PivotKind::structure || !alone))
      return false;
    const PivotView shown = view(a_, b_, pivot);
    return std::none_of(groups.begin(), groups.end(),
                        [&](const ExchangeGroup& group) { return stands_in(group, shown); });
  }

  bool leaves_graph(const Pivot& pivot) const {
    if (pivot.heuristics.has(Heuristic::graph_cut)) return true;
    return pivot.kind == PivotKind::structure && pivot.a.process >= 0 && pivot.b.process >= 0 &&
           ((timeline_.event(0, pivot.a).flags ^ timeline_.event(1, pivot.b).flags) & kInGraph);
  }

  Outcomes ask(const std::vector<ExchangeGroup>& groups) {
    say("run of b with " + words(places(groups)) + " as in a");
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
    say((found.effect == Effect::healed ? "proven: " : "not it alone: ") +
        words(a_, b_, exchanged(groups, found)));
    return found;
  }

  static Outcomes unknown(llvm::Error error) {
    say("nothing proven: " + first_line(std::move(error)));
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
    Pivot& pivot = verdict_.candidates.front();
    const ExchangePart& first = groups.front().parts.front();
    if (!stands_in(first, view(a_, b_, pivot)))
      for (int side : {0, 1}) pivot.text[side] = location(first, side);
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

RewriteProgram rewriter(const DiffSide& b, const GuardedProgram& program, const Survey& survey_a,
                        const Survey& survey_b, const TemplateLibrary& templates) {
  return [=, plan = survey_a.plan, sources_b = survey_b.sources](
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
