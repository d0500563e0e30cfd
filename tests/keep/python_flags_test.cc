#include "keep/python_flags.h"

#include <gtest/gtest.h>

#include <vector>

namespace opguard {
namespace {

char flag_of(std::vector<const char*> words) {
  words.insert(words.begin(), "python");
  return isolating_flag(static_cast<int>(words.size()), words.data());
}

TEST(PythonFlags, BeforeTheProgramOnly) {
  EXPECT_EQ(flag_of({"-I", "train.py"}), 'I');
  EXPECT_EQ(flag_of({"-uE", "train.py"}), 'E');
  EXPECT_EQ(flag_of({"-u", "-S", "-m", "train"}), 'S');
  EXPECT_EQ(flag_of({"-Ic", "pass"}), 'I');
  EXPECT_EQ(flag_of({"train.py", "-I"}), 0);
  EXPECT_EQ(flag_of({"-m", "train", "-I"}), 0);
  EXPECT_EQ(flag_of({"-cI"}), 0);  // the program `I`
  EXPECT_EQ(flag_of({"-", "-I"}), 0);
  EXPECT_EQ(flag_of({"--", "-I"}), 0);
  EXPECT_EQ(flag_of({}), 0);
}

TEST(PythonFlags, ValuesOfOtherFlagsAreNone) {
  EXPECT_EQ(flag_of({"-W", "-I", "train.py"}), 0);
  EXPECT_EQ(flag_of({"-WIgnore", "train.py"}), 0);
  EXPECT_EQ(flag_of({"-XI", "train.py"}), 0);
  EXPECT_EQ(flag_of({"-X", "dev", "-E", "train.py"}), 'E');
  EXPECT_EQ(flag_of({"--check-hash-based-pycs", "always", "-I"}), 'I');
  EXPECT_EQ(flag_of({"-P", "-s", "-OO", "train.py"}), 0);  // none of them shuts us out
}

}  // namespace
}  // namespace opguard
