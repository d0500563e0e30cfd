// The page is a text with five marks; they are replaced in an order that keeps its policy true.
//
//   {{style-digest}}    'sha256-...' of the style as it stands in the page, to the byte
//   {{style}}           the style itself
//   {{data}}            the report; last, since it may hold "{{style}}" as somebody's source text
//
// A browser runs an inline script only where its digest is in the policy. What a hostile source
// file would smuggle in has no digest there.
//
// Counterexample: 'unsafe-inline'. It would admit the page's own script, and with it every other
// one.
//
// The cost: the whole page is one string in memory, and each mark is looked for once from the
// front.
#include "report/html.h"

#include <array>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Base64.h"
#include "llvm/Support/SHA256.h"
#include "report/page.h"
#include "report/page_data.h"

namespace opguard {
namespace {

// The first occurrence alone. A page without the mark is left as it is.
void replace(std::string& text, std::string_view mark, std::string_view with) {
  const size_t at = text.find(mark);
  if (at != std::string::npos) text.replace(at, mark.size(), with);
}

// Ends no script block, whatever a source line holds. Only strings of JSON have these three
// characters. JSON.parse() reads \u003c as <, so the data are the same.
//   "</script><!--"  ->  "\u003c/script\u003e\u003c!--"
std::string inside_script(const std::string& json) {
  std::string text;
  text.reserve(json.size());
  for (const char c : json) {
    if (c == '<' || c == '>' || c == '&')
      text += c == '<' ? "\\u003c" : c == '>' ? "\\u003e" : "\\u0026";
    else
      text += c;
  }
  return text;
}

}  // namespace

std::string policy_digest(std::string_view text) {
  const auto bytes = llvm::ArrayRef(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  const std::array<uint8_t, 32> hash = llvm::SHA256::hash(bytes);
  return "'sha256-" + llvm::encodeBase64(hash) + "'";
}

std::string filled_page(std::string_view html, std::string_view css, std::string_view js,
                        const std::string& json) {
  std::string page(html);
  replace(page, "{{style-digest}}", policy_digest(css));
  replace(page, "{{script-digest}}", policy_digest(js));
  replace(page, "{{style}}", css);
  replace(page, "{{script}}", js);
  // Last: what it holds is not looked at for marks.
  replace(page, "{{data}}", inside_script(json));
  return page;
}

std::string format_html(const Report& report) {
  return filled_page(page::html(), page::css(), page::js(), page_data(report));
}

}  // namespace opguard
