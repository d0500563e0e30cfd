#include "prove/algebra.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <random>

#include "prove/evaluate.h"
#include "prove/identities.h"
#include "prove/question.h"

namespace opguard::proving {
namespace {

constexpr uint64_t kSeed = 1;  // of --rules
constexpr size_t kCalls = 600;
constexpr size_t kCallsOfOne = 14;  // calls on one set of terms; then from the beginning
constexpr size_t kWidest = 40;      // parts of an element that goes on into others
constexpr uint32_t kTokenSize = 3;

// What a proof assumes of an operation's argument.
struct Domain {
  Element of;
  bool positive;  // else: not zero
  auto operator<=>(const Domain&) const = default;
};

// An element, and what was assumed on the way to it.
struct Derived {
  Element element;
  std::set<Domain> domains;
};

// One call: its arguments, what it returned, and what it means, as text of the arguments.
struct TermCall {
  std::string rule;
  std::vector<Derived> of;
  std::set<Domain> domains;
  Element result;
  std::function<std::string(Question&, const std::vector<std::string>&)> meaning;
};

std::string listed(const char* what, const std::vector<std::string>& of) {
  std::string text = std::string("(") + what;
  for (const std::string& one : of) text += " " + one;
  return text + ")";
}

std::string if_positive(const std::string& x, const std::string& yes, const std::string& no) {
  return "(ite (> " + x + " 0.0) " + yes + " " + no + ")";
}

// The instances of kLaws that a call of exp or log needs. A premise stands before each, so that
// a wrong choice of terms proves nothing.
class Laws {
 public:
  Laws(Question& question, const Terms& terms) : question_(question), terms_(terms) {}

  // exp of a sum is the product of powers. The sum is taken as it is, then with named sums of
  // logarithms written out, then with all of them.
  std::string exp(Element e, const std::string& text) {
    const std::string value = question_.exp_of(text);
    for (const Written written : {Written::none, Written::logs, Written::all}) {
      std::map<Monomial, Rational> parts;
      write_out(e, Rational(1), written, parts);
      exp_of_parts(parts, text, value);
    }
    return value;
  }

  // log of a product of what is positive is a sum.
  std::string log(Terms& terms, Element e, const std::string& text) {
    const std::string value = question_.log_of(text);
    const Product p = terms.product(e);
    std::vector<std::string> positive, factors{"1.0"}, logs{"0.0"};
    const auto add = [&](const std::string& of, const std::string& log_of, int64_t times) {
      positive.push_back("(> " + of + " 0.0)");
      factors.push_back(Question::power(of, times));
      logs.push_back("(* " + Question::text(Rational(times)) + " " + log_of + ")");
    };
    std::vector<std::string> rest;
    Rational size = p.factor;
    for (const Factor& f : terms_.factors(p.monomial)) {
      const AtomValue& v = terms_.atom(f.atom);
      const std::string base = question_.text(terms.of_atom(f.atom));
      if (v.kind == AtomKind::exp) {
        add(base, question_.text(v.of), f.exponent);
      } else if (terms.sign_of(terms.of_atom(f.atom)) == Terms::Sign::positive) {
        add(base, question_.log_of(base), f.exponent);
      } else {
        if (f.exponent % 2 != 0) rest.push_back(base);
        const std::string square = Question::power(base, 2);
        const int64_t pairs = (f.exponent - (f.exponent % 2 != 0 ? 1 : 0)) / 2;
        if (pairs != 0) add(square, question_.log_of(square), pairs);
      }
    }
    if (size.numerator() < 0) {
      size = -size;
      rest.push_back("(- 1.0)");
    }
    const std::string whole = Question::text(size);
    add(whole, question_.log_of(whole), 1);
    question_.hold("(= " + question_.log_of("1.0") + " 0.0)");
    if (!rest.empty()) {
      const std::string left = question_.named(rest.size() > 1 ? listed("*", rest) : rest[0]);
      add(left, question_.log_of(left), 1);
      // log(y^2) = 2 log(y) above 0.
      const std::string square = Question::power(left, 2);
      question_.hold("(=> (> " + left + " 0.0) (= " + question_.log_of(square) + " (* 2.0 " +
                     question_.log_of(left) + ")))");
    }
    positive.push_back("(= " + text + " " + listed("*", factors) + ")");
    question_.hold("(=> " + listed("and", positive) + " (= " + value + " " + listed("+", logs) +
                   "))");
    return value;
  }

 private:
  enum class Written { none, logs, all };

