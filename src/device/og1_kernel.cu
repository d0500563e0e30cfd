// device/og1_kernel.cu: og1_kernel.h on the device. Compiled to PTX by clang without CUDA's headers
// (src/device/CMakeLists.txt), and by nvcc in the tests. Instructions that C++ has no word for are
// given as PTX, which both take.
#ifndef __CUDACC__
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __noinline__ __attribute__((noinline))
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#endif

#include "device/og1_kernel.h"

namespace opguard::device {
namespace {

constexpr unsigned kBlocksPerMultiprocessor = 2;  // 128 registers a thread

__device__ inline unsigned thread_index() {
  unsigned x;
  asm("mov.u32 %0, %%tid.x;" : "=r"(x));
  return x;
}

__device__ inline unsigned block_number() {
  unsigned x;
  asm("mov.u32 %0, %%ctaid.x;" : "=r"(x));
  return x;
}

// Lane `lane`'s x. All 32 lanes of the warp must call it together.
__device__ inline uint32_t shuffle(uint32_t x, unsigned lane) {
  uint32_t y;
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(y) : "r"(x), "r"(lane));
  return y;
}

__device__ inline uint64_t shuffle(uint64_t x, unsigned lane) {
  const uint64_t low = shuffle(static_cast<uint32_t>(x), lane);
  return low | uint64_t{shuffle(static_cast<uint32_t>(x >> 32), lane)} << 32;
}

// The x of the lane whose number differs in the bit `distance`. After distances 1, 2, 4, 8 and 16
// of sums every lane has the sum of all.
__device__ inline uint32_t butterfly(uint32_t x, unsigned distance) {
  uint32_t y;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;"
               : "=r"(y)
               : "r"(x), "r"(distance));
  return y;
}

__device__ inline uint64_t butterfly(uint64_t x, unsigned distance) {
  const uint64_t low = butterfly(static_cast<uint32_t>(x), distance);
  return low | uint64_t{butterfly(static_cast<uint32_t>(x >> 32), distance)} << 32;
}

// On global memory, seen by all blocks of the device. Those without a result (red) are not waited
// for.
struct Atomics {
  __device__ static uint64_t add(uint64_t* at, uint64_t x) {
    uint64_t old;
    asm volatile("atom.global.add.u64 %0, [%1], %2;" : "=l"(old) : "l"(at), "l"(x) : "memory");
    return old;
  }
  __device__ static uint64_t take(uint64_t* at) {
    uint64_t old;
    asm volatile("atom.global.exch.b64 %0, [%1], %2;"
                 : "=l"(old)
                 : "l"(at), "l"(uint64_t{0})
                 : "memory");
    return old;
  }
  __device__ static void exclusive_or(uint64_t* at, uint64_t x) {
    asm volatile("red.global.xor.b64 [%0], %1;" ::"l"(at), "l"(x) : "memory");
  }
  __device__ static void include(uint64_t* at, uint64_t x) {
    asm volatile("red.global.or.b64 [%0], %1;" ::"l"(at), "l"(x) : "memory");
  }
  __device__ static void greatest(uint64_t* at, uint64_t x) {
    asm volatile("red.global.max.u64 [%0], %1;" ::"l"(at), "l"(x) : "memory");
  }
  __device__ static void fence() { asm volatile("membar.gl;" ::: "memory"); }
};

// This thread's place in its warp. each() is called by all 32 lanes, each with its own state.
struct Warp : Atomics {
  __device__ explicit Warp(State& s) : state(s), thread(thread_index()) {}
  __device__ unsigned index() const { return thread / kWarp; }
  template <typename F>
  __device__ void each(F f) {
    f(state, thread % kWarp);
  }
  template <typename F>
  __device__ void from(unsigned k, F source) {
    state.target[k] = shuffle(state.at, source(thread % kWarp));
  }
  template <unsigned kCount>
  __device__ void sum(unsigned threads) {
    OPGUARD_NO_UNROLL
    for (unsigned distance = 1; distance < threads; distance *= 2) {
      OPGUARD_UNROLL
      for (unsigned k = 0; k < kCount; ++k) state.value[k] += butterfly(state.value[k], distance);
    }
  }

  State& state;
  unsigned thread;
};

// This thread's place in its block. What one thread leaves in `partials` others see after sync().
struct Block : Atomics {
  using Memory = uint64_t;  // two buffers of kThreads

  __device__ explicit Block(uint64_t* p) : partials(p) { state.sums = Sums{0, 0, 0, 0, 0, 0}; }
  template <typename F>
  __device__ void each(F f) {
    f(state, thread_index());
  }
  template <typename F>
  __device__ void warps(F f) {
    Warp warp(state);
    f(warp);
  }
  template <typename F>
  __device__ void first(F f) {
    if (thread_index() == 0) f();
  }
  template <typename F>
  __device__ bool agree(F f) {
    if (thread_index() == 0) partials[0] = f();
    sync();
    const bool answer = partials[0] != 0;
    sync();
    return answer;
  }
  __device__ uint64_t& partial(unsigned buffer, unsigned i) {
    return partials[buffer * kThreads + i];
  }
  __device__ void sync() { asm volatile("bar.sync 0;" ::: "memory"); }
  // Thread 0 alone asks: the timer is slow, and nobody else's answer is used.
  __device__ static uint64_t clock() {
    uint64_t ns = 0;
    if (thread_index() == 0) asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
    return ns;
  }

