#include "prove/blame.h"

#include <optional>
#include <unordered_set>

namespace opguard::proving {
namespace {

// The node that last wrote a tensor's storage.
uint32_t last_writer(const Trace& trace, const Tensor& tensor) {
  for (size_t i = trace.nodes.size(); i-- > 0;)
    for (const Tensor& t : trace.nodes[i].writes)
      if (t.storage == tensor.storage) return static_cast<uint32_t>(i);
  return 0;
}

// Monomials within an element, however deep.
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

// The last writer before a node of what it reads, on another line of the user's.
const Node* feeder_of(const Rank& rank, const Node& node) {
  const Trace& trace = rank.trace();
  const auto line_of = [&](const Node& n) {
    const auto& stack = trace.stacks[n.stack];
    return stack.empty() ? std::pair<std::string, int64_t>()
                         : std::pair(stack[0].file, stack[0].line);
  };
  std::unordered_set<uint32_t> wanted;
  for (const auto& argument : node.arguments) {
    if (is_tensor(argument)) wanted.insert(tensor_of(argument).storage);
    if (argument.is_array())
      for (const auto& entry : argument)
        if (is_tensor(entry)) wanted.insert(tensor_of(entry).storage);
  }
  const auto begin = static_cast<size_t>(&node - trace.nodes.data());
  for (size_t i = begin; i-- > 0;) {
    const Node& before = trace.nodes[i];
    for (const Tensor& t : before.writes)
      if (wanted.contains(t.storage) && !before.view && line_of(before) != line_of(node))
        return &before;
  }
  return nullptr;
}

Blame maker_of(Terms& terms, const WrongOutput& output, const std::vector<Rank>& ranks,
               Monomial right) {
  Blame result;
  const Rank& rank = *output.rank;
  const auto& nodes = rank.trace().nodes;
  const Product want = terms.product(output.want), got = terms.product(output.got);
  // The right sum with a wrong factor: whoever wrote it first with that factor.
  const bool by_factor = want.monomial == got.monomial;
  std::optional<Monomial> strange;
  if (!by_factor)
    for (Monomial m : monomials_in(terms, output.got))
      if (m >= right && terms.maker(m) != 0 && (!strange || m < *strange)) strange = m;
  if (strange) {
    const uint64_t maker = terms.maker(*strange);
    const Rank& user = ranks.at((maker >> 32) - 1);
    result.made_on = result.passed_on = &user;
    result.made_by = result.passed_by = &user.trace().nodes.at(maker & 0xffffffffu);
    // A strange sum that was written somewhere: there it was made.
    for (const Factor& f : terms.factors(*strange)) {
      if (terms.atom(f.atom).kind != AtomKind::sum) continue;
      for (const Rank& other : ranks)
        if (const Rank::Made* made = other.made(terms.atom(f.atom).of)) {
          result.made_on = result.passed_on = &other;
          result.made_by = &other.trace().nodes[made->first];
          result.passed_by = &other.trace().nodes[made->last];
          return result;
        }
    }
    return result;
  }
  const uint32_t* first = rank.first(output.got);
  const uint32_t last = last_writer(rank.trace(), rank.trace().outputs.at(output.output));
  result.made_on = result.passed_on = &rank;
  result.made_by = &nodes[first != nullptr ? *first : last];
  result.passed_by = &nodes[last];
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

Blame blame(Terms& terms, const WrongOutput& output, const std::vector<Rank>& ranks,
            Monomial right) {
  Blame result = maker_of(terms, output, ranks, right);
  if (result.made_by != nullptr) result.fed_by = feeder_of(*result.made_on, *result.made_by);
  return result;
}

}  // namespace opguard::proving
