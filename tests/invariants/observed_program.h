// tests/invariants/observed_program.h: observations of a made-up program, and the rows they give.
//
//   ObservedProgram program(collect);
//   program.see("api", {{"name", "zero_grad"}, {"number", 3.0}});
//   program.end_step();
#pragma once

#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "invariants/row.h"
#include "invariants/view.h"
#include "invariants/views/run_views.h"

namespace opguard {

struct Bits {
  uint64_t value = 0;
};

// [name, dtype, shape, requires_grad] of a form.
struct TensorValue {
  std::string name, dtype;
  std::vector<int64_t> shape;
  bool wants = false;
};

using SeenValue = std::variant<std::monostate, bool, int, double, std::string, const char*, Bits,
                               std::vector<std::string>, std::vector<Bits>, std::vector<double>,
                               std::vector<int>, std::vector<TensorValue>>;

// A row, by the names of its columns.
struct SeenRow {
  std::string view, name, module, place, detail;
  uint32_t step = 0;
  int32_t rank = -1;
  std::map<std::string, std::string> cells;
  std::string operator[](const std::string& column) const {
    auto at = cells.find(column);
    return at == cells.end() ? "?" : at->second;
  }
};

class CollectedRows : public RowSink {
 public:
  void add(const ViewRow& row) override;
  std::vector<SeenRow> of(const std::string& view) const;
  // The only one of a view and name; a failure, and an empty one, where there is not one alone.
  SeenRow only(const std::string& view, const std::string& name = "") const;
  SeenRow last(const std::string& view, const std::string& name = "") const;

  CellTexts texts;

 private:
  std::vector<SeenRow> rows_;
};

class ObservedProgram {
 public:
  ObservedProgram(RunViews& views, int32_t rank = 0);
  void see(const std::string& kind, const std::vector<std::pair<std::string, SeenValue>>& fields);
  void end_step() { ++step_; }
  uint32_t step() const { return step_; }

 private:
  uint32_t text(const std::string& text);
  void put(const SeenValue& value);

  RunViews& views_;
  size_t process_;
  std::vector<std::string> strings_;
  std::vector<ObservationSchema> schemas_;
  std::map<std::string, uint32_t> schema_of_;
  std::vector<ObservedValue> values_;
  uint32_t step_ = 0;
  int64_t time_ = 0;
};

}  // namespace opguard
