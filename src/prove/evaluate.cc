#include "prove/evaluate.h"

#include <algorithm>
#include <cmath>

namespace opguard::proving {
namespace {

double called(Function f, const std::vector<double>& x) {
  switch (f) {
    case Function::maximum:
      return *std::max_element(x.begin(), x.end());
    case Function::sigmoid:
      return 1 / (1 + std::exp(-x[0]));
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
    case Function::less:
      return x[0] < x[1] ? 1 : 0;
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
      x = static_cast<double>(r % 29 + 2) / 16 * (positive_ || (r >> 40 & 1) ? 1 : -1);
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
      x = value(v.of);
      outside_ |= x <= 0;
      x = std::log(std::max(std::fabs(x), 1e-300));
      break;
    case AtomKind::root:
      x = value(v.of);
      outside_ |= x < 0;
      x = std::pow(std::fabs(x), 1.0 / v.first);
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
      if (base == 0 && f.exponent < 0) base = 1e-9, outside_ = true;
      product *= std::pow(base, f.exponent);
    }
    sum += product;
  }
  elements_[e] = sum;
  return sum;
}

}  // namespace opguard::proving
