#include "observed_program.h"

#include <gtest/gtest.h>

namespace opguard {

void CollectedRows::add(const ViewRow& row) {
  const RuleView& view = views()[row.view];
  SeenRow seen{.view = std::string(view.name),
               .name = std::string(row.name),
               .module = std::string(row.module),
               .place = std::string(row.place),
               .detail = std::string(row.detail),
               .step = row.step,
               .rank = row.rank,
               .cells = {}};
  for (size_t i = 0; i < row.cells.size(); ++i)
    if (row.cells[i] != kUnknown)
      seen.cells[std::string(view.columns[i].name)] = texts.text(row.cells[i]);
  rows_.push_back(std::move(seen));
}

std::vector<SeenRow> CollectedRows::of(const std::string& view) const {
  std::vector<SeenRow> found;
  for (const SeenRow& row : rows_)
    if (row.view == view) found.push_back(row);
  return found;
}

SeenRow CollectedRows::last(const std::string& view, const std::string& name) const {
  for (auto row = rows_.rbegin(); row != rows_.rend(); ++row)
    if (row->view == view && (name.empty() || row->name == name)) return *row;
  ADD_FAILURE() << "no row of " << view << " " << name;
  return {};
}

SeenRow CollectedRows::only(const std::string& view, const std::string& name) const {
  size_t count = 0;
  for (const SeenRow& row : rows_) count += row.view == view && (name.empty() || row.name == name);
  EXPECT_EQ(count, 1u) << view << " " << name;
  return count ? last(view, name) : SeenRow{};
}

ObservedProgram::ObservedProgram(RunViews& views, int32_t rank) : views_(views) {
  strings_.reserve(4096);
  process_ = views.add_process(strings_, rank);
}

uint32_t ObservedProgram::text(const std::string& text) {
  for (uint32_t i = 0; i < strings_.size(); ++i)
    if (strings_[i] == text) return i;
  strings_.push_back(text);
  return static_cast<uint32_t>(strings_.size() - 1);
}

void ObservedProgram::put(const SeenValue& value) {
  ObservedValue made;
  auto list = [&](size_t count) {
    made.kind = ObservedKind::list;
    made.text = static_cast<uint32_t>(count);
    values_.push_back(made);
  };
  if (auto* b = std::get_if<bool>(&value)) {
    made.kind = *b ? ObservedKind::yes : ObservedKind::no;
  } else if (auto* n = std::get_if<int>(&value)) {
    made.kind = ObservedKind::integer;
    made.integer = *n;
  } else if (auto* x = std::get_if<double>(&value)) {
    made.kind = ObservedKind::real;
    made.real = *x;
  } else if (auto* t = std::get_if<std::string>(&value)) {
    made.kind = ObservedKind::text;
    made.text = text(*t);
  } else if (auto* c = std::get_if<const char*>(&value)) {
    made.kind = ObservedKind::text;
    made.text = text(*c);
  } else if (auto* bits = std::get_if<Bits>(&value)) {
    made.kind = ObservedKind::bits;
    made.bits = bits->value;
  } else if (auto* texts = std::get_if<std::vector<std::string>>(&value)) {
    list(texts->size());
    for (const std::string& one : *texts) put(one);
    return;
  } else if (auto* digests = std::get_if<std::vector<Bits>>(&value)) {
    list(digests->size());
    for (Bits one : *digests) put(one);
    return;
  } else if (auto* reals = std::get_if<std::vector<double>>(&value)) {
    list(reals->size());
    for (double one : *reals) put(one);
    return;
  } else if (auto* integers = std::get_if<std::vector<int>>(&value)) {
    list(integers->size());
    for (int one : *integers) put(one);
    return;
  } else if (auto* tensors = std::get_if<std::vector<TensorValue>>(&value)) {
    list(tensors->size());
    for (const TensorValue& tensor : *tensors) {
      list(4);
      put(tensor.name);
      put(tensor.dtype);
      list(tensor.shape.size());
      for (int64_t size : tensor.shape) put(static_cast<int>(size));
      put(tensor.wants);
    }
    return;
  }
  values_.push_back(made);
}

void ObservedProgram::see(const std::string& kind,
                          const std::vector<std::pair<std::string, SeenValue>>& fields) {
  std::string key = kind;
  for (const auto& [name, value] : fields) key += " " + name;
  auto [at, fresh] = schema_of_.try_emplace(key, static_cast<uint32_t>(schemas_.size()));
  if (fresh) {
    ObservationSchema schema;
    schema.kind = text(kind);
    for (const auto& [name, value] : fields) schema.fields.push_back(text(name));
    schemas_.push_back(schema);
  }
  values_.clear();
  std::vector<uint32_t> starts;
  for (const auto& [name, value] : fields) {
    starts.push_back(static_cast<uint32_t>(values_.size()));
    put(value);
  }
  Observation seen;
  seen.schema = at->second;
  seen.step = step_;
  seen.time_ns = ++time_ + 1000 * step_;
  seen.values = values_;
  seen.starts = starts;
  views_.add(process_, seen, schemas_);
}

}  // namespace opguard
