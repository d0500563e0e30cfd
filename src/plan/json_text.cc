// nlohmann's SAX parser says what it has read, and not where. An iterator that counts the bytes it
// was asked for says where.
//
//   {"line": 12, "file": "a.py"}
//   "line"   reported when 7 bytes are taken: its end. It begins at the quote before
//   12       reported when 12 are taken, one too many: where it ends shows only at the comma
//
// So the end of a token is known, and its beginning is found by going back. For a number that is
// over digits, for a string to the quote that no backslash escapes.
//
// Counterexample: to look for `"line"` in the text. It may stand in a string, or twice.
//
// After the first fault all reads fail quietly and leave their default. A caller reads all fields
// and asks failed() once. The cost: each token is read twice.
#include "plan/json_text.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <tuple>

#include "nlohmann/json.hpp"
#include "support/nearest.h"
#include "support/source.h"

namespace opguard {
namespace {

using Kind = JsonValue::Kind;

// Deeper than any file of ours; keeps a hostile one from exhausting the stack.
constexpr size_t kMaxDepth = 64;

// As a complaint puts it: "'line' must be a whole number".
const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::null:
      return "null";
    case Kind::boolean:
      return "true or false";
    case Kind::integer:
      return "a whole number";
    case Kind::real:
      return "a number";
    case Kind::string:
      return "a string";
    case Kind::array:
      return "an array";
    case Kind::object:
      return "an object";
  }
  return "";
}

// Input iterator that tells how many bytes the parser has taken.
struct CountingIterator {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at = nullptr;
  size_t* taken = nullptr;

  reference operator*() const { return *at; }
  CountingIterator& operator++() {
    ++at;
    ++*taken;
    return *this;
  }
  bool operator==(const CountingIterator& other) const { return at == other.at; }
  bool operator!=(const CountingIterator& other) const { return at != other.at; }
};

bool in_number(char c) { return std::strchr("+-.0123456789eE", c) != nullptr && c != '\0'; }

// Builds JsonValues; the number of bytes taken is the end of every token but a number, which needs
// one byte more to be seen whole.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  Builder(const std::string& text, const size_t& taken, JsonValue& root)
      : text_(text), taken_(taken), root_(root) {}

  bool null() override {
    place(Kind::null, literal_range(4));
    return true;
  }
  bool boolean(bool v) override {
    place(Kind::boolean, literal_range(v ? 4 : 5)).boolean = v;
    return true;
  }
  bool number_integer(number_integer_t v) override {
    JsonValue& value = place(Kind::integer, number_range());
    value.integer = static_cast<uint64_t>(v);
    value.negative = v < 0;
    value.real = static_cast<double>(v);
    return true;
  }
  bool number_unsigned(number_unsigned_t v) override {
    JsonValue& value = place(Kind::integer, number_range());
    value.integer = v;
    value.real = static_cast<double>(v);
    return true;
  }
  bool number_float(number_float_t v, const string_t&) override {
    place(Kind::real, number_range()).real = v;
    return true;
  }
  bool string(string_t& v) override {
    place(Kind::string, string_range()).string = v;
    return true;
  }
  bool binary(binary_t&) override { return false; }  // cannot occur in text
  bool key(string_t& v) override {
    JsonValue& key = open_.back()->members.emplace_back().first;
    key.kind = Kind::string;
    key.string = v;
    std::tie(key.begin, key.end) = string_range();
    return true;
  }
  bool start_object(size_t) override { return open(Kind::object); }
  bool start_array(size_t) override { return open(Kind::array); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::json::exception& e) override {
    error_byte = position == 0 ? 0 : position - 1;
    error = e.what();
    return false;
  }

  std::string error;
  size_t error_byte = 0;

 private:
  using Range = std::pair<uint32_t, uint32_t>;

  Range literal_range(uint32_t length) const {
    auto end = static_cast<uint32_t>(taken_);
    return {end - length, end};
  }
  // Back over what is no part of a number: the byte behind it, and blanks at the end of the text.
  Range number_range() const {
    auto end = static_cast<uint32_t>(taken_);
    while (end > 0 && !in_number(text_[end - 1])) --end;
    uint32_t begin = end;
    while (begin > 0 && in_number(text_[begin - 1])) --begin;
    return {begin, end};
  }
  // The opening quote is the first one before the closing quote that no odd run of '\' escapes.
  Range string_range() const {
    auto end = static_cast<uint32_t>(taken_);
    uint32_t begin = end - 1;
    while (begin > 0) {
      --begin;
      if (text_[begin] != '"') continue;
      uint32_t slash = begin;
      while (slash > 0 && text_[slash - 1] == '\\') --slash;
      if ((begin - slash) % 2 == 0) break;
    }
    return {begin, end};
  }

  // Where the next value goes: the root, the value of the last key, or a new item. Containers
  // that are open stay where they are: their parents gain nothing meanwhile.
  JsonValue& place(Kind kind, Range range) {
    JsonValue* value = &root_;
    if (!open_.empty()) {
      JsonValue& parent = *open_.back();
      value = parent.kind == Kind::object ? &parent.members.back().second
                                          : &parent.items.emplace_back();
    }
    value->kind = kind;
    std::tie(value->begin, value->end) = range;
    return *value;
  }
  bool open(Kind kind) {
    auto end = static_cast<uint32_t>(taken_);
    open_.push_back(&place(kind, {end - 1, end}));
    if (open_.size() <= kMaxDepth) return true;
    error = "values are nested too deeply";
    error_byte = end - 1;
    return false;
  }
  bool close() {
    open_.back()->end = static_cast<uint32_t>(taken_);
    open_.pop_back();
    return true;
  }

  const std::string& text_;
  const size_t& taken_;
  JsonValue& root_;
  std::vector<JsonValue*> open_;
};

