// support/command_line.h: how this process was started, for what it writes.
#pragma once

#include <string>

namespace opguard {

// Once, by main.
void keep_command_line(int argc, char** argv);

// "opguard diff --git v1..v2 -- python train.py"; "" in a process that kept none.
const std::string& command_line();

}  // namespace opguard
