#include "prove/terms.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace opguard::proving {
namespace {

constexpr uint64_t kMixing = 0x9e3779b97f4a7c15u;

uint64_t mixed(uint64_t h, uint64_t x) {
  h = (h ^ x) * kMixing;
  return h ^ (h >> 32);
}
uint64_t hashed(const Part& p) {
  return mixed(mixed(p.monomial, static_cast<uint64_t>(p.factor.numerator())),
               static_cast<uint64_t>(p.factor.denominator()));
}
uint64_t hashed(const Factor& f) { return mixed(f.atom, static_cast<uint32_t>(f.exponent)); }

}  // namespace

template <typename T>
size_t Terms::ListHash<T>::operator()(const T& list) const {
  uint64_t h = list.size();
  for (const auto& entry : list) h = mixed(h, hashed(entry));
  return h;
}

size_t Terms::AtomHash::operator()(const AtomValue& a) const {
  uint64_t h = mixed(static_cast<uint64_t>(a.kind), uint64_t{a.first} << 32 | a.second);
  h = mixed(mixed(h, a.of), std::hash<double>()(a.number));
  for (Element e : a.arguments) h = mixed(h, e);
  return h;
}

Terms::Terms() {
  intern(Factors{});
  zero_ = intern(Parts{});
  one_ = rational(1);
  minus_infinity_ = of_atom(intern(AtomValue{AtomKind::infinity}));
}

// ---- Once each

Atom Terms::intern(AtomValue value) {
  auto [at, fresh] = atom_of_.try_emplace(value, static_cast<Atom>(atoms_.size()));
  if (fresh) atoms_.push_back(std::move(value));
  return at->second;
}

Monomial Terms::intern(Factors factors) {
  auto [at, fresh] = monomial_of_.try_emplace(factors, static_cast<Monomial>(monomials_.size()));
  if (fresh) {
    monomials_.push_back(std::move(factors));
    makers_.push_back(maker_);
  }
  return at->second;
}

Element Terms::intern(Parts parts) {
  auto [at, fresh] = element_of_.try_emplace(parts, static_cast<Element>(elements_.size()));
  if (fresh) elements_.push_back(std::move(parts));
  return at->second;
}

Element Terms::made(const Sum& sum) {
  Parts parts;
  parts.reserve(sum.size());
  for (const auto& [m, c] : sum)
    if (!c.zero()) parts.push_back({m, c});
  return intern(std::move(parts));
}

Element Terms::of_atom(Atom a, int32_t exponent, const Rational& factor) {
  return intern(Parts{{intern(Factors{{a, exponent}}), factor}});
}

std::optional<Rational> Terms::constant(Element e) const {
  const Parts& parts = elements_[e];
  if (parts.empty()) return Rational(0);
  if (parts.size() == 1 && parts[0].monomial == 0) return parts[0].factor;
  return {};
}

std::string Terms::token_text(uint32_t token) const {
  return tokens_[token].name + "[" + std::to_string(tokens_[token].position) + "]";
}

Element Terms::rational(const Rational& value) {
  return value.zero() ? intern(Parts{}) : intern(Parts{{0, value}});
}

// The square root of a positive rational: whole squares outside, so that 1 / sqrt(8) and
// sqrt(2) / 4 are one element.
Element Terms::root(const Rational& of) {
  int64_t inside = (Rational(of.numerator()) * Rational(of.denominator())).numerator();
  int64_t outside = 1;
  for (int64_t p = 2; p * p <= inside && p < 100000; ++p)
    while (inside % (p * p) == 0) {
      inside /= p * p;
      outside *= p;
    }
  const Rational factor(outside, of.denominator());
  if (inside == 1) return rational(factor);
  return of_atom(intern(AtomValue{AtomKind::root, 2, 0, rational(inside)}), 1, factor);
}

