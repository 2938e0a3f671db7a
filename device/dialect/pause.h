// Tells the CPU that this is a polling loop. The host asks for it too, to learn how long it takes.
#pragma once

namespace fccl {

__attribute__((always_inline)) inline void pause_polling() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#else
  asm volatile("" ::: "memory");
#endif
}

}  // namespace fccl