  void exp_of_parts(const std::map<Monomial, Rational>& parts, const std::string& text,
                    const std::string& value) {
    std::vector<std::string> exponents{"0.0"}, powers{"1.0"};
    for (const auto& [m, c] : parts) {
      if (c.zero()) continue;
      const std::string inner = question_.monomial(m);
      const std::string unit =
          c.whole() ? inner : listed("*", {Question::text(Rational(1, c.denominator())), inner});
      const std::string factor = question_.exp_of(unit);
      // exp(log(x) / d)^d = x.
      if (const AtomValue* v = lone(m); v != nullptr && v->kind == AtomKind::log) {
        const std::string x = question_.named(question_.text(v->of));
        question_.hold("(=> (> " + x + " 0.0) (= " + Question::power(factor, c.denominator()) +
                       " " + x + "))");
      }
      exponents.push_back(listed("*", {Question::text(Rational(c.numerator())), unit}));
      powers.push_back(Question::power(factor, c.numerator()));
    }
    question_.hold("(=> (= " + text + " " + listed("+", exponents) + ") (= " + value + " " +
                   listed("*", powers) + "))");
  }

  // The atom that a monomial is.
  const AtomValue* lone(Monomial m) const {
    const FactorList f = terms_.factors(m);
    return f.size() == 1 && f[0].exponent == 1 ? &terms_.atom(f[0].atom) : nullptr;
  }

  void write_out(Element e, const Rational& by, Written written,
                 std::map<Monomial, Rational>& parts) const {
    for (const Part& p : terms_.parts(e)) {
      const AtomValue* v = lone(p.monomial);
      if (v != nullptr && v->kind == AtomKind::sum &&
          (written == Written::all || (written == Written::logs && has_log(v->of)))) {
        write_out(v->of, by * p.factor, written == Written::all ? written : Written::none, parts);
        continue;
      }
      Rational& at = parts.try_emplace(p.monomial, Rational(0)).first->second;
      at = at + by * p.factor;
    }
  }

  bool has_log(Element e) const {
    return std::ranges::any_of(terms_.parts(e), [&](const Part& p) {
      const AtomValue* v = lone(p.monomial);
      return v != nullptr && v->kind == AtomKind::log;
    });
  }

  Question& question_;
  const Terms& terms_;
};

// Random terms and the calls that make them.
class RandomCalls {
 public:
  explicit RandomCalls(std::mt19937_64& random)
      : random_(random), witness_(terms_, random() % 1000 + 1) {
    for (uint32_t i = 0; i < 3; ++i) pool_.push_back({terms_.variable("x", i), {}});
    const Element token = terms_.token("ids", 0, kTokenSize);
    for (const Element e : {token, terms_.rational(Rational(2)), terms_.rational(Rational(-3, 2)),
                            terms_.exp(terms_.variable("x", 0))})
      pool_.push_back({e, {}});
  }

  Terms& terms() { return terms_; }

  // None where the engine refuses it, or where the witness is outside of what is assumed.
  std::optional<TermCall> next() {
    std::optional<TermCall> call;
    try {
      call = made();
    } catch (const Unprovable&) {
      return {};
    }
    if (!call) return {};
    for (const Derived& d : call->of) call->domains.insert(d.domains.begin(), d.domains.end());
    for (const Domain& d : call->domains) {
      const Number n = witness_.number(d.of);
      if (n.outside || !(d.positive ? n.value > 1e-3 : std::fabs(n.value) > 1e-3)) return {};
    }
    if (terms_.parts(call->result).size() <= kWidest)
      pool_.push_back({call->result, call->domains});
    return call;
  }

 private:
  uint64_t below(uint64_t n) { return random_() % n; }
  const Derived& any() {
    // The youngest more often, so that terms grow.
    const size_t n = pool_.size(), back = std::min(below(n), below(n));
    return pool_[n - 1 - back];
  }
  Element token() { return terms_.token("ids", 0, kTokenSize); }

  using Texts = const std::vector<std::string>&;