Element Terms::number(double value) {
  if (value == -std::numeric_limits<double>::infinity()) return minus_infinity_;
  if (!std::isfinite(value)) throw Unprovable("a constant is " + std::to_string(value));
  if (const auto exact = rational_of(value)) return rational(*exact);
  const Rational sign(value < 0 ? -1 : 1);
  // A square root, as a float32 where it is one.
  const double positive = std::fabs(value);
  for (int64_t q = 1; q <= 64; ++q) {
    const double p = positive * positive * static_cast<double>(q);
    const double nearest = std::round(p);
    if (nearest < 1 || nearest > 1e9 || std::fabs(p - nearest) > 1e-6 * nearest) continue;
    const double exact = std::sqrt(nearest / static_cast<double>(q));
    const bool single = static_cast<double>(static_cast<float>(positive)) == positive;
    if (single ? static_cast<float>(exact) == static_cast<float>(positive)
               : std::fabs(exact - positive) <= 4e-16 * positive)
      return scaled(root(Rational(static_cast<int64_t>(nearest), q)), sign);
  }
  // One constant as float32 and as float64: the wider one is rounded.
  AtomValue atom{AtomKind::number};
  atom.number = static_cast<double>(static_cast<float>(positive));
  if (atom.number == 0 || !std::isfinite(atom.number)) atom.number = positive;
  const Atom a = intern(std::move(atom));
  numbers_.try_emplace(a, positive);
  return of_atom(a, 1, sign);
}

Element Terms::variable(const std::string& name, uint32_t position) {
  auto [at, fresh] = name_of_.try_emplace(name, static_cast<uint32_t>(names_.size()));
  if (fresh) names_.push_back(name);
  return of_atom(intern(AtomValue{AtomKind::variable, at->second, position}));
}

// ---- Sums and products

Element Terms::combine(Element a, Element b, const Rational& of_b) {
  if (b == minus_infinity_ && of_b.numerator() < 0) throw Unprovable("infinity");
  if (a == minus_infinity_ || b == minus_infinity_) return minus_infinity_;
  const Parts &x = elements_[a], &y = elements_[b];
  Parts parts;
  parts.reserve(x.size() + y.size());
  size_t i = 0, j = 0;
  while (i < x.size() || j < y.size()) {
    if (j == y.size() || (i < x.size() && x[i].monomial < y[j].monomial)) {
      parts.push_back(x[i++]);
    } else if (i == x.size() || y[j].monomial < x[i].monomial) {
      parts.push_back({y[j].monomial, y[j].factor * of_b});
      ++j;
    } else {
      const Rational c = x[i].factor + y[j].factor * of_b;
      if (!c.zero()) parts.push_back({x[i].monomial, c});
      ++i, ++j;
    }
  }
  return intern(std::move(parts));
}

Element Terms::scaled(Element a, const Rational& by) {
  if (by == Rational(1)) return a;
  if (by.zero()) return zero_;
  if (a == minus_infinity_) {
    if (by.numerator() > 0) return a;
    throw Unprovable("infinity");
  }
  Parts parts = elements_[a];
  for (Part& p : parts) p.factor = p.factor * by;
  return intern(std::move(parts));
}

Element Terms::sum(std::span<const Element> of) {
  if (of.size() == 1) return of[0];
  if (of.size() == 2) return add(of[0], of[1]);
  std::vector<Part> all;
  for (Element e : of) {
    if (e == minus_infinity_) return e;
    all.insert(all.end(), elements_[e].begin(), elements_[e].end());
  }
  std::sort(all.begin(), all.end(),
            [](const Part& a, const Part& b) { return a.monomial < b.monomial; });
  Parts parts;
  for (size_t i = 0; i < all.size();) {
    Rational c = all[i].factor;
    size_t j = i + 1;
    for (; j < all.size() && all[j].monomial == all[i].monomial; ++j) c = c + all[j].factor;
    if (!c.zero()) parts.push_back({all[i].monomial, c});
    i = j;
  }
  return intern(std::move(parts));
}

Product Terms::times(Monomial a, Monomial b) {
  if (a == 0) return {1, b};
  if (b == 0) return {1, a};
  if (a > b) std::swap(a, b);
  if (auto known = times_.find({a, b}); known != times_.end()) return known->second;
  const Factors &x = monomials_[a], &y = monomials_[b];
  Factors factors;
  size_t i = 0, j = 0;
  while (i < x.size() || j < y.size()) {
    Factor f;
    if (j == y.size() || (i < x.size() && x[i].atom < y[j].atom)) {
      f = x[i++];
    } else if (i == x.size() || y[j].atom < x[i].atom) {
      f = y[j++];
    } else {
      f = {x[i].atom, exponent_of(int64_t{x[i].exponent} + y[j].exponent)};
      ++i, ++j;
    }
    factors.push_back(f);
  }
  const Product result = normal(std::move(factors));
  times_.emplace(Pair{a, b}, result);
  return result;
}

