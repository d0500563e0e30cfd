// session/doctor_program.h: what holds a program's determinism, and what does not.
//
//   opguard doctor -- python train.py
//
// The program runs for a few steps under observation, as it is. Then it runs once more, and
// deterministic algorithms are asked for. The second run names the operators without one, and what
// differs by itself between two runs (determinism/judge.h).
//
// Counterexample: `opguard doctor -- python3` asks an interpreter (doctor.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace opguard {

struct DoctorProgramOptions {
  std::vector<std::string> command;
  std::vector<std::string> packages;
  // Of each run, after which it is ended.
  uint64_t steps = 3;  // 0: to the program's end
  bool once = false;   // not a second time
  bool deterministic = false;
  uint64_t seed = 0;
  std::string json, work;
};

// Whether the words name an interpreter and no program for it: "python3", "uv run python".
bool names_interpreter(const std::vector<std::string>& words);

// The exit code: kYes: nothing is violated.
int doctor_program(const DoctorProgramOptions& opt);

}  // namespace opguard
