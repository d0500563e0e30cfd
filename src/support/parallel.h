// support/parallel.h: the same work for many items, on as many threads as the machine has cores.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace opguard {

// work(i) for each i below count, in any order; items that one thread takes increase. The work must
// not throw and may write only what belongs to its item. most: threads, 0: as the machine has
// cores.
template <typename Work>
void parallel_for(size_t count, Work work, size_t most = 0) {
  std::atomic<size_t> next{0};
  auto run = [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  };
  const size_t threads =
      std::min<size_t>(most ? most : std::max(1u, std::thread::hardware_concurrency()), count);
  std::vector<std::thread> others;
  for (size_t t = 1; t < threads; ++t) others.emplace_back(run);
  run();
  for (std::thread& other : others) other.join();
}

}  // namespace opguard
