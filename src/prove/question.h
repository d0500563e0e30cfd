// prove/question.h: terms as SMT-LIB 2 text, for solver.h.
//
//   Question q(terms);
//   q.differ(q.text(a), q.text(b));
//   solver.ask(q.script());  // none: a and b are equal
//
//   2 x + relu(y)     (+ (* 2.0 a3) (* a4 a5)), where a5 is (ite (> a4 0.0) 1.0 0.0)
//
// Every atom is one real constant. A sum that has a name is defined by it. Steps, signs, magnitudes
// and maxima are written as cases, and so are tokens. What a root is stands beside it. exp and log
// are known by the laws in algebra.h. Of any other function it is known that it is one.
//
// Counterexample: an answer of "some" refutes nothing. To the solver exp may be any positive
// function that rises.
//
// Each atom is written once, however often it occurs. What is too large (kLargest parts) is not
// asked.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "prove/terms.h"

namespace opguard::proving {

class Question {
 public:
  explicit Question(const Terms& terms) : terms_(terms) {}

  // All throw Unprovable where there is no such text: of minus infinity, of what is too large.
  std::string text(Element e);
  std::string monomial(Monomial m);
  // exp and log of what is no atom of the terms: a constant of its own, with what is known of it.
  std::string exp_of(const std::string& of);
  std::string log_of(const std::string& of);
  std::string root_of(const std::string& inside, int64_t degree);
  // One word for it.
  std::string named(const std::string& text);

  void hold(const std::string& condition) { script_ += "(assert " + condition + ")\n"; }
  void differ(const std::string& a, const std::string& b) {
    hold("(distinct " + a + " " + b + ")");
  }
  // That no denominator met so far is zero, and that roots and logarithms are of positive numbers.
  // After the texts: what is met later is not in it.
  void hold_domains();
  // That exp, log and other functions of equal numbers are equal.
  void hold_one_value();
  // And that exp and log are increasing.
  void hold_functions();
  const std::string& script() const { return script_; }

  static std::string text(const Rational& value);
  static std::string power(const std::string& base, int64_t exponent);
  static constexpr size_t kPairs = 1000;

 private:
  struct Applied {
    std::string function, value;
    std::vector<std::string> arguments;
  };
  std::string atom(Atom a);
  std::string declared(const std::string& name);
  void for_pairs(const std::function<void(const Applied&, const Applied&)>& say);
  std::string function(Function f, const std::vector<std::string>& arguments, Atom a);
  // One constant for one call. fresh: it was not there, so what is known of it has to be said.
  std::string called(const std::string& function, std::vector<std::string> arguments, bool& fresh);

  const Terms& terms_;
  std::string script_;
  std::set<Atom> met_;
  std::set<uint32_t> tokens_;
  std::set<std::string> domains_;
  std::vector<Applied> calls_;
  std::map<std::string, std::string> words_;  // of texts, of calls
  size_t parts_ = 0;
};

}  // namespace opguard::proving