  std::optional<TermCall> made() {
    const Derived a = any(), b = any(), c = any();
    const Element x = a.element, y = b.element, z = c.element;
    const auto text = [](const Rational& r) { return Question::text(r); };
    switch (below(25)) {
      case 0:
        return TermCall{"add", {a, b}, {}, terms_.add(x, y), [](Question&, Texts t) {
                          return listed("+", {t[0], t[1]});
                        }};
      case 1:
        return TermCall{"subtract", {a, b}, {}, terms_.subtract(x, y), [](Question&, Texts t) {
                          return listed("-", {t[0], t[1]});
                        }};
      case 2: {
        const Rational by(static_cast<int64_t>(below(9)) - 4, static_cast<int64_t>(below(3)) + 1);
        return TermCall{"scaled", {a}, {}, terms_.scaled(x, by), [=](Question&, Texts t) {
                          return listed("*", {text(by), t[0]});
                        }};
      }
      case 3:
      case 4:
        return TermCall{"multiply", {a, b}, {}, terms_.multiply(x, y), [](Question&, Texts t) {
                          return listed("*", {t[0], t[1]});
                        }};
      case 5:
        return TermCall{
            "divide", {a, b}, {{y, false}}, terms_.divide(x, y), [](Question&, Texts t) {
              return listed("/", {t[0], t[1]});
            }};
      case 6: {
        const int64_t n = std::array{-3, -2, -1, 2, 3}[below(5)];
        std::set<Domain> domains;
        if (n < 0) domains.insert({x, false});
        return TermCall{
            "power", {a}, domains, terms_.power(x, Rational(n)), [n](Question&, Texts t) {
              return Question::power(t[0], n);
            }};
      }
      case 7: {
        const int64_t n = std::array{-3, -1, 1, 3}[below(4)], d = std::array{2, 2, 3}[below(3)];
        const Rational exponent(n, d);
        return TermCall{
            "root", {a}, {{x, true}}, terms_.power(x, exponent), [exponent](Question& q, Texts t) {
              return Question::power(q.root_of(t[0], exponent.denominator()), exponent.numerator());
            }};
      }
      case 8:
        return TermCall{"exp", {a}, {}, terms_.exp(x), [this, x](Question& q, Texts t) {
                          return Laws(q, terms_).exp(x, t[0]);
                        }};
      case 9:
        return TermCall{"log", {a}, {{x, true}}, terms_.log(x), [this, x](Question& q, Texts t) {
                          return Laws(q, terms_).log(terms_, x, t[0]);
                        }};
      case 10:
        return TermCall{"sigmoid", {a}, {}, terms_.sigmoid(x), [this, x](Question& q, Texts t) {
                          const std::string minus = q.named(listed("-", {t[0]}));
                          return "(/ 1.0 (+ 1.0 " +
                                 Laws(q, terms_).exp(terms_.scaled(x, Rational(-1)), minus) + "))";
                        }};
      case 11:
        return TermCall{"step", {a}, {}, terms_.step(x), [](Question&, Texts t) {
                          return if_positive(t[0], "1.0", "0.0");
                        }};
      case 12:
        return TermCall{"relu", {a}, {}, terms_.relu(x), [](Question&, Texts t) {
                          return if_positive(t[0], t[0], "0.0");
                        }};
      case 13:
        return TermCall{"absolute", {a}, {}, terms_.absolute(x), [](Question&, Texts t) {
                          return if_positive(t[0], t[0], listed("-", {t[0]}));
                        }};
      case 14:
        return TermCall{"sign", {a}, {}, terms_.sign(x), [](Question&, Texts t) {
                          return if_positive(t[0], "1.0", "(ite (= " + t[0] + " 0.0) 0.0 (- 1.0))");
                        }};
      case 15:
        return TermCall{"less", {a, b}, {}, terms_.less(x, y), [](Question&, Texts t) {
                          return if_positive(listed("-", {t[1], t[0]}), "1.0", "0.0");
                        }};
      case 16:
        return TermCall{"equal", {a, b}, {}, terms_.equal(x, y), [](Question&, Texts t) {
                          return "(ite (= " + t[0] + " " + t[1] + ") 1.0 0.0)";
                        }};
      case 17: {
        const Element all[] = {x, y, z};
        return TermCall{"maximum", {a, b, c}, {}, terms_.maximum(all), [](Question& q, Texts t) {
                          const std::string first = q.named("(ite (< " + t[0] + " " + t[1] + ") " +
                                                            t[1] + " " + t[0] + ")");
                          return "(ite (< " + first + " " + t[2] + ") " + t[2] + " " + first + ")";
                        }};
      }
      case 18: {
        const Element left[] = {x, y}, right[] = {z, x};
        return TermCall{"dot", {a, b, c}, {}, terms_.dot(left, right), [](Question&, Texts t) {
                          return listed("+",
                                        {listed("*", {t[0], t[2]}), listed("*", {t[1], t[0]})});
                        }};
      }
      case 19:
        return TermCall{
            "product", {a}, {}, terms_.of_product(terms_.product(x)), [](Question&, Texts t) {
              return t[0];
            }};
      case 20: {
        // Two that may have one value.
        const Element apart = terms_.add(terms_.divide(x, z), terms_.divide(y, z)),
                      whole = terms_.divide(terms_.add(x, y), z);
        if (!terms_.same(apart, whole)) return {};
        return TermCall{
            "same", {a, b, c, {apart, {}}}, {{z, false}}, whole, [](Question&, Texts t) {
              return t[3];
            }};
      }
      case 21: {
        const Element written = terms_.add(terms_.multiply(x, y), terms_.multiply(x, z)),
                      whole = terms_.multiply(x, terms_.add(y, z));
        if (!terms_.same(written, whole)) return {};
        return TermCall{
            "same", {a, b, c, {written, {}}}, {}, whole, [](Question&, Texts t) { return t[3]; }};
      }
      case 22: {
        // A sign and a truth are what they are found to be.
        const bool truth = terms_.is_truth(x);
        const Terms::Sign sign = terms_.sign_of(x);
        if (!truth && sign == Terms::Sign::unknown) return {};
        const char* holds = truth                           ? "(or (= %s 0.0) (= %s 1.0))"
                            : sign == Terms::Sign::positive ? "(> %s 0.0)"
                                                            : "(>= %s 0.0)";
        return TermCall{truth ? "is_truth" : "sign_of",
                        {a},
                        {},
                        x,
                        [holds = std::string(holds)](Question&, Texts t) {
                          std::string condition = holds;
                          for (size_t at; (at = condition.find("%s")) != std::string::npos;)
                            condition.replace(at, 2, t[0]);
                          return "(ite " + condition + " " + t[0] + " (+ 1.0 " + t[0] + "))";
                        }};
      }
      case 23:
        return TermCall{"named", {a}, {}, terms_.named(x), [](Question&, Texts t) { return t[0]; }};
      default:
        return TermCall{
            "look_up",
            {a, b, c},
            {},
            terms_.look_up(token(), [&](int64_t v) { return v == 0   ? x
                                                            : v == 1 ? y
                                                                     : z; }),
            [this](Question& q, Texts t) {
              const std::string id = q.named(q.text(token()));
              return "(ite (= " + id + " 0.0) " + t[0] + " (ite (= " + id + " 1.0) " + t[1] + " " +
                     t[2] + "))";
            }};
    }
  }

