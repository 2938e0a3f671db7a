# What the core needs: libsodium, linked statically so that its symbols stay inside; the headers of
# Highway and hwloc (hwloc itself is opened at run time, if it is there); threads and dl.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(SODIUM REQUIRED libsodium)
pkg_get_variable(sodium_libdir libsodium libdir)
find_library(FCCL_SODIUM_LIBRARY libsodium.a HINTS ${sodium_libdir} REQUIRED)
find_path(FCCL_SODIUM_INCLUDE sodium.h HINTS ${SODIUM_INCLUDE_DIRS} REQUIRED)
find_path(FCCL_HIGHWAY_INCLUDE hwy/highway.h REQUIRED)
find_path(FCCL_HWLOC_INCLUDE hwloc.h REQUIRED)

add_library(fccl_dependencies INTERFACE)
target_link_libraries(fccl_dependencies INTERFACE ${FCCL_SODIUM_LIBRARY} Threads::Threads ${CMAKE_DL_LIBS})
foreach(folder ${FCCL_SODIUM_INCLUDE} ${FCCL_HIGHWAY_INCLUDE} ${FCCL_HWLOC_INCLUDE})
  if(NOT folder IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
    target_include_directories(fccl_dependencies SYSTEM INTERFACE ${folder})
  endif()
endforeach()