// nlohmann's sentence without its prefix: "unexpected end of input; expected '}'".
std::string short_reason(const std::string& what) {
  size_t at = what.find(" - ");
  std::string reason = at == std::string::npos ? what : what.substr(at + 3);
  size_t last = reason.find("; last read");
  if (last != std::string::npos) {
    size_t expected = reason.find("; expected", last);
    reason =
        reason.substr(0, last) + (expected == std::string::npos ? "" : reason.substr(expected));
  }
  return reason;
}

}  // namespace

const JsonValue* JsonValue::find(std::string_view key) const {
  for (const auto& [name, value] : members)
    if (name.string == key) return &value;
  return nullptr;
}

JsonText::JsonText(std::string path, std::string text, Diagnostics& diags)
    : path_(std::move(path)), text_(std::move(text)), diags_(diags) {}

// Only the first fault of a file is told: what follows may be a consequence.
void JsonText::fault_at(uint32_t byte, uint32_t end, const std::string& message,
                        const std::string& hint) {
  if (failed_) return;
  failed_ = true;
  // Columns, carets and excerpts of lines of a megabyte help no one.
  constexpr size_t kLongestExcerpt = 200;
  SourceFile file = make_source("", path_, path_, text_);
  Diagnostic d;
  d.file = path_;
  d.line = file.line_of(byte);
  d.column = file.column_of(byte);
  std::string_view line = file.line_text(d.line);
  if (line.size() <= kLongestExcerpt) {
    d.line_text = std::string(line);
    d.length = file.line_of(end) == d.line ? file.column_of(end) - d.column : 0;
  }
  d.message = message;
  diags_.add(d);
  if (hint.empty()) return;
  d.severity = Severity::note;
  d.message = "did you mean '" + hint + "'?";
  d.line_text.clear();
  diags_.add(d);
}

void JsonText::fault(const JsonValue& at, const std::string& message, const std::string& hint) {
  // Of a whole object or array only the opening bracket is underlined.
  bool container = at.kind == Kind::object || at.kind == Kind::array;
  fault_at(at.begin, container ? at.begin + 1 : at.end, message, hint);
}

bool JsonText::parse(JsonValue& root) {
  size_t taken = 0;
  CountingIterator first{text_.data(), &taken}, last{text_.data() + text_.size(), &taken};
  if (text_.size() > std::numeric_limits<uint32_t>::max() / 2) {
    fault_at(0, 0, "larger than 2 GiB", "");
    return false;
  }
  Builder builder(text_, taken, root);
  if (nlohmann::json::sax_parse(first, last, &builder)) return true;
  std::string reason = short_reason(builder.error);
  // A copy that was interrupted is the likeliest fault, and is told as such.
  bool cut = reason.find("unexpected end of input") != std::string::npos ||
             builder.error_byte + 1 > text_.size();
  auto byte = static_cast<uint32_t>(std::min(builder.error_byte, text_.size()));
  if (text_.find_first_not_of(" \t\r\n") == std::string::npos)
    fault_at(0, 0, "the file is empty", "");
  else
    fault_at(byte, byte, cut ? "the file is cut short: " + reason : "not JSON: " + reason, "");
  return false;
}

bool JsonText::check_version(const JsonValue& root, const std::string& key, int version,
                             const std::string& what) {
  const JsonValue* found = root.kind == Kind::object ? root.find(key) : nullptr;
  if (!found) {
    fault(root, "not " + what + ": no field '" + key + "'");
    return false;
  }
  if (found->kind == Kind::integer && !found->negative &&
      found->integer == static_cast<uint64_t>(version))
    return true;
  fault(*found, what + " of version " + text_.substr(found->begin, found->end - found->begin) +
                    "; this opguard reads version " + std::to_string(version));
  return false;
}

