// A function on pages of its own, which nothing touches before it is called, and which calls another that the loader
// binds then.
#include <unistd.h>

extern "C" __attribute__((section(".text.apart"), aligned(65536), noinline)) int lazy_first() {
    return getppid() > 0;
}
