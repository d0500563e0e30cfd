#include "prove/algebra.h"

#include <gtest/gtest.h>

#include "prove/identities.h"

namespace opguard::proving {
namespace {

class AlgebraTest : public testing::Test {
 protected:
  void SetUp() override {
    z3 = Solver::find("");
    if (!z3) GTEST_SKIP() << "no libz3 here (Debian: libz3-4)";
  }

  std::unique_ptr<Solver> z3;
};

std::string told(const AlgebraProof& proof) {
  std::string text;
  for (const AlgebraQuestion& q : proof.refuted) text += "refuted: " + q.rule + "\n" + q.script;
  for (const AlgebraQuestion& q : proof.undecided) text += "open: " + q.rule + "\n" + q.script;
  return text;
}

TEST_F(AlgebraTest, RandomCallsReturnWhatTheyMean) {
  const std::vector<AlgebraQuestion> questions = algebra_questions(3, 200);
  const AlgebraProof proof = prove_algebra(*z3, questions);
  EXPECT_GT(questions.size(), 150u);
  EXPECT_EQ(proof.calls.proved, questions.size()) << told(proof);
  EXPECT_GT(proof.rules.size(), 20u);
  EXPECT_EQ(proof.identities.asked, 0u);
  // The same for one seed.
  const std::vector<AlgebraQuestion> again = algebra_questions(3, 200);
  ASSERT_EQ(again.size(), questions.size());
  for (size_t i = 0; i < again.size(); ++i) EXPECT_EQ(again[i].script, questions[i].script);
}

TEST_F(AlgebraTest, WhatIsAssumedOfACallHoldsSomewhere) {
  // Else its negation would follow as well. The last assertion is what is asked.
  for (const AlgebraQuestion& q : algebra_questions(4, 30)) {
    const size_t asked = q.script.rfind("(assert (distinct ");
    const SolverReply reply = z3->ask(q.script.substr(0, asked));
    EXPECT_NE(reply.answer, Satisfiable::none) << q.rule << "\n" << q.script;
  }
}

TEST_F(AlgebraTest, IdentitiesHold) {
  std::vector<AlgebraQuestion> questions;
  for (const Identity& identity : identities()) questions.push_back(question_of(identity));
  const AlgebraProof proof = prove_algebra(*z3, questions);
  EXPECT_EQ(proof.identities.proved, questions.size()) << told(proof);
}

// A wrong one, one with less given, and one that is no SMT-LIB.
TEST_F(AlgebraTest, WrongIdentitiesAreNotProved) {
  const Identity wrong[] = {
      {"log(x^2) is 2 log(x)", "", "x", "(> (* x x) 0.0)", "(step x)", "1.0"},
      {"a step of -x", "", "x", "true", "(step (- x))", "(- 1.0 (step x))"},
      {"a root of a square", "", "x r", "(and (>= r 0.0) (= (* r r) (* x x)))", "r", "x"},
      {"a power of a sum", "", "x y", "true", "(* (+ x y) (+ x y))", "(+ (* x x) (* y y))"},
  };
  std::vector<AlgebraQuestion> questions;
  for (const Identity& identity : wrong) questions.push_back(question_of(identity));
  AlgebraProof proof = prove_algebra(*z3, questions);
  EXPECT_EQ(proof.refuted.size(), std::size(wrong));
  EXPECT_EQ(proof.identities.proved, 0u);
  proof = prove_algebra(*z3, {question_of({"", "", "x", "true", "(nothing x)", "x"})});
  EXPECT_EQ(proof.undecided.size(), 1u);
}

// Each identity needs what it is given, where it is given anything.
TEST_F(AlgebraTest, NothingIsGivenForNothing) {
  for (const Identity& identity : identities()) {
    if (std::string(identity.given) == "true") continue;
    Identity bare = identity;
    bare.given = "true";
    EXPECT_NE(z3->ask(question_of(bare).script).answer, Satisfiable::none) << identity.name;
  }
}

}  // namespace
}  // namespace opguard::proving
