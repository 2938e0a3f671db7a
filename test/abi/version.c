/* The header's version and the version that the loaded library tells are equal. */
#include <fccl/fccl.h>
#include <stdio.h>

int main(void) {
  int loaded = -1;
  fcclResult_t result = fcclGetVersion(&loaded);
  printf("header %d, library %d, result %d\n", FCCL_VERSION_CODE, loaded, (int)result);
  return result == fcclSuccess && loaded == FCCL_VERSION_CODE ? 0 : 1;
}
