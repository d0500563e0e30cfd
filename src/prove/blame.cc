// Three questions, in this order:
//
//   who made it        maker_of()    by the oldest strange monomial, or the element's first writer
//   with which factor  way_of()      where the output is the model's times a number
//   from what          Origins       the lines that what was read came from, at most three
//
// Each goes back over the ranks' history (history.h), and over messages to other ranks.
#include "prove/blame.h"

#include <algorithm>
#include <functional>
#include <set>
#include <unordered_set>
#include <utility>

namespace opguard::proving {
namespace {

// The node that last wrote a tensor's storage; 0 where none did.
uint32_t last_writer(const Trace& trace, const Tensor& tensor) {
  for (size_t i = trace.nodes.size(); i-- > 0;)
    for (const Tensor& t : trace.nodes[i].writes)
      if (t.storage == tensor.storage) return static_cast<uint32_t>(i);
  return 0;
}

// Monomials within an element, however deep: through named sums and what functions are of.
std::unordered_set<Monomial> monomials_in(const Terms& terms, Element root) {
  std::vector<Element> todo = {root};
  std::unordered_set<Element> seen;
  std::unordered_set<Monomial> found;
  while (!todo.empty()) {
    const Element e = todo.back();
    todo.pop_back();
    if (!seen.insert(e).second) continue;
    for (const Part& p : terms.parts(e)) {
      if (!found.insert(p.monomial).second) continue;
      for (const Factor& f : terms.factors(p.monomial)) {
        const AtomValue& v = terms.atom(f.atom);
        if (v.kind == AtomKind::sum || v.kind == AtomKind::exp || v.kind == AtomKind::log ||
            v.kind == AtomKind::root)
          todo.push_back(v.of);
        todo.insert(todo.end(), v.arguments.begin(), v.arguments.end());
      }
    }
  }
  return found;
}

using Line = std::pair<std::string, int64_t>;

// The innermost line of the user's; empty where none is known. Nodes of one line are one statement
// for the reader.
Line line_of(const Trace& trace, uint32_t at) {
  const auto& stack = trace.stacks[at];
  return stack.empty() ? Line() : Line(stack[0].file, stack[0].line);
}
Line line_of(const std::vector<Rank>& ranks, NodeAt at) {
  const Trace& trace = ranks[at.rank].trace();
  return line_of(trace, trace.nodes[at.node].stack);
}

// A list of lines, each once, the first kShown of them. What comes first is the most telling, so
// later ones are dropped. The line of `but`, which is told already, is never among them.
class Lines {
 public:
  Lines(const std::vector<Rank>& ranks, NodeAt but) : ranks_(ranks), seen_({line_of(ranks, but)}) {}

  void add(NodeAt at) {
    if (found.size() < kShown && seen_.insert(line_of(ranks_, at)).second)
      found.push_back({at.rank, 0, Fed::Kind::node, at});
  }
  void add(const Fed& from) {
    if (from.node) return add(*from.node);
    const Line line = line_of(ranks_[from.rank].trace(), from.stack);
    if (found.size() < kShown && seen_.insert(line).second) found.push_back(from);
  }

  std::vector<Fed> found;

 private:
  static constexpr size_t kShown = 3;
  const std::vector<Rank>& ranks_;
  std::set<Line> seen_;
};

// Whether nothing unknown has a part in it: rationals and irrational constants, as positions and
// masks are.
bool all_numbers(const Terms& terms, const Array& array) {
  return std::all_of(array.at.begin(), array.at.end(), [&](Element e) {
    if (e == Rank::kUnwritten) return false;
    for (const Part& part : terms.parts(e))
      for (const Factor& factor : terms.factors(part.monomial))
        if (terms.atom(factor.atom).kind != AtomKind::number) return false;
    return true;
  });
}

// Where what a node reads came from.
class Origins {
 public:
  Origins(const Terms& terms, const std::vector<Rank>& ranks, const Familiar& model,
          const History& plan)
      : terms_(terms), ranks_(ranks), model_(model), plan_(plan) {}

