# fuzz_readers: the C++ readers fed with damaged files (tests/fuzz/readers_target.cc). Their sources are
# compiled again, with a call at every branch; the rest is the library.
file(GLOB reader_sources CONFIGURE_DEPENDS src/io/*.cc)
list(TRANSFORM reader_sources PREPEND ${CMAKE_SOURCE_DIR}/ REGEX "^[^/]")
list(APPEND reader_sources ${CMAKE_SOURCE_DIR}/tests/fuzz/readers_target.cc)

add_library(fuzz_reader_code OBJECT EXCLUDE_FROM_ALL ${reader_sources})
target_include_directories(fuzz_reader_code PRIVATE include src ${TAEDA_GENERATED} ${TAEDA_GENERATED}/include)
target_compile_options(fuzz_reader_code PRIVATE -O1 -fsanitize-coverage=trace-pc)
add_executable(fuzz_readers EXCLUDE_FROM_ALL tests/fuzz/driver.cc $<TARGET_OBJECTS:fuzz_reader_code>)
target_link_libraries(fuzz_readers PRIVATE taeda ZLIB::ZLIB)
set_target_properties(fuzz_readers PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})

# The same with libFuzzer and the address sanitizer, where there is a clang that has them.
find_program(TAEDA_CLANG NAMES clang++ clang++-19 clang++-18 clang++-17 clang++-16 clang++-15 clang++-14)
set(fuzzer ${CMAKE_BINARY_DIR}/fuzz_readers_libfuzzer)
if(TAEDA_CLANG AND NOT TAEDA_SANITIZE AND NOT DEFINED TAEDA_LIBFUZZER)
  file(WRITE ${CMAKE_BINARY_DIR}/libfuzzer.cc
    "extern \"C\" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }\n")
  execute_process(
    COMMAND ${TAEDA_CLANG} -fsanitize=fuzzer ${CMAKE_BINARY_DIR}/libfuzzer.cc -o ${CMAKE_BINARY_DIR}/libfuzzer
    RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  if(failed)
    set(TAEDA_LIBFUZZER OFF CACHE BOOL "clang has libFuzzer")
  else()
    set(TAEDA_LIBFUZZER ON CACHE BOOL "clang has libFuzzer")
  endif()
endif()
if(TAEDA_LIBFUZZER)
  add_custom_command(OUTPUT ${fuzzer}
    COMMAND ${TAEDA_CLANG} -std=c++20 -O1 -g -w -fsanitize=fuzzer,address -I${CMAKE_SOURCE_DIR}/include
      -I${CMAKE_SOURCE_DIR}/src -I${TAEDA_GENERATED} -I${TAEDA_GENERATED}/include ${reader_sources} -o ${fuzzer}
      $<TARGET_FILE:taeda> -Wl,-rpath,$<TARGET_FILE_DIR:taeda> -lz
    DEPENDS taeda ${reader_sources} VERBATIM)
  add_custom_target(libfuzzer_target DEPENDS ${fuzzer})
  add_dependencies(fuzz_readers libfuzzer_target)
endif()
