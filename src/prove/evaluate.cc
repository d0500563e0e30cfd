// Numbers are made twice, in float64 and in 80 bits, by the same code with another type. What is
// outside of the assumptions gets some number all the same, and a flag: a square root of -4 is 2
// and `outside`. So one bad part does not stop the walk, and a factor of 0 can make it irrelevant:
//
//   [t = 1] log(x), where t is 0 and x is -1     0, and not outside
#include "prove/evaluate.h"

#include <algorithm>
#include <cmath>

namespace opguard::proving {
namespace {

// By Newton's method, from an approximation of Winitzki's. Outside of -1 to 1 there is no number: y
// comes back.
template <typename T>
T inverse_erf(T y) {
  if (!(std::fabs(y) < 1)) return y;
  const T l = std::log(1 - y * y), a = T(0.147), b = 2 / (T(M_PI) * a) + l / 2;
  T x = std::copysign(std::sqrt(std::sqrt(b * b - l / a) - b), y);
  for (int i = 0; i < 6; ++i) x -= (std::erf(x) - y) / (2 / std::sqrt(T(M_PI)) * std::exp(-x * x));
  return x;
}

// By its recurrence up to 12, where the asymptotic series has all digits of float64.
template <typename T>
T digamma(T x) {
  T sum = 0;
  for (; x < 12; ++x) sum -= 1 / x;
  const T s = 1 / (x * x);
  return sum + std::log(x) - T(0.5) / x -
         s * (T(1) / 12 - s * (T(1) / 120 - s * (T(1) / 252 - s * (T(1) / 240 - s / 132))));
}

template <typename T>
T called(Function f, const std::vector<T>& x) {
  switch (f) {
    case Function::maximum:
      return *std::max_element(x.begin(), x.end());
    case Function::tanh:
      return std::tanh(x[0]);
    case Function::erf:
      return std::erf(x[0]);
    case Function::sin:
      return std::sin(x[0]);
    case Function::cos:
      return std::cos(x[0]);
    case Function::absolute:
      return std::fabs(x[0]);
    case Function::sign:
      return x[0] > 0 ? 1 : x[0] < 0 ? -1 : 0;
    case Function::tan:
      return std::tan(x[0]);
    case Function::arcsine:
      return std::asin(x[0]);
    case Function::arctangent:
      return std::atan(x[0]);
    case Function::angle:
      return std::atan2(x[0], x[1]);
    case Function::inverse_erf:
      return inverse_erf(x[0]);
    case Function::log_gamma:
      return std::lgamma(x[0]);
    case Function::digamma:
      return digamma(x[0]);
    case Function::step:
      return x[0] > 0 ? 1 : 0;
  }
  return 0;
}

// f in both precisions.
template <typename F>
Number through(F f, const Number& of) {
  return {f(of.value), f(of.wide), of.outside};
}

Number exactly(double x) { return {x, x, false}; }

}  // namespace

// Not a generator but a hash: what a variable is does not depend on which was asked for before.
uint64_t Point::random(uint64_t kind, uint64_t first, uint64_t second) const {
  uint64_t x = seed_ * 0x9e3779b97f4a7c15u + kind * 0xbf58476d1ce4e5b9u +
               first * 0x94d049bb133111ebu + second * 0xd6e8feb86659fd93u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// A stand-in has a number like any variable, and is outside, so that it refutes nothing.
Number Point::atom(Atom a) {
  if (auto known = atoms_.find(a); known != atoms_.end()) return known->second;
  const AtomValue v = terms_.atom(a);
  Number x;
  switch (v.kind) {
    case AtomKind::variable: {
      if (auto held = given_.find(terms_.name(v.first)); held != given_.end()) {
        x = exactly(held->second.at(v.second));
        break;
      }
      const uint64_t r = random(1, v.first, v.second);
      x = exactly(static_cast<double>(r % 29 + 2) / (small_ ? 128 : 16) *
                  (positive_ || (r >> 40 & 1) ? 1 : -1));
      if (terms_.is_stand_in(v)) {
        x.outside = true;
        break;
      }
      met_[terms_.name(v.first) + "[" + std::to_string(v.second) + "]"] = x.value;
      break;
    }
    case AtomKind::indicator: {
      if (terms_.order(v.first).count > 0) {
        x = in_order(terms_.order(v.first), v.second);
        break;
      }
      const auto held = given_.find(terms_.token_name(v.first));
      const uint64_t value =
          held != given_.end()
              ? static_cast<uint64_t>(held->second.at(terms_.token_position(v.first)))
              : random(2, v.first, 0) % terms_.token_size(v.first);
      x = exactly(value == v.second ? 1 : 0);
      met_[terms_.token_text(v.first)] = static_cast<double>(value);
      break;
    }
    case AtomKind::sum:
      x = number(v.of);
      break;
    // Cut at 700: beyond 709 the exponential is infinite in float64.
    case AtomKind::exp:
      x = through([](auto y) { return std::exp(std::min(y, decltype(y)(700))); }, number(v.of));
      break;
    case AtomKind::log:
      x = number(v.of);
      x.outside |= x.value <= 0;
      x = through([](auto y) { return std::log(std::max(std::fabs(y), decltype(y)(1e-300))); }, x);
      break;
    case AtomKind::root:
      x = number(v.of);
      x.outside |= x.value < 0;
      x = through([&](auto y) { return std::pow(std::fabs(y), decltype(y)(1) / v.first); }, x);
      break;
    case AtomKind::number:
      x = exactly(terms_.number_of(a));
      break;
    case AtomKind::infinity:
      x = exactly(-1e30);
      break;
    case AtomKind::function: {
      std::vector<double> narrow;
      std::vector<long double> wide;
      for (Element e : v.arguments) {
        const Number argument = number(e);
        narrow.push_back(argument.value);
        wide.push_back(argument.wide);
        x.outside |= argument.outside;
      }
      x.value = called(static_cast<Function>(v.first), narrow);
      x.wide = called(static_cast<Function>(v.first), wide);
      break;
    }
  }
  atoms_[a] = x;
  return x;
}

// 1 where the row lies as the value says, else 0. Of equal numbers nothing is known: outside. So an
// order is no free choice of a point. It is what the row's own numbers say.
Number Point::in_order(const Terms::Order& order, uint32_t value) {
  std::vector<Number> row;
  Number x = exactly(1);
  for (Element e : order.row) {
    const Number here = number(e);
    x.outside |= here.outside;
    for (const Number& before : row)
      x.outside |= std::fabs(before.wide - here.wide) <=
                   1e-9L * (std::fabs(before.wide) + std::fabs(here.wide));
    row.push_back(here);
  }
  const std::vector<size_t> places = Terms::arrangement(value, row.size(), order.count);
  for (size_t i = 0; i < places.size(); ++i)
    for (size_t j = 0; j < row.size(); ++j) {
      const bool before = std::find(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(i),
                                    j) != places.begin() + static_cast<std::ptrdiff_t>(i);
      if (j != places[i] && !before && row[j].wide > row[places[i]].wide) x.value = x.wide = 0;
    }
  return x;
}

Number Point::number(Element e) {
  if (auto known = elements_.find(e); known != elements_.end()) return known->second;
  Number sum;
  for (const Part& p : terms_.parts(e)) {
    Number product{p.factor.value(),
                   static_cast<long double>(p.factor.numerator()) /
                       static_cast<long double>(p.factor.denominator()),
                   false};
    bool nothing = false;  // a factor is zero whatever the others are
    for (const Factor& f : terms_.factors(p.monomial)) {
      Number base = atom(f.atom);
      nothing |= base.value == 0 && base.wide == 0 && f.exponent > 0 && !base.outside;
      if (nothing) break;
      // A denominator of zero: some number, and a flag that it says nothing.
      if (base.value == 0 && f.exponent < 0) base = {1e-9, 1e-9L, true};
      base = through([&](auto y) { return std::pow(y, f.exponent); }, base);
      product.value *= base.value;
      product.wide *= base.wide;
      product.outside |= base.outside;
    }
    if (nothing) continue;
    sum.value += product.value;
    sum.wide += product.wide;
    sum.outside |= product.outside;
  }
  elements_[e] = sum;
  return sum;
}

}  // namespace opguard::proving
