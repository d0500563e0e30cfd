#include "preflight/opcode_rules.h"

namespace opguard {
namespace {

// First match wins. CPython 3.8 to 3.14; specialised and instrumented names never reach the tracer.
constexpr OpcodeRule kRules[] = {
    {"CALL_INTRINSIC*", Use::star, "internal instruction"},
    {"CALL*", Use::call, "call without a site"},
    {"PRECALL", Use::call, "call without a site"},
    {"BINARY_SUBSCR", Use::subscript_read, "subscript without a site"},
    {"BINARY_SLICE", Use::subscript_read, "subscript without a site"},
    {"STORE_SUBSCR", Use::subscript_write, "subscript without a site"},
    {"STORE_SLICE", Use::subscript_write, "subscript without a site"},
    {"DELETE_SUBSCR", Use::nothing, "del of an item"},
    {"BINARY_*", Use::operation, "operator without a site"},
    {"INPLACE_*", Use::operation, "operator without a site"},
    {"UNARY_NOT", Use::condition, "truth of what is not tested alone"},
    {"UNARY_*", Use::unary, "operator without a site"},
    {"COMPARE_OP", Use::compare, "comparison without a site"},
    {"CONTAINS_OP", Use::contains, "in a chain or in a text"},
    {"IS_OP", Use::nothing, "is test"},
    {"FOR_ITER", Use::loop, "loop without a site"},
    {"GET_ITER", Use::loop, "loop without a site"},
    {"GET_YIELD_FROM_ITER", Use::loop, "loop without a site"},
    {"YIELD_FROM", Use::suspend, "await without a site"},
    {"SEND", Use::suspend, "await without a site"},
    {"GET_AWAITABLE", Use::suspend, "await without a site"},
    {"GET_A*", Use::suspend, "loop without a site"},
    {"END_ASYNC_FOR", Use::suspend, "loop without a site"},
    {"POP_JUMP_*", Use::condition, "truth of a value that and, or keep"},
    {"JUMP_IF_*", Use::condition, "truth of a value that and, or keep"},
    {"TO_BOOL", Use::condition, "truth of a value that and, or keep"},
    {"BEFORE_*", Use::enter, "with item without a site"},
    {"SETUP_WITH", Use::enter, "with item without a site"},
    {"SETUP_ASYNC_WITH", Use::enter, "with item without a site"},
    {"WITH_*", Use::enter, "with item without a site"},
    {"LOAD_SPECIAL", Use::enter, "with item without a site"},
    {"LOAD_SUPER_ATTR", Use::read, "reading the attribute that is called"},
    {"LOAD_ATTR", Use::read, "reading the attribute that is called"},
    {"LOAD_METHOD", Use::read, "reading the attribute that is called"},
    {"STORE_ATTR", Use::write, "attribute write without a site"},
    {"DELETE_ATTR", Use::nothing, "del of an attribute"},
    {"IMPORT_*", Use::nothing, "import"},
    {"FORMAT_*", Use::format, "f-string without a site"},
    {"CONVERT_VALUE", Use::format, "f-string without a site"},
    {"BUILD_STRING", Use::nothing, "building a text"},
    {"BUILD_*", Use::nothing, "building a container"},
    {"UNPACK_*", Use::unpack, "unpacking inside a target"},
    {"LIST_*", Use::star, "unpacking without a site"},
    {"SET_UPDATE", Use::star, "unpacking without a site"},
    {"DICT_*", Use::nothing, "unpacking of a mapping"},
    {"MATCH_*", Use::nothing, "match pattern"},
    {"GET_LEN", Use::nothing, "match pattern"},
    {"RAISE_VARARGS", Use::nothing, "raise"},
};

}  // namespace

const OpcodeRule* rule_of(std::string_view opcode) {
  for (const OpcodeRule& rule : kRules) {
    std::string_view pattern = rule.opcode;
    bool prefix = pattern.back() == '*';
    if (prefix) pattern.remove_suffix(1);
    if (prefix ? opcode.substr(0, pattern.size()) == pattern : opcode == pattern) return &rule;
  }
  return nullptr;
}

bool may_be(const Site& site, Use use) {
  switch (use) {
    case Use::call:
      return site.form == Form::call;
    case Use::operation:
      return site.form == Form::binary || site.form == Form::augment;
    case Use::unary:
      return site.form == Form::unary;
    case Use::compare:
      return site.form == Form::compare;
    case Use::subscript_read:
    case Use::subscript_write:
      return site.form == Form::subscript || site.form == Form::augment;
    case Use::loop:
    case Use::unpack:
    case Use::star:
      return site.form == Form::iterate;
    case Use::suspend:
      return site.form == Form::await || site.form == Form::enter || site.form == Form::iterate;
    case Use::condition:
      return site.form == Form::truth;
    case Use::read:
      return site.form == Form::read;
    case Use::write:
      return site.form == Form::write || site.form == Form::augment;
    case Use::enter:
      return site.form == Form::enter;
    case Use::contains:
      return site.form == Form::contains;
    case Use::format:
      return site.form == Form::format;
    case Use::nothing:
      return false;
  }
  return false;
}

}  // namespace opguard
