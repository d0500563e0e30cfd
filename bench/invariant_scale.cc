// invariant_scale ROWS RUNS PROGRAMS: seconds of inference and of checking over made-up rows.
//
// RUNS runs of ROWS / RUNS rows each, in the views `parameter`, `call` and `sequence`. Each program
// has things of its own names, and columns that vary now and then. So there are tens of thousands
// of patterns, more than of the clean programs here. Rows are made before the clock starts, a run
// at a time. It prints one line of JSON.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "invariants/check_rows.h"
#include "invariants/mine.h"
#include "invariants/views/columns.h"

using namespace opguard;

namespace {

// Of the processor: others may run beside it.
struct Clock {
  static std::clock_t now() { return std::clock(); }
};

double since(std::clock_t from) {
  return static_cast<double>(std::clock() - from) / CLOCKS_PER_SEC;
}

// The rows of one run, and what holds their cells.
class MadeRun {
 public:
  MadeRun(uint64_t rows, uint32_t program, uint32_t run, CellTexts& texts)
      : random_(program * 1000 + run), program_(program), texts_(texts) {
    for (uint64_t i = 0; i < rows; ++i) {
      const auto view = static_cast<uint16_t>(i % 8 < 5   ? ViewNumber::parameter
                                              : i % 8 < 7 ? ViewNumber::call
                                                          : ViewNumber::sequence);
      add(view, static_cast<uint32_t>(i / 1000));
    }
    for (size_t i = 0; i < rows_.size(); ++i)
      rows_[i].cells = {cells_.data() + offsets_[i], views()[rows_[i].view].columns.size()};
  }
  const std::vector<ViewRow>& rows() const { return rows_; }

 private:
  void add(uint16_t view, uint32_t step) {
    offsets_.push_back(cells_.size());
    const std::span<const ViewColumn> columns = views()[view].columns;
    // A program has 200 things with names, of 12 sorts that programs share. Its way of doing
    // things is one of four. Now and then one cell differs.
    const uint32_t thing = random_() % 200, sort = thing % 12;
    std::mt19937 of_sort(sort * 7 + program_ % 4);
    const size_t odd = random_() % (columns.size() * 4);
    for (size_t c = 0; c < columns.size(); ++c) {
      const uint32_t usual = of_sort(), drawn = c == odd && c < 12 ? random_() : usual;
      if (columns[c].names)
        cells_.push_back(texts_.number("name" + std::to_string(program_ * 200 + thing)));
      else if (!columns[c].concluded && !columns[c].semantic)
        cells_.push_back(texts_.number("kind" + std::to_string(drawn % 6)));
      else if (columns[c].concluded)
        cells_.push_back(drawn % 16 == 0 ? kCellNo : kCellYes);
      else
        cells_.push_back(drawn % 5 == 0 ? kUnknown : drawn % 2 ? kCellYes : kCellNo);
    }
    uint32_t* cells = cells_.data() + offsets_.back();
    if (view == static_cast<uint16_t>(ViewNumber::parameter)) {
      if (cells[parameter::requires_grad] == kCellYes && cells[parameter::held] == kCellYes)
        cells[parameter::has_grad] = kCellYes;
      cells[parameter::finite] = kCellYes;
    }
    ViewRow row;
    row.view = view;
    row.step = step;
    row.order = rows_.size();
    rows_.push_back(row);
  }

  std::mt19937 random_;
  uint32_t program_;
  CellTexts& texts_;
  std::vector<uint32_t> cells_;
  std::vector<size_t> offsets_;
  std::vector<ViewRow> rows_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: invariant_scale ROWS RUNS PROGRAMS\n");
    return 2;
  }
  const uint64_t rows = std::strtoull(argv[1], nullptr, 10);
  const auto runs = static_cast<uint32_t>(std::strtoul(argv[2], nullptr, 10));
  const auto programs = static_cast<uint32_t>(std::strtoul(argv[3], nullptr, 10));
  if (!rows || !runs || !programs || programs > runs) return 2;

  CellTexts texts;
  PatternTable table(views());
  double counting = 0, checking = 0;
  std::unique_ptr<MadeRun> made;
  for (uint32_t run = 0; run < runs; ++run) {
    made = std::make_unique<MadeRun>(rows / runs, run % programs, run, texts);
    const auto from = Clock::now();
    table.begin(run % programs, run);
    for (const ViewRow& row : made->rows()) table.add(row);
    table.end();
    counting += since(from);
  }
  auto from = Clock::now();
  const std::vector<Invariant> rules = mine(table, texts, views(), {});
  const double mining = since(from);
  size_t patterns = 0;
  for (size_t v = 0; v < views().size(); ++v) patterns += table.patterns(v).size();

  RowChecker checker(rules, views(), texts);
  uint64_t checked = 0;
  for (uint32_t run = 0; run < std::min(runs, 10u); ++run) {
    made = std::make_unique<MadeRun>(rows / runs, run % programs, 5000 + run, texts);
    from = Clock::now();
    for (const ViewRow& row : made->rows()) checker.add(row);
    checking += since(from);
    checked += made->rows().size();
  }
  std::printf(
      "{\"rows\": %llu, \"runs\": %u, \"programs\": %u, \"patterns\": %zu, \"rules\": %zu, "
      "\"count_s\": %.4f, \"mine_s\": %.4f, \"infer_s\": %.4f, \"checked\": %llu, "
      "\"check_s\": %.4f, \"checked_a_second\": %.0f}\n",
      static_cast<unsigned long long>(rows), runs, programs, patterns, rules.size(), counting,
      mining, counting + mining, static_cast<unsigned long long>(checked), checking,
      static_cast<double>(checked) / checking);
  return 0;
}
