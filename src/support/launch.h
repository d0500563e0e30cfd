// support/launch.h: the user's program as a child process: environment, output, signals, time.
//
//   Ctrl-C            the child and its children get it; LaunchResult::asked says so
//   kill -9 of us     the guardian ends what we started (support/guardian.h)
//   `env -i` below    opguard_keep.so brings our variables back (keep/kept.h)
//
// Counterexample: the user's own run, as in `opguard run`, is not `apart`: it keeps the terminal,
// and goes on when we are gone. Runs of ours get a process group of their own, which is ended as a
// whole.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "llvm/Support/Error.h"

namespace opguard {

enum class Output : uint8_t {
  inherit,    // the child's stdout and stderr are ours
  to_stderr,  // both go to our stderr, as they come, and are kept
  capture,    // both are kept and not shown
};

using Variables = std::vector<std::pair<std::string, std::string>>;

struct LaunchOptions {
  std::vector<std::string> command;
  std::string cwd;        // "" : ours
  Variables environment;  // added to ours; an empty value takes the variable away
  Output output = Output::inherit;
  std::string log;            // also write the output to this file, unless inherited
  uint64_t timeout_s = 0;     // 0: none
  size_t keep_bytes = 65536;  // of the output, the last
  // A run of our own, not the user's: in a process group of its own, without our terminal to read
  // from. What is left of the group when the command has ended is ended as well.
  bool apart = false;
  // A file: once it is there the work is done. A command that goes on is ended and ended well.
  std::string done;
};

struct LaunchResult {
  int exit_code = 0;  // as a shell would give it: 128 + signal for a death by signal
  int signal = 0;     // that ended the child, or that we were asked to end with
  int asked = 0;      // the signal that this process was asked to end with meanwhile (Ctrl-C), or 0
  bool timed_out = false;
  uint64_t peak_bytes =
      0;               // resident, of the largest of the command's processes that were waited for
  std::string output;  // the last keep_bytes, from the start of a line

  // "exit code 7", "signal 9 (Killed)", "no end after 60 s"; "" if it ended well.
  std::string failure() const;
  // "stopped by signal 2 (Interrupt)" where this process was asked to end: nobody waits for an
  // answer, whatever the program made of the signal.
  llvm::Error stopped() const;
};

// Runs the command to its end. SIGINT, SIGTERM and SIGHUP sent to this process meanwhile are passed
// on to the child and its children, and reported in `signal`. Where this process has a guardian
// (support/guardian.h), the child does not outlive it. Error only if the command could not be
// started.
llvm::Expected<LaunchResult> launch(const LaunchOptions& options);

// Shell text of a command, to show it.
std::string quote(const std::vector<std::string>& command);

// The same as people have given it: of a shell's command its text, "cd x && python train.py".
std::string command_text(const std::vector<std::string>& command);

// The last `lines` lines of a text, indented.
std::string last_lines(const std::string& text, size_t lines);

}  // namespace opguard
