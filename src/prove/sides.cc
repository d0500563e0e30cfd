#include "prove/sides.h"

namespace opguard::proving {
namespace {

// Unknowns of a name, in logical order.
std::vector<Element> unknowns(Terms& terms, const std::string& name, const Input& input) {
  std::vector<Element> all;
  for (uint32_t i = 0; i < static_cast<uint32_t>(size_of(input.shape)); ++i)
    all.push_back(input.token ? terms.token(name, i, input.size) : terms.variable(name, i));
  return all;
}

}  // namespace

Rank model_of(Terms& terms, const Captured& captured, KnownSums& known, OpaqueCalls* opaque) {
  Rank model(terms, captured.logical, known, true, opaque);
  for (const auto& [name, tensor] : captured.logical.inputs)
    model.set(tensor, unknowns(terms, name, captured.inputs.at(name)));
  return model;
}

// Ranks take their unknowns out of one list by place: replicas hold the same ones.
std::vector<Rank> ranks_of(Terms& terms, const Captured& captured, KnownSums& known,
                           OpaqueCalls* opaque, Namesakes* namesakes) {
  std::map<std::string, std::vector<Element>> all;
  for (const auto& [name, input] : captured.inputs) all[name] = unknowns(terms, name, input);
  std::vector<Rank> ranks;
  ranks.reserve(captured.ranks.size());
  for (const Trace& trace : captured.ranks) {
    Rank& rank = ranks.emplace_back(terms, trace, known, false, opaque, namesakes);
    for (const auto& [name, tensor] : trace.inputs) {
      std::vector<Element> mine;
      for (int64_t i : trace.place.at(name))
        mine.push_back(all.at(name).at(static_cast<size_t>(i)));
      rank.set(tensor, mine);
    }
  }
  return ranks;
}

}  // namespace opguard::proving
