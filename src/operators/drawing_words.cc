#include "operators/drawing_words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <vector>

namespace opguard {
namespace {

template <size_t N>
bool among(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// They mean a draw wherever they stand: `rand_crop`, `RandomSampler`, `spatial_dropout`,
// `FractionalMaxPool2d`.
constexpr std::array<std::string_view, 18> kWords = {
    "rand",        "randn",     "randint",    "randperm",   "random",      "randbytes",
    "randombytes", "randomize", "randomized", "dropout",    "dropblock",   "droppath",
    "bernoulli",   "gumbel",    "rrelu",      "stochastic", "multinomial", "fractional"};

// A word, and the words before it with which the name means something else: `grid_sample`,
// `up_sample`, `pixel_shuffle`, `add_noise`.
struct Unless {
  std::string_view word;
  std::array<std::string_view, 6> before;
};
constexpr std::array<Unless, 4> kUnless = {{
    {"sample", {"grid", "up", "down", "re", "over", ""}},
    {"shuffle", {"pixel", "channel", "un", "", "", ""}},
    {"noise", {"add", "predict", "pred", "remove", "subtract", ""}},
    {"choice", {"multiple", "", "", "", "", ""}},
}};

// `RandomHorizontalFlip` and `random_horizontal_flip`: random, horizontal, flip.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words;
  bool begin = true;
  for (size_t i = 0; i < name.size(); ++i) {
    const auto c = static_cast<unsigned char>(name[i]);
    if (!std::isalpha(c)) {
      begin = true;
      continue;
    }
    // A capital after a small letter, or the last of several before one: `MCDropout`.
    const bool after_small = i > 0 && std::islower(static_cast<unsigned char>(name[i - 1]));
    const bool before_small =
        i + 1 < name.size() && std::islower(static_cast<unsigned char>(name[i + 1]));
    if (begin || (std::isupper(c) && (after_small || before_small))) words.emplace_back();
    begin = false;
    words.back() += static_cast<char>(std::tolower(c));
  }
  return words;
}

}  // namespace

bool words_say_draw(std::string_view name) {
  // An initializer: kaiming_uniform_, trunc_normal_.
  if (name.ends_with("_normal_") || name.ends_with("_uniform_")) return true;
  std::string small(name);
  for (char& c : small) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (among(small, kWords)) return true;  // RReLU
  const std::vector<std::string> words = words_of(name);
  for (size_t i = 0; i < words.size(); ++i) {
    if (among(words[i], kWords)) return true;
    if (i > 0 && words[i - 1] == "drop" && (words[i] == "path" || words[i] == "block")) return true;
    // The first word or the last: `sample_actions`, `gaussian_noise`.
    if (i > 0 && i + 1 < words.size()) continue;
    for (const Unless& rule : kUnless)
      if (words[i] == rule.word && (i == 0 || !among(words[i - 1], rule.before))) return true;
  }
  return false;
}

}  // namespace opguard
