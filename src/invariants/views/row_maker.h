// invariants/views/row_maker.h: fills a row's cells and hands it on.
//
//   RowMaker row(context, ViewNumber::save);
//   row.set(save::has_all, missing == 0);
//   row.place = fields.text(field::save_place);
//   row.give();
//
// A cell that nobody sets is unknown, and no rule applies to it.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "invariants/row.h"
#include "invariants/views/columns.h"

namespace opguard {

// Where in the run an observation was made, and who takes the rows.
struct RowContext {
  CellTexts& texts;
  RowSink& sink;
  uint32_t step = 0;
  int32_t rank = -1;
  uint64_t order = 0;  // ns of the monotonic clock: of one host's ranks too
  uint64_t event = kNone;
};

// Each maker has an array of so many cells, on the stack. A view of more columns would write past
// it; `sequence`, the widest one, is looked at by a static_assert.
inline constexpr size_t kMostColumns = 64;

class RowMaker {
 public:
  RowMaker(const RowContext& context, ViewNumber view) : context_(context) {
    cells_.fill(kUnknown);
    row_.view = static_cast<uint16_t>(view);
    row_.step = context.step;
    row_.rank = context.rank;
    row_.order = context.order;
    row_.event = context.event;
  }

  void set(size_t column, bool value) { cells_[column] = value ? kCellYes : kCellNo; }
  void set(size_t column, std::optional<bool> value) {
    if (value) set(column, *value);
  }
  // "" is unknown.
  void set(size_t column, std::string_view text) {
    if (!text.empty()) cells_[column] = context_.texts.number(text);
  }
  void set(size_t column, const char* text) { set(column, std::string_view(text)); }

  // To the sink, whole, once. What a row names must live until then: texts of `fields`, or a string
  // of the caller's.
  void give() {
    row_.cells = {cells_.data(), columns_of(row_.view)};
    row_.detail = detail;
    row_.name = name;
    row_.module = module;
    row_.place = place;
    context_.sink.add(row_);
  }

  // For its number. Name, module, place and detail are put into it by give().
  ViewRow& row() { return row_; }
  std::string_view name, module, place;
  std::string detail;

 private:
  static size_t columns_of(uint16_t view);

  const RowContext& context_;
  ViewRow row_;
  std::array<uint32_t, kMostColumns> cells_;
};

// "loss 0.693"; "" where it is none.
inline std::string number_words(std::string_view what, std::optional<double> value) {
  if (!value) return {};
  char digits[40];
  std::snprintf(digits, sizeof digits, "%.3g", *value);
  return std::string(what) + " " + digits;
}

}  // namespace opguard
