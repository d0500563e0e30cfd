// session/check_stripped.h: do files still carry probes? For a hook that stands before a commit.
//
//   model/rope.py:3:1: error: the import line of probes
//   model/rope.py:12:9: error: a probe: rope.mul:q7k2
//   opguard: 1 file carries probes: opguard-instrument TREE --strip --apply takes them out
//
// Counterexample: a file that holds such a line in a string, as a test of ours may, carries none.
// The cost: a file that lacks the words of the import line is read and not parsed.
#pragma once

#include <string>
#include <vector>

namespace opguard {

// paths: files, as a hook gives them, and folders, of which every .py file is looked at; none: the
// folder we are in. The exit code: kNo where a probe is left, else kCouldNotTell where something
// could not be read.
int check_stripped(const std::vector<std::string>& paths);

}  // namespace opguard
