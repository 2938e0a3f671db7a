/* Tells the version of the header and of the library, and which file the library is. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fccl/fccl.h>
#include <stdio.h>

int main(void) {
  int version = 0;
  Dl_info info;
  void* function = dlsym(RTLD_DEFAULT, "fcclGetVersion");
  if (fcclGetVersion(&version) != fcclSuccess || !function || !dladdr(function, &info)) return 1;
  printf("header=%d\nlibrary=%d\nfile=%s\n", FCCL_VERSION_CODE, version, info.dli_fname);
  return 0;
}
