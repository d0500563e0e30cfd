// Powers, exponentials, logarithms, maxima, and what depends on tokens.
#include <algorithm>
#include <set>

#include "prove/terms.h"

namespace opguard::proving {

Element Terms::power(Element e, const Rational& exponent) {
  if (exponent == Rational(1)) return e;
  if (e == minus_infinity_) throw Unprovable("a power of infinity");
  if (exponent.zero()) return one_;
  const auto number = constant(e);
  if (exponent.whole()) {
    const int64_t n = exponent.numerator();
    if (number) return rational(proving::power(*number, n));
    if (is_table(e)) {
      const Element values[] = {e};
      if (const auto mapped =
              map([n](std::span<const Rational> v) { return proving::power(v[0], n); }, values))
        return *mapped;
    }
    const Product p = product(e);
    if (p.factor.zero()) throw Unprovable("a division by zero");
    if (n < 0 && has_indicator(of_product({1, p.monomial})))
      throw Unprovable("a division by what may be zero for some token");
    const Product r = raised(p.monomial, exponent_of(n));
    return of_product({proving::power(p.factor, n) * r.factor, r.monomial});
  }
  if (number && exponent.denominator() == 2 && number->numerator() > 0)
    return power(root(*number), Rational(exponent.numerator()));
  if (e == zero_) {
    if (exponent.numerator() > 0) return zero_;
    throw Unprovable("a division by zero");
  }
  // Names within are written out: a norm of norms is the norm of all.
  Sum inside;
  for (const Part& p : elements_[e]) inside.emplace(p.monomial, p.factor);
  AtomValue atom{AtomKind::root, static_cast<uint32_t>(exponent.denominator()), 0,
                 made(without_lone_sums(inside))};
  return of_atom(intern(std::move(atom)), exponent_of(exponent.numerator()));
}

Element Terms::exp(Element e) {
  if (e == minus_infinity_) return zero_;
  // A named difference of logarithms is written out.
  Sum whole;
  const auto add_to = [&](Monomial m, const Rational& c) {
    auto [at, fresh] = whole.try_emplace(m, c);
    if (!fresh) at->second = at->second + c;
  };
  const PartList parts = elements_[e];
  for (const Part& p : parts) {
    PartList inside;
    if (lone(p.monomial, AtomKind::sum)) {
      inside = elements_[atoms_[monomials_[p.monomial][0].atom].of];
      if (std::none_of(inside.begin(), inside.end(),
                       [&](const Part& q) { return lone(q.monomial, AtomKind::log); }))
        inside = {};
    }
    if (inside.empty()) {
      add_to(p.monomial, p.factor);
      continue;
    }
    for (const Part& q : inside) add_to(q.monomial, p.factor * q.factor);
  }
  // exp of a sum is a product. Of 3 log x it is x^3.
  Element result = one_;
  for (const auto& [m, c] : whole) {
    if (c.zero()) continue;
    if (lone(m, AtomKind::log) && c.whole()) {
      result = multiply(result, power(atoms_[monomials_[m][0].atom].of, c));
      continue;
    }
    // exp(3/2 x) is exp(x/2)^3; of a long fraction it stays whole.
    constexpr int64_t kLongest = 1000;
    const bool is_long = std::abs(c.numerator()) > kLongest;
    const bool negative = c.numerator() < 0;
    AtomValue atom{AtomKind::exp};
    atom.of = of_product({is_long ? (negative ? -c : c) : Rational(1, c.denominator()), m});
    const int64_t power = is_long ? (negative ? -1 : 1) : c.numerator();
    result = multiply(result, of_atom(intern(std::move(atom)), exponent_of(power)));
  }
  return result;
}

// The logarithm of a product is a sum of those of its factors, as far as they are positive. Of
// factors with either sign there are log(y^2), and one logarithm of those that are left over.
// Counterexample: log(x^2) is not 2 log(x), since x may be negative.
Element Terms::log(Element e) {
  const Product p = product(e);
  if (p.factor.zero()) throw Unprovable("a logarithm of zero");
  std::vector<Element> parts;
  const auto add_log = [&](Element inside, int64_t times) {
    if (times == 0) return;
    AtomValue atom{AtomKind::log};
    atom.of = inside;
    parts.push_back(of_atom(intern(std::move(atom)), 1, Rational(times)));
  };
  Factors odd;
  const FactorList factors = monomials_[p.monomial];
  for (const Factor& f : factors) {
    const AtomValue value = atoms_[f.atom];
    if (value.kind == AtomKind::indicator)
      throw Unprovable("a logarithm of what may be zero for some token");
    if (value.kind == AtomKind::exp)
      parts.push_back(scaled(value.of, Rational(f.exponent)));
    else if (sign_of_atom(value, kSignDepth) == Sign::positive)
      add_log(of_atom(f.atom), f.exponent);
    else if (f.exponent % 2 != 0)
      odd.push_back(f);
    else
      add_log(of_atom(f.atom, 2), f.exponent / 2);
  }
  const bool negative = p.factor.numerator() < 0;
  const Rational size = negative ? -p.factor : p.factor, sign(negative ? -1 : 1);
  if (size != Rational(1)) add_log(rational(size), 1);
  if (odd.empty() && negative) throw Unprovable("a logarithm of what is negative");
  // One alone has the sign of the whole.
  if (odd.size() == 1) add_log(of_atom(odd[0].atom, 1, sign), odd[0].exponent);
  if (odd.size() > 1) {
    for (Factor& f : odd) {
      add_log(of_atom(f.atom, 2), (f.exponent - 1) / 2);
      f.exponent = 1;
    }
    add_log(of_product({sign, intern(odd)}), 1);
  }
  return parts.empty() ? zero_ : sum(parts);
}

Element Terms::function(Function f, std::vector<Element> arguments) {
  AtomValue atom{AtomKind::function, static_cast<uint32_t>(f)};
  atom.arguments = std::move(arguments);
  return of_atom(intern(std::move(atom)));
}

Element Terms::maximum(std::span<const Element> of) {
  if (!of.empty() && std::all_of(of.begin(), of.end(), [&](Element e) { return is_table(e); }))
    if (const auto mapped = map(
            [](std::span<const Rational> v) {
              return *std::max_element(
                  v.begin(), v.end(),
                  [](const Rational& a, const Rational& b) { return (a - b).numerator() < 0; });
            },
            of))
      return *mapped;
  std::set<Element> flat;
  std::optional<Rational> greatest;
  for (Element e : of) {
    const PartList parts = elements_[e];
    if (e == minus_infinity_) continue;
    if (const auto n = constant(e)) {
      if (!greatest || (*n - *greatest).numerator() > 0) greatest = n;
      continue;
    }
    if (parts.size() == 1 && parts[0].factor == Rational(1) &&
        lone(parts[0].monomial, AtomKind::function)) {
      const AtomValue& inside = atoms_[monomials_[parts[0].monomial][0].atom];
      if (inside.first == static_cast<uint32_t>(Function::maximum)) {
        flat.insert(inside.arguments.begin(), inside.arguments.end());
        continue;
      }
    }
    flat.insert(e);
  }
  if (flat.empty()) return greatest ? rational(*greatest) : minus_infinity_;
  if (flat.size() == 1) {
    if (!greatest) return *flat.begin();
    // max(x, 0) is relu(x), which has a form of its own.
    if (greatest->zero()) return relu(*flat.begin());
  }
  if (greatest) flat.insert(rational(*greatest));
  return function(Function::maximum, {flat.begin(), flat.end()});
}

// ---- Tokens

Element Terms::token(const std::string& name, uint32_t position, uint32_t size) {
  auto [at, fresh] = token_of_.try_emplace({name, position}, static_cast<uint32_t>(tokens_.size()));
  if (fresh) tokens_.push_back({name, position, size});
  const uint32_t token = at->second;
  return by_cases(token, [&](uint32_t v) { return rational(int64_t{v}); });
}

bool Terms::is_table(Element e) const {
  for (const Part& p : elements_[e]) {
    const FactorList f = monomials_[p.monomial];
    if (!f.empty() && (f.size() > 1 || atoms_[f[0].atom].kind != AtomKind::indicator)) return false;
  }
  return true;
}

std::optional<Terms::Table> Terms::table(Element e) const {
  Table table;
  Rational base(0);
  std::vector<std::pair<uint32_t, Rational>> cases;
  for (const Part& p : elements_[e]) {
    const FactorList f = monomials_[p.monomial];
    if (f.empty()) {
      base = p.factor;
      continue;
    }
    if (f.size() > 1 || atoms_[f[0].atom].kind != AtomKind::indicator) return {};
    const AtomValue& is = atoms_[f[0].atom];
    if (table.token && *table.token != is.first) return {};
    table.token = is.first;
    cases.emplace_back(is.second, p.factor);
  }
  table.values.assign(table.token ? tokens_[*table.token].size : 1, base);
  for (const auto& [value, more] : cases) table.values[value] = base + more;
  return table;
}

Element Terms::by_cases(uint32_t token, const std::function<Element(uint32_t)>& of) {
  const uint32_t size = tokens_[token].size;
  const Element last = of(size - 1);
  Sum sum;
  for (const Part& p : elements_[last]) sum.emplace(p.monomial, p.factor);
  for (uint32_t v = 0; v + 1 < size; ++v) {
    const Element here = of(v);
    if (here == last) continue;
    if (here == minus_infinity_ || last == minus_infinity_)
      throw Unprovable("minus infinity for some tokens and not for others");
    const Factor truth{intern(AtomValue{AtomKind::indicator, token, v}), 1};
    const Monomial is = intern(FactorList(&truth, 1));
    const Element more = subtract(here, last);
    const PartList parts = elements_[more];
    for (const Part& p : parts) {
      const Product m = times(is, p.monomial);
      if (m.factor.zero()) continue;
      auto [at, fresh] = sum.try_emplace(m.monomial, p.factor * m.factor);
      if (!fresh) at->second = at->second + p.factor * m.factor;
    }
  }
  return made(sum);
}

std::optional<Element> Terms::map(const std::function<Rational(std::span<const Rational>)>& f,
                                  std::span<const Element> of) {
  std::vector<Table> tables;
  std::optional<uint32_t> token;
  for (Element e : of) {
    auto found = table(e);
    if (!found) return {};
    if (found->token) {
      if (token && *token != *found->token) return {};
      token = found->token;
    }
    tables.push_back(std::move(*found));
  }
  std::vector<Rational> values(of.size());
  const auto at = [&](uint32_t v) {
    for (size_t i = 0; i < tables.size(); ++i)
      values[i] = tables[i].values[tables[i].token ? v : 0];
    return rational(f(values));
  };
  return token ? by_cases(*token, at) : at(0);
}

// The element where the token has the value.
Element Terms::restricted(Element e, uint32_t token, uint32_t value) {
  if (!has_indicator(e)) return e;
  Sum sum;
  const PartList parts = elements_[e];
  for (const Part& p : parts) {
    Factors kept;
    bool there = true;
    for (const Factor& f : monomials_[p.monomial]) {
      const AtomValue& is = atoms_[f.atom];
      if (is.kind == AtomKind::indicator && is.first == token)
        there = there && is.second == value;
      else
        kept.push_back(f);
    }
    if (!there) continue;
    auto [at, fresh] = sum.try_emplace(intern(kept), p.factor);
    if (!fresh) at->second = at->second + p.factor;
  }
  return made(sum);
}

Element Terms::where(Element condition, Element a, Element b) {
  if (a == b) return a;
  const auto cases = table(condition);
  if (!cases) throw Unprovable("a choice depends on a value, or on two tokens");
  if (!cases->token) return cases->values[0].zero() ? b : a;
  return by_cases(*cases->token, [&](uint32_t v) {
    return restricted(cases->values[v].zero() ? b : a, *cases->token, v);
  });
}

Element Terms::look_up(Element index, const std::function<Element(int64_t)>& row) {
  const auto cases = table(index);
  if (!cases) throw Unprovable("an index is computed from values, or from two tokens");
  if (!cases->token) return row(cases->values[0].numerator());
  return by_cases(*cases->token, [&](uint32_t v) {
    return restricted(row(cases->values[v].numerator()), *cases->token, v);
  });
}

}  // namespace opguard::proving
