#include "prove/last_resort.h"

#include <algorithm>

#include "prove/question.h"

namespace opguard::proving {
namespace {

constexpr uint64_t kAllSteps = 40'000'000;  // of all questions of a plan: about twenty seconds

}  // namespace

// A question of its own each time: the solver keeps nothing from one to the next.
bool LastResort::none(Element a, Element b, bool functions) {
  Question question(terms_);
  const std::string x = question.text(a), y = question.text(b);
  question.hold_domains();
  if (functions) question.hold_functions();
  question.differ(x, y);
  const uint64_t left = kAllSteps - std::min(kAllSteps, steps_);
  if (left == 0) throw Unprovable("it has no steps left");
  const SolverReply reply = solver_->ask(question.script(), std::min(left, Solver::kSteps));
  steps_ += reply.steps;
  return reply.answer == Satisfiable::none;
}

bool LastResort::equal(Element a, Element b) {
  if (solver_ == nullptr) {
    why_ = "there is no Z3 here to be asked (Debian: libz3-4)";
    return false;
  }
  try {
    // Without what functions have in common first: that is much to look at, and seldom needed.
    if (none(a, b, false) || none(a, b, true)) {
      ++decided_;
      return true;
    }
    why_ = "Z3 " + solver_->version() + " was asked, and did not decide";
  } catch (const Unprovable& e) {
    why_ = "Z3 " + solver_->version() + " was not asked: " + e.what();
  }
  return false;
}

}  // namespace opguard::proving
