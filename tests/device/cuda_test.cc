// The CUDA layer through a double of the driver: ring, streams, graphs, loss, failures, shutdown.
// Each test is a process of its own (gtest_discover_tests), so each opens the table anew; run
// together, they share one.
#include "device/cuda.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <deque>
#include <iterator>
#include <set>
#include <sstream>
#include <thread>

#include "../runtime/fingerprint/reference.h"
#include "cuda_double.h"
#include "device/cuda_options.h"
#include "runtime/fingerprint/element_table.h"
#include "runtime/fingerprint/fingerprint.h"
#include "runtime/fingerprint/xor.h"

namespace opguard {
namespace {

const opguard_device_plugin& table() { return *cuda_device_plugin(); }

std::vector<std::string> calls() {
  std::istringstream text(cuda_double_calls());
  return {std::istream_iterator<std::string>(text), {}};
}

void keep(void* context, const opguard_value* value) {
  static_cast<std::vector<opguard_value>*>(context)->push_back(*value);
}

// All that comes within half a second of `count`.
std::vector<opguard_value> drained(size_t count) {
  std::vector<opguard_value> values;
  for (int i = 0; i < 50 && values.size() < count; ++i) table().drain(keep, &values, 10'000'000);
  table().drain(keep, &values, 0);
  return values;
}

class Cuda : public testing::Test {
 protected:
  static constexpr uint64_t kRing = 64;

  void SetUp() override {
    CudaOptions options;
    options.library = OPGUARD_CUDA_DOUBLE;
    options.ring_entries = kRing;
    set_cuda_options(options);
    char error[256] = "";
    ASSERT_EQ(table().open(error, sizeof(error)), 0) << error;
    use(0);
    std::vector<opguard_value> left;
    table().drain(keep, &left, 0);
    lost_ = table().lost();
  }
  // Since the test began.
  uint64_t lost() const { return table().lost() - lost_; }
  void TearDown() override {
    cuda_double_fail(nullptr, 0);
    cuCtxSynchronize();  // before the tensors are gone
  }