void JsonText::only(const JsonValue& object, const std::vector<std::string>& known) {
  for (size_t i = 0; i < object.members.size(); ++i) {
    const JsonValue& key = object.members[i].first;
    if (std::find(known.begin(), known.end(), key.string) == known.end())
      return fault(key, "unknown field '" + key.string + "'", nearest(key.string, known));
    // find() would take the first of two fields of one name, and a person may have meant the other.
    for (size_t k = 0; k < i; ++k)
      if (object.members[k].first.string == key.string)
        return fault(key, "field '" + key.string + "' is given twice");
  }
}

const JsonValue* JsonText::member(const JsonValue& object, const char* key, Kind kind) {
  if (failed_) return nullptr;
  const JsonValue* value = object.find(key);
  if (!value) {
    fault(object, std::string("missing field '") + key + "'");
    return nullptr;
  }
  // A whole number is a number: `1` for 1.0.
  bool fits = value->kind == kind || (kind == Kind::real && value->kind == Kind::integer);
  if (fits) return value;
  fault(*value, std::string("'") + key + "' must be " + kind_name(kind));
  return nullptr;
}

void JsonText::read(const JsonValue& object, const char* key, std::string& out) {
  if (const JsonValue* value = member(object, key, Kind::string)) out = value->string;
}

void JsonText::read(const JsonValue& object, const char* key, bool& out) {
  if (const JsonValue* value = member(object, key, Kind::boolean)) out = value->boolean;
}

void JsonText::read(const JsonValue& object, const char* key, double& out) {
  if (const JsonValue* value = member(object, key, Kind::real)) out = value->real;
}

// All numbers of files come through here: a cast that wraps would make 2^32 + 1 a line 1.
int64_t JsonText::number(const JsonValue& value, const std::string& name, int64_t low,
                         int64_t high) {
  if (failed_) return low;
  if (value.kind != Kind::integer) {
    fault(value, "'" + name + "' must be a whole number");
    return low;
  }
  // Kept apart from negative ones: as int64_t they would look like these.
  bool huge =
      !value.negative && value.integer > static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  auto n = static_cast<int64_t>(value.integer);
  if (!huge && n >= low && n <= high) return n;
  fault(value, "'" + name + "' is out of range");
  return low;
}

void JsonText::read(const JsonValue& object, const char* key, uint32_t& out) {
  if (const JsonValue* value = member(object, key, Kind::integer))
    out = static_cast<uint32_t>(number(*value, key, 0, std::numeric_limits<uint32_t>::max()));
}

void JsonText::read(const JsonValue& object, const char* key, int32_t& out) {
  if (const JsonValue* value = member(object, key, Kind::integer))
    out = static_cast<int32_t>(number(*value, key, std::numeric_limits<int32_t>::min(),
                                      std::numeric_limits<int32_t>::max()));
}

void JsonText::read(const JsonValue& object, const char* key, uint64_t& out) {
  if (const JsonValue* value = member(object, key, Kind::integer))
    out = static_cast<uint64_t>(number(*value, key, 0, std::numeric_limits<int64_t>::max()));
}

// Adds to `out`; up to the first item that is no string.
void JsonText::read_strings(const JsonValue& array, std::vector<std::string>& out) {
  for (const JsonValue& item : array.items) {
    if (item.kind != Kind::string) return fault(item, "must be a string");
    out.push_back(item.string);
  }
}

void JsonText::read(const JsonValue& object, const char* key, std::vector<std::string>& out) {
  if (const JsonValue* value = member(object, key, Kind::array)) read_strings(*value, out);
}

void JsonText::read(const JsonValue& object, const char* key,
                    std::map<std::string, uint64_t>& out) {
  const JsonValue* value = member(object, key, Kind::object);
  if (!value) return;
  for (const auto& [name, count] : value->members)
    out[name.string] =
        static_cast<uint64_t>(number(count, name.string, 0, std::numeric_limits<int64_t>::max()));
}

// The text as it is, whatever its bytes; parse() complains of what is no JSON.
bool read_file(const std::string& path, std::string& text, std::string& error) {
  std::error_code none;
  if (std::filesystem::is_directory(path, none)) {
    error = path + " is a folder, not a file";
    return false;
  }
  std::ifstream in(path, std::ios::binary);
  std::ostringstream bytes;
  if (in) bytes << in.rdbuf();
  // Opening a folder succeeds; reading it does not.
  if (!in || in.bad() || bytes.bad() || (in.fail() && !in.eof())) {
    error = path + ": " + (errno ? std::strerror(errno) : "cannot be read");
    return false;
  }
  text = bytes.str();
  return true;
}

}  // namespace opguard
