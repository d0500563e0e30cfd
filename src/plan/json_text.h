// plan/json_text.h: JSON as values that know where they stand. So every complaint about a plan, a
// trace or a template carries a line, a column and a caret.
//
// nlohmann_json 3.11.2 keeps no positions; its SAX parser over an iterator that counts bytes does.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/diagnostics.h"

namespace opguard {

struct JsonMember;

struct JsonValue {
  enum class Kind : uint8_t { null, boolean, integer, real, string, array, object };
  Kind kind = Kind::null;
  uint32_t begin = 0, end = 0;  // bytes in the text
  bool boolean = false;
  bool negative = false;  // integer < 0: its bits are those of an int64_t
  uint64_t integer = 0;
  double real = 0;  // of integers too
  std::string string;
  std::vector<JsonValue> items;     // array
  std::vector<JsonMember> members;  // object

  // The first member of that name; nullptr: none, or no object.
  const JsonValue* find(std::string_view key) const;
};

struct JsonMember {
  JsonValue first, second;  // the key, a string, and its value
};

// Reads fields with their types. After the first fault everything fails quietly, so that a damaged
// file gives one diagnostic, not one a field.
class JsonText {
 public:
  JsonText(std::string path, std::string text, Diagnostics& diags);

  // False: not JSON (the diagnostic says so and where).
  bool parse(JsonValue& root);
  bool failed() const { return failed_; }
  // A fault at a value, underlined; `hint`: "did you mean 'hint'?" if not empty.
  void fault(const JsonValue& at, const std::string& message, const std::string& hint = "");
  // Another version or another kind of file is refused before any field is read.
  bool check_version(const JsonValue& root, const std::string& key, int version,
                     const std::string& what);
  // Faults on a member that is not among `known`, with the nearest known name.
  void only(const JsonValue& object, const std::vector<std::string>& known);

  // The member `key` of `object`; a fault if it is missing or has another type.
  const JsonValue* member(const JsonValue& object, const char* key, JsonValue::Kind kind);
  void read(const JsonValue& object, const char* key, std::string& out);
  void read(const JsonValue& object, const char* key, bool& out);
  void read(const JsonValue& object, const char* key, double& out);
  void read(const JsonValue& object, const char* key, uint32_t& out);
  void read(const JsonValue& object, const char* key, int32_t& out);
  void read(const JsonValue& object, const char* key, uint64_t& out);
  void read(const JsonValue& object, const char* key, std::vector<std::string>& out);
  void read(const JsonValue& object, const char* key, std::map<std::string, uint64_t>& out);
  void read_strings(const JsonValue& array, std::vector<std::string>& out);
  // Whole number within [low, high].
  int64_t number(const JsonValue& value, const std::string& name, int64_t low, int64_t high);

 private:
  void fault_at(uint32_t byte, uint32_t end, const std::string& message, const std::string& hint);

  std::string path_, text_;
  Diagnostics& diags_;
  bool failed_ = false;
};

// The bytes of a file; false if it cannot be read (`error` says why).
bool read_file(const std::string& path, std::string& text, std::string& error);

}  // namespace opguard