  void use(int device) {
    void* context;
    cuDevicePrimaryCtxRetain(&context, device);
    cuCtxSetCurrent(context);
  }
  void* new_stream(unsigned flags = 0) {
    void* stream;
    EXPECT_EQ(cuStreamCreate(&stream, flags), 0);
    return stream;
  }
  // A device tensor of random bytes, known to the host.
  Elements make(std::vector<int64_t> shape, uint32_t size, uint32_t seed) {
    Elements e{nullptr, size, shape, std::vector<int64_t>(shape.size())};
    int64_t step = size;
    for (size_t d = shape.size(); d-- > 0; step *= shape[d]) e.strides[d] = step;
    memory_.push_back(random_bytes(static_cast<size_t>(step), seed));
    e.data = memory_.back().data();
    return e;
  }
  opguard_tensor tensor(const Elements& e, uint64_t ticket) {
    return {e.data,
            e.size,
            OPGUARD_MASK_NONE,
            static_cast<uint16_t>(element_type("", e.size)),
            static_cast<uint32_t>(e.shape.size()),
            e.shape.data(),
            e.strides.data(),
            ticket};
  }
  std::deque<std::vector<uint8_t>> memory_;
  uint64_t lost_ = 0;
};

void expect_value(const opguard_value& v, const Elements& e) {
  const Digest d = digest(e, "");
  EXPECT_EQ((Fingerprint{v.h, v.m}), d.value);
  EXPECT_EQ(v.flat, d.flat);
  EXPECT_EQ(v.flags, OPGUARD_VALUE_DIGEST);
  EXPECT_EQ(v.digest, d.elements);
}

TEST_F(Cuda, ValuesComeOutOfTheRing) {
  const Elements a = make({300, 70}, 4, 1), b = make({}, 8, 2), c = make({3, 9, 5, 16}, 2, 3);
  void* stream = new_stream();
  const opguard_tensor tensors[] = {tensor(a, 11), tensor(b, 12), tensor(c, 13)};
  const uint64_t before = cuda_double_launches();
  EXPECT_EQ(table().fingerprint(0, stream, tensors, 3), 3u);
  EXPECT_EQ(cuda_double_launches(), before + 1);
  const auto values = drained(3);
  ASSERT_EQ(values.size(), 3u);
  for (const opguard_value& v : values)
    expect_value(v, v.ticket == 11 ? a : v.ticket == 12 ? b : c);
  EXPECT_EQ(lost(), 0u);
}

TEST_F(Cuda, XorInPlaceOfOg1) {
  const Elements a = make({1031, 7}, 3, 1);
  const opguard_tensor t = tensor(a, 5);
  EXPECT_EQ(cuda_xor(0, nullptr, &t, 1), 1u);
  const auto values = drained(1);
  ASSERT_EQ(values.size(), 1u);
  EXPECT_EQ(values[0].h, xor64(a));
  EXPECT_EQ(values[0].flat, xor32(a));
}

// More than a launch's parameters hold: several launches, all tensors.
TEST_F(Cuda, ManyTensorsAtOnce) {
  std::vector<Elements> all;
  for (uint32_t i = 0; i < 50; ++i) all.push_back(make({2, 3, 4, 8 + i}, 2, i));
  std::vector<opguard_tensor> tensors;
  for (uint64_t i = 0; i < 50; ++i) tensors.push_back(tensor(all[i], i + 1));
  const uint64_t before = cuda_double_launches();
  EXPECT_EQ(table().fingerprint(0, nullptr, tensors.data(), 50), 50u);
  EXPECT_LE(cuda_double_launches(), before + 5);
  const auto values = drained(50);
  ASSERT_EQ(values.size(), 50u);
  for (const opguard_value& v : values) expect_value(v, all[v.ticket - 1]);
}

TEST_F(Cuda, WhatCannotBeReadEndsTheLaunch) {
  const Elements a = make({5}, 4, 1);
  opguard_tensor tensors[] = {tensor(a, 1), tensor(a, 2), tensor(a, 3)};
  tensors[1].element_bytes = 99;
  EXPECT_EQ(table().fingerprint(0, nullptr, tensors, 3), 1u);
  EXPECT_EQ(drained(1).size(), 1u);
  EXPECT_EQ(table().fingerprint(7, nullptr, tensors, 1), 0u);
  EXPECT_EQ(table().fingerprint(-1, nullptr, tensors, 1), 0u);
}

// The kernel reads what the stream wrote before it, not what it writes afterwards.
TEST_F(Cuda, InTheStreamsOrder) {
  const Elements a = make({4000}, 1, 1);
  const uint64_t address = reinterpret_cast<uint64_t>(a.data);
  void* stream = new_stream(kStreamNonBlocking);
  cuda_double_hold(stream, 1);
  const opguard_tensor first = tensor(a, 1), second = tensor(a, 2);
  cuMemsetD8Async(address, 7, 4000, stream);
  EXPECT_EQ(table().fingerprint(0, stream, &first, 1), 1u);
  cuMemsetD8Async(address, 0, 4000, stream);
  EXPECT_EQ(table().fingerprint(0, stream, &second, 1), 1u);
  EXPECT_EQ(drained(0).size(), 0u) << "nothing waits for the stream, and it has not run";
  cuda_double_hold(stream, 0);
  const auto values = drained(2);
  ASSERT_EQ(values.size(), 2u);
  const std::vector<uint8_t> sevens(4000, 7);
  EXPECT_EQ(values[0].h, fingerprint(row_of(sevens.data(), 1, 4000)).h);
  EXPECT_EQ(values[1].h, 0u);
}

TEST_F(Cuda, SeveralStreamsAndThreads) {
  constexpr uint64_t kThreads = 4, kEach = 40;
  const Elements a = make({600, 100}, 4, 1), b = make({3, 60000}, 2, 2);
  std::vector<std::thread> threads;
  std::atomic<uint64_t> got{0}, bad{0}, finished{0};
  std::set<uint64_t> tickets;
  const Digest expected[] = {digest(a, ""), digest(b, "")};
  for (uint64_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      use(0);
      void* stream = new_stream();
      for (uint64_t i = 0; i < kEach; ++i) {
        const uint64_t ticket = 1 + 2 * (t * kEach + i);
        const opguard_tensor both[] = {tensor(a, ticket), tensor(b, ticket + 1)};
        EXPECT_EQ(table().fingerprint(0, stream, both, 2), 2u);
        if (i % 4 == 3) cuStreamSynchronize(stream);
      }
      cuStreamSynchronize(stream);
      ++finished;
    });
  std::vector<opguard_value> values;
  while (finished < kThreads) table().drain(keep, &values, 1'000'000);
  table().drain(keep, &values, 0);
  for (std::thread& t : threads) t.join();
  for (const opguard_value& v : values) {
    const Digest& d = expected[(v.ticket - 1) % 2];
    bad += Fingerprint{v.h, v.m} != d.value || v.flat != d.flat;
    tickets.insert(v.ticket);
  }
  EXPECT_EQ(bad, 0u);
  EXPECT_EQ(tickets.size(), values.size());
  EXPECT_EQ(values.size() + lost(), kThreads * kEach * 2);
}

TEST_F(Cuda, TwoDevices) {
  const Elements a = make({100, 8}, 4, 1);
  void* here = new_stream();
  use(1);
  void* there = new_stream();
  use(0);
  const opguard_tensor t0 = tensor(a, 1), t1 = tensor(a, 2);
  EXPECT_EQ(table().fingerprint(0, here, &t0, 1), 1u);
  EXPECT_EQ(table().fingerprint(1, there, &t1, 1), 1u);
  void *context, *first;
  cuCtxGetCurrent(&context);
  cuDevicePrimaryCtxRetain(&first, 0);
  EXPECT_EQ(context, first) << "the program's device is its own choice";
  EXPECT_EQ(table().fingerprint(0, there, &t1, 1), 0u);
  EXPECT_EQ(drained(2).size(), 2u);
}

// A ring that is not read in time: the newest records are kept, the others are counted.
TEST_F(Cuda, LossIsCounted) {
  const Elements a = make({16}, 4, 1);
  void* stream = new_stream();
  for (uint64_t made : {kRing, kRing + 1, 5 * kRing + 3}) {
    const uint64_t before = lost();
    for (uint64_t i = 1; i <= made; ++i) {
      const opguard_tensor t = tensor(a, i);
      ASSERT_EQ(table().fingerprint(0, stream, &t, 1), 1u);
    }
    cuStreamSynchronize(stream);
    const auto values = drained(kRing);
    ASSERT_EQ(values.size(), kRing);
    EXPECT_EQ(values.front().ticket, made - kRing + 1);
    EXPECT_EQ(values.back().ticket, made);
    EXPECT_EQ(lost() - before, made - kRing);
  }
}

// A host thread reads while the device overwrites: nothing torn is given out, nothing is counted
// twice.
TEST_F(Cuda, MadeIsReadPlusLost) {
  const Elements a = make({16}, 4, 1);
  const Digest expected = digest(a, "");
  void* stream = new_stream();
  constexpr uint64_t kMade = 20000;
  std::thread program([&] {
    use(0);
    for (uint64_t i = 1; i <= kMade; ++i) {
      const opguard_tensor t = tensor(a, i);
      table().fingerprint(0, stream, &t, 1);
    }
    cuStreamSynchronize(stream);
  });
  std::vector<opguard_value> values;
  while (values.empty() || values.back().ticket != kMade) table().drain(keep, &values, 100'000);
  program.join();
  uint64_t last = 0;
  for (const opguard_value& v : values) {
    EXPECT_EQ((Fingerprint{v.h, v.m}), expected.value);
    EXPECT_GT(v.ticket, last);
    last = v.ticket;
  }
  EXPECT_EQ(values.size() + lost(), kMade);
}

TEST_F(Cuda, AGraphRecordsOnceAReplay) {
  const Elements a = make({500, 40}, 4, 1), b = make({70000}, 2, 2);
  void *stream = new_stream(), *graph, *exec;
  const opguard_tensor both[] = {tensor(a, 21), tensor(b, 22)};
  EXPECT_EQ(table().capture(0, stream), 0u);
  ASSERT_EQ(cuStreamBeginCapture_v2(stream, kCaptureGlobal), 0);
  const uint64_t id = table().capture(0, stream);
  EXPECT_NE(id, 0u);
  EXPECT_EQ(table().fingerprint(0, stream, both, 2), 2u);
  EXPECT_EQ(table().capture(0, stream), id);
  ASSERT_EQ(cuStreamEndCapture(stream, &graph), 0) << "our calls broke the capture";
  EXPECT_EQ(table().capture(0, stream), 0u);
  ASSERT_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
  cuStreamSynchronize(stream);
  EXPECT_EQ(drained(0).size(), 0u);
  for (int replay = 0; replay < 3; ++replay) {
    const_cast<uint8_t*>(static_cast<const uint8_t*>(a.data))[3] ^= 1;
    ASSERT_EQ(cuGraphLaunch(exec, stream), 0);
    cuStreamSynchronize(stream);
    const auto values = drained(2);
    ASSERT_EQ(values.size(), 2u);
    for (const opguard_value& v : values) expect_value(v, v.ticket == 21 ? a : b);
  }
}

// Both branches of a graph, and the stream that it was captured on, run side by side.
TEST_F(Cuda, BranchesOfAGraphShareNothing) {
  const Elements a = make({3, 30000}, 2, 1), b = make({5, 20000}, 2, 2), c = make({7, 9000}, 4, 3);
  void *one = new_stream(), *two = new_stream(), *other = new_stream(), *event, *graph, *exec;
  cuEventCreate(&event, 0);
  cuStreamBeginCapture_v2(one, kCaptureGlobal);
  cuEventRecord(event, one);
  cuStreamWaitEvent(two, event, 0);
  EXPECT_EQ(table().capture(0, one), table().capture(0, two));
  const opguard_tensor ta = tensor(a, 1), tb = tensor(b, 2), tc = tensor(c, 3);
  EXPECT_EQ(table().fingerprint(0, one, &ta, 1), 1u);
  EXPECT_EQ(table().fingerprint(0, two, &tb, 1), 1u);
  ASSERT_EQ(cuStreamEndCapture(one, &graph), 0);
  cuGraphInstantiateWithFlags(&exec, graph, 0);
  size_t count = 0;
  for (int round = 0; round < 30; ++round) {
    cuGraphLaunch(exec, other);
    EXPECT_EQ(table().fingerprint(0, one, &tc, 1), 1u);
    cuStreamSynchronize(one);
    cuStreamSynchronize(other);
    const auto values = drained(3);
    count += values.size();
    for (const opguard_value& v : values)
      expect_value(v, v.ticket == 1 ? a : v.ticket == 2 ? b : c);
  }
  EXPECT_EQ(count, 90u);
}

// A device that is met for the first time while one of its streams is captured.
TEST_F(Cuda, ReadyDuringACapture) {
  use(1);
  void *stream = new_stream(), *graph, *exec;
  std::vector<Elements> all;
  std::vector<opguard_tensor> tensors;
  for (uint32_t i = 0; i < 8; ++i) all.push_back(make({2, 3, 40, 80}, 2, i));
  for (uint64_t i = 0; i < 8; ++i) tensors.push_back(tensor(all[i], i + 1));
  cuStreamBeginCapture_v2(stream, kCaptureGlobal);
  EXPECT_EQ(table().fingerprint(1, stream, tensors.data(), 8), 8u);
  // Beside a capture the legacy stream is out of bounds; asking must not spoil the capture.
  EXPECT_EQ(table().fingerprint(1, nullptr, tensors.data(), 1), 0u);
  ASSERT_EQ(cuStreamEndCapture(stream, &graph), 0);
  cuGraphInstantiateWithFlags(&exec, graph, 0);
  cuGraphLaunch(exec, stream);
  cuStreamSynchronize(stream);
  EXPECT_EQ(drained(8).size(), 8u);
}

TEST_F(Cuda, ADestroyedStreamsScratchIsNotAnothers) {
  const Elements a = make({3, 30000}, 2, 1);
  for (int i = 0; i < 100; ++i) {
    void* stream = new_stream();
    const opguard_tensor t = tensor(a, 1);
    ASSERT_EQ(table().fingerprint(0, stream, &t, 1), 1u) << i;
    cuStreamDestroy_v2(stream);
  }
  size_t count = 0;
  for (int i = 0; i < 500 && count + lost() < 100; ++i)
    for (const opguard_value& v : drained(1)) {
      expect_value(v, a);
      ++count;
    }
  EXPECT_EQ(count + lost(), 100u);
}

// The program's calls with probes are its calls without them, and launches and questions between.
TEST_F(Cuda, OnlyLaunchesAreAdded) {
  const Elements a = make({64, 64}, 4, 1);
  const opguard_tensor t = tensor(a, 1);
  void *one = new_stream(), *two = new_stream(), *event;
  cuEventCreate(&event, 0);
  auto probe = [&](void* stream, bool on) {
    if (on) {
      EXPECT_EQ(table().fingerprint(0, stream, &t, 1), 1u);
    }
  };
  auto program = [&](bool probes) {
    const uint64_t address = reinterpret_cast<uint64_t>(a.data);
    void *graph, *exec;
    calls();
    probe(one, probes);
    cuMemsetD8Async(address, 1, 64, one);
    probe(one, probes);
    cuEventRecord(event, one);
    cuStreamWaitEvent(two, event, 0);
    cuMemsetD8Async(address, 2, 64, two);
    probe(two, probes);
    cuEventRecord(event, two);
    cuStreamWaitEvent(one, event, 0);
    cuStreamBeginCapture_v2(one, kCaptureGlobal);
    cuMemsetD8Async(address, 3, 64, one);
    probe(one, probes);
    cuStreamEndCapture(one, &graph);
    cuGraphInstantiateWithFlags(&exec, graph, 0);
    cuGraphLaunch(exec, one);
    probe(one, probes);
    cuStreamSynchronize(one);
    cuStreamSynchronize(two);
    if (probes) drained(1);
    return calls();
  };
  program(true);  // what makes a device and a stream ready happens once
  const auto bare = program(false), probed = program(true);
  const std::set<std::string> questions = {"cuCtxGetCurrent", "cuCtxGetId",
                                           "cuStreamGetCaptureInfo_v2", "cuStreamGetId"};
  std::vector<std::string> rest;
  size_t launches = 0;
  for (const std::string& call : probed) {
    if (questions.count(call)) continue;
    if (call == "cuLaunchKernel")
      ++launches;
    else
      rest.push_back(call);
  }
  EXPECT_EQ(rest, bare);
  EXPECT_EQ(launches, 5u);
}

TEST_F(Cuda, AFailedLaunchIsUnreadable) {
  const Elements a = make({5}, 4, 1);
  const opguard_tensor t = tensor(a, 1);
  for (const char* function : {"cuLaunchKernel", "cuStreamGetId", "cuStreamGetCaptureInfo_v2"}) {
    EXPECT_EQ(table().fingerprint(0, nullptr, &t, 1), 1u);
    cuda_double_fail(function, 700);
    EXPECT_EQ(table().fingerprint(0, nullptr, &t, 1), 0u);
    EXPECT_NE(cuda_problem().find("CUDA_ERROR_700"), std::string::npos) << cuda_problem();
    cuda_double_fail(nullptr, 0);
    EXPECT_EQ(drained(1).size(), 1u);
  }
}

TEST_F(Cuda, AForkedChildLeavesTheDeviceAlone) {
  const Elements a = make({5}, 4, 1);
  const opguard_tensor t = tensor(a, 1);
  EXPECT_EQ(table().fingerprint(0, nullptr, &t, 1), 1u);
  cuStreamSynchronize(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    std::vector<opguard_value> values;
    const bool quiet = table().fingerprint(0, nullptr, &t, 1) == 0 &&
                       table().capture(0, nullptr) == 0 && table().drain(keep, &values, 1000) == 0;
    table().close();
    _exit(quiet ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(drained(1).size(), 1u);
}

TEST_F(Cuda, ClosedUnderWay) {
  const Elements a = make({500}, 4, 1);
  const opguard_tensor t = tensor(a, 1);
  void* stream = new_stream();
  cuda_double_hold(stream, 1);
  EXPECT_EQ(table().fingerprint(0, stream, &t, 1), 1u);
  table().close();
  EXPECT_EQ(table().fingerprint(0, stream, &t, 1), 0u);
  EXPECT_EQ(table().capture(0, stream), 0u);
  cuda_double_hold(stream, 0);  // the launch still writes its record, into memory that is there
  cuStreamSynchronize(stream);
  EXPECT_EQ(drained(0).size(), 0u);
}

// The last of those that share a process: they end the devices.

// cudaDeviceReset: what had come is given, the rest is lost and said. Nothing that was the
// context's is touched again, also when the program makes a new one: the double would abort.
TEST_F(Cuda, AContextThatIsDestroyed) {
  const Elements a = make({500}, 4, 1);
  const opguard_tensor first = tensor(a, 1), second = tensor(a, 2);
  void *held = new_stream(), *stream = new_stream();
  EXPECT_EQ(table().fingerprint(0, stream, &first, 1), 1u);
  cuStreamSynchronize(stream);
  cuda_double_hold(held, 1);
  EXPECT_EQ(table().fingerprint(0, held, &second, 1), 1u);
  EXPECT_EQ(cuDevicePrimaryCtxReset_v2(0), 0);
  const auto values = drained(1);
  ASSERT_EQ(values.size(), 1u);
  expect_value(values[0], a);
  // Nobody launches any more: it is seen where the values are waited for.
  const auto begin = std::chrono::steady_clock::now();
  while (table().lost() < uint64_t{1} << 62 &&
         std::chrono::steady_clock::now() - begin < std::chrono::seconds(10))
    drained(1);
  EXPECT_EQ(table().lost(), uint64_t{1} << 62);
  EXPECT_NE(cuda_problem().find("cuda:0 was destroyed (cudaDeviceReset?)"), std::string::npos);
  EXPECT_EQ(table().fingerprint(0, stream, &first, 1), 0u);
  EXPECT_EQ(table().capture(0, stream), 0u);
  use(0);
  void* fresh = new_stream();
  EXPECT_EQ(table().fingerprint(0, fresh, &first, 1), 0u);
  EXPECT_EQ(drained(0).size(), 0u);
}

// The same where the next launch is what sees it, and the ring is the driver's memory, which is
// gone.
TEST_F(Cuda, AContextThatIsDestroyedWithTheRing) {
  use(1);
  const Elements a = make({500}, 4, 1);
  const opguard_tensor t = tensor(a, 1);
  cuda_double_fail("cuMemHostRegister_v2", 801);
  EXPECT_EQ(table().fingerprint(1, nullptr, &t, 1), 1u);
  cuda_double_fail(nullptr, 0);
  const auto values = drained(1);
  ASSERT_EQ(values.size(), 1u);
  expect_value(values[0], a);
  EXPECT_EQ(cuDevicePrimaryCtxReset_v2(1), 0);
  use(1);
  void* fresh = new_stream();
  EXPECT_EQ(table().fingerprint(1, fresh, &t, 1), 0u);
  EXPECT_EQ(table().fingerprint(1, nullptr, &t, 1), 0u);
  EXPECT_EQ(drained(0).size(), 0u);
  EXPECT_NE(cuda_problem().find("cuda:1 was destroyed"), std::string::npos);
}

std::string refusal(int* result) {
  char error[256] = "untouched";
  *result = table().open(error, sizeof(error));
  return error;
}

TEST(CudaRefusals, NoDriver) {
  CudaOptions options;
  options.library = "libno-such-cuda.so.1";
  set_cuda_options(options);
  int result;
  EXPECT_NE(refusal(&result).find("no CUDA driver"), std::string::npos);
  EXPECT_EQ(result, ENOENT);
  const opguard_tensor t{};
  EXPECT_EQ(table().fingerprint(0, nullptr, &t, 1), 0u);
}

TEST(CudaRefusals, AnOldDriver) {
  CudaOptions options;
  options.library = OPGUARD_CUDA_DOUBLE;
  set_cuda_options(options);
  cuda_double_version(11080);
  int result;
  EXPECT_EQ(refusal(&result), "the CUDA driver is for CUDA 11.8, 12.0 or later is needed");
  EXPECT_EQ(result, ENOSYS);
  cuda_double_version(12000);
  char tiny[4];
  cuda_double_fail("cuInit", 100);
  EXPECT_EQ(table().open(tiny, sizeof(tiny)), EIO);
  EXPECT_STREQ(tiny, "cuI");
  cuda_double_fail(nullptr, 0);
}

}  // namespace
}  // namespace opguard
