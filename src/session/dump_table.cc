// Rows are visited 1,024 at a time and written in pieces of some 64 KiB. So the lines take no
// memory that grows with the log. Each distinct text is escaped once, when the table is opened, and
// not once a row. A boundary's name stands in as many rows as it has records.
//
// Counterexample: `| head`. The sink says that it takes no more, and the rest is not visited.
#include "session/dump_table.h"

#include <cinttypes>
#include <cstdio>
#include <map>

#include "nlohmann/json.hpp"
#include "support/text.h"

namespace opguard {
namespace {

constexpr size_t kPieceBytes = 1 << 16;

std::string json_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', /*ensure_ascii=*/true,
                                   nlohmann::json::error_handler_t::replace);
}

// Control characters are spelled out: CSV has no escapes, and lines of a table go to terminals too.
std::string csv_text(const std::string& raw) {
  const std::string text = shown(raw);
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

class Lines {
 public:
  Lines(const LogTable& table, LineFormat format)
      : table_(table), json_(format == LineFormat::json) {
    for (const Column& column : table.columns()) {
      std::vector<std::string>& texts = texts_.emplace_back();
      if (column.type != ColumnType::text) continue;
      // Each text is written as it will stand in a line once, not once a row.
      for (const std::string& value : table.dictionary(column).values)
        texts.push_back(json_ ? json_text(value) : csv_text(value));
    }
  }

  std::string head() const {
    std::string line;
    if (json_) return line;
    for (const Column& column : table_.columns())
      line += (line.empty() ? "" : ",") + std::string(column.name);
    return line + "\n";
  }

  // Appends to the line. What is not known is null in JSON; in CSV nothing stands between its
  // commas.
  void add(const Row& row, std::string& line) const {
    const auto columns = table_.columns();
    for (size_t i = 0; i < columns.size(); ++i) {
      line += i == 0 ? (json_ ? "{" : "") : json_ ? ", " : ",";
      if (json_) line.append("\"").append(columns[i].name).append("\": ");
      if (std::optional<uint64_t> value = columns[i].value(row))
        add_value(row, i, *value, line);
      else if (json_)
        line += "null";
    }
    line += json_ ? "}\n" : "\n";
  }

 private:
  void add_value(const Row& row, size_t i, uint64_t value, std::string& line) const {
    const Column& column = table_.columns()[i];
    switch (column.type) {
      case ColumnType::boolean:
        line += value ? "true" : "false";
        break;
      case ColumnType::i32:
        line += std::to_string(static_cast<int32_t>(value));
        break;
      case ColumnType::u32:
      case ColumnType::u64:
        line += std::to_string(value);
        break;
      case ColumnType::hash: {
        char digits[24];
        std::snprintf(digits, sizeof digits, json_ ? "\"%016" PRIx64 "\"" : "%016" PRIx64, value);
        line += digits;
        break;
      }
      case ColumnType::text:
        line += texts_[i][static_cast<size_t>(table_.dictionary(column).codes[row.process][value])];
        break;
      case ColumnType::shape: {
        std::string sizes;
        for (int64_t n : row.log.metas[value].shape)
          sizes += (sizes.empty() ? "" : ", ") + std::to_string(n);
        sizes = "[" + sizes + "]";
        line += json_ ? sizes : csv_text(sizes);
        break;
      }
    }
  }

  const LogTable& table_;
  const bool json_;
  std::vector<std::vector<std::string>> texts_;  // by column and code
};

}  // namespace

void dump_table(std::shared_ptr<const std::vector<ProcessLog>> logs, TableRows rows,
                LineFormat format, const EventSelection& selection, uint64_t limit,
                const TextSink& out) {
  std::vector<EventSelector> selectors;
  for (const ProcessLog& log : *logs) selectors.emplace_back(selection, log);
  const LogTable table(logs, rows);
  const Lines lines(table, format);
  std::string piece = lines.head();
  for (uint64_t begin = 0; begin < table.size() && limit > 0; begin += 1024) {
    table.for_rows(begin, std::min(begin + 1024, table.size()), [&](const Row& row) {
      if (limit == 0 || !selectors[row.process](row.at)) return;
      --limit;
      lines.add(row, piece);
    });
    if (piece.size() < kPieceBytes) continue;
    if (!out(piece)) return;
    piece.clear();
  }
  out(piece);
}

}  // namespace opguard
