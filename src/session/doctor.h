// session/doctor.h: what works here, and why something does not.
//
//   ok  python             3.12.3  /usr/bin/python3
//   -   CUDA driver        libcuda.so.1: cannot open shared object file; tensors on the CPU only
//   NO  probe              it changed the result of the function it wrapped
//
// ok: it works. -: some uses need it. NO: nothing works without it, and the exit code is kNo.
//
// Counterexample: what a program does about its determinism. That is asked by running it
// (doctor_program.h).
#pragma once

#include <string>
#include <vector>

namespace opguard {

struct DoctorOptions {
  // Words that start the interpreter, "uv run python"; empty: the first of python and python3 that
  // answers.
  std::vector<std::string> python;
};

// The exit code (support/exit_code.h).
int doctor(const DoctorOptions& opt);

}  // namespace opguard