// Indicators and steps are their own powers. Two values of one token exclude each other. A root of
// a whole number, squared, is that number.
Product Terms::normal(Factors factors) {
  Rational outside(1);
  for (Factor& f : factors) {
    const AtomValue& v = atoms_[f.atom];
    if (v.kind == AtomKind::indicator && f.exponent != 0) f.exponent = 1;
    if (is_step(v) && f.exponent > 1) f.exponent = 1;
    if (v.kind != AtomKind::root) continue;
    const auto inside = constant(v.of);
    if (!inside) continue;
    const auto degree = static_cast<int32_t>(v.first);
    int32_t rest = f.exponent % degree;
    if (rest < 0) rest += degree;
    outside = outside * proving::power(*inside, (f.exponent - rest) / degree);
    f.exponent = rest;
  }
  std::erase_if(factors, [](const Factor& f) { return f.exponent == 0; });
  for (size_t k = 0; k < factors.size(); ++k) {
    const AtomValue& v = atoms_[factors[k].atom];
    if (v.kind != AtomKind::indicator) continue;
    for (size_t l = k + 1; l < factors.size(); ++l) {
      const AtomValue& w = atoms_[factors[l].atom];
      if (w.kind == AtomKind::indicator && w.first == v.first) return {0, 0};
    }
  }
  return {outside, intern(std::move(factors))};
}

Product Terms::raised(Monomial m, int32_t by) {
  Factors factors = monomials_[m];
  for (Factor& f : factors) f.exponent = exponent_of(int64_t{f.exponent} * by);
  return normal(std::move(factors));
}

// A lone name of a sum, written out.
Sum Terms::without_lone_sums(const Sum& sum) const {
  Sum result;
  const auto add_to = [&](Monomial m, const Rational& c) {
    auto [at, fresh] = result.try_emplace(m, c);
    if (!fresh) at->second = at->second + c;
    if (at->second.zero()) result.erase(at);
  };
  for (const auto& [m, c] : sum)
    if (lone(m, AtomKind::sum)) {
      for (const Part& p : elements_[atoms_[monomials_[m][0].atom].of])
        add_to(p.monomial, p.factor * c);
    } else {
      add_to(m, c);
    }
  return result;
}

std::pair<Rational, Element> Terms::primitive(Element e) {
  const Parts& parts = elements_[e];
  if (parts.empty()) return {Rational(1), e};
  const Rational lead = parts[parts[0].monomial == 0 && parts.size() > 1 ? 1 : 0].factor;
  if (lead == Rational(1)) return {lead, e};
  return {lead, scaled(e, Rational(1) / lead)};
}

Element Terms::named(Element e) {
  const auto [factor, rest] = primitive(e);
  AtomValue atom{AtomKind::sum};
  atom.of = rest;
  return of_atom(intern(std::move(atom)), 1, factor);
}

