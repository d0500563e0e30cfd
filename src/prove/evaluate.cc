#include "prove/evaluate.h"

#include <algorithm>
#include <cmath>

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

}  // namespace

uint64_t Point::random(uint64_t kind, uint64_t first, uint64_t second) const {
  uint64_t x = seed_ * 0x9e3779b97f4a7c15u + kind * 0xbf58476d1ce4e5b9u +
               first * 0x94d049bb133111ebu + second * 0xd6e8feb86659fd93u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

double Point::atom(Atom a) {
  if (auto known = atoms_.find(a); known != atoms_.end()) return known->second;
  const AtomValue v = terms_.atom(a);
  double x = 0;
  switch (v.kind) {
    case AtomKind::variable: {
      if (auto held = given_.find(terms_.name(v.first)); held != given_.end()) {
        x = held->second.at(v.second);
        break;
      }
      const uint64_t r = random(1, v.first, v.second);
      x = static_cast<double>(r % 29 + 2) / 16 * (r >> 40 & 1 ? 1 : -1);
      met_[terms_.name(v.first) + "[" + std::to_string(v.second) + "]"] = x;
      break;
    }
    case AtomKind::indicator: {
      const auto held = given_.find(terms_.token_name(v.first));
      const uint64_t value =
          held != given_.end()
              ? static_cast<uint64_t>(held->second.at(terms_.token_position(v.first)))
              : random(2, v.first, 0) % terms_.token_size(v.first);
      x = value == v.second ? 1 : 0;
      met_[terms_.token_text(v.first)] = static_cast<double>(value);
      break;
    }
    case AtomKind::sum:
      x = value(v.of);
      break;
    case AtomKind::exp:
      x = std::exp(std::min(value(v.of), 700.0));
      break;
    case AtomKind::log:
      x = std::log(std::max(std::fabs(value(v.of)), 1e-300));
      break;
    case AtomKind::root:
      x = std::pow(std::fabs(value(v.of)), 1.0 / v.first);
      break;
    case AtomKind::number:
      x = terms_.number_of(a);
      break;
    case AtomKind::infinity:
      x = -1e30;
      break;
    case AtomKind::function: {
      std::vector<double> arguments;
      for (Element e : v.arguments) arguments.push_back(value(e));
      x = called(static_cast<Function>(v.first), arguments);
      break;
    }
  }
  atoms_[a] = x;
  return x;
}

double Point::value(Element e) {
  if (auto known = elements_.find(e); known != elements_.end()) return known->second;
  double sum = 0;
  for (const Part& p : terms_.parts(e)) {
    double product = p.factor.value();
    for (const Factor& f : terms_.factors(p.monomial)) {
      double base = atom(f.atom);
      if (base == 0 && f.exponent < 0) base = 1e-9;
      product *= std::pow(base, f.exponent);
    }
    sum += product;
  }
  elements_[e] = sum;
  return sum;
}

}  // namespace opguard::proving