  __device__ Sums sums(bool) const { return state.sums; }

  // Within a warp by exchange, then thread 0 adds the eight warps' sums. It alone has the result.
  __device__ Sums total(Sums s, bool by_xor) {
    OPGUARD_NO_UNROLL
    for (unsigned distance = 1; distance < kWarp; distance *= 2) {
      const uint64_t h = butterfly(s.h, distance);
      s.h = by_xor ? s.h ^ h : s.h + h;
      s.m += butterfly(s.m, distance);
      s.flat += butterfly(s.flat, distance);
      s.pattern += butterfly(s.pattern, distance);
      s.digest += butterfly(s.digest, distance);
      s.seen |= butterfly(s.seen, distance);
    }
    sync();  // columns_of_block() may have left partials that others still read
    const unsigned thread = thread_index();
    if (thread % kWarp == 0) {
      uint64_t* to = partials + thread / kWarp * 6;
      to[0] = s.h;
      to[1] = s.m;
      to[2] = s.flat;
      to[3] = s.pattern;
      to[4] = s.seen;
      to[5] = s.digest;
    }
    sync();
    if (thread == 0) {
      OPGUARD_NO_UNROLL
      for (unsigned w = 1; w < kWarps; ++w) {
        const uint64_t* of = partials + w * 6;
        s.h = by_xor ? s.h ^ of[0] : s.h + of[0];
        s.m += of[1];
        s.flat += of[2];
        s.pattern += of[3];
        s.seen |= static_cast<uint32_t>(of[4]);
        s.digest += of[5];
      }
    }
    return s;
  }

  // The sequence is seen by the host after all else.
  __device__ static void store_system(opguard_value* to, const opguard_value& v, uint64_t check,
                                      uint64_t sequence) {
    const uint64_t at = reinterpret_cast<uint64_t>(to);
    store_pair(at, v.ticket, v.h);
    store_pair(at + 16, v.m, v.flat);
    store_pair(at + 32, v.pattern, v.start_ns);
    store_pair(at + 48, v.end_ns, v.flags);
    store_pair(at + 64, v.digest, check);
    asm volatile("membar.sys;" ::: "memory");
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(at + 80), "l"(sequence) : "memory");
  }
  __device__ static void store_pair(uint64_t at, uint64_t a, uint64_t b) {
    asm volatile("st.global.v2.u64 [%0], {%1, %2};" ::"l"(at), "l"(a), "l"(b) : "memory");
  }

  State state;
  uint64_t* partials;
};

// A block brings its job and dimensions into shared memory, its threads side by side. All of them
// read the task over and over.
template <bool kPlain, typename Launch>
__device__ __forceinline__ void start(const Launch& launch) {
  __shared__ uint64_t partials[2 * kThreads];
  __shared__ uint64_t words[sizeof(Task) / 8];
  constexpr uint64_t kHeadWords = sizeof(LaunchHead) / 8;
  const uint64_t at = job_at(launch, block_number());
  const unsigned thread = thread_index();
  if (thread == 0) {
    words[0] = launch.head.ring;
    words[1] = launch.head.counter;
    words[2] = launch.head.capacity;
    words[3] = launch.head.jobs;
  }
  if (thread < kJobWords) words[kHeadWords + thread] = launch.words[at + thread];
  const uint64_t shape = launch.words[at + offsetof(Job, dims_at) / 8];
  static_assert(offsetof(Job, dims_at) % 8 == 4 &&
                offsetof(Job, outer) == offsetof(Job, dims_at) + 2);
  const unsigned dims_at = static_cast<uint16_t>(shape >> 32);
  const unsigned count = static_cast<uint8_t>(shape >> 48) * unsigned{kDimWords};
  OPGUARD_NO_UNROLL
  for (unsigned i = thread; i < count; i += kThreads)
    words[kHeadWords + kJobWords + i] = launch.words[dims_at + i];
  asm volatile("bar.sync 0;" ::: "memory");
  run_block<Block, kPlain>(partials, *reinterpret_cast<const Task*>(words), block_number());
}

}  // namespace

// One kernel a module: the driver compiles those that a program uses.
#define OPGUARD_KERNEL(name, plain, Launch)                                        \
  extern "C" __global__ void __launch_bounds__(kThreads, kBlocksPerMultiprocessor) \
      name(const Launch launch) {                                                  \
    start<plain>(launch);                                                          \
  }
#if defined(OPGUARD_SMALL)
OPGUARD_KERNEL(opguard_og1_small, false, SmallLaunch)
#elif defined(OPGUARD_LARGE)
OPGUARD_KERNEL(opguard_og1_large, false, LargeLaunch)
#elif defined(OPGUARD_PLAIN_SMALL)
OPGUARD_KERNEL(opguard_og1_plain_small, true, SmallLaunch)
#else
OPGUARD_KERNEL(opguard_og1_plain_large, true, LargeLaunch)
#endif

}  // namespace opguard::device
