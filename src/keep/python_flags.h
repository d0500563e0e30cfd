// keep/python_flags.h: does a Python's command line forbid what the tool enters by?
//
// `-I` and `-E` ignore PYTHONPATH, `-S` imports no sitecustomize. Options end at the script, at `-`,
// `-c` or `-m`, as CPython's own reading of them does (Python/getopt.c):
//   python -uE train.py        'E'
//   python train.py -I         0: the program's own
//   python -W ignore -m x -S   0
#pragma once

#include <cstring>

namespace opguard {

// The first such flag of argv[1..], or 0.
inline char isolating_flag(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const char* word = argv[i];
    if (word[0] != '-' || word[1] == 0) return 0;
    if (word[1] == '-') {
      if (word[2] == 0) return 0;
      if (std::strcmp(word, "--check-hash-based-pycs") == 0) ++i;
      continue;
    }
    for (const char* flag = word + 1; *flag; ++flag) {
      if (*flag == 'I' || *flag == 'E' || *flag == 'S') return *flag;
      if (*flag == 'c' || *flag == 'm') return 0;
      if (*flag != 'W' && *flag != 'X') continue;
      if (flag[1] == 0) ++i;  // its value is the next word
      break;
    }
  }
  return 0;
}

}  // namespace opguard
