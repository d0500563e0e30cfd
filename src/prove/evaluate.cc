#include "prove/evaluate.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace opguard::proving {
namespace {

// By Newton's method, from an approximation of Winitzki's.
double inverse_erf(double y) {
  if (!(std::fabs(y) < 1)) return y;
  const double l = std::log(1 - y * y), a = 0.147, b = 2 / (M_PI * a) + l / 2;
  double x = std::copysign(std::sqrt(std::sqrt(b * b - l / a) - b), y);
  for (int i = 0; i < 6; ++i) x -= (std::erf(x) - y) / (2 / std::sqrt(M_PI) * std::exp(-x * x));
  return x;
}

// By its recurrence up to 12, where the asymptotic series has all digits.
double digamma(double x) {
  double sum = 0;
  for (; x < 12; ++x) sum -= 1 / x;
  const double s = 1 / (x * x);
  return sum + std::log(x) - 0.5 / x -
         s * (1.0 / 12 - s * (1.0 / 120 - s * (1.0 / 252 - s * (1.0 / 240 - s / 132))));
}

double called(Function f, const std::vector<double>& x) {
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

constexpr double kRounding = std::numeric_limits<double>::epsilon();
constexpr double kNowhere = std::numeric_limits<double>::infinity();

// f of numbers, with what their errors make of it.
template <typename F>
Number through(F f, const std::vector<Number>& of) {
  std::vector<double> x;
  for (const Number& n : of) x.push_back(n.value);
  Number result{f(x), 0};
  if (!std::isfinite(result.value)) return {0, kNowhere};
  for (size_t i = 0; i < of.size(); ++i)
    for (const double by : {-of[i].error, of[i].error}) {
      if (by == 0) continue;
      std::vector<double> moved = x;
      moved[i] += by;
      const double change = std::fabs(f(moved) - result.value);
      result.error += std::isfinite(change) ? change : kNowhere;
    }
  result.error += kRounding * std::fabs(result.value);
  return result;
}

template <typename F>
Number through(F f, const Number& of) {
  return through([&](const std::vector<double>& x) { return f(x[0]); }, std::vector<Number>{of});
}

}  // namespace

uint64_t Point::random(uint64_t kind, uint64_t first, uint64_t second) const {
  uint64_t x = seed_ * 0x9e3779b97f4a7c15u + kind * 0xbf58476d1ce4e5b9u +
               first * 0x94d049bb133111ebu + second * 0xd6e8feb86659fd93u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

Number Point::atom(Atom a) {
  if (auto known = atoms_.find(a); known != atoms_.end()) return known->second;
  const AtomValue v = terms_.atom(a);
  Number x;
  switch (v.kind) {
    case AtomKind::variable: {
      if (auto held = given_.find(terms_.name(v.first)); held != given_.end()) {
        x.value = held->second.at(v.second);
        break;
      }
      const uint64_t r = random(1, v.first, v.second);
      x.value = static_cast<double>(r % 29 + 2) / 16 * (positive_ || (r >> 40 & 1) ? 1 : -1);
      met_[terms_.name(v.first) + "[" + std::to_string(v.second) + "]"] = x.value;
      break;
    }
    case AtomKind::indicator: {
      const auto held = given_.find(terms_.token_name(v.first));
      const uint64_t value =
          held != given_.end()
              ? static_cast<uint64_t>(held->second.at(terms_.token_position(v.first)))
              : random(2, v.first, 0) % terms_.token_size(v.first);
      x.value = value == v.second ? 1 : 0;
      met_[terms_.token_text(v.first)] = static_cast<double>(value);
      break;
    }
    case AtomKind::sum:
      x = number(v.of);
      break;
    case AtomKind::exp:
      x = through([](double y) { return std::exp(y); }, number(v.of));
      break;
    case AtomKind::log:
      x = number(v.of);
      x = x.value > x.error ? through([](double y) { return std::log(y); }, x)
                            : Number{std::log(std::max(std::fabs(x.value), 1e-300)), kNowhere};
      break;
    case AtomKind::root:
      x = number(v.of);
      x = x.value >= x.error ? through([&](double y) { return std::pow(y, 1.0 / v.first); }, x)
                             : Number{std::pow(std::fabs(x.value), 1.0 / v.first), kNowhere};
      break;
    case AtomKind::number:
      x.value = terms_.number_of(a);
      break;
    case AtomKind::infinity:
      x.value = -1e30;
      break;
    case AtomKind::function: {
      std::vector<Number> arguments;
      for (Element e : v.arguments) arguments.push_back(number(e));
      const auto f = static_cast<Function>(v.first);
      x = through([f](const std::vector<double>& of) { return called(f, of); }, arguments);
      break;
    }
  }
  atoms_[a] = x;
  return x;
}

Number Point::number(Element e) {
  if (auto known = elements_.find(e); known != elements_.end()) return known->second;
  Number sum;
  for (const Part& p : terms_.parts(e)) {
    Number product{p.factor.value(), 0};
    bool nothing = false;  // a factor is zero, exactly: whatever the others are
    for (const Factor& f : terms_.factors(p.monomial)) {
      Number base = atom(f.atom);
      nothing |= base.value == 0 && base.error == 0 && f.exponent > 0;
      if (nothing) break;
      if (f.exponent < 0 && std::fabs(base.value) <= base.error)
        base = {base.value == 0 ? 1e-9 : base.value, kNowhere};
      if (f.exponent != 1)
        base = through([&](double y) { return std::pow(y, f.exponent); }, base);
      product.error = product.error * (std::fabs(base.value) + base.error) +
                      std::fabs(product.value) * base.error;
      product.value *= base.value;
    }
    if (nothing) continue;
    sum.value += product.value;
    sum.error += product.error + kRounding * std::fabs(product.value);
  }
  if (std::isnan(sum.error)) sum.error = kNowhere;
  elements_[e] = sum;
  return sum;
}

}  // namespace opguard::proving
