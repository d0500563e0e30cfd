// Whether two elements with other ids are equal, by steps that keep terms short. A named sum is
// written out where it stands alone, or beside conditions on tokens.
//
//   [t = 1] S - [t = 1] (x + y)      S is x + y: nothing is left
//
// It finds what a vocabulary that is cut leaves. term_equality.cc finds what products leave.
#include <algorithm>

#include "prove/terms.h"

namespace opguard::proving {

bool Terms::same_by_sums(Element a, Element b) {
  int rounds = 400;
  try {
    return same_within(a, b, rounds);
  } catch (const Unprovable&) {  // a coefficient too long on the way
    return false;
  }
}

// t * S - t * S' is t * (S - S'): what stands beside one of its sums, the youngest or the oldest,
// collected.
bool Terms::vanishes_by_factors(const Sum& rest, bool youngest, int& rounds) {
  std::map<Monomial, Sum> beside;
  for (const auto& [m, c] : rest) {
    std::optional<Atom> chosen;
    for (const Factor& f : monomials_[m])
      if (atoms_[f.atom].kind == AtomKind::sum && f.exponent == 1 &&
          (!chosen || (f.atom > *chosen) == youngest))
        chosen = f.atom;
    if (!chosen) return false;
    const Factor alone{*chosen, 1}, divided{*chosen, -1};
    const Product factor = times(m, intern(FactorList(&divided, 1)));
    beside[factor.monomial].emplace(intern(FactorList(&alone, 1)), c * factor.factor);
  }
  if (beside.size() == rest.size()) return false;
  for (const auto& [factor, sum] : beside)
    if (!same_within(made(sum), zero_, rounds)) return false;
  return true;
}

// Denominators that are sums are multiplied away, and sums written out, the youngest first. What is
// left is a polynomial of atoms, which is zero or not. Denominators are not zero by assumption.
bool Terms::vanishes_by_sums(Sum rest, int& rounds) {
  constexpr size_t kParts = 4000;
  constexpr int32_t kPower = 4;
  while (!rest.empty()) {
    if (rest.size() > kParts || rounds-- <= 0) return false;
    std::optional<Atom> youngest;
    for (const auto& [m, c] : rest)
      for (const Factor& f : monomials_[m])
        if (atoms_[f.atom].kind == AtomKind::sum && (!youngest || f.atom > *youngest))
          youngest = f.atom;
    if (!youngest) return false;
    const auto exponent = [&](Monomial m) {
      for (const Factor& f : monomials_[m])
        if (f.atom == *youngest) return f.exponent;
      return 0;
    };
    int32_t least = 0;
    for (const auto& [m, c] : rest) least = std::min(least, exponent(m));
    Sum next;
    for (const auto& [m, c] : rest) {
      const int32_t here = exponent(m), power = here - least;
      if (power > kPower) return false;
      const Factor divided{*youngest, -here};
      const Product left = here == 0 ? Product{1, m} : times(m, intern(FactorList(&divided, 1)));
      Sum part{{left.monomial, c * left.factor}};
      for (int32_t i = 0; i < power; ++i) {
        Sum more;
        for (const auto& [n, d] : part)
          for (const Part& p : elements_[atoms_[*youngest].of]) {
            const Product q = times(n, p.monomial);
            const auto [at, fresh] = more.try_emplace(q.monomial, Rational(0));
            at->second = at->second + d * p.factor * q.factor;
          }
        part = std::move(more);
        if (part.size() > kParts) return false;
      }
      for (const auto& [n, d] : part) {
        const auto [at, fresh] = next.try_emplace(n, Rational(0));
        at->second = at->second + d;
      }
    }
    std::erase_if(next, [](const auto& entry) { return entry.second.zero(); });
    rest = std::move(next);
  }
  return true;
}

bool Terms::same_within(Element a, Element b, int& rounds) {
  if (a == b || product(a) == product(b)) return true;
  constexpr size_t kParts = 4000;
  Sum rest;
  for (const Part& p : elements_[subtract(a, b)]) rest.emplace(p.monomial, p.factor);
  while (rounds-- > 0) {
    if (rest.empty()) return true;
    if (rest.size() > kParts) return false;
    // The youngest named sum that stands alone, or beside indicators, is written out.
    std::optional<Atom> youngest;
    const auto alone = [&](Monomial m) -> std::optional<Atom> {
      std::optional<Atom> found;
      for (const Factor& f : monomials_[m]) {
        if (atoms_[f.atom].kind == AtomKind::indicator) continue;
        if (found || atoms_[f.atom].kind != AtomKind::sum || f.exponent != 1) return {};
        found = f.atom;
      }
      return found;
    };
    for (const auto& [m, c] : rest)
      if (const auto found = alone(m); found && (!youngest || *found > *youngest)) youngest = found;
    if (!youngest)
      return vanishes_by_factors(rest, true, rounds) || vanishes_by_factors(rest, false, rounds) ||
             vanishes_by_sums(rest, rounds);
    const Factor divided{*youngest, -1};
    const Monomial by = intern(FactorList(&divided, 1));
    Sum next;
    const auto add_to = [&](Monomial m, const Rational& c) {
      auto [at, fresh] = next.try_emplace(m, c);
      if (!fresh) at->second = at->second + c;
      if (at->second.zero()) next.erase(at);
    };
    for (const auto& [m, c] : rest) {
      if (alone(m) != youngest) {
        add_to(m, c);
        continue;
      }
      const Product beside = times(m, by);
      const PartList inside = elements_[atoms_[*youngest].of];
      for (const Part& p : inside) {
        const Product q = times(beside.monomial, p.monomial);
        if (!q.factor.zero()) add_to(q.monomial, c * beside.factor * p.factor * q.factor);
      }
    }
    rest = std::move(next);
  }
  return false;
}

}  // namespace opguard::proving
