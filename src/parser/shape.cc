// Gives expressions the short names that matching compares.
//
//   torch.nn.functional.relu(x)     callee "torch.nn.functional.relu", argument "name:x"
//   self.layers[i](x)               callee "layers": the last name, since the index may be anything
//   f(dim=-1, *xs)                  "keyword:dim=literal:-1", "splat:*xs"
//   "a long message that goes on"   "literal:" and its beginning, then four digits of the whole
//
// The names are kept in plans, so they are short, on one line, and the same for the same text.
// Counterexample: the whole argument's text. A rename inside of it would make another argument,
// while "call:f" is the same.
#include "parser/shape.h"

#include <cctype>

namespace opguard {
namespace {

constexpr size_t kReceiverBytes = 60;
constexpr size_t kLiteralBytes = 24;
constexpr size_t kHeaderBytes = 48;
constexpr size_t kListBytes = 40;

// Cuts before `size` bytes, not inside a UTF-8 character.
std::string cut(std::string text, size_t size) {
  if (text.size() <= size) return text;
  size_t end = size - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

// As cut(), with four digits of the whole text behind it: messages often begin alike.
std::string told_apart(const std::string& text, size_t size) {
  if (text.size() <= size) return text;
  uint32_t hash = 2166136261u;  // FNV-1a
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  std::string out = cut(text, size);
  for (uint32_t k = 0; k < 4; ++k) out += "0123456789abcdef"[hash >> (28 - 4 * k) & 15];
  return out;
}

// Blanks inside of strings become one as well: the text is for names, not to be run.
std::string one_line(std::string_view text) {
  std::string out;
  for (char c : text) {
    bool blank = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!blank)
      out += c;
    else if (!out.empty() && out.back() != ' ')
      out += ' ';
  }
  return out;
}

}  // namespace

Node without_parentheses(Node node) {
  while (node && node.kind() == Kind::parenthesized_expression) {
    Node inner = node.first_named_child();
    if (!inner) break;
    node = inner;
  }
  return node;
}

std::string Shapes::text(Node node) const {
  uint32_t start = expression_start(node);
  return std::string(text_.substr(start, node.end() - start));
}

std::string Shapes::shortened(Node node) const { return cut(one_line(text(node)), kReceiverBytes); }

std::string Shapes::dotted(Node node) const {
  switch (node.kind()) {
    case Kind::identifier:
      return text(node);
    case Kind::list_splat:
    case Kind::list_splat_pattern:
      return node.first_named_child() ? dotted(node.first_named_child()) : "";
    case Kind::attribute: {
      std::string object = dotted(node.field(Field::object));
      return object.empty() ? "" : object + "." + text(node.field(Field::attribute));
    }
    default:
      return "";
  }
}

//   self.layers[i].fc(x)     "fc"      f(x)(y)     "f"
std::string Shapes::last_name(Node node) const {
  node = without_parentheses(node);
  switch (node.kind()) {
    case Kind::identifier:
      return text(node);
    case Kind::attribute:
      return text(node.field(Field::attribute));
    case Kind::call:
      return last_name(node.field(Field::function));
    case Kind::subscript:
      return last_name(node.field(Field::value));
    default:
      return "";
  }
}

std::string Shapes::callee(Node function) const {
  function = without_parentheses(function);
  std::string name = dotted(function);
  if (!name.empty()) return name;
  if (function.kind() != Kind::attribute) return last_name(function);
  Node object = function.field(Field::object);
  std::string attribute = "." + text(function.field(Field::attribute));
  bool of_super = object.kind() == Kind::call && dotted(object.field(Field::function)) == "super";
  return of_super ? "super()" + attribute : attribute;
}

std::string Shapes::argument(Node node) const {
  node = without_parentheses(node);
  switch (node.kind()) {
    case Kind::identifier:
      return "name:" + text(node);
    case Kind::attribute: {
      std::string name = dotted(node);
      return "attribute:" + (name.empty() ? "." + text(node.field(Field::attribute)) : name);
    }
    case Kind::call:
      return "call:" + callee(node.field(Field::function));
    case Kind::subscript:
      return "subscript:" + last_name(node.field(Field::value));
    case Kind::integer:
    case Kind::float_:
    case Kind::true_:
    case Kind::false_:
    case Kind::none:
    case Kind::ellipsis:
    case Kind::string:
    case Kind::concatenated_string:
      return "literal:" + told_apart(one_line(text(node)), kLiteralBytes);
    case Kind::unary_operator: {
      Node operand = node.field(Field::argument);
      if (operand && (operand.kind() == Kind::integer || operand.kind() == Kind::float_))
        return "literal:" + one_line(text(node));
      return "unary:" + text(node.field(Field::operator_));
    }
    case Kind::binary_operator:
      return "binary:" + text(node.field(Field::operator_));
    case Kind::comparison_operator:
      return "compare";
    case Kind::boolean_operator:
      return "boolean";
    case Kind::not_operator:
      return "not";
    case Kind::conditional_expression:
      return "conditional";
    case Kind::lambda:
      return "lambda";
    case Kind::await:
      return "await";
    case Kind::yield:
      return "yield";
    case Kind::slice:
      return "slice";
    case Kind::list:
      return "list:" + told_apart(one_line(text(node)), kListBytes);
    case Kind::tuple:
    case Kind::expression_list:
      return "tuple:" + told_apart(one_line(text(node)), kListBytes);
    case Kind::set:
      return "set";
    case Kind::dictionary:
      return "dict";
    case Kind::list_comprehension:
    case Kind::set_comprehension:
    case Kind::dictionary_comprehension:
    case Kind::generator_expression:
      return "comprehension";
    // (y := f(x)) is given as f(x) is.
    case Kind::named_expression:
      return argument(node.field(Field::value));
    case Kind::list_splat:
    case Kind::list_splat_pattern:
    case Kind::dictionary_splat: {
      Node inner = node.first_named_child();
      std::string stars = node.kind() == Kind::dictionary_splat ? "**" : "*";
      return "splat:" + stars + (inner ? last_name(inner) : "");
    }
    case Kind::keyword_argument:
      return "keyword:" + text(node.field(Field::name)) + "=" + argument(node.field(Field::value));
    default:
      return node.type();
  }
}

std::string Shapes::header(Node statement, Node block) const {
  std::string line = one_line(text_.substr(statement.start(), block.start() - statement.start()));
  // A comment may stand between the colon and the block.
  if (size_t comment = line.find(": #"); comment != line.npos) line.resize(comment);
  while (!line.empty() && (line.back() == ' ' || line.back() == ':')) line.pop_back();
  return cut(line, kHeaderBytes);
}

std::vector<std::string> Shapes::arguments(Node list) const {
  if (list.kind() == Kind::generator_expression) return {"comprehension"};
  std::vector<std::string> result;
  list.each_named_child([&](Node child) { result.push_back(argument(child)); });
  return result;
}

void Shapes::add_targets(Node left, std::vector<std::string>& targets) const {
  switch (left.kind()) {
    case Kind::identifier:
      targets.push_back(text(left));
      break;
    case Kind::attribute: {
      std::string name = dotted(left);
      targets.push_back(name.empty() ? "." + text(left.field(Field::attribute)) : name);
      break;
    }
    case Kind::subscript: {
      Node value = left.field(Field::value);
      std::string name = dotted(value);
      targets.push_back((name.empty() ? last_name(value) : name) + "[]");
      break;
    }
    default:
      left.each_named_child([&](Node child) { add_targets(child, targets); });
  }
}

}  // namespace opguard