  // Most telling first: who put elements out of their order, where a constant began, who made
  // what is changed in place, who wrote the rest.
  void of(NodeAt node, Lines& lines) const {
    handed_on(node, lines);
    std::vector<Fed> constant;
    std::vector<NodeAt> misplaced, begun, other;
    for (const Held& held : plan_.of(node).reads) {
      if (model_.misplaced(held.value)) {
        if (const auto at = misplacer(node, held)) misplaced.push_back(*at);
      } else if (held.value.at.size() > 1 && all_numbers(terms_, held.value)) {
        for (const Fed& from : beginnings(node, held.tensor)) constant.push_back(from);
      }
      const auto& writes = node_of(node).writes;
      if (std::find(writes.begin(), writes.end(), held.tensor) != writes.end())
        if (const auto at = on(node.rank, plan_.first_giver(node, held.tensor)))
          begun.push_back(*at);
      for (NodeAt at : givers(node, held.tensor)) other.push_back(at);
    }
    for (NodeAt at : misplaced) lines.add(at);
    for (const Fed& from : constant) lines.add(from);
    for (NodeAt at : begun) lines.add(at);
    for (NodeAt at : other) lines.add(at);
  }

  // Backwards of the user's own that handed on what a node reads, behind its writer.
  void handed_on(NodeAt node, Lines& lines) const {
    for (const Held& held : plan_.of(node).reads) {
      const int64_t written = plan_.writer(node, held.tensor);
      for (const Passage& p : ranks_[node.rank].trace().passages)
        if (p.before <= node.node && int64_t{p.before} > written &&
            std::find(p.storages.begin(), p.storages.end(), held.tensor.storage) !=
                p.storages.end())
          lines.add({node.rank, p.stack, Fed::Kind::passage, {}});
    }
  }

 private:
  static constexpr size_t kLooked = 64;

  static std::optional<NodeAt> on(uint32_t rank, int64_t node) {
    return node < 0 ? std::nullopt : std::optional(NodeAt{rank, static_cast<uint32_t>(node)});
  }
  const Node& node_of(NodeAt at) const { return ranks_[at.rank].trace().nodes[at.node]; }
  // What was received came from its sender. None of a collective: it met several.
  std::optional<NodeAt> sender(NodeAt at) const {
    const Moment& moment = plan_.of(at);
    const bool received =
        moment.met.size() == 1 && node_of(at).op.find("recv") != std::string::npos;
    return received ? std::optional(moment.met[0]) : std::nullopt;
  }

  // The nearest statements on other lines that gave or wrote the tensor, and who sent it. What
  // stands on the node's own line is a part of one expression, and is looked through.
  std::vector<NodeAt> givers(NodeAt node, const Tensor& tensor) const {
    std::vector<NodeAt> found;
    const Line own = line_of(ranks_, node);
    std::set<NodeAt> seen;
    std::vector<std::pair<NodeAt, Tensor>> todo = {{node, tensor}};
    for (size_t i = 0; i < todo.size() && i < kLooked; ++i) {
      const auto [reader, read] = todo[i];
      const auto given = on(node.rank, plan_.giver(reader, read));
      const auto written = on(node.rank, plan_.writer(reader, read));
      for (const auto& at : {given, written}) {
        if (!at || !seen.insert(*at).second) continue;
        if (line_of(ranks_, *at) != own) {
          found.push_back(*at);
          if (const auto from = sender(*at)) found.push_back(*from);
        } else {
          for (const Held& held : plan_.of(*at).reads) todo.emplace_back(*at, held.tensor);
        }
      }
    }
    return found;
  }

  // Back along what is out of order, to who made it so of what was in order. Across a message too:
  // the sender may have sent it so. Where the writer left it in order, the view through which it
  // was read is to blame.
  std::optional<NodeAt> misplacer(NodeAt node, const Held& read) const {
    std::set<NodeAt> seen;
    Held held = read;
    for (;;) {
      const auto written = on(node.rank, plan_.writer(node, held.tensor));
      if (!written || !seen.insert(*written).second)
        return on(node.rank, plan_.giver(node, held.tensor));
      const auto out_of_order = [&](NodeAt at) -> const Held* {
        for (const Held& h : plan_.of(at).reads)
          if (model_.misplaced(h.value)) return &h;
        return nullptr;
      };
      const auto from = sender(*written);
      if (const Held* before = out_of_order(*written)) {
        held = *before;
        node = *written;
      } else if (const Held* sent = from ? out_of_order(*from) : nullptr) {
        held = *sent;
        node = *from;
      } else {
        const auto& writes = plan_.of(*written).writes;
        const bool by_it = std::any_of(writes.begin(), writes.end(),
                                       [&](const Held& h) { return model_.misplaced(h.value); });
        const auto view = on(node.rank, plan_.giver(node, held.tensor));
        return by_it || !view ? written : view;
      }
    }
  }

