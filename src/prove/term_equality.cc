// Whether two elements with other ids are equal all the same. Names of sums are written out, where
// it has to be, until nothing is left.
//
//   sum_j p_j dp_j - sum_d g_d o_d      dp_j = sum_d g_d v_jd, o_d = sum_j p_j v_jd
//
// Here dp_j is written out. Then all that stands beside one g_d is zero, so that g_d is a letter,
// whatever it stands for; o_d is written out for that. Numbers say which of the two it is: they
// guide, and prove nothing.
#include <algorithm>
#include <cmath>

#include "prove/evaluate.h"
#include "prove/terms.h"

namespace opguard::proving {
namespace {

constexpr size_t kMostParts = 4000;
constexpr int32_t kMostPower = 4;
constexpr long double kNothing = 1e-9L;  // of the largest part

}  // namespace

// What one question may cost, and the points that guide it: one of positive variables, where few
// terms have no number, and two others.
struct Terms::Effort {
  explicit Effort(const Terms& terms)
      : points{{terms, 201, true, true}, {terms, 202, false, true}, {terms, 203}} {}
  bool spent(size_t parts = 1) { return (left -= static_cast<int64_t>(parts)) <= 0; }

  int64_t left = 100'000;  // of parts: those that are looked at, and those that are made
  std::vector<Point> points;
};

// What was spent counts even where nothing came of it: namesakes.h stops asking when all questions
// together have cost too much.
bool Terms::same_by_products(Element a, Element b) {
  if (a == b || product(a) == product(b)) return true;
  try {
    Effort effort(*this);
    const Element difference = subtract(a, b);
    Sum rest;
    for (const Part& p : elements_[difference]) rest.emplace(p.monomial, p.factor);
    const int64_t before = effort.left;
    bool equal = false;
    try {
      equal = vanishes(std::move(rest), effort);
    } catch (const Unprovable&) {  // a coefficient too long on the way
    }
    effort_spent_ += static_cast<uint64_t>(before - effort.left);
    return equal;
  } catch (const Unprovable&) {
    return false;
  }
}

// Whether the sum may be zero, as numbers have it. A point at which some factor has no number is
// passed over, so "yes" may rest on few points. A wrong yes costs effort, never a proof.
bool Terms::seems_nothing(const Sum& sum, Effort& effort) const {
  for (Point& point : effort.points) {
    long double total = 0, largest = 0;
    bool outside = false;
    for (const auto& [m, c] : sum) {
      long double product = static_cast<long double>(c.numerator()) / c.denominator();
      for (const Factor& f : monomials_[m]) {
        const Number base = point.of_atom(f.atom);
        outside |= base.outside || (base.wide == 0 && f.exponent < 0);
        product *= std::pow(base.wide, f.exponent);
      }
      total += product;
      largest = std::max(largest, std::fabs(product));
    }
    if (!outside && !(std::fabs(total) <= kNothing * largest)) return false;
  }
  return true;
}

// The sum as a polynomial of its youngest named sum S. Youngest, since S may hold older ones, and
// these never S.
//   a S^2 + b S + c   where a, b, c each seem to be zero, S stays a letter: each is asked about
//                     where not, S is written out, and the next youngest is looked at
// A lone part counts as not zero.
bool Terms::vanishes(Sum rest, Effort& effort) {
  for (;;) {
    if (rest.empty()) return true;
    if (rest.size() == 1 || rest.size() > kMostParts || effort.spent(rest.size())) return false;
    std::optional<Atom> youngest;
    for (const auto& [m, c] : rest)
      for (const Factor& f : monomials_[m])
        if (atoms_[f.atom].kind == AtomKind::sum && (!youngest || f.atom > *youngest))
          youngest = f.atom;
    if (!youngest) return false;
    // As a polynomial of that sum: what stands beside each power of it.
    std::map<int32_t, Sum> beside;
    for (const auto& [m, c] : rest) {
      const FactorList of = monomials_[m];
      Factors others(of.begin(), of.end());
      int32_t exponent = 0;
      std::erase_if(others, [&](const Factor& f) {
        if (f.atom == *youngest) exponent = f.exponent;
        return f.atom == *youngest;
      });
      beside[exponent].emplace(exponent == 0 ? m : intern(others), c);
    }
    const bool letter = std::all_of(beside.begin(), beside.end(), [&](const auto& entry) {
      return entry.second.size() > 1 && seems_nothing(entry.second, effort);
    });
    if (letter && std::all_of(beside.begin(), beside.end(),
                              [&](const auto& entry) { return vanishes(entry.second, effort); }))
      return true;
    if (beside.size() == 1) {  // a factor of all of them, which is not zero by itself
      rest = std::move(beside.begin()->second);
      if (letter) return false;
      continue;
    }
    auto next = written_out(beside, elements_[atoms_[*youngest].of], effort);
    if (!next) return false;
    rest = std::move(*next);
  }
}

// A polynomial of a sum, with its parts in the sum's place. A denominator is multiplied away: it is
// not zero by assumption. None where a power is above kMostPower, or where there are too many
// parts: each power multiplies them by the sum's.
std::optional<Sum> Terms::written_out(const std::map<int32_t, Sum>& beside, PartList of,
                                      Effort& effort) {
  Sum result;
  const int32_t least = std::min(beside.begin()->first, 0);
  for (const auto& [exponent, sum] : beside) {
    if (exponent - least > kMostPower) return {};
    Sum power = sum;
    for (int32_t i = 0; i < exponent - least; ++i) {
      Sum more;
      for (const auto& [m, c] : power)
        for (const Part& p : of) {
          if (effort.spent()) return {};
          const Product q = times(m, p.monomial);
          const auto [at, fresh] = more.try_emplace(q.monomial, Rational(0));
          at->second = at->second + c * p.factor * q.factor;
        }
      std::erase_if(more, [](const auto& entry) { return entry.second.zero(); });
      if (more.size() > kMostParts) return {};
      power = std::move(more);
    }
    for (const auto& [m, c] : power) {
      const auto [at, fresh] = result.try_emplace(m, Rational(0));
      at->second = at->second + c;
    }
  }
  std::erase_if(result, [](const auto& entry) { return entry.second.zero(); });
  return result;
}

}  // namespace opguard::proving
