// equal_start DIR_A DIR_B: how long it takes to find the first step in which two runs differ, and
// what is read for it. One line of JSON.
#include <chrono>
#include <cstdio>
#include <string>

#include "align/pair/equal_start.h"

using namespace opguard;

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "equal_start DIR_A DIR_B\n");
    return 2;
  }
  const auto begin = std::chrono::steady_clock::now();
  std::string why;
  const auto runs = IndexedRuns::open(argv[1], argv[2], why);
  if (!runs) {
    std::fprintf(stderr, "%s\n", why.c_str());
    return 1;
  }
  const double ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  const bool equal = runs->first_apart() == kNone;
  std::printf(
      "{\"steps\": %llu, \"records\": %llu, \"first_apart\": %s, \"reads\": %llu, "
      "\"bytes\": %llu, \"ms\": %.3f}\n",
      static_cast<unsigned long long>(runs->steps()),
      static_cast<unsigned long long>(runs->records()),
      equal ? "null" : std::to_string(runs->first_apart()).c_str(),
      static_cast<unsigned long long>(runs->reads()),
      static_cast<unsigned long long>(runs->bytes_read()), ms);
  return 0;
}
