// session/doctor.h: what works here, and why something does not.
#pragma once

#include <string>
#include <vector>

namespace opguard {

struct DoctorOptions {
  std::vector<std::string> python;
};

// The exit code (support/exit_code.h).
int doctor(const DoctorOptions& opt);

}  // namespace opguard
