// prove/solver.h: Z3, where the machine has it. The program runs without: the library is looked for
// at run time.
//
//   std::unique_ptr<Solver> z3 = Solver::find("");
//   if (z3) z3->ask("(declare-const x Real)(assert (< (* x x) 0.0))").answer;
//   // none: no x has a negative square, which is a proof
//
// A question is SMT-LIB 2 text without (check-sat). Its answer is the same in each run: what bounds
// the search are Z3's own steps, not seconds. Only what a search cannot take any more (memory,
// twenty seconds) ends it otherwise.
//
// Counterexample: a text that Z3 does not understand is no "none". It complains and goes on without
// that line. So only an answer without a complaint counts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace opguard::proving {

// Whether there is anything that satisfies the assertions.
enum class Satisfiable : uint8_t { none, some, undecided };

struct SolverReply {
  Satisfiable answer = Satisfiable::undecided;
  std::string said;  // by the solver, where it is undecided: a limit, a mistake in the text
  uint64_t steps = 0;
};

class Solver {
 public:
  // A library's path; "": libz3.so.4 or libz3.so, where the loader finds them. None where there is
  // none, or where it is none of Z3's.
  static std::unique_ptr<Solver> find(const std::string& library);
  ~Solver();

  const std::string& version() const { return version_; }  // "4.8.12"
  SolverReply ask(const std::string& question, uint64_t steps = kSteps);

  static constexpr uint64_t kSteps = 4'000'000;  // about two seconds

 private:
  struct Library;
  explicit Solver(std::unique_ptr<Library> library);

  std::unique_ptr<Library> library_;
  std::string version_;
};

}  // namespace opguard::proving
