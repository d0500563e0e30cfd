// The text is made while terms are walked, from the inside out: what an atom needs is declared
// before the atom is used. Words that stand for something are
//
//   a7     an atom           t2     a token, as the number it is
//   n4     a text, defined   c5     a call of exp, log, a root or a function
//
// Products are written out, since the logic is that of polynomials over reals (QF_NRA): x^3 is (* x
// x x).
#include "prove/question.h"

#include <cstdlib>

namespace opguard::proving {
namespace {

constexpr size_t kLargest = 2000;  // parts of elements
constexpr int64_t kHighest = 16;   // exponents are written out

std::string applied(const char* what, const std::string& a, const std::string& b) {
  return std::string("(") + what + " " + a + " " + b + ")";
}

std::string cases(const std::string& condition, const std::string& yes, const std::string& no) {
  return "(ite " + condition + " " + yes + " " + no + ")";
}

}  // namespace

//   -1/2     (/ (- 1.0) 2.0)
std::string Question::text(const Rational& value) {
  const auto whole = [](int64_t n) {
    const std::string digits = std::to_string(n);
    return n < 0 ? "(- " + digits.substr(1) + ".0)" : digits + ".0";
  };
  return value.whole() ? whole(value.numerator())
                       : applied("/", whole(value.numerator()), whole(value.denominator()));
}

std::string Question::power(const std::string& base, int64_t exponent) {
  if (std::abs(exponent) > kHighest) throw Unprovable("a power too high for the solver");
  if (exponent == 0) return "1.0";
  std::string product = base;
  if (std::abs(exponent) > 1) {
    product = "(*";
    for (int64_t i = 0; i < std::abs(exponent); ++i) product += " " + base;
    product += ")";
  }
  return exponent > 0 ? product : applied("/", "1.0", product);
}

// A product of powers. Denominators are noted on the way, for hold_domains().
std::string Question::monomial(Monomial m) {
  const FactorList factors = terms_.factors(m);
  if (factors.empty()) return "1.0";
  std::string product;
  for (const Factor& f : factors) {
    const AtomValue& v = terms_.atom(f.atom);
    // exp(u)^441 is exp(441 u): of the two only the one.
    if (v.kind == AtomKind::exp && std::abs(f.exponent) > kHighest) {
      const Rational times(std::abs(int64_t{f.exponent}));
      product +=
          " " + power(exp_of(applied("*", text(times), text(v.of))), f.exponent < 0 ? -1 : 1);
      continue;
    }
    const std::string base = atom(f.atom);
    if (f.exponent < 0) domains_.insert("(distinct " + base + " 0.0)");
    product += " " + power(base, f.exponent);
  }
  return factors.size() == 1 ? product.substr(1) : "(*" + product + ")";
}

// Counts all parts that were written for the question, through named sums as well: beyond kLargest
// it gives up.
std::string Question::text(Element e) {
  const PartList parts = terms_.parts(e);
  if (parts.empty()) return "0.0";
  parts_ += parts.size();
  if (parts_ > kLargest) throw Unprovable("a question too large for the solver");
  std::string sum;
  for (const Part& p : parts) {
    const std::string product = monomial(p.monomial);
    sum += " " + (p.factor == Rational(1) ? product
                  : p.monomial == 0       ? text(p.factor)
                                          : applied("*", text(p.factor), product));
  }
  return parts.size() == 1 ? sum.substr(1) : "(+" + sum + ")";
}

std::string Question::declared(const std::string& name) {
  script_ += "(declare-const " + name + " Real)\n";
  return name;
}

// A text of one word is its own name.
std::string Question::named(const std::string& text) {
  if (text.find(' ') == std::string::npos) return text;
  const auto [at, fresh] = words_.try_emplace(text, "n" + std::to_string(words_.size()));
  if (fresh) script_ += "(define-fun " + at->second + " () Real " + text + ")\n";
  return at->second;
}

std::string Question::called(const std::string& function, std::vector<std::string> arguments,
                             bool& fresh) {
  std::string call = function;
  for (std::string& argument : arguments) {
    argument = named(argument);
    call += " " + argument;
  }
  const auto [at, is_fresh] = words_.try_emplace(call, "c" + std::to_string(words_.size()));
  fresh = is_fresh;
  if (fresh) calls_.push_back({function, declared(at->second), std::move(arguments)});
  return at->second;
}

std::string Question::exp_of(const std::string& of) {
  bool fresh = false;
  const std::string value = called("exp", {of}, fresh);
  if (fresh) hold("(> " + value + " 0.0)");
  return value;
}

std::string Question::log_of(const std::string& of) {
  bool fresh = false;
  return called("log", {of}, fresh);
}

// The number that is not negative and whose power is what is inside. Said only where that is not
// negative: of others nothing is known, and hold_domains() excludes them.
std::string Question::root_of(const std::string& inside, int64_t degree) {
  bool fresh = false;
  const std::string of = named(inside),
                    value = called("root " + std::to_string(degree), {of}, fresh);
  if (fresh)
    hold("(=> (>= " + of + " 0.0) (and (>= " + value + " 0.0) (= " + power(value, degree) + " " +
         of + ")))");
  return value;
}

// An indicator has no constant of its own: it is a case of its token, which is one of its values.
std::string Question::atom(Atom a) {
  const AtomValue& v = terms_.atom(a);
  const std::string name = "a" + std::to_string(a);
  if (v.kind == AtomKind::indicator) {
    const std::string token = "t" + std::to_string(v.first);
    if (tokens_.insert(v.first).second) {
      declared(token);
      std::string values;
      for (uint32_t n = 0; n < terms_.token_size(v.first); ++n)
        values += " " + applied("=", token, text(Rational(n)));
      hold(terms_.token_size(v.first) == 1 ? values.substr(1) : "(or" + values + ")");
    }
    return cases(applied("=", token, text(Rational(v.second))), "1.0", "0.0");
  }
  if (!met_.insert(a).second) return name;
  const auto define = [&](const std::string& as) {
    script_ += "(define-fun " + name + " () Real " + as + ")\n";
    return name;
  };
  switch (v.kind) {
    case AtomKind::sum:
      return define(text(v.of));
    case AtomKind::exp:
      return define(exp_of(text(v.of)));
    case AtomKind::log: {
      const std::string of = named(text(v.of));
      domains_.insert("(> " + of + " 0.0)");
      return define(log_of(of));
    }
    case AtomKind::root: {
      const std::string of = named(text(v.of));
      domains_.insert("(> " + of + " 0.0)");
      return define(root_of(of, v.first));
    }
    case AtomKind::number:
      declared(name);
      hold("(> " + name + " 0.0)");
      return name;
    case AtomKind::function: {
      std::vector<std::string> arguments;
      for (Element e : v.arguments) arguments.push_back(named(text(e)));
      return define(function(static_cast<Function>(v.first), arguments, a));
    }
    case AtomKind::infinity:
      throw Unprovable("infinity is no number for the solver");
    default:
      return declared(name);
  }
}

// Cases where the function is one of cases. Else a constant for the call, of which nothing is said
// here.
std::string Question::function(Function f, const std::vector<std::string>& arguments, Atom a) {
  const std::string& x = arguments[0];
  switch (f) {
    case Function::step:
      return cases(applied(">", x, "0.0"), "1.0", "0.0");
    case Function::absolute:
      return cases(applied(">", x, "0.0"), x, "(- " + x + ")");
    case Function::sign:
      return cases(applied(">", x, "0.0"), "1.0", cases(applied("<", x, "0.0"), "(- 1.0)", "0.0"));
    case Function::maximum: {
      std::string greatest = x;
      for (size_t i = 1; i < arguments.size(); ++i) {
        const std::string best = "a" + std::to_string(a) + "_" + std::to_string(i);
        script_ += "(define-fun " + best + " () Real " +
                   cases(applied(">", greatest, arguments[i]), greatest, arguments[i]) + ")\n";
        greatest = best;
      }
      return greatest;
    }
    default: {
      bool fresh = false;
      return called("function " + std::to_string(static_cast<uint32_t>(f)), arguments, fresh);
    }
  }
}

void Question::hold_domains() {
  for (const std::string& condition : domains_) hold(condition);
}

// Each pair of calls of one function, which is quadratic: hence the bound.
void Question::for_pairs(const std::function<void(const Applied&, const Applied&)>& say) {
  size_t pairs = 0;
  for (size_t i = 0; i < calls_.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      const Applied &x = calls_[i], &y = calls_[j];
      // A root is known by its power.
      if (x.function != y.function || x.function.starts_with("root")) continue;
      if (++pairs > kPairs) throw Unprovable("too many functions for the solver");
      say(x, y);
    }
}

void Question::hold_one_value() {
  for_pairs([&](const Applied& x, const Applied& y) {
    std::string equal;
    for (size_t k = 0; k < x.arguments.size(); ++k)
      equal += " " + applied("=", x.arguments[k], y.arguments[k]);
    hold("(=> (and" + equal + ") " + applied("=", x.value, y.value) + ")");
  });
}

// a < b exactly where exp(a) < exp(b), in both directions. Of log only above 0.
void Question::hold_functions() {
  hold_one_value();
  for_pairs([&](const Applied& x, const Applied& y) {
    if (x.function != "exp" && x.function != "log") return;
    const std::string &a = x.arguments[0], &b = y.arguments[0];
    const auto orders = [&](const std::string& p, const std::string& q, const std::string& of_p,
                            const std::string& of_q) {
      return applied("=", applied("<", p, q), applied("<", of_p, of_q));
    };
    const std::string increasing =
        applied("and", orders(a, b, x.value, y.value), orders(b, a, y.value, x.value));
    hold(x.function == "exp" ? increasing
                             : "(=> (and (> " + a + " 0.0) (> " + b + " 0.0)) " + increasing + ")");
  });
}

}  // namespace opguard::proving
