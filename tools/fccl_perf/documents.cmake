# The manual page and the bash completion, written by the program itself from its table of options.
if(FCCL_SAN OR CMAKE_CROSSCOMPILING)
  return()
endif()
set(perf_documents ${CMAKE_BINARY_DIR}/documents)
file(MAKE_DIRECTORY ${perf_documents})
add_custom_command(TARGET fccl_perf POST_BUILD
  COMMAND fccl_perf --print man > ${perf_documents}/fccl_perf.1
  COMMAND fccl_perf --print completion > ${perf_documents}/fccl_perf)
install(FILES ${perf_documents}/fccl_perf.1 DESTINATION share/man/man1)
install(FILES ${perf_documents}/fccl_perf DESTINATION share/bash-completion/completions)
install(FILES ${CMAKE_CURRENT_SOURCE_DIR}/tools/fccl_perf/fccl_perf.schema.json DESTINATION share/fccl)
