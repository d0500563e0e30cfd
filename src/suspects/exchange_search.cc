#include "suspects/exchange_search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

namespace opguard {

ExchangeSearch::ExchangeSearch(std::vector<double> likelihood)
    : likelihood_(std::move(likelihood)), left_(likelihood_.size()) {
  std::iota(left_.begin(), left_.end(), size_t{0});
}

std::vector<size_t> ExchangeSearch::next() const {
  if (left_.empty() || found() || stuck_) return {};
  if (!failed_.empty()) return rest(failed_);
  // The last one is asked too, where no run was healed yet: the cause may be none of them.
  if (left_.size() == 1) return left_;
  double all = 0;
  for (size_t i : left_) all += likelihood_[i];
  // Those of the likeliest that come nearest to half of it.
  std::vector<size_t> half;
  double sum = 0;
  for (size_t i : left_) {
    const double more = sum + likelihood_[i];
    if (!half.empty() &&
        (std::abs(more - all / 2) > std::abs(sum - all / 2) || half.size() + 1 == left_.size()))
      break;
    half.push_back(i);
    sum = more;
  }
  return half;
}

double ExchangeSearch::share(const std::vector<size_t>& asked) const {
  double all = 0, some = 0;
  for (size_t i : left_) all += likelihood_[i];
  for (size_t i : asked) some += likelihood_[i];
  return all == 0 ? 0 : some / all;
}

std::vector<size_t> ExchangeSearch::rest(const std::vector<size_t>& of) const {
  std::vector<size_t> others;
  std::copy_if(left_.begin(), left_.end(), std::back_inserter(others),
               [&](size_t i) { return std::find(of.begin(), of.end(), i) == of.end(); });
  return others;
}

// `asked` may be any of left_, all of them as well: not only what next() gave.
void ExchangeSearch::tell(const std::vector<size_t>& asked, bool healed) {
  failed_.clear();
  left_ = healed ? asked : rest(asked);
  healed_ |= healed;
}

//   {0, 1} failed            next() is {2, 3}: not healed there says that the cause is in {0, 1}
//   {2, 3} failed as well    stuck: neither half runs without the other
void ExchangeSearch::failed(const std::vector<size_t>& asked) {
  stuck_ = !failed_.empty() || rest(asked).empty();
  failed_ = asked;
}

std::optional<size_t> ExchangeSearch::found() const {
  if (!healed_ || left_.size() != 1) return std::nullopt;
  return left_.front();
}

std::vector<size_t> ExchangeSearch::healed() const {
  return healed_ ? left_ : std::vector<size_t>();
}

uint32_t ExchangeSearch::most_runs() const {
  // Each run halves what is left, and one must have been healed.
  //   eight groups left: 3 runs, and one more until something was healed
  return static_cast<uint32_t>(std::bit_width(left_.empty() ? 0 : left_.size() - 1)) + !healed_;
}

}  // namespace opguard
