// session/follow_run.h: a run's invariants looked at while it runs: `opguard run --check`.
//
//   FollowedRun followed(folder, rules, stop);     a thread reads the logs as they grow
//   launch(program);
//   followed.finish();                             what is left is looked at
//
// A finding is printed in the step in which it happens, as soon as the rank's log has it. What
// compares ranks is printed when the last of them has ended the step. With `stop` each rank waits
// at the end of a step until it was looked at. Where a rule is broken it is told to end.
//
// The cost: one thread; the program waits for nothing unless it is to be stopped.
#pragma once

#include <memory>
#include <string>

#include "invariants/invariants_file.h"

namespace opguard {

class FollowedRun {
 public:
  // `rules` outlive it. stop_file: what OPGUARD_CHECK_STOP names; "" where nothing is stopped.
  // command: of the shell, for each finding (violation_command.h); "" for none.
  FollowedRun(std::string folder, const InvariantsFile& rules, std::string stop_file,
              std::string command);
  ~FollowedRun();
  // The program has ended. Its files for stopping are removed.
  void finish();
  bool violated() const;  // by a rule that is more than a note

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace opguard