Product Terms::product(Element e) {
  if (auto known = product_of_.find(e); known != product_of_.end()) return known->second;
  Product result;
  const Parts parts = elements_[e];
  if (parts.size() == 1 && lone(parts[0].monomial, AtomKind::sum)) {
    // A name of a sum that has common factors of its own.
    result = product(atoms_[monomials_[parts[0].monomial][0].atom].of);
    result.factor = result.factor * parts[0].factor;
    product_of_.emplace(e, result);
    return result;
  }
  Sum rest;
  for (const Part& p : parts) rest.emplace(p.monomial, p.factor);
  Product outside{1, 0};
  for (int round = 0; round < 3 && rest.size() > 1; ++round) {
    // What all of them have: the smallest power of each atom, or the largest of a negative one.
    Factors common = monomials_[rest.begin()->first];
    std::erase_if(common,
                  [&](const Factor& f) { return atoms_[f.atom].kind == AtomKind::indicator; });
    for (const auto& [m, c] : rest) {
      Factors kept;
      for (const Factor& f : common) {
        const Factors& of = monomials_[m];
        auto at = std::lower_bound(of.begin(), of.end(), f, [](const Factor& a, const Factor& b) {
          return a.atom < b.atom;
        });
        if (at == of.end() || at->atom != f.atom) continue;
        if ((at->exponent > 0) != (f.exponent > 0)) continue;
        kept.push_back({f.atom, f.exponent > 0 ? std::min(f.exponent, at->exponent)
                                               : std::max(f.exponent, at->exponent)});
      }
      common = std::move(kept);
      if (common.empty()) break;
    }
    if (common.empty()) break;
    Factors inverse = common;
    for (Factor& f : inverse) f.exponent = -f.exponent;
    const Monomial by = intern(std::move(inverse));
    const Product more = times(outside.monomial, intern(std::move(common)));
    outside = {outside.factor * more.factor, more.monomial};
    Sum divided;
    for (const auto& [m, c] : rest) {
      const Product p = times(m, by);
      auto [at, fresh] = divided.try_emplace(p.monomial, c * p.factor);
      if (!fresh) at->second = at->second + c * p.factor;
    }
    rest = without_lone_sums(divided);
  }
  if (rest.empty()) {
    result = {0, 0};
  } else if (rest.size() == 1) {
    const Product p = times(outside.monomial, rest.begin()->first);
    result = {outside.factor * rest.begin()->second * p.factor, p.monomial};
  } else {
    const auto [factor, sum] = primitive(made(rest));
    AtomValue atom{AtomKind::sum};
    atom.of = sum;
    const Product p = times(outside.monomial, intern(Factors{{intern(std::move(atom)), 1}}));
    result = {outside.factor * factor * p.factor, p.monomial};
  }
  product_of_.emplace(e, result);
  return result;
}

bool Terms::has_indicator(Element e) const {
  for (const Part& p : elements_[e])
    for (const Factor& f : monomials_[p.monomial])
      if (atoms_[f.atom].kind == AtomKind::indicator) return true;
  return false;
}

// Term by term: for tables, whose indicators must meet.
Element Terms::expanded(Element a, Element b) {
  Sum sum;
  const Parts x = elements_[a], y = elements_[b];
  for (const Part& p : x)
    for (const Part& q : y) {
      const Product m = times(p.monomial, q.monomial);
      if (m.factor.zero()) continue;
      const Rational c = p.factor * q.factor * m.factor;
      auto [at, fresh] = sum.try_emplace(m.monomial, c);
      if (!fresh) at->second = at->second + c;
    }
  return made(sum);
}

Element Terms::multiply(Element a, Element b) {
  if (a > b) std::swap(a, b);
  if (a == minus_infinity_ || b == minus_infinity_) {
    if (sign_of(a == minus_infinity_ ? b : a) == Sign::positive) return minus_infinity_;
    throw Unprovable("infinity times what may be zero or negative");
  }
  if (a == zero_ || b == zero_) return zero_;
  if (a == one_) return b;
  if (b == one_) return a;
  if (const auto n = constant(a)) return scaled(b, *n);
  if (const auto n = constant(b)) return scaled(a, *n);
  if (auto known = multiplied_.find({a, b}); known != multiplied_.end()) return known->second;
  Element result;
  if ((elements_[a].size() > 1 && is_table(a)) || (elements_[b].size() > 1 && is_table(b))) {
    result = expanded(a, b);
  } else {
    const Product x = product(a), y = product(b), m = times(x.monomial, y.monomial);
    const Rational c = x.factor * y.factor * m.factor;
    result = c.zero() ? zero_ : of_product({c, m.monomial});
  }
  multiplied_.emplace(Pair{a, b}, result);
  return result;
}

bool Terms::same(Element a, Element b) {
  if (a == b || product(a) == product(b)) return true;
  constexpr size_t kParts = 4000;
  constexpr int kRounds = 400;
  Sum rest;
  for (const Part& p : elements_[subtract(a, b)]) rest.emplace(p.monomial, p.factor);
  for (int round = 0; round < kRounds; ++round) {
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
    if (!youngest) return false;
    const Monomial by = intern(Factors{{*youngest, -1}});
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
      const Monomial beside = times(m, by).monomial;
      const Parts inside = elements_[atoms_[*youngest].of];
      for (const Part& p : inside) {
        const Product q = times(beside, p.monomial);
        if (!q.factor.zero()) add_to(q.monomial, c * p.factor * q.factor);
      }
    }
    rest = std::move(next);
  }
  return false;
}

}  // namespace opguard::proving
