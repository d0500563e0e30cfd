#include "support/text.h"

#include <algorithm>
#include <cstdio>

#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/Unicode.h"

namespace opguard {
namespace {

ShownChar spelled(const char* format, unsigned value) {
  char buffer[16];
  std::snprintf(buffer, sizeof buffer, format, value);
  return {buffer, uint32_t(std::char_traits<char>::length(buffer))};
}

// `bytes` is one legal UTF-8 sequence.
uint32_t code_point(std::string_view bytes) {
  const auto* begin = reinterpret_cast<const llvm::UTF8*>(bytes.data());
  llvm::UTF32 value = 0, *out = &value;
  llvm::ConvertUTF8toUTF32(&begin, begin + bytes.size(), &out, out + 1, llvm::strictConversion);
  return value;
}

ShownChar shown_char(std::string_view bytes) {
  const unsigned char first = bytes[0];
  if (bytes.size() == 1) {
    if (first == '\t') return {"    ", 4};
    if (first == '\n') return {"\\n", 2};
    if (first < 0x20 || first == 0x7f) return spelled("\\x%02x", first);
    return {std::string(bytes), 1};
  }
  const uint32_t code = code_point(bytes);
  if (code < 0xa0) return spelled("\\x%02x", code);
  // Formatting characters have no width of their own but turn what stands around them.
  if (llvm::sys::unicode::isFormatting(int(code)) || !llvm::sys::unicode::isPrintable(int(code)))
    return spelled(code > 0xffff ? "\\U%08x" : "\\u%04x", code);
  const int width =
      llvm::sys::unicode::columnWidthUTF8(llvm::StringRef(bytes.data(), bytes.size()));
  return {std::string(bytes), uint32_t(std::max(width, 0))};
}

}  // namespace

std::vector<ShownChar> shown_chars(std::string_view text) {
  std::vector<ShownChar> chars;
  for (size_t i = 0; i < text.size();) {
    const auto* p = reinterpret_cast<const llvm::UTF8*>(text.data() + i);
    const size_t size = llvm::getNumBytesForUTF8(*p);
    if (size > text.size() - i || !llvm::isLegalUTF8Sequence(p, p + size)) {
      chars.push_back(spelled("\\x%02x", *p));
      ++i;
      continue;
    }
    chars.push_back(shown_char(text.substr(i, size)));
    i += size;
  }
  return chars;
}

std::string shown(std::string_view text) {
  std::string result;
  for (const ShownChar& c : shown_chars(text)) result += c.text;
  return result;
}

uint32_t width_of(const std::vector<ShownChar>& chars, size_t from, size_t to) {
  uint32_t width = 0;
  for (size_t i = from; i < std::min(to, chars.size()); ++i) width += chars[i].width;
  return width;
}

void clip(const std::vector<ShownChar>& chars, size_t from, uint32_t columns, size_t& first,
          size_t& last) {
  uint32_t width = 0;
  for (size_t i = first; i < last && width <= columns; ++i) width += chars[i].width;
  if (width <= columns) return;
  // A third of the room for what stands before.
  size_t start = from;
  for (width = 0; start > first && width + chars[start - 1].width <= columns / 3; --start)
    width += chars[start - 1].width;
  size_t stop = start;
  for (width = 0; stop < last && width + chars[stop].width <= columns; ++stop)
    width += chars[stop].width;
  first = start;
  last = stop;
}

MarkedLine mark_line(std::string_view line, size_t from, size_t to, uint32_t columns) {
  const std::vector<ShownChar> chars = shown_chars(line);
  from = std::min(from, chars.size());
  to = std::clamp(to, from, chars.size());
  size_t first = 0, last = chars.size();
  // The indentation says nothing here.
  while (first < last && (first < from || from == to) &&
         (line[first] == ' ' || line[first] == '\t'))
    ++first;
  from = std::max(from, first);
  to = std::max(to, from);
  clip(chars, from, columns, first, last);
  to = std::min(to, last);
  MarkedLine result;
  // Left of `first` there may be indentation only.
  const bool cut = line.substr(0, first).find_first_not_of(" \t") != std::string_view::npos;
  if (cut) result.line = "...";
  result.indent = width_of(chars, first, from) + (cut ? 3 : 0);
  result.length = width_of(chars, from, to);
  for (size_t i = first; i < last; ++i) result.line += chars[i].text;
  if (last < chars.size()) result.line += "...";
  return result;
}

std::string escape_markup(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::string underline(uint32_t length) {
  return length == 0 ? "" : "^" + std::string(length - 1, '~');
}

std::string grouped(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, ",");
  return text;
}

std::string counted(uint64_t number, const std::string& noun) {
  return grouped(number) + " " + noun + (number == 1 ? "" : "s");
}

}  // namespace opguard
