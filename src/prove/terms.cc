#include "prove/terms.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace opguard::proving {
size_t Terms::AtomHash::operator()(const AtomValue& a) const {
  uint64_t h = mixed(static_cast<uint64_t>(a.kind), uint64_t{a.first} << 32 | a.second);
  h = mixed(mixed(h, a.of), std::hash<double>()(a.number));
  for (Element e : a.arguments) h = mixed(h, e);
  return h;
}

Terms::Terms() {
  intern(FactorList());
  zero_ = intern(PartList());
  one_ = rational(1);
  minus_infinity_ = of_atom(intern(AtomValue{AtomKind::infinity}));
}

// ---- Once each

Atom Terms::intern(AtomValue value) {
  auto [at, fresh] = atom_of_.try_emplace(value, static_cast<Atom>(atoms_.size()));
  if (fresh) atoms_.push_back(std::move(value));
  return at->second;
}

Monomial Terms::intern(FactorList factors) {
  const auto [number, fresh] = monomials_.intern(factors);
  if (fresh) makers_.push_back(maker_);
  return number;
}

Element Terms::intern(PartList parts) { return elements_.intern(parts).first; }

Element Terms::made(const Sum& sum) {
  Parts parts;
  parts.reserve(sum.size());
  for (const auto& [m, c] : sum)
    if (!c.zero()) parts.push_back({m, c});
  return intern(parts);
}

Element Terms::of_atom(Atom a, int32_t exponent, const Rational& factor) {
  const Factor f{a, exponent};
  return of_product({factor, intern(FactorList(&f, 1))});
}

std::optional<Rational> Terms::constant(Element e) const {
  const PartList parts = elements_[e];
  if (parts.empty()) return Rational(0);
  if (parts.size() == 1 && parts[0].monomial == 0) return parts[0].factor;
  return {};
}

std::string Terms::token_text(uint32_t token) const {
  return tokens_[token].name + "[" + std::to_string(tokens_[token].position) + "]";
}

