#include "device/cuda_kernels.h"

#ifdef OPGUARD_PTX_SMALL
#define OPGUARD_EMBED(symbol, file)                                    \
  asm(".pushsection .rodata\n.balign 16\n" symbol ":\n.incbin \"" file \
      "\"\n.byte "                                                     \
      "0\n.popsection\n")
OPGUARD_EMBED("opguard_ptx_small", OPGUARD_PTX_SMALL);
OPGUARD_EMBED("opguard_ptx_large", OPGUARD_PTX_LARGE);
extern "C" {
extern const char opguard_ptx_small[] __attribute__((visibility("hidden")));
extern const char opguard_ptx_large[] __attribute__((visibility("hidden")));
}
#endif

namespace opguard {

#ifdef OPGUARD_PTX_SMALL
const char* cuda_kernels_small() { return opguard_ptx_small; }
const char* cuda_kernels_large() { return opguard_ptx_large; }
#else
const char* cuda_kernels_small() { return nullptr; }
const char* cuda_kernels_large() { return nullptr; }
#endif

}  // namespace opguard
