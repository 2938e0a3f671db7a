# Installation. Nothing installed knows where it was built or put: the folder may be moved.
set(CMAKE_INSTALL_LIBDIR lib CACHE STRING "Folder of the libraries under the prefix")
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/fccl)

install(TARGETS fccl EXPORT fcclTargets)
if(FCCL_TOOL_TARGETS)
  install(TARGETS ${FCCL_TOOL_TARGETS})
endif()
install(DIRECTORY include/fccl DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
if(TARGET fccl_cuda)
  install(TARGETS fccl_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(EXPORT fcclTargets NAMESPACE fccl:: DESTINATION ${package_dir})
configure_package_config_file(tools/cmake/fcclConfig.cmake.in ${FCCL_GENERATED_DIR}/fcclConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${FCCL_GENERATED_DIR}/fcclConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${FCCL_GENERATED_DIR}/fcclConfig.cmake ${FCCL_GENERATED_DIR}/fcclConfigVersion.cmake
  DESTINATION ${package_dir})

file(RELATIVE_PATH FCCL_PC_TO_PREFIX /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
configure_file(pkgconfig/fccl.pc.in ${FCCL_GENERATED_DIR}/fccl.pc @ONLY)
install(FILES ${FCCL_GENERATED_DIR}/fccl.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
