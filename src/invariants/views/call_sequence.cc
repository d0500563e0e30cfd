// Sets of calls as bits: bit i is "kNames[i] was called".
//
//   calls          zero_grad  backward  step      zero_grad  backward
//   since_step_    {z}        {z, b}    {}        {z}        {z, b}
//   since_last_[backward]     of the second one: {step, zero_grad}, what came since the first
//
// Counterexample: a call of no name in the list. It has no row, and no set knows it: a new name
// makes three new columns.
#include "invariants/views/call_sequence.h"

#include <algorithm>
#include <string>
#include <vector>

namespace opguard {

namespace {

// The order is that of the columns. 19 names are the most, as a row has kMostColumns cells.
constexpr std::array<std::string_view, 16> kNames = {
    "zero_grad",     "backward",       "step",         "scheduler",
    "clip_grad",     "train",          "eval",         "forward_train",
    "forward_eval",  "scaler.unscale", "scaler.scale", "scaler.step",
    "scaler.update", "save",           "load",         "set_epoch"};
constexpr size_t kNamed = kNames.size();

// The first columns; behind them three for each name.
enum FirstColumns : uint8_t { kName, kFirst, kSeveral, kTraining, kGrad, kType, kFirstColumns };

size_t column(size_t question, size_t name) { return kFirstColumns + question * kNamed + name; }

int number_of(std::string_view name) {
  auto it = std::find(kNames.begin(), kNames.end(), name);
  return it == kNames.end() ? -1 : static_cast<int>(it - kNames.begin());
}

}  // namespace

std::span<const ViewColumn> sequence_columns() {
  // Held for good: the columns' names point into them.
  static const std::vector<std::string> texts = [] {
    std::vector<std::string> made;
    for (const char* question : {"since_last:", "since_step:", "ever:"})
      for (std::string_view name : kNames) made.push_back(question + std::string(name));
    return made;
  }();
  static const std::vector<ViewColumn> columns = [] {
    std::vector<ViewColumn> made = {{.name = "call"},
                                    {.name = "first", .semantic = true},
                                    {.name = "several", .semantic = true},
                                    {.name = "training", .concluded = true, .relation = "mode"},
                                    {.name = "grad", .semantic = true},
                                    {.name = "type"}};
    for (size_t i = 0; i < texts.size(); ++i)
      // What was ever called tells what a program uses: asked, and of no use as a conclusion for
      // names that come once.
      made.push_back({.name = texts[i],
                      .concluded = i < 2 * kNamed,
                      .condition = i >= 2 * kNamed,
                      .semantic = i >= 2 * kNamed,
                      // "ever:step" is no condition for "since_step:step": it says nearly the same.
                      .family = texts[i].substr(texts[i].find(':') + 1) == kNames[i % kNamed]
                                    ? kNames[i % kNamed]
                                    : std::string_view{},
                      .relation = "sequence"});
    return made;
  }();
  static_assert(kFirstColumns + 3 * kNamed <= kMostColumns);
  return columns;
}

void CallSequence::add(const RowContext& context, const Call& call) {
  int number = number_of(call.name);
  if (number < 0) return;
  RowMaker row(context, ViewNumber::sequence);
  row.set(kName, call.name);
  row.set(kFirst, !(ever_ >> number & 1));
  row.set(kSeveral, call.several);
  row.set(kTraining, call.training);
  row.set(kGrad, call.grad);
  row.set(kType, call.type);
  bool first = !(ever_ >> number & 1);
  bool stepped = ever_ >> number_of("step") & 1;
  for (size_t other = 0; other < kNamed; ++other) {
    if (other == static_cast<size_t>(number)) continue;
    // Of the first call of its name there is no "since the last one": unknown.
    if (!first) row.set(column(0, other), static_cast<bool>(since_last_[number] >> other & 1));
    // Before any step has been, "since the last step" is unknown, but for the first step itself.
    if (stepped || number == number_of("step"))
      row.set(column(1, other), static_cast<bool>(since_step_ >> other & 1));
    row.set(column(2, other), static_cast<bool>(ever_ >> other & 1));
  }
  row.name = call.name;
  row.place = call.place;
  row.give();

  // Behind the row: a call is not among what came before it.
  uint32_t bit = 1u << number;
  for (uint32_t& since : since_last_) since |= bit;
  since_last_[number] = 0;
  since_step_ |= bit;
  ever_ |= bit;
  if (number == number_of("step")) since_step_ = 0;
}

bool CallSequence::ever(std::string_view name) const {
  int number = number_of(name);
  return number >= 0 && ever_ >> number & 1;
}

bool CallSequence::since_step(std::string_view name) const {
  int number = number_of(name);
  return number >= 0 && since_step_ >> number & 1;
}

}  // namespace opguard