  // Back along numbers that depend on nothing, to what was there before the step, else to the
  // operators that read nothing, the last first.
  std::vector<Fed> beginnings(NodeAt node, const Tensor& tensor) const {
    const Trace& trace = ranks_[node.rank].trace();
    std::vector<NodeAt> begun, seen;
    std::vector<Fed> found;
    std::vector<std::pair<NodeAt, Tensor>> todo = {{node, tensor}};
    while (!todo.empty()) {
      const auto [reader, read] = todo.back();
      todo.pop_back();
      const auto at = on(node.rank, plan_.writer(reader, read));
      if (!at) {
        const auto constant = trace.constants.find(read.storage);
        if (constant != trace.constants.end() && constant->second.stack)
          found.push_back({node.rank, *constant->second.stack, Fed::Kind::constant, {}});
        continue;
      }
      if (std::find(seen.begin(), seen.end(), *at) != seen.end()) continue;
      seen.push_back(*at);
      for (const Held& held : plan_.of(*at).reads) todo.emplace_back(*at, held.tensor);
      if (plan_.of(*at).reads.empty()) begun.push_back(*at);
    }
    std::sort(begun.begin(), begun.end(), std::greater<>());
    for (NodeAt at : begun) found.push_back({at.rank, 0, Fed::Kind::node, at});
    return found;
  }

