// A Block and a Warp for the host, under the kernel's own templates (og1_kernel.h).
//
//   each(f)    device: f(own state), 256 threads at once    host: f(state 0), ..., f(state 255)
//   from(k)    device: a shuffle                            host: the other lane's state is read
//   sync()     device: a barrier                            host: nothing, each() has ended
//
// Counterexample: a race between threads. None shows here, where one runs after the other.
#include "device/og1_twin.h"

#include <time.h>

#include <memory>

#include "device/og1_kernel.h"

namespace opguard::device {
namespace {

// Relaxed: the host runs one block after another.
struct Atomics {
  static uint64_t add(uint64_t* at, uint64_t x) {
    return __atomic_fetch_add(at, x, __ATOMIC_RELAXED);
  }
  static uint64_t take(uint64_t* at) { return __atomic_exchange_n(at, 0, __ATOMIC_RELAXED); }
  static void exclusive_or(uint64_t* at, uint64_t x) {
    __atomic_fetch_xor(at, x, __ATOMIC_RELAXED);
  }
  static void include(uint64_t* at, uint64_t x) { __atomic_fetch_or(at, x, __ATOMIC_RELAXED); }
  static void greatest(uint64_t* at, uint64_t x) {
    uint64_t old = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (old < x &&
           !__atomic_compare_exchange_n(at, &old, x, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
  }
  static void fence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
};

struct Warp : Atomics {
  unsigned index() const { return number; }
  template <typename F>
  void each(F f) {
    for (unsigned lane = 0; lane < kWarp; ++lane) f(states[lane], lane);
  }
  template <typename F>
  void from(unsigned k, F source) {
    for (unsigned lane = 0; lane < kWarp; ++lane)
      states[lane].target[k] = states[source(lane) % kWarp].at;
  }
  template <unsigned kCount>
  void sum(unsigned threads) {
    for (unsigned k = 0; k < kCount; ++k)
      for (unsigned group = 0; group < kWarp; group += threads) {
        uint64_t total = 0;
        for (unsigned i = 0; i < threads; ++i) total += states[group + i].value[k];
        for (unsigned i = 0; i < threads; ++i) states[group + i].value[k] = total;
      }
  }

  State* states;
  unsigned number;
};

struct Block : Atomics {
  struct Memory {
    State states[kThreads];
    uint64_t partials[2 * kThreads];
  };
  explicit Block(Memory* memory) : states(memory->states), partials(memory->partials) {
    each([](State& s, unsigned) { s.sums = Sums{0, 0, 0, 0, 0, 0}; });
  }
  template <typename F>
  void each(F f) {
    for (unsigned thread = 0; thread < kThreads; ++thread) f(states[thread], thread);
  }
  template <typename F>
  void warps(F f) {
    for (unsigned w = 0; w < kWarps; ++w) {
      Warp warp;
      warp.states = states + w * kWarp;
      warp.number = w;
      f(warp);
    }
  }
  template <typename F>
  void first(F f) {
    f();
  }
  // There is one thread to ask.
  template <typename F>
  bool agree(F f) {
    return f();
  }
  uint64_t& partial(unsigned buffer, unsigned i) { return partials[buffer * kThreads + i]; }
  void sync() {}
  // The whole, since the twin has all states at hand; total() then has nothing to do.
  Sums sums(bool by_xor) const {
    Sums s{0, 0, 0, 0, 0, 0};
    for (unsigned thread = 0; thread < kThreads; ++thread) {
      const Sums& t = states[thread].sums;
      s.h = by_xor ? s.h ^ t.h : s.h + t.h;
      s.m += t.m;
      s.flat += t.flat;
      s.pattern += t.pattern;
      s.digest += t.digest;
      s.seen |= t.seen;
    }
    return s;
  }
  static Sums total(const Sums& s, bool) { return s; }
  static uint64_t clock() {
    timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
  }
  // As the device does it: the sequence last, for a reader in another thread.
  static void store_system(opguard_value* to, const opguard_value& v, uint64_t check,
                           uint64_t sequence) {
    auto* entry = reinterpret_cast<RingEntry*>(to);
    const auto* from = reinterpret_cast<const uint64_t*>(&v);
    for (size_t i = 0; i < sizeof(v) / 8; ++i)
      __atomic_store_n(reinterpret_cast<uint64_t*>(to) + i, from[i], __ATOMIC_RELAXED);
    __atomic_store_n(&entry->check, check, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->sequence, sequence, __ATOMIC_RELEASE);
  }

  State* states;
  uint64_t* partials;
};

}  // namespace

template <typename Launch>
void run_on_host(const Launch& launch, uint32_t blocks, bool plain) {
  auto memory = std::make_unique<Block::Memory>();
  auto task = std::make_unique<Task>();
  task->head = launch.head;
  for (uint32_t b = 0; b < blocks; ++b) {
    const uint64_t* words = launch.words + job_at(launch, b);
    __builtin_memcpy(&task->job, words, sizeof(Job));
    __builtin_memcpy(task->dims, launch.words + task->job.dims_at, task->job.outer * sizeof(Dim));
    if (plain)
      run_block<Block, true>(memory.get(), *task, b);
    else
      run_block<Block, false>(memory.get(), *task, b);
  }
}

template void run_on_host(const SmallLaunch&, uint32_t, bool);
template void run_on_host(const LargeLaunch&, uint32_t, bool);

}  // namespace opguard::device