  std::mt19937_64& random_;
  Terms terms_;
  Point witness_;
  std::vector<Derived> pool_;
};

std::optional<AlgebraQuestion> question_of(Terms& terms, const TermCall& call) {
  try {
    Question q(terms);
    std::vector<std::string> arguments;
    for (const Derived& d : call.of) arguments.push_back(q.named(q.text(d.element)));
    for (const Domain& d : call.domains)
      q.hold(std::string(d.positive ? "(> " : "(distinct ") + q.text(d.of) + " 0.0)");
    const std::string meaning = q.named(call.meaning(q, arguments)), result = q.text(call.result);
    if (meaning == result) return {};
    q.hold_one_value();
    q.differ(meaning, result);
    return AlgebraQuestion{call.rule, q.script(), true};
  } catch (const Unprovable&) {
    return {};
  }
}

}  // namespace

std::vector<AlgebraQuestion> algebra_questions(uint64_t seed, size_t calls) {
  std::vector<AlgebraQuestion> questions;
  std::mt19937_64 random(seed);
  for (size_t n = 0; n < calls;) {
    RandomCalls some(random);
    for (size_t i = 0; i < kCallsOfOne && n < calls; ++i, ++n)
      if (const auto call = some.next())
        if (auto question = question_of(some.terms(), *call))
          questions.push_back(std::move(*question));
  }
  return questions;
}

AlgebraProof prove_algebra(Solver& solver, const std::vector<AlgebraQuestion>& questions) {
  AlgebraProof proof;
  proof.solver = solver.version();
  for (const AlgebraQuestion& q : questions) {
    AlgebraProof::Count& all = q.is_call ? proof.calls : proof.identities;
    AlgebraProof::Count own, &count = q.is_call ? proof.rules[q.rule] : own;
    ++all.asked, ++count.asked;
    switch (solver.ask(q.script).answer) {
      case Satisfiable::none:
        ++all.proved, ++count.proved;
        break;
      case Satisfiable::some:
        proof.refuted.push_back(q);
        break;
      case Satisfiable::undecided:
        proof.undecided.push_back(q);
        break;
    }
  }
  return proof;
}

AlgebraProof prove_rules_of_algebra(Solver& solver) {
  std::vector<AlgebraQuestion> questions = algebra_questions(kSeed, kCalls);
  for (const Identity& identity : identities()) questions.push_back(question_of(identity));
  return prove_algebra(solver, questions);
}

}  // namespace opguard::proving
