// The environment that a program is given, from the one its parent meant for it.
#include "keep/kept.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace opguard::keep {
namespace {

using Texts = std::vector<std::string>;

const Texts kOurs = {"OPGUARD_KEEP=OPGUARD_KEEP,OPGUARD_PRELOAD,OPGUARD_LOG,SEED",
                     "OPGUARD_PRELOAD=/o/keep.so:/o/inject.so", "OPGUARD_LOG=/log", "SEED=3"};

std::vector<char*> pointers(Texts& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

// take() remembers the first environment for the process, as it must.
void begin() {
  Texts environment = kOurs;
  environment.push_back("HOME=/home/u");
  environment.push_back("LD_PRELOAD=/o/keep.so:/o/inject.so");
  take(pointers(environment).data());
}

std::multiset<std::string> given(Texts environment) {
  begin();
  std::vector<char*> all = pointers(environment);
  const size_t bytes = missing_bytes(all.data());
  std::vector<uint64_t> room(bytes / 8 + 2, 0x5a5a5a5a5a5a5a5aull);
  char* const* entry = bytes ? completed(all.data(), room.data()) : all.data();
  // Not one byte more than it said.
  const auto* end = reinterpret_cast<const unsigned char*>(room.data()) + bytes;
  EXPECT_EQ(*end, 0x5a);
  std::multiset<std::string> texts;
  for (; *entry; ++entry) texts.insert(*entry);
  return texts;
}

Texts with_ours(Texts more) {
  more.insert(more.end(), kOurs.begin(), kOurs.end());
  return more;
}

std::multiset<std::string> set_of(const Texts& texts) { return {texts.begin(), texts.end()}; }

TEST(Kept, ACompleteEnvironmentIsPassedOn) {
  begin();
  Texts environment = with_ours({"LD_PRELOAD=/o/inject.so /u/other.so:/o/keep.so", "A=1"});
  EXPECT_EQ(missing_bytes(pointers(environment).data()), 0u);
}

TEST(Kept, AnotherPreloadStandsBeforeOurs) {
  EXPECT_EQ(given(with_ours({"LD_PRELOAD=/u/jemalloc.so", "A=1"})),
            set_of(with_ours({"LD_PRELOAD=/u/jemalloc.so:/o/keep.so:/o/inject.so", "A=1"})));
  EXPECT_EQ(given(with_ours({"LD_PRELOAD=/o/keep.so"})),
            set_of(with_ours({"LD_PRELOAD=/o/keep.so:/o/inject.so"})));
  EXPECT_EQ(given(with_ours({"LD_PRELOAD="})),
            set_of(with_ours({"LD_PRELOAD=/o/keep.so:/o/inject.so"})));
  // A longer name is another library.
  EXPECT_EQ(given(with_ours({"LD_PRELOAD=/o/keep.so.1:/o/inject.so"})),
            set_of(with_ours({"LD_PRELOAD=/o/keep.so.1:/o/inject.so:/o/keep.so"})));
}

TEST(Kept, AnEmptiedEnvironmentGetsOursBack) {
  const std::string preload = "LD_PRELOAD=/o/keep.so:/o/inject.so";
  EXPECT_EQ(given({}), set_of(with_ours({preload})));
  Texts own = with_ours({preload, "PATH=/bin", "SEED=4"});
  std::erase(own, "SEED=3");
  EXPECT_EQ(given({"PATH=/bin", "SEED=4"}), set_of(own));  // the program's own value stays
}

TEST(Kept, WhatTheProgramUnsetsStaysSo) {
  Texts environment = with_ours({"PATH=/bin"});
  std::erase(environment, "SEED=3");
  Texts wanted = environment;
  wanted.push_back("LD_PRELOAD=/o/keep.so:/o/inject.so");
  EXPECT_EQ(given(environment), set_of(wanted));
}

TEST(Kept, NoEnvironmentAtAll) {
  begin();
  std::vector<uint64_t> room(missing_bytes(nullptr) / 8 + 2);
  char* const* entry = completed(nullptr, room.data());
  std::multiset<std::string> texts;
  for (; *entry; ++entry) texts.insert(*entry);
  EXPECT_EQ(texts, set_of(with_ours({"LD_PRELOAD=/o/keep.so:/o/inject.so"})));
}

TEST(Kept, TheProcessesOwnIsCompletedInPlace) {
  begin();
  Texts environment = {"PATH=/bin", "LD_PRELOAD=/u/jemalloc.so"};
  std::vector<char*> all = pointers(environment);
  char** before = std::exchange(environ, all.data());
  complete_own();
  std::multiset<std::string> texts;
  for (char** entry = environ; *entry; ++entry) texts.insert(*entry);
  environ = before;
  EXPECT_EQ(texts, set_of(with_ours({"PATH=/bin", "LD_PRELOAD=/u/jemalloc.so:/o/keep.so:/o/inject.so"})));
}

}  // namespace
}  // namespace opguard::keep
