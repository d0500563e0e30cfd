// answers: what operators.h says of each name on standard input, for
// tests/python/test_operators.py.
//
//   cat   ->   cat moves_bytes
#include <iostream>
#include <string>

#include "operators/operators.h"

int main() {
  using namespace opguard;
  struct Question {
    const char* name;
    bool (*ask)(std::string_view callee);
  };
  constexpr Question kQuestions[] = {
      {"moves_bytes", moves_bytes},
      {"leaves_garbage", leaves_garbage},
      {"may_leave_garbage", may_leave_garbage},
      {"makes_room", makes_room},
      {"seeds_random", seeds_random},
      {"draws_random", draws_random},
      {"may_draw", may_draw},
      {"updates_statistics", updates_statistics},
      {"converts_module", converts_module},
      {"replaces_parameters", replaces_parameters},
      {"lists_parameters", lists_parameters},
      {"clips_gradients", clips_gradients},
      {"touches_no_element", touches_no_element},
      {"reads_form_alone", reads_form_alone},
      {"hands_array", hands_array},
  };
  for (std::string name; std::getline(std::cin, name);) {
    std::cout << name;
    for (const Question& question : kQuestions)
      if (question.ask(name)) std::cout << ' ' << question.name;
    for (const char* slot : {"self", "arg0", "arg0[0]"})
      if (overwrites(name, slot)) std::cout << " overwrites:" << slot;
    if (const std::string_view made = python_operator(name); !made.empty())
      std::cout << " python:" << made;
    std::cout << '\n';
  }
}
