// A parser for one grammar: an object of tensors, and one of texts.
//
//   {"__metadata__": {"step": "3"},
//    "out0": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}
//
// That is at most two objects deep, each a function of its own, so a file cannot make it recurse.
// Counterexamples: `true`, `1.0`, `-1`, a list in a list and a key twice are all good JSON, and
// here errors.
//
// The cost: one pass. Each name is copied once, and once more into a set that finds doubled ones.
#include "tensor/safetensors_header.h"

#include <set>
#include <unordered_set>

namespace opguard {
namespace {

constexpr size_t kMaxDims = 64;  // torch's own limit

void append_utf8(std::string& out, uint32_t code) {
  auto put = [&](uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6);
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::string& error) : text_(text), error_(error) {}

  bool header(std::vector<StoredTensor>& tensors, TensorMetadata& metadata) {
    std::unordered_set<std::string> names;
    bool ok = members([&](const std::string& name) {
      if (!names.insert(name).second) return fail("two tensors named '" + printable(name) + "'");
      if (name == "__metadata__") return texts(metadata);
      tensors.push_back({name, "", {}, 0, 0});
      return tensor(tensors.back());
    });
    if (!ok) return false;
    space();
    return at_ == text_.size() || fail("the end of the header");
  }

 private:
  bool fail(const std::string& what) {
    bool expected = !what.starts_with("two ");
    error_ = "the header is not one of safetensors: " + std::string(expected ? "expected " : "") +
             what + " at byte " + std::to_string(8 + at_);
    return false;
  }

  void space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) ++at_;
  }

  bool take(char c) {
    space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  bool expect(char c) { return take(c) || fail("'" + std::string(1, c) + "'"); }

  // {"key": member, ...}
  template <typename F>
  bool members(F member) {
    if (!expect('{')) return false;
    if (take('}')) return true;
    do {
      std::string key;
      if (!string(key) || !expect(':') || !member(key)) return false;
    } while (take(','));
    return expect('}');
  }

  bool hex4(uint32_t& value) {
    value = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      if (at_ >= text_.size()) return fail("four hexadecimal digits");
      const size_t digit = std::string_view("0123456789abcdef").find(text_[at_] | 0x20);
      if (digit == std::string_view::npos) return fail("four hexadecimal digits");
      value = value << 4 | static_cast<uint32_t>(digit);
    }
    return true;
  }

  // "\ud83d\ude00" is one character of two halves; half a one is an error.
  bool escape(std::string& out) {
    static constexpr std::string_view kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
    const char c = at_ < text_.size() ? text_[at_++] : '\0';
    if (const size_t known = kFrom.find(c); c != '\0' && known != kFrom.npos) {
      out += kTo[known];
      return true;
    }
    uint32_t code = 0, low = 0;
    if (c != 'u') return fail("an escape");
    if (!hex4(code)) return false;
    if (code >= 0xd800 && code < 0xdc00) {
      if (text_.substr(at_, 2) != "\\u") return fail("the second half of a character");
      at_ += 2;
      if (!hex4(low)) return false;
      if (low < 0xdc00 || low >= 0xe000) return fail("the second half of a character");
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xdc00 && code < 0xe000) {
      return fail("a character");
    }
    append_utf8(out, code);
    return true;
  }

  bool string(std::string& out) {
    if (!expect('"')) return false;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '"') return true;
      if (static_cast<unsigned char>(c) < 0x20) {
        --at_;
        return fail("a character");
      }
      if (c != '\\')
        out += c;
      else if (!escape(out))
        return false;
    }
    return fail("'\"'");
  }

  bool number(int64_t& value) {
    space();
    value = 0;
    const size_t first = at_;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
      if (__builtin_mul_overflow(value, int64_t{10}, &value) ||
          __builtin_add_overflow(value, int64_t{text_[at_] - '0'}, &value))
        return fail("a number below 2^63");
    return at_ > first || fail("a number");
  }

  bool numbers(std::vector<int64_t>& list) {
    if (!expect('[')) return false;
    if (take(']')) return true;
    do {
      if (list.size() == kMaxDims) return fail("at most 64 dims");
      int64_t value;
      if (!number(value)) return false;
      list.push_back(value);
    } while (take(','));
    return expect(']');
  }

  bool texts(TensorMetadata& metadata) {
    return members([&](const std::string& key) {
      std::string text;
      if (!string(text)) return false;
      return metadata.emplace(key, text).second || fail("two entries '" + printable(key) + "'");
    });
  }

  bool tensor(StoredTensor& tensor) {
    std::set<std::string> seen;
    std::vector<int64_t> offsets;
    bool ok = members([&](const std::string& key) {
      if (!seen.insert(key).second) return fail("two entries '" + printable(key) + "'");
      if (key == "dtype") return string(tensor.dtype);
      if (key == "shape") return numbers(tensor.shape);
      if (key == "data_offsets") return numbers(offsets);
      return fail("dtype, shape or data_offsets");
    });
    if (!ok) return false;
    if (seen.size() != 3 || offsets.size() != 2) return fail("dtype, shape and two data_offsets");
    tensor.begin = static_cast<uint64_t>(offsets[0]);
    tensor.end = static_cast<uint64_t>(offsets[1]);
    return true;
  }

  std::string_view text_;
  std::string& error_;
  size_t at_ = 0;
};

// Bytes beyond ASCII as they are: names are UTF-8 already, and JSON takes them.
void quote(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += "\\u00";
      out += kHex[c >> 4 & 15];
      out += kHex[c & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

}  // namespace

bool parse_header(std::string_view text, std::vector<StoredTensor>& tensors,
                  TensorMetadata& metadata, std::string& error) {
  return HeaderParser(text, error).header(tensors, metadata);
}

std::string format_header(const std::vector<StoredTensor>& tensors,
                          const TensorMetadata& metadata) {
  std::string out = "{\"__metadata__\":{";
  const char* between = "";
  for (const auto& [key, text] : metadata) {
    out += between;
    quote(out, key);
    out += ':';
    quote(out, text);
    between = ",";
  }
  out += '}';
  for (const StoredTensor& tensor : tensors) {
    out += ',';
    quote(out, tensor.name);
    out += ":{\"dtype\":";
    quote(out, tensor.dtype);
    out += ",\"shape\":[";
    for (size_t d = 0; d < tensor.shape.size(); ++d)
      out += (d ? "," : "") + std::to_string(tensor.shape[d]);
    out += "],\"data_offsets\":[" + std::to_string(tensor.begin) + "," +
           std::to_string(tensor.end) + "]}";
  }
  return out + "}";
}

std::string printable(std::string_view text) {
  std::string out;
  for (char c : text.substr(0, 120)) {
    const unsigned char byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte == 0x7f ? '?' : c;
  }
  return out;
}

}  // namespace opguard