  const Terms& terms_;
  const std::vector<Rank>& ranks_;
  const Familiar& model_;
  const History& plan_;
};

// The nodes that a rank's output comes from, of all ranks, in the order in which they ran. It goes
// round until no storage and no meeting is new, by whole storages: a node that wrote another part
// of one counts too.
std::vector<NodeAt> slice_of(const std::vector<Rank>& ranks, const History& plan, uint32_t rank,
                             const Tensor& output) {
  std::vector<std::set<uint32_t>> wanted(ranks.size());
  std::set<NodeAt> found;
  wanted[rank].insert(output.storage);
  for (bool more = true; more;) {
    more = false;
    for (uint32_t r = 0; r < ranks.size(); ++r) {
      const auto& nodes = ranks[r].trace().nodes;
      for (size_t i = nodes.size(); i-- > 0;) {
        const NodeAt at{r, static_cast<uint32_t>(i)};
        const Moment& moment = plan.of(at);
        const bool writes =
            std::any_of(moment.writes.begin(), moment.writes.end(),
                        [&](const Held& h) { return wanted[r].contains(h.tensor.storage); });
        if ((!writes && !found.contains(at)) || nodes[i].view) continue;
        more |= found.insert(at).second;
        for (const Held& h : moment.reads) more |= wanted[r].insert(h.tensor.storage).second;
        for (NodeAt other : moment.met) more |= found.insert(other).second;
      }
    }
  }
  std::vector<NodeAt> ordered(found.begin(), found.end());
  std::sort(ordered.begin(), ordered.end(),
            [&](NodeAt a, NodeAt b) { return plan.of(a).order < plan.of(b).order; });
  return ordered;
}

// Who brought a factor in, and who last made a whole sum of parts with it.
struct FactorWay {
  std::optional<NodeAt> first, completed;
};

// A node completes a whole sum where it writes one with the factor, and reads none with it. Parts
// with the factor do not count: a rank's share of a mean is scaled before the reduction, and
// rightly so.
FactorWay way_of(const std::vector<Rank>& ranks, const Familiar& model, const History& plan,
                 uint32_t rank, const Tensor& output, const Rational& factor) {
  FactorWay way;
  for (NodeAt at : slice_of(ranks, plan, rank, output)) {
    const Moment& moment = plan.of(at);
    const auto any = [&](const std::vector<Held>& of, auto holds) {
      return std::any_of(of.begin(), of.end(), [&](const Held& h) {
        return std::any_of(h.value.at.begin(), h.value.at.end(),
                           [&](Element e) { return e != Rank::kUnwritten && holds(e); });
      });
    };
    const auto whole = [&](Element e) { return model.whole_with(e, factor); };
    // The square of a whole sum is whole, with the factor's square.
    const auto begun = [&](Element e) { return whole(e) || model.whole_with(e, factor * factor); };
    if (!way.first &&
        any(moment.writes, [&](Element e) { return whole(e) || model.carries(e, factor); }))
      way.first = at;
    // The output's own rank is told where several did the same.
    if ((at.rank == rank || !way.completed || way.completed->rank != rank) &&
        any(moment.writes, whole) && !any(moment.reads, begun))
      way.completed = at;
  }
  return way;
}

// The least strange number is the oldest monomial, so what came behind it followed. Maker 0 is
// nobody's: inputs have it.
Blame maker_of(Terms& terms, const WrongOutput& output, const std::vector<Rank>& ranks,
               Monomial right) {
  Blame result;
  const Rank& rank = *output.rank;
  const Product want = terms.product(output.want), got = terms.product(output.got);
  const bool by_factor = want.monomial == got.monomial;
  std::optional<Monomial> strange;
  if (!by_factor)
    for (Monomial m : monomials_in(terms, output.got))
      if (m >= right && terms.maker(m) != 0 && (!strange || m < *strange)) strange = m;
  if (strange) {
    const uint64_t maker = terms.maker(*strange);
    // Who used it first.
    const NodeAt user{static_cast<uint32_t>(maker >> 32) - 1, static_cast<uint32_t>(maker)};
    result.made = result.passed = user;
    // A strange sum that was written somewhere: there it was made.
    for (const Factor& f : terms.factors(*strange)) {
      if (terms.atom(f.atom).kind != AtomKind::sum) continue;
      for (const Rank& other : ranks)
        if (const Rank::Made* made = other.made(terms.atom(f.atom).of)) {
          result.made = NodeAt{other.number(), made->first};
          result.passed = NodeAt{other.number(), made->last};
          result.used = user;
          return result;
        }
    }
    return result;
  }
  const uint32_t* first = rank.first(output.got);
  const uint32_t last = last_writer(rank.trace(), rank.trace().outputs.at(output.output));
  result.made = NodeAt{rank.number(), first != nullptr ? *first : last};
  result.passed = NodeAt{rank.number(), last};
  return result;
}

}  // namespace

size_t earliest(const std::vector<WrongOutput>& outputs) {
  const auto order = [](const WrongOutput& w) {
    if (w.output == "loss") return int64_t{-1};
    if (!w.output.starts_with("grad:")) return int64_t{1} << 40;
    return static_cast<int64_t>(last_writer(w.rank->trace(), w.rank->trace().outputs.at(w.output)));
  };
  size_t best = 0;
  for (size_t i = 1; i < outputs.size(); ++i)
    if (order(outputs[i]) < order(outputs[best])) best = i;
  return best;
}

Blame blame(Terms& terms, const WrongOutput& output, const std::vector<Rank>& ranks, Monomial right,
            const Familiar& model, const History& plan) {
  Blame result = maker_of(terms, output, ranks, right);
  const Product want = terms.product(output.want), got = terms.product(output.got);
  std::optional<NodeAt> first;
  if (want.monomial == got.monomial && !want.factor.zero() && !got.factor.zero()) {
    // The right sum with a wrong factor.
    const Rank& rank = *output.rank;
    const FactorWay way = way_of(ranks, model, plan, rank.number(),
                                 rank.trace().outputs.at(output.output), got.factor / want.factor);
    if (way.completed || way.first) result.made = way.completed ? way.completed : way.first;
    first = way.first;
  }
  if (!result.made) return result;
  Lines lines(ranks, *result.made);
  if (first) lines.add(*first);
  const Origins origins(terms, ranks, model, plan);
  if (result.used) origins.handed_on(*result.used, lines);
  origins.of(*result.made, lines);
  result.fed = std::move(lines.found);
  return result;
}

}  // namespace opguard::proving
