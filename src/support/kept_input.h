// support/kept_input.h: what our stdin gives, given to every program that we run.
//
//   echo 32 | opguard diff a b -- python train.py      # train.py reads its batch size from stdin
//
// `diff` runs such a program four times. With a plain, shared stdin the first run takes the "32"
// and the others read nothing: two different programs would be compared. So what a run reads is
// kept, and the next run reads it from its start.
//
// Nothing is taken from stdin that no program read: `git log | while read c; do opguard ...; done`
// goes on as if opguard were not there. A pipe is duplicated by tee(2), a page at a time, and a
// page is taken out of it once the program has read it.
//
// Cost: none where stdin is a file (each program opens it anew), a terminal or a device (shared, as
// without opguard). Else it is one thread a program and a page of copying for each 4 KiB.
#pragma once

#include <memory>

namespace opguard {

// From now on every program launched reads what stdin gives from here on. Called once, before the
// first of several runs of one program. Does nothing for a terminal, a device or a closed stdin.
void keep_input();

// One program's stdin, for as long as this object lives.
class InputFeed {
 public:
  InputFeed();  // after keep_input(); else it has nothing to give
  ~InputFeed();
  InputFeed(const InputFeed&) = delete;
  InputFeed& operator=(const InputFeed&) = delete;

  // The descriptor that becomes the program's stdin; -1: it shares ours.
  int descriptor() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace opguard