Element Terms::rational(const Rational& value) {
  return value.zero() ? intern(PartList()) : of_product({value, 0});
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

Element Terms::stand_in(const std::string& name, uint32_t position) {
  const Element e = variable("\x01" + name, position);  // no name of the user's begins so
  stand_ins_.insert(name_of_.at("\x01" + name));
  return e;
}

// ---- Sums and products

Element Terms::combine(Element a, Element b, const Rational& of_b) {
  if (b == minus_infinity_ && of_b.numerator() < 0) throw Unprovable("infinity");
  if (a == minus_infinity_ || b == minus_infinity_) return minus_infinity_;
  const PartList x = elements_[a], y = elements_[b];
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
  return intern(parts);
}

Element Terms::scaled(Element a, const Rational& by) {
  if (by == Rational(1)) return a;
  if (by.zero()) return zero_;
  if (a == minus_infinity_) {
    if (by.numerator() > 0) return a;
    throw Unprovable("infinity");
  }
  const PartList of = elements_[a];
  Parts parts(of.begin(), of.end());
  for (Part& p : parts) p.factor = p.factor * by;
  return intern(parts);
}

Element Terms::sum(std::span<const Element> of) {
  if (of.size() == 1) return of[0];
  if (of.size() == 2) return add(of[0], of[1]);
  Parts all;
  for (Element e : of) {
    if (e == minus_infinity_) return e;
    all.insert(all.end(), elements_[e].begin(), elements_[e].end());
  }
  return collected(all);
}

// Parts in any order, added up.
Element Terms::collected(Parts& all) {
  const auto before = [](const Part& a, const Part& b) { return a.monomial < b.monomial; };
  if (!std::is_sorted(all.begin(), all.end(), before)) std::sort(all.begin(), all.end(), before);
  size_t kept = 0;
  for (size_t i = 0; i < all.size();) {
    Part p = all[i];
    size_t j = i + 1;
    for (; j < all.size() && all[j].monomial == p.monomial; ++j)
      p.factor = p.factor + all[j].factor;
    if (!p.factor.zero()) all[kept++] = p;
    i = j;
  }
  return intern(PartList(all.data(), kept));
}

Element Terms::dot(std::span<const Element> a, std::span<const Element> b) {
  Parts& all = scratch_;
  all.clear();
  for (size_t i = 0; i < a.size(); ++i) {
    const PartList x = elements_[a[i]], y = elements_[b[i]];
    if (x.empty() || y.empty()) continue;
    const bool finite = a[i] != minus_infinity_ && b[i] != minus_infinity_;
    const auto plain = [&](PartList of) { return of.size() == 1 && of[0].monomial != 0; };
    if (finite && plain(x) && plain(y)) {
      const Product p = product(a[i]), q = product(b[i]), m = times(p.monomial, q.monomial);
      const Rational c = p.factor * q.factor * m.factor;
      if (!c.zero()) all.push_back({m.monomial, c});
      continue;
    }
    Parts kept = std::move(all);
    const Element more = multiply(a[i], b[i]);
    all = std::move(kept);
    if (more == minus_infinity_) return more;
    all.insert(all.end(), elements_[more].begin(), elements_[more].end());
  }
  return collected(all);
}

Product Terms::times(Monomial a, Monomial b) {
  if (a == 0) return {1, b};
  if (b == 0) return {1, a};
  if (a > b) std::swap(a, b);
  const FactorList x = monomials_[a], y = monomials_[b];
  Factors& factors = together_;
  factors.clear();
  size_t i = 0, j = 0;
  while (i < x.size() || j < y.size()) {
    if (j == y.size() || (i < x.size() && x[i].atom < y[j].atom)) {
      factors.push_back(x[i++]);
    } else if (i == x.size() || y[j].atom < x[i].atom) {
      factors.push_back(y[j++]);
    } else {
      factors.push_back({x[i].atom, exponent_of(int64_t{x[i].exponent} + y[j].exponent)});
      ++i, ++j;
    }
  }
  return normal(factors);
}

// Indicators and steps are their own powers. Two values of one token exclude each other. A root,
// squared, is what it is of.
Product Terms::normal(Factors& factors) {
  for (const Factor& f : factors)
    if (const AtomValue& v = atoms_[f.atom];
        v.kind == AtomKind::root && std::abs(f.exponent) >= static_cast<int32_t>(v.first) &&
        !constant(v.of))
      return without_whole_root(factors, f.atom);
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
  return {outside, intern(factors)};
}

// The square of a square root is what the root is of.
Product Terms::without_whole_root(const Factors& factors, Atom root) {
  Factors rest;
  int32_t whole = 0;
  const AtomValue value = atoms_[root];
  const auto degree = static_cast<int32_t>(value.first);
  for (const Factor& f : factors) {
    if (f.atom != root) {
      rest.push_back(f);
      continue;
    }
    whole = f.exponent / degree;
    if (f.exponent % degree != 0) rest.push_back({root, f.exponent % degree});
  }
  const Product inside = product(value.of), beside = normal(rest);
  const Product power = raised(inside.monomial, whole),
                both = times(power.monomial, beside.monomial);
  return {proving::power(inside.factor, whole) * power.factor * beside.factor * both.factor,
          both.monomial};
}

Product Terms::raised(Monomial m, int32_t by) {
  const FactorList of = monomials_[m];
  Factors factors(of.begin(), of.end());
  for (Factor& f : factors) f.exponent = exponent_of(int64_t{f.exponent} * by);
  return normal(factors);
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
  const PartList parts = elements_[e];
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

// What all of them have: the smallest power of each atom, or the largest of a negative one.
Factors Terms::shared(PartList parts) const {
  if (parts.size() < 2) return {};
  const FactorList first = monomials_[parts[0].monomial];
  Factors common(first.begin(), first.end());
  std::erase_if(common,
                [&](const Factor& f) { return atoms_[f.atom].kind == AtomKind::indicator; });
  for (const Part& part : parts.subspan(1)) {
    if (common.empty()) break;
    const FactorList of = monomials_[part.monomial];
    size_t kept = 0, i = 0;
    for (const Factor& f : common) {
      while (i < of.size() && of[i].atom < f.atom) ++i;
      if (i == of.size() || of[i].atom != f.atom) continue;
      if ((of[i].exponent > 0) != (f.exponent > 0)) continue;
      common[kept++] = {f.atom, f.exponent > 0 ? std::min(f.exponent, of[i].exponent)
                                               : std::max(f.exponent, of[i].exponent)};
    }
    common.resize(kept);
  }
  return common;
}

Product Terms::product(Element e) {
  const PartList parts = elements_[e];
  if (parts.size() == 1) {
    const Part& p = parts[0];
    if (!lone(p.monomial, AtomKind::sum)) return {p.factor, p.monomial};
    // A name of a sum that has common factors of its own.
    Product result = product(atoms_[monomials_[p.monomial][0].atom].of);
    result.factor = result.factor * p.factor;
    return result;
  }
  if (auto known = product_of_.find(e); known != product_of_.end()) return known->second;
  Product result{0, 0};
  Product outside{1, 0};
  Sum rest;
  Factors common = shared(parts);
  if (!common.empty())
    for (const Part& p : parts) rest.emplace_hint(rest.end(), p.monomial, p.factor);
  for (int round = 0; !common.empty() && round < 3; ++round) {
    Factors inverse = common;
    for (Factor& f : inverse) f.exponent = -f.exponent;
    const Monomial by = intern(inverse);
    const Product more = times(outside.monomial, intern(common));
    outside = {outside.factor * more.factor, more.monomial};
    Sum divided;
    for (const auto& [m, c] : rest) {
      const Product p = times(m, by);
      auto [at, fresh] = divided.try_emplace(p.monomial, c * p.factor);
      if (!fresh) at->second = at->second + c * p.factor;
    }
    rest = without_lone_sums(divided);
    if (rest.size() < 2) break;
    Parts left;
    for (const auto& [m, c] : rest) left.push_back({m, c});
    common = shared(left);
  }
  const Element left = outside.monomial == 0 && rest.empty() ? e : made(rest);
  if (elements_[left].size() == 1) {
    const Part& only = elements_[left][0];
    const Product p = times(outside.monomial, only.monomial);
    result = {outside.factor * only.factor * p.factor, p.monomial};
  } else if (!elements_[left].empty()) {
    const auto [factor, sum] = primitive(left);
    AtomValue atom{AtomKind::sum};
    atom.of = sum;
    const Factor name{intern(std::move(atom)), 1};
    const Product p = times(outside.monomial, intern(FactorList(&name, 1)));
    result = {outside.factor * factor * p.factor, p.monomial};
  }
  product_of_.try_emplace(e, result);
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
  const PartList x = elements_[a], y = elements_[b];
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
  if ((elements_[a].size() > 1 && is_table(a)) || (elements_[b].size() > 1 && is_table(b))) {
    return expanded(a, b);
  }
  const Product x = product(a), y = product(b), m = times(x.monomial, y.monomial);
  const Rational c = x.factor * y.factor * m.factor;
  return c.zero() ? zero_ : of_product({c, m.monomial});
}

}  // namespace opguard::proving
