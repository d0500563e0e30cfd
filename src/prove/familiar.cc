#include "prove/familiar.h"

#include <algorithm>

namespace opguard::proving {
namespace {

bool has(const llvm::SmallVector<Rational, 2>& list, const Rational& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

template <typename Map, typename Key>
void note(Map& map, Key key, const Rational& factor) {
  auto& list = map[key];
  if (!has(list, factor)) list.push_back(factor);
}

}  // namespace

Familiar::Familiar(Terms& terms, const History& model) : terms_(terms) {
  for (const auto& moments : model.ranks())
    for (const Moment& moment : moments) {
      for (const Held& held : moment.reads) add(held.value);
      for (const Held& held : moment.writes) add(held.value);
    }
}

// The same elements in the same order are one tensor, whatever their shape. Of an element that is
// in a tensor twice the first place counts.
void Familiar::add(const Array& array) {
  if (!tensors_.insert(array.at).second) return;
  const auto tensor = static_cast<uint32_t>(tensors_.size());
  for (size_t i = 0; i < array.at.size(); ++i) {
    const Element e = array.at[i];
    if (e == Rank::kUnwritten) continue;
    auto& places = places_[e];
    const bool fresh = places.empty();
    if (fresh || places.back().tensor != tensor)
      places.push_back({tensor, static_cast<uint32_t>(i)});
    if (!fresh || terms_.parts(e).empty()) continue;
    const auto [factor, sum] = terms_.primitive(e);
    note(of_sums_, sum, factor);
    for (const Part& part : terms_.parts(e)) note(of_monomials_, part.monomial, part.factor);
  }
}

// Whether a stands before b in some tensor. Both lists of places are by tensor, so one walk over
// the two is enough.
bool Familiar::in_order(Element a, Element b) const {
  const auto of_a = places_.find(a), of_b = places_.find(b);
  auto i = of_a->second.begin();
  for (const Place& there : of_b->second) {
    while (i != of_a->second.end() && i->tensor < there.tensor) ++i;
    if (i == of_a->second.end()) return false;
    if (i->tensor == there.tensor && i->at < there.at) return true;
  }
  return false;
}

bool Familiar::misplaced(const Array& array) const {
  // A number has no place of its own.
  const auto counts = [&](Element e) {
    return e != Rank::kUnwritten && !terms_.constant(e) && holds(e);
  };
  size_t stride = 1;
  for (size_t d = array.shape.size(); d-- > 0;) {
    const auto extent = static_cast<size_t>(array.shape[d]);
    for (size_t i = 0; i + stride < array.at.size(); ++i) {
      if (i / stride % extent + 1 == extent) continue;
      const Element a = array.at[i], b = array.at[i + stride];
      if (a != b && counts(a) && counts(b) && !in_order(a, b)) return true;
    }
    stride *= extent;
  }
  return false;
}

// By its sum alone: the model has the sum with the factor that is left when `factor` is divided
// out. What the model has as it is was never scaled wrongly.
bool Familiar::whole_with(Element e, const Rational& factor) const {
  if (terms_.parts(e).empty() || terms_.constant(e) || holds(e)) return false;
  const auto [own, sum] = terms_.primitive(e);
  const auto known = of_sums_.find(sum);
  return known != of_sums_.end() && has(known->second, own / factor);
}

// Part by part, since a rank's share of a sum is no sum of the model's.
bool Familiar::carries(Element e, const Rational& factor) const {
  if (terms_.parts(e).empty() || terms_.constant(e) || holds(e)) return false;
  bool other = false;
  for (const Part& part : terms_.parts(e)) {
    const auto known = of_monomials_.find(part.monomial);
    if (known == of_monomials_.end() || !has(known->second, part.factor / factor)) return false;
    other |= !has(known->second, part.factor);
  }
  return other;
}

}  // namespace opguard::proving
