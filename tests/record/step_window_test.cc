#include "record/step_window.h"

#include <gtest/gtest.h>

namespace opguard {
namespace {

StepWindow window_from(std::string_view text) {
  StepWindow window;
  std::string error;
  EXPECT_TRUE(parse_window(text, window, error)) << error;
  return window;
}

std::string refused(std::string_view text) {
  StepWindow window;
  std::string error;
  EXPECT_FALSE(parse_window(text, window, error)) << text;
  EXPECT_TRUE(window.all());
  return error;
}

TEST(StepWindow, TextAndBack) {
  for (const char* text : {"100..103", "100..", "0..", "0../10", "5..5", "7..99/3"})
    EXPECT_EQ(window_text(window_from(text)), text);
  EXPECT_TRUE(window_from("0..").all());
}

TEST(StepWindow, Holds) {
  const StepWindow window = window_from("4..12/3");
  std::vector<uint32_t> held;
  for (uint32_t step = 0; step < 20; ++step)
    if (window.holds(step)) held.push_back(step);
  EXPECT_EQ(held, (std::vector<uint32_t>{4, 7, 10}));
  EXPECT_FALSE(window.is_over(12));
  EXPECT_TRUE(window.is_over(13));
  EXPECT_FALSE(window_from("3..").is_over(0xfffffffe));
}

TEST(StepWindow, WhatIsNone) {
  EXPECT_EQ(refused("103..100"), "the last step is before the first: 103..100");
  EXPECT_EQ(refused("1../0"), "behind '/' stands no number of steps above 0: 1../0");
  for (const char* text : {"", "..", "..5", "-1..3", "1..2..3", "1...3", "a..b", "1.. 3", "1..3/",
                           "4294967295..", "99999999999.."})
    EXPECT_NE(refused(text), "") << text;
}

}  // namespace
}  // namespace opguard
