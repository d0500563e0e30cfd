// The kernels' PTX texts lie in this library as bytes: the assembler puts them there (.incbin), and
// no file is looked for at run time. A zero follows each, since the driver takes a text that ends
// with one. A build without them has nullptr from ptx_of().
#include "device/cuda_kernels.h"

#include <array>

#ifdef OPGUARD_PTX_SMALL
#define OPGUARD_EMBED(symbol, file)                                    \
  asm(".pushsection .rodata\n.balign 16\n" symbol ":\n.incbin \"" file \
      "\"\n.byte "                                                     \
      "0\n.popsection\n")
OPGUARD_EMBED("opguard_ptx_small", OPGUARD_PTX_SMALL);
OPGUARD_EMBED("opguard_ptx_large", OPGUARD_PTX_LARGE);
OPGUARD_EMBED("opguard_ptx_plain_small", OPGUARD_PTX_PLAIN_SMALL);
OPGUARD_EMBED("opguard_ptx_plain_large", OPGUARD_PTX_PLAIN_LARGE);
extern "C" {
extern const char opguard_ptx_small[] __attribute__((visibility("hidden")));
extern const char opguard_ptx_large[] __attribute__((visibility("hidden")));
extern const char opguard_ptx_plain_small[] __attribute__((visibility("hidden")));
extern const char opguard_ptx_plain_large[] __attribute__((visibility("hidden")));
}
#endif

namespace opguard {

const char* name_of(CudaKernel kernel) {
  constexpr std::array<const char*, kCudaKernels> kNames = {
      "opguard_og1_small", "opguard_og1_large", "opguard_og1_plain_small",
      "opguard_og1_plain_large"};
  return kNames[kernel];
}

const char* ptx_of(CudaKernel kernel) {
#ifdef OPGUARD_PTX_SMALL
  const std::array<const char*, kCudaKernels> all = {
      opguard_ptx_small, opguard_ptx_large, opguard_ptx_plain_small, opguard_ptx_plain_large};
  return all[kernel];
#else
  static_cast<void>(kernel);
  return nullptr;
#endif
}

}  // namespace opguard
