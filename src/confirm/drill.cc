// Two windows are paired as two logs are (sequence.h), and looked through twice.
//
//   rows       mul equal | add reads others | softmax leaves another result | sum reads others
//   1st time   past what only reads otherwise: softmax is named
//   2nd time   only if the first found none: add would be named
//
// Counterexample: what torch.empty left. It differs, and is no difference.
#include "confirm/drill.h"

#include <functional>
#include <map>

#include "align/pair/sequence.h"
#include "llvm/Support/MemoryBuffer.h"
#include "nlohmann/json.hpp"
#include "operators/operators.h"
#include "support/diagnostics.h"

namespace opguard {
namespace {

using Json = nlohmann::ordered_json;

std::vector<AtenTensor> tensors(const Json& entry, const char* key) {
  std::vector<AtenTensor> all;
  if (!entry.contains(key)) return all;
  for (const Json& t : entry.at(key))
    all.push_back({t.at("name").get<std::string>(), t.at("dtype").get<std::string>(),
                   t.at("shape").get<std::vector<int64_t>>(),
                   t.at("value").is_null() ? std::string() : t.at("value").get<std::string>()});
  return all;
}

// Never 0.
uint64_t digest(const std::string& text) { return std::hash<std::string>()(text) | 1; }

// "float32[8,64,]9f31...:5d02...;" of each; without values the shapes alone.
std::string text_of(const std::vector<AtenTensor>& all, bool values) {
  std::string text;
  for (const AtenTensor& t : all) {
    text += t.dtype + "[";
    for (int64_t n : t.shape) text += std::to_string(n) + ",";
    text += "]" + (values ? t.value : std::string()) + ";";
  }
  return text;
}

// As sequence.h compares events: by name, then by what they read, are given and leave.
std::vector<Token> tokens(const std::vector<AtenOperator>& operators) {
  std::vector<Token> all;
  std::map<std::string, uint32_t> seen;
  for (const AtenOperator& op : operators) {
    const std::string in = text_of(op.in, true);
    const std::string out = text_of(op.out, true) + text_of(op.written, true);
    all.push_back({.key = digest(op.name),
                   .content = digest(in + "|" + op.scalars + "|" + out),
                   .inputs = digest(in),
                   .shapes = digest(text_of(op.in, false) + text_of(op.out, false)),
                   .scalars = digest(op.scalars),
                   .occurrence = seen[op.name]++});
  }
  return all;
}

// By place; names do not count.
bool same_values(const std::vector<AtenTensor>& a, const std::vector<AtenTensor>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i].dtype != b[i].dtype || a[i].shape != b[i].shape || a[i].value != b[i].value)
      return false;
  return true;
}

// What comes in first: with other inputs another result is no surprise.
DrillKind kind_of(const AtenOperator& a, const AtenOperator& b) {
  if (!same_values(a.in, b.in)) return DrillKind::input;
  if (a.scalars != b.scalars) return DrillKind::scalar;
  if (may_leave_garbage(aten_name(a.name))) return DrillKind::none;
  return same_values(a.out, b.out) && same_values(a.written, b.written) ? DrillKind::none
                                                                        : DrillKind::value;
}

}  // namespace

llvm::Expected<InnerOperators> read_inner_operators(const std::string& path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer) return make_error(path + ": " + buffer.getError().message());
  InnerOperators window;
  try {
    const Json json = Json::parse((*buffer)->getBuffer().str());
    window.boundary = json.at("boundary").get<std::string>();
    window.kind = json.at("kind").get<std::string>();
    window.phase = json.at("phase").get<std::string>();
    window.node = json.at("node").get<std::string>();
    window.occurrence = json.at("occurrence").get<uint32_t>();
    window.rank = json.at("rank").get<int32_t>();
    for (const Json& entry : json.at("operators"))
      window.operators.push_back({entry.at("name").get<std::string>(),
                                  entry.at("scalars").get<std::string>(), tensors(entry, "in"),
                                  tensors(entry, "out"), tensors(entry, "written")});
  } catch (const Json::exception& e) {
    return make_error(path + ": not a window of ATen operators (" + e.what() + ")");
  }
  return window;
}

Drill compare_windows(const std::vector<AtenOperator>& a, const std::vector<AtenOperator>& b) {
  Drill drill;
  drill.count_a = a.size();
  drill.count_b = b.size();
  // In the order of both: what one side alone has stands before the next pair.
  struct Row {
    const AtenOperator* a;
    const AtenOperator* b;
    DrillKind kind;
  };
  std::vector<Row> rows;
  size_t i = 0, j = 0;
  auto alone_until = [&](size_t end_a, size_t end_b) {
    for (; i < end_a; ++i) rows.push_back({&a[i], nullptr, DrillKind::structure});
    for (; j < end_b; ++j) rows.push_back({nullptr, &b[j], DrillKind::structure});
  };
  for (const auto& [x, y] : align_sequences(tokens(a), tokens(b))) {
    alone_until(x, y);
    rows.push_back({&a[x], &b[y], kind_of(a[x], b[y])});
    i = x + 1, j = y + 1;
  }
  alone_until(a.size(), b.size());
  for (const bool origins : {true, false}) {
    drill.equal = 0;
    for (size_t r = 0; r < rows.size(); ++r) {
      const Row& row = rows[r];
      const bool same = row.kind == DrillKind::none;
      if (same || (origins && row.kind == DrillKind::input)) {
        drill.equal += same;
        continue;
      }
      if (row.a) drill.a = *row.a;
      if (row.b) drill.b = *row.b;
      // What the other run does in its place.
      for (size_t next = r + 1; next < rows.size() && (!rows[next].a || !rows[next].b); ++next) {
        if (row.a && row.b) break;
        if (!drill.a && rows[next].a) drill.a = *rows[next].a;
        if (!drill.b && rows[next].b) drill.b = *rows[next].b;
      }
      drill.kind = row.kind;
      return drill;
    }
  }
  return drill;
}

}  // namespace opguard
