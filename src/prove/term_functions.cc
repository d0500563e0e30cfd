// Powers, exponentials, logarithms, maxima, and what depends on tokens.
//
// Each operation brings its result into one form, so that spellings meet:
//   sqrt(4 x)  2 sqrt(x)     exp(log(x) - log(y))  x / y     max(max(x, y), 0)  max(x, y, 0)
//
// What depends on a token t of three values is kept by its cases, the last one left out:
//   a, b or c     c + [t = 0] (a - c) + [t = 1] (b - c)
// Were all three kept, [t = 0] + [t = 1] + [t = 2] and 1 would be two terms for one number.
//
// Counterexample: no form is found for log(x + y) or sqrt(x^2). They stay functions of what is
// inside. The cost of tokens: what depends on several is done once for each combination of their
// values.
#include <algorithm>
#include <set>

#include "prove/terms.h"

namespace opguard::proving {

namespace {

// The largest s such that s * s divides a number; of large primes none is looked for.
int64_t square_within(int64_t number) {
  int64_t rest = number < 0 ? -number : number, found = 1;
  for (int64_t p = 2; p * p <= rest && p < 1000; ++p)
    while (rest % (p * p) == 0) {
      rest /= p * p;
      found *= p;
    }
  return found;
}

}  // namespace

// A whole exponent goes to the factors of the product that the element is. Any other makes a root,
// whose degree is the exponent's denominator: x^(3/2) is root(x)^3.
Element Terms::power(Element e, const Rational& exponent) {
  if (exponent == Rational(1)) return e;
  if (e == minus_infinity_) throw Unprovable("a power of infinity");
  if (exponent.zero()) return one_;
  const auto number = constant(e);
  if (exponent.whole()) {
    const int64_t n = exponent.numerator();
    if (number) return rational(proving::power(*number, n));
    // Of several tokens it may be zero for some: that no denominator is, is assumed.
    if (n > 0 ? is_table(e) : table(e).has_value()) {
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
  Element of = made(without_lone_sums(inside));
  const int32_t n = exponent_of(exponent.numerator());
  // sqrt(4 x) is 2 sqrt(x): a norm of doubled gradients is a double norm.
  Rational outside(1);
  if (exponent.denominator() == 2) {
    const Rational lead = primitive(of).first;
    outside = Rational(square_within(lead.numerator()), square_within(lead.denominator()));
    if (!(outside == Rational(1))) of = scaled(of, proving::power(outside, -2));
  }
  AtomValue atom{AtomKind::root, static_cast<uint32_t>(exponent.denominator()), 0, of};
  return of_atom(intern(std::move(atom)), n, proving::power(outside, n));
}

// Only sums that hold a logarithm are written out. Others keep their names, which later layers are
// compared by.
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

// Arguments are a set: neither their order nor a repetition makes another term. Of the constants
// the greatest alone is kept.
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

// The token as a number is a table itself, 0 up to size - 1. Asked for again, it is the same
// unknown.
Element Terms::token(const std::string& name, uint32_t position, uint32_t size) {
  auto [at, fresh] = token_of_.try_emplace({name, position}, static_cast<uint32_t>(tokens_.size()));
  if (fresh) tokens_.push_back({name, position, size});
  const uint32_t token = at->second;
  return by_cases(token, [&](uint32_t v) { return rational(int64_t{v}); });
}

bool Terms::is_table(Element e) const {
  for (const Part& p : elements_[e])
    for (const Factor& f : monomials_[p.monomial])
      if (atoms_[f.atom].kind != AtomKind::indicator) return false;
  return true;
}

// Read back from the form of by_cases(): what stands alone is the last value's, each indicator adds
// to it.
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

// of(last) + sum over v of [token = v] (of(v) - of(last)). Where all cases are one element it is
// that element, and the token is gone. Infinity cannot be subtracted, so it has to be in all cases
// or in none.
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

// The token of the lowest number within the elements. Taking the lowest each time makes a table of
// tables that has one order of its levels, whoever made it.
std::optional<uint32_t> Terms::first_token(std::span<const Element> of) const {
  std::optional<uint32_t> first;
  for (Element e : of)
    for (const Part& p : elements_[e])
      for (const Factor& f : monomials_[p.monomial])
        if (const AtomValue& is = atoms_[f.atom];
            is.kind == AtomKind::indicator && (!first || is.first < *first))
          first = is.first;
  return first;
}

// Token by token. Where values of one leave the same elements, the rest is done once: counting how
// many of 8 truths hold takes 36 cases, not 255.
Element Terms::mapped(const OfRationals& f, std::vector<Element> of, CasesDone& done) {
  const auto token = first_token(of);
  if (!token) {
    std::vector<Rational> values;
    for (Element e : of) values.push_back(*constant(e));
    return rational(f(values));
  }
  if (const auto known = done.find(of); known != done.end()) return known->second;
  if (done.size() > kMostCases) throw Unprovable("more cases of tokens than are looked at");
  const Element result = by_cases(*token, [&](uint32_t v) {
    std::vector<Element> here;
    for (Element e : of) here.push_back(restricted(e, *token, v));
    return mapped(f, std::move(here), done);
  });
  return done[std::move(of)] = result;
}

std::optional<Element> Terms::map(const OfRationals& f, std::span<const Element> of) {
  for (Element e : of)
    if (!is_table(e)) return {};
  CasesDone done;
  return mapped(f, {of.begin(), of.end()}, done);
}

// The element where the token has the value: parts of its other values are gone, its own indicator
// is 1.
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

namespace {

void count_case(size_t& cases) {
  if (++cases > Terms::kMostCases) throw Unprovable("more cases of tokens than are looked at");
}

}  // namespace

Element Terms::where(Element condition, Element a, Element b) {
  if (!is_table(condition)) throw Unprovable("a choice depends on a value");
  size_t cases = 0;
  return where_within(condition, a, b, cases);
}

// a and b are restricted together with the condition. They may depend on the same token, and a part
// for a value that the condition excludes would stay behind.
Element Terms::where_within(Element condition, Element a, Element b, size_t& cases) {
  count_case(cases);
  if (a == b) return a;
  const Element only[] = {condition};
  const auto token = first_token(only);
  if (!token) return condition == zero_ ? b : a;
  return by_cases(*token, [&](uint32_t v) {
    const Element holds = restricted(condition, *token, v);
    if (const auto known = constant(holds)) return restricted(known->zero() ? b : a, *token, v);
    return where_within(holds, restricted(a, *token, v), restricted(b, *token, v), cases);
  });
}

Element Terms::look_up(Element index, const std::function<Element(int64_t)>& row) {
  if (!is_table(index)) throw Unprovable("an index is computed from values");
  size_t cases = 0;
  return look_up_within(index, row, cases);
}

// The rows are restricted too: a row of a table of positions may depend on the token that chose it.
Element Terms::look_up_within(Element index, const std::function<Element(int64_t)>& row,
                              size_t& cases) {
  count_case(cases);
  const Element only[] = {index};
  const auto token = first_token(only);
  if (!token) return row(constant(index)->numerator());
  return by_cases(*token, [&](uint32_t v) {
    return look_up_within(
        restricted(index, *token, v), [&](int64_t at) { return restricted(row(at), *token, v); },
        cases);
  });
}

}  // namespace opguard::proving
