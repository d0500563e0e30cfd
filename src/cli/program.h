// cli/program.h: the program under both its names, as a function: CLI11's header costs main.cc
// seven seconds otherwise.
#pragma once

namespace opguard {

// What the command line says is done; the exit code.
int run_program(int argc, char** argv);

}  // namespace opguard
