#include "prove/blame.h"

#include <algorithm>
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

// Names of sums within an element, however deep.
std::vector<Atom> sums_in(const Terms& terms, Element root) {
  std::vector<Element> todo = {root};
  std::unordered_set<Element> seen;
  std::vector<Atom> found;
  while (!todo.empty()) {
    const Element e = todo.back();
    todo.pop_back();
    if (!seen.insert(e).second) continue;
    for (const Part& p : terms.parts(e))
      for (const Factor& f : terms.factors(p.monomial)) {
        const AtomValue& v = terms.atom(f.atom);
        if (v.kind == AtomKind::sum) found.push_back(f.atom);
        if (v.kind == AtomKind::sum || v.kind == AtomKind::exp || v.kind == AtomKind::log ||
            v.kind == AtomKind::root)
          todo.push_back(v.of);
        todo.insert(todo.end(), v.arguments.begin(), v.arguments.end());
      }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace

size_t earliest(Terms& terms, const std::vector<WrongOutput>& outputs) {
  static_cast<void>(terms);
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

Blame blame(Terms& terms, const WrongOutput& output, const std::vector<Rank>& ranks, Atom right) {
  Blame result;
  const Rank& rank = *output.rank;
  const auto& nodes = rank.trace().nodes;
  const Product want = terms.product(output.want), got = terms.product(output.got);
  // The right sum with a wrong factor: whoever wrote it first with that factor.
  const bool by_factor = want.monomial == got.monomial;
  if (!by_factor)
    for (Atom a : sums_in(terms, output.got)) {
      if (a < right) continue;
      for (const Rank& other : ranks)
        if (const Rank::Made* made = other.made(terms.atom(a).of)) {
          result.made_on = result.passed_on = &other;
          result.made_by = &other.trace().nodes[made->first];
          result.passed_by = &other.trace().nodes[made->last];
          return result;
        }
    }
  const uint32_t* first = rank.first(output.got);
  const uint32_t last = last_writer(rank.trace(), rank.trace().outputs.at(output.output));
  result.made_on = result.passed_on = &rank;
  result.made_by = &nodes[first != nullptr ? *first : last];
  result.passed_by = &nodes[last];
  return result;
}

}  // namespace opguard::proving
