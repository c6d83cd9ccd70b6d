# Programs that feed damaged files to the readers (tests/fuzz/readers.py runs them):
#   fuzz_readers   the C++ reader of safetensors
#   fuzz_embedded  the readers that need Python, the unpickler among them, where Python can be embedded
# The readers' sources are compiled again, with a call at every branch; the rest is the library.
# NAME_libfuzzer is the same with libFuzzer and sanitizers, where there is a clang that has them.

find_program(TAEDA_CLANG NAMES clang++ clang++-19 clang++-18 clang++-17 clang++-16 clang++-15 clang++-14)
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

# taeda_fuzzer(NAME SOURCES ... [OBJECTS ...] [LIBRARIES ...] [DEFINITIONS ...] [INCLUDES ...])
function(taeda_fuzzer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;OBJECTS;LIBRARIES;DEFINITIONS;INCLUDES")
  list(TRANSFORM arg_SOURCES PREPEND ${CMAKE_SOURCE_DIR}/ REGEX "^[^/]")
  set(folders ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src ${TAEDA_GENERATED} ${TAEDA_GENERATED}/include
    ${arg_INCLUDES})

  add_library(${name}_code OBJECT EXCLUDE_FROM_ALL ${arg_SOURCES})
  target_include_directories(${name}_code PRIVATE ${folders})
  target_compile_definitions(${name}_code PRIVATE ${arg_DEFINITIONS})
  target_compile_options(${name}_code PRIVATE -O1 -fsanitize-coverage=trace-pc)
  add_executable(${name} EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/tests/fuzz/driver.cc
    $<TARGET_OBJECTS:${name}_code> ${arg_OBJECTS})
  target_link_libraries(${name} PRIVATE taeda ZLIB::ZLIB ${arg_LIBRARIES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})

  if(TAEDA_LIBFUZZER)
    set(program ${CMAKE_BINARY_DIR}/${name}_libfuzzer)
    list(TRANSFORM folders PREPEND -I)
    list(TRANSFORM arg_DEFINITIONS PREPEND -D)
    add_custom_command(OUTPUT ${program}
      COMMAND ${TAEDA_CLANG} -std=c++20 -O1 -g -w -fsanitize=fuzzer,address,undefined -fno-sanitize=vptr,function
        -fno-sanitize-recover=undefined ${folders} ${arg_DEFINITIONS} ${arg_SOURCES} ${arg_OBJECTS} -o ${program}
        $<TARGET_FILE:taeda> -Wl,-rpath,$<TARGET_FILE_DIR:taeda> -lz ${arg_LIBRARIES}
      DEPENDS taeda ${arg_SOURCES} ${arg_OBJECTS} COMMAND_EXPAND_LISTS VERBATIM)
    add_custom_target(${name}_with_libfuzzer DEPENDS ${program})
    add_dependencies(${name} ${name}_with_libfuzzer)
  endif()
endfunction()

file(GLOB io_sources CONFIGURE_DEPENDS src/io/*.cc)
taeda_fuzzer(fuzz_readers SOURCES ${io_sources} tests/fuzz/readers_target.cc)
add_custom_target(fuzzers DEPENDS fuzz_readers)

find_package(Python 3.11 QUIET OPTIONAL_COMPONENTS Development.Embed)
if(Python_Development.Embed_FOUND)
  file(GLOB unpickle_sources CONFIGURE_DEPENDS src/python/unpickle/*.cc)
  taeda_fuzzer(fuzz_embedded SOURCES ${unpickle_sources} tests/fuzz/embedded_target.cc
    OBJECTS $<FILTER:$<TARGET_OBJECTS:taeda_python>,EXCLUDE,/python/unpickle/>
      $<TARGET_OBJECTS:taeda_small_bindings>
    LIBRARIES ${Python_LIBRARIES} -Wl,-rpath,${Python_LIBRARY_DIRS}
    INCLUDES ${Python_INCLUDE_DIRS}
    DEFINITIONS TAEDA_WITHOUT_OPERATOR_METHODS "TAEDA_FUZZ_PYTHON=\"${Python_EXECUTABLE}\"")
  add_dependencies(fuzzers fuzz_embedded)
endif()
