#include "record/random_operator.h"

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

std::string_view last_of(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == name.npos ? name : name.substr(dot + 1);
}

// Last names, as a whole, of functions of torch, numpy and Python's random that draw.
constexpr std::array<std::string_view, 42> kNames = {
    "normal",          "normal_",      "log_normal_",   "lognormal",   "standard_normal",
    "lognormvariate",  "gauss",        "normalvariate", "uniform",     "uniform_",
    "exponential",     "exponential_", "expovariate",   "geometric",   "geometric_",
    "cauchy_",         "poisson",      "binomial",      "dirichlet",   "multivariate_normal",
    "multinomial_",    "integers",     "permutation",   "permuted",    "sample",
    "rsample",         "sample_n",     "choice",        "choices",     "shuffle",
    "getrandbits",     "orthogonal_",  "sparse_",       "svd_lowrank", "pca_lowrank",
    "noise",           "randombytes",  "triangular",    "betavariate", "gammavariate",
    "vonmisesvariate", "rvs"};

// Words of a last name that mean a draw wherever they stand: `rand_like`, `RandomSampler`,
// `feature_dropout`, `FractionalMaxPool2d`.
constexpr std::array<std::string_view, 18> kWords = {
    "rand",      "randn",       "randint",    "randperm", "randrange",  "random",
    "randbytes", "randomize",   "randomized", "dropout",  "dropblock",  "droppath",
    "bernoulli", "multinomial", "gumbel",     "rrelu",    "stochastic", "fractional"};

// Functions that set a generator's state: python/opguard/trace/marks.py, "seed".
constexpr std::array<std::string_view, 9> kSeeds = {
    "seed",          "manual_seed", "manual_seed_all",   "seed_all",   "set_state",
    "set_rng_state", "setstate",    "set_rng_state_all", "default_rng"};

// Other functions of modules named `random` that draw nothing.
constexpr std::array<std::string_view, 7> kStill = {"initial_seed",  "get_state", "getstate",
                                                    "get_rng_state", "fork_rng",  "RandomState",
                                                    "Generator"};

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

bool seeds_random(std::string_view name) { return among(last_of(name), kSeeds); }

bool draws_random(std::string_view name) {
  const size_t dot = name.rfind('.');
  const std::string_view last = last_of(name);
  if (among(last, kSeeds) || among(last, kStill)) return false;
  if (among(last, kNames)) return true;
  // np.random.beta, random.random
  const std::string_view path = dot == name.npos ? "" : name.substr(0, dot);
  if (path == "random" || path.ends_with(".random")) return true;
  // An initializer: kaiming_uniform_, trunc_normal_.
  if (last.ends_with("_normal_") || last.ends_with("_uniform_")) return true;
  std::string small(last);
  for (char& c : small) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (among(small, kWords)) return true;  // RReLU
  const std::vector<std::string> words = words_of(last);
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

bool given_generator(std::string_view scalars) {
  return scalars.find("=Generator(") != std::string_view::npos;
}

}  // namespace opguard
