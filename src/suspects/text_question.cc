// By the kind of the pivot: is its own text the cause, or text elsewhere, or can no text be it?
//
//   its statement differs, in more than names    none: the pivot tells it
//   so, and one run alone has the operator       the groups in which it stands
//   another number, handed over alike            all groups; its own an eighth as likely
//   it was given another value                   all groups
//
// Counterexample: an operator that left the autograd graph. Its statement may differ, and no value
// put in place would prove it: the text is asked all the same.
#include "suspects/text_question.h"

#include <algorithm>
#include <utility>

namespace opguard {
namespace {

constexpr double kUnlikely = 8;  // beside other groups

// One side's operator, or the call it is named at.
bool stands_in(const ExchangePart& part, const PivotView& pivot, int side) {
  const EventView& event = side == 0 ? pivot.a : pivot.b;
  const Location& at = event.location;
  return event && at.path == part.file[side]->path &&
         at.line < part.first[side] + part.count[side] &&
         std::max(at.line, at.end_line) >= part.first[side];
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
  // The two together are reworded where both are.
  into->reworded &= from->reworded;
  into->parts.insert(into->parts.end(), from->parts.begin(), from->parts.end());
  groups.erase(from);
}

bool handed_over_alike(const std::vector<Number>& numbers) {
  return !numbers.empty() && std::all_of(numbers.begin(), numbers.end(), [](const Number& number) {
    return !number.given[0].empty() && number.given[0] == number.given[1];
  });
}

// In the autograd graph in one run alone.
bool leaves_graph(const Pivot& pivot, const PivotView& shown) {
  if (pivot.heuristics.has(Heuristic::graph_cut)) return true;
  return pivot.kind == PivotKind::structure && shown.a && shown.b &&
         ((shown.a.event->flags ^ shown.b.event->flags) & kInGraph);
}

// The groups in which the pivot's operator itself stands.
std::optional<TextQuestion> of_pivot(TextQuestion question, const PivotView& pivot) {
  join_places(pivot, question.groups);
  std::erase_if(question.groups,
                [&](const ExchangeGroup& group) { return !stands_in(group, pivot); });
  if (question.groups.empty()) return std::nullopt;
  return question;
}

}  // namespace

bool stands_in(const ExchangePart& part, const PivotView& pivot) {
  return stands_in(part, pivot, 0) || stands_in(part, pivot, 1);
}

std::optional<TextQuestion> own_text_question(const Run& a, const Run& b, const Pivot& pivot,
                                              const ProgramTexts& texts, const Background& behind) {
  return of_pivot({exchange_groups(texts, behind.suspects)}, view(a, b, pivot));
}

std::optional<TextQuestion> text_question(const Run& a, const Run& b, const Pivot& pivot,
                                          const ProgramTexts& texts, const Background& behind) {
  const PivotView shown = view(a, b, pivot);
  const bool out_of_graph = leaves_graph(pivot, shown);
  // Another text beside a number that it hands over as the other program does is not where the
  // number comes from:
  //   a  avg.add_(torch.sub(g, avg), alpha=rest)       b  avg.add_(g - avg, alpha=rest)
  const bool alike = pivot.kind == PivotKind::scalar && handed_over_alike(behind.numbers);
  TextQuestion question{exchange_groups(texts, behind.suspects)};
  auto at_pivot = [&](const ExchangeGroup& group) { return stands_in(group, shown); };
  // The same text ran an operator in one run alone, or handed it another number.
  const bool one_sided = pivot.kind == PivotKind::structure && (!shown.a || !shown.b);
  // The operator's own statement is another one in the two programs: no need to look elsewhere.
  // There is, if it was given another value, or has left the graph: no value put in place proves
  // that.
  if (pivot.kind != PivotKind::input && !out_of_graph && !alike &&
      std::any_of(question.groups.begin(), question.groups.end(),
                  [&](const ExchangeGroup& group) { return !group.reworded && at_pivot(group); })) {
    // Where one run has it alone, no value of its own can be put into the other.
    if (one_sided) return of_pivot(std::move(question), shown);
    return std::nullopt;
  }
  join_places(shown, question.groups);
  if (alike) {
    for (ExchangeGroup& group : question.groups)
      if (at_pivot(group)) group.likelihood /= kUnlikely;
    std::stable_sort(question.groups.begin(), question.groups.end(),
                     [](const auto& x, const auto& y) { return x.likelihood > y.likelihood; });
  }
  // Or read another one of two tensors that both runs have: no operator made the choice.
  const bool chosen = pivot.kind == PivotKind::input &&
                      std::any_of(pivot.why.begin(), pivot.why.end(), [](const Reason& reason) {
                        return reason.kind == ReasonKind::given_another;
                      });
  question.values_lead_nowhere =
      alike || out_of_graph || chosen ||
      ((pivot.kind == PivotKind::scalar || one_sided) &&
       std::none_of(question.groups.begin(), question.groups.end(), at_pivot));
  return question;
}

}  // namespace opguard
