#include "prove/solver.h"

#include <gtest/gtest.h>

#include <cmath>

#include "prove/last_resort.h"
#include "prove/question.h"

namespace opguard::proving {
namespace {

TEST(NoSolver, IsFoundWhereThereIsNone) {
  EXPECT_EQ(Solver::find("/nonexistent/libz3.so"), nullptr);
  // A library, and not Z3's.
  EXPECT_EQ(Solver::find("libm.so.6"), nullptr);
  Terms terms;
  LastResort none(terms, nullptr);
  EXPECT_FALSE(none.equal(terms.one(), terms.one()));
  EXPECT_NE(none.why().find("libz3-4"), std::string::npos);
}

class SolverTest : public testing::Test {
 protected:
  void SetUp() override {
    z3 = Solver::find("");
    if (!z3) GTEST_SKIP() << "no libz3 here (Debian: libz3-4)";
  }
  Element x(uint32_t i) { return terms.variable("x", i); }
  Element minus(Element e) { return terms.scaled(e, Rational(-1)); }
  bool proves(Element a, Element b) { return LastResort(terms, z3.get()).equal(a, b); }

  std::unique_ptr<Solver> z3;
  Terms terms;
};

TEST_F(SolverTest, AnswersAndSurvives) {
  const std::string x = "(declare-const x Real)";
  EXPECT_EQ(z3->ask(x + "(assert (< (* x x) 0.0))").answer, Satisfiable::none);
  EXPECT_EQ(z3->ask(x + "(assert (= (* x x) 2.0))").answer, Satisfiable::some);
  // What it does not understand is no answer, whatever it says of the rest.
  for (const char* wrong : {"(assert (= x", "(assert (= y 1.0))", "(nonsense)", ")", "(exit)",
                            "(assert false)(check-sat)"})
    EXPECT_EQ(z3->ask(x + wrong).answer, Satisfiable::undecided) << wrong;
  EXPECT_EQ(z3->ask(x + "(assert (< (* x x) 0.0))").answer, Satisfiable::none);
  EXPECT_NE(z3->version().find('.'), std::string::npos);
}

TEST_F(SolverTest, StepsBoundAQuestion) {
  std::string question;
  for (const char* name : {"x", "y", "z", "u", "v", "w"})
    question += std::string("(declare-const ") + name + " Real)";
  question +=
      "(assert (< (+ (* x x x x y y) (* x x y y y y) (* z z z z z z) (* (- 3.0) x x y y z z))"
      " (- (* u u v v w w) (* u u v v) 1.0)))(assert (> (* x u) (+ (* y v) 3.0)))"
      "(assert (= (+ (* x x) (* y y) (* z z) (* u u)) 1.0))(assert (= (* x v) (+ w (* y y y))))";
  const SolverReply whole = z3->ask(question);
  EXPECT_EQ(whole.answer, Satisfiable::some);
  EXPECT_GT(whole.steps, 1000u);
  const SolverReply few = z3->ask(question, 1000);
  EXPECT_EQ(few.answer, Satisfiable::undecided);
  EXPECT_NE(few.said.find("limit"), std::string::npos) << few.said;
}

TEST_F(SolverTest, DecidesWhatTheTermsLeaveOpen) {
  const Element size = terms.absolute(x(0)), square = terms.multiply(x(0), x(0));
  const Element half[] = {x(0), x(1)};
  const Element least[] = {minus(x(0)), minus(x(1))};
  const std::pair<Element, Element> equal[] = {
      {terms.multiply(size, size), square},
      {terms.multiply(size, terms.sign(x(0))), x(0)},
      {terms.subtract(terms.relu(x(0)), terms.relu(minus(x(0)))), x(0)},
      {terms.subtract(terms.maximum(half), terms.maximum(least)), terms.add(x(0), x(1))},
      {terms.power(square, Rational(1, 2)), size},
      {terms.multiply(terms.power(x(0), Rational(1, 2)), terms.power(x(1), Rational(1, 2))),
       terms.power(terms.multiply(x(0), x(1)), Rational(1, 2))},
  };
  for (const auto& [a, b] : equal) {
    EXPECT_FALSE(terms.same(a, b));
    EXPECT_TRUE(proves(a, b));
    EXPECT_FALSE(proves(a, terms.add(b, x(2))));
    EXPECT_FALSE(proves(terms.scaled(a, Rational(2)), b));
  }
  // A token has one of its values, and no other.
  const Element token = terms.token("ids", 0, 3);
  const Element is_two = terms.equal(token, terms.rational(Rational(2)));
  EXPECT_TRUE(proves(
      terms.multiply(terms.multiply(is_two, size), token),
      terms.scaled(terms.multiply(is_two, terms.power(square, Rational(1, 2))), Rational(2))));
  // A function of equal numbers is one number; of others it is not.
  const auto tanh = [&](Element e) { return terms.function(Function::tanh, {e}); };
  EXPECT_TRUE(proves(tanh(terms.multiply(size, size)), tanh(square)));
  EXPECT_FALSE(proves(tanh(size), tanh(x(0))));
  EXPECT_TRUE(proves(terms.step(terms.subtract(terms.exp(x(0)), terms.exp(x(1)))),
                     terms.step(terms.subtract(x(0), x(1)))));
  EXPECT_FALSE(proves(terms.exp(size), terms.exp(x(0))));
  // True of numbers alone: to the solver any function may be tanh.
  EXPECT_FALSE(proves(tanh(minus(x(0))), minus(tanh(x(0)))));
}

TEST_F(SolverTest, WhatIsTooLargeOrNoNumberIsNotAsked) {
  LastResort last(terms, z3.get());
  EXPECT_FALSE(last.equal(terms.minus_infinity(), x(0)));
  EXPECT_NE(last.why().find("was not asked: infinity"), std::string::npos) << last.why();
  Element sum = terms.zero();
  for (uint32_t i = 0; i < 3000; ++i) sum = terms.add(sum, x(i));
  EXPECT_FALSE(last.equal(sum, x(0)));
  EXPECT_NE(last.why().find("too large"), std::string::npos) << last.why();
  EXPECT_EQ(last.decided(), 0u);
}

}  // namespace
}  // namespace opguard::proving
