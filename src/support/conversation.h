// support/conversation.h: a child process that answers lines with lines.
//
//   auto helper = Conversation::begin({"python3", "-c", "for line in sys.stdin: print(...)"});
//   (*helper)->ask("[1, 2]")      ->  "3"
//
// Its stdin and stdout are ours to talk to it, its stderr is this process's. It ends as its stdin
// does: also where this process is killed.
// Counterexample: the user's own program is launched (support/launch.h).
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "llvm/Support/Error.h"

namespace opguard {

class Conversation {
 public:
  // Error: the command could not be started.
  static llvm::Expected<std::unique_ptr<Conversation>> begin(
      const std::vector<std::string>& command);
  ~Conversation();  // ends its stdin, and waits for it
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  // The next line it says, without its end. Error: it has ended.
  llvm::Expected<std::string> listen();
  // line: without an end.
  llvm::Expected<std::string> ask(std::string line);

 private:
  Conversation(std::string name, pid_t pid, int socket)
      : name_(std::move(name)), pid_(pid), socket_(socket) {}
  llvm::Error ended();

  std::string name_;  // of the command
  pid_t pid_ = -1;    // -1: it was waited for
  int socket_ = -1;
  std::string heard_;  // behind the last line
};

}  // namespace opguard
