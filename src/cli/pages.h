// cli/pages.h: the pages of docs/, part of the program: a wheel holds no docs folder.
//
//   docs/formats/json.md     topic "json", whatever folder it lies in
//   README.md, index.md      no topic: they say nothing that stands alone
//
// embed_pages.cmake makes the source of pages(); a page that changed makes it anew.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace opguard {

struct Page {
  std::string_view topic;  // the file's name without its folder and ".md": "json"
  std::string_view text;   // Markdown
};

// By topic.
const std::vector<Page>& pages();
const Page* page_of(std::string_view topic);

}  // namespace opguard
