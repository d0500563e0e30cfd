#include "prove/algebra.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "prove/identities.h"

namespace opguard::proving {
namespace {

TEST(Algebra, EachRandomCallIsWhatItMeans) {
  const auto z3 = Solver::find("");
  if (!z3) GTEST_SKIP() << "no libz3 here";
  const char* n = std::getenv("CALLS");
  const char* sd = std::getenv("SEED");
  const AlgebraProof proof = n ? prove_algebra(*z3, algebra_questions(sd ? atoi(sd) : 1, atoi(n)))
                               : prove_rules_of_algebra(*z3);
  for (const auto& [rule, count] : proof.rules)
    std::printf("%s %zu of %zu\n", rule.c_str(), count.proved, count.asked);
  std::printf("%zu of %zu identities\n", proof.identities.proved, proof.identities.asked);
  for (const auto& q : proof.refuted)
    std::printf("REFUTED %s\n%s\n", q.rule.c_str(), q.script.c_str());
  for (const auto& q : proof.undecided)
    std::printf("UNDECIDED %s\n%s\n%s\n", q.rule.c_str(), q.script.c_str(),
                z3->ask(q.script).said.c_str());
  EXPECT_TRUE(proof.refuted.empty());
}

}  // namespace
}  // namespace opguard::proving
