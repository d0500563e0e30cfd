// session/violation_command.h: a command of the user's for each finding of `opguard run --check`.
//
//   --violation-command 'kill -USR1 $OPGUARD_VIOLATION_PID'
//
// The shell runs it as the finding is told. Its standard input is the finding as JSON
// (docs/formats/invariants.md). OPGUARD_VIOLATION_STEP, _RANK and _PID are in its environment; the
// rank is -1 where all of them are meant. Nobody waits for it before the program has ended.
//
// Counterexample: it stops nothing by itself; --on-violation stop does.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "report/violations.h"

namespace opguard {

class ViolationCommand {
 public:
  explicit ViolationCommand(std::string command) : command_(std::move(command)) {}
  ViolationCommand(const ViolationCommand&) = delete;
  ~ViolationCommand() { wait(); }
  // pid: of a process that has broken the rule. Nothing happens where there is no command.
  void run(const ViolationFinding& finding, int64_t pid);
  // The program has ended: those that are not over after a few seconds are said and left alone.
  void wait();

 private:
  std::string command_;
  std::vector<pid_t> running_;
};

}  // namespace opguard
