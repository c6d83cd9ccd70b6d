# What is installed, which is what the wheel holds (component "wheel"):
#   taeda/               the Python package and taeda._C
#   taeda/lib/           libtaeda and one stripped copy of each library it needs
#   taeda/include/       the public headers, generated ones included
#   taeda/lib/cmake/     find_package(taeda)

include(CMakePackageConfigHelpers)
set(lib_dir taeda/lib)
set(package_dir ${lib_dir}/cmake/taeda)

# The old kind of run path also serves the libraries that libtaeda loads: libdnnl finds our libgomp.
set_target_properties(taeda PROPERTIES INSTALL_RPATH "$ORIGIN")
target_link_options(taeda PRIVATE -Wl,--disable-new-dtags)
if(SKBUILD)
  target_link_options(taeda PRIVATE -Wl,--gc-sections
    -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/cmake/internal_symbols.map)
endif()
install(TARGETS taeda EXPORT taedaTargets COMPONENT wheel LIBRARY DESTINATION ${lib_dir}
  INCLUDES DESTINATION taeda/include)
if(TARGET taeda_python)
  set_target_properties(taeda_python PROPERTIES INSTALL_RPATH "$ORIGIN/lib")
  install(TARGETS taeda_python COMPONENT wheel LIBRARY DESTINATION taeda)
endif()

# Python files: the sources, the type stubs, and the definitions of operators.
install(DIRECTORY python/taeda/ DESTINATION taeda COMPONENT wheel
  FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi" PATTERN "py.typed"
  PATTERN "PKG-INFO" PATTERN "top_level.txt")
install(DIRECTORY ${TAEDA_STUBS}/ DESTINATION taeda COMPONENT wheel)
install(FILES ${TAEDA_DEFINITIONS} DESTINATION taeda/_decomp COMPONENT wheel)

# The commit that is packed, for `python -m taeda.env`; none outside of a clone.
install(CODE "execute_process(COMMAND git -C \"${CMAKE_CURRENT_SOURCE_DIR}\" describe --always
    --abbrev=40 --dirty --exclude=* OUTPUT_VARIABLE commit RESULT_VARIABLE failed ERROR_QUIET)
  if(NOT failed)
    file(WRITE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/taeda/COMMIT\" \"\${commit}\")
  endif()" COMPONENT wheel)

install(DIRECTORY include/taeda ${TAEDA_GENERATED}/include/taeda
  DESTINATION taeda/include COMPONENT wheel FILES_MATCHING PATTERN "*.h" PATTERN "*.inc")

# The libraries underneath, under the names that the loader asks for.
get_target_property(dnnl_path DNNL::dnnl IMPORTED_LOCATION_RELEASE)
get_filename_component(dnnl_dir ${dnnl_path} DIRECTORY)
execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libgomp.so.1
  OUTPUT_VARIABLE gomp_path OUTPUT_STRIP_TRAILING_WHITESPACE)
foreach(library ${dnnl_dir}/libdnnl.so.3 ${gomp_path})
  get_filename_component(name ${library} NAME)
  file(REAL_PATH ${library} file)
  install(PROGRAMS ${file} DESTINATION ${lib_dir} RENAME ${name} COMPONENT wheel)
  install(CODE "execute_process(COMMAND ${TAEDA_STRIP} --strip-unneeded
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${lib_dir}/${name}\" COMMAND_ERROR_IS_FATAL ANY)"
    COMPONENT wheel)
endforeach()

install(PROGRAMS ${TAEDA_OPENBLAS} DESTINATION ${lib_dir} COMPONENT wheel)

# The kernels for CUDA devices, where `make wheel` has compiled them.
install(FILES ${CMAKE_CURRENT_SOURCE_DIR}/.cache/taeda_kernels.bin DESTINATION ${lib_dir}
  COMPONENT wheel OPTIONAL)

# Their licences.
install(FILES THIRD_PARTY.md DESTINATION taeda/licenses COMPONENT wheel)
install(FILES ${python_prefix}/share/doc/onednn/LICENSE RENAME oneDNN.txt
  DESTINATION taeda/licenses COMPONENT wheel)
install(FILES ${python_prefix}/share/doc/onednn/THIRD-PARTY-PROGRAMS RENAME oneDNN-third-party.txt
  DESTINATION taeda/licenses COMPONENT wheel)
file(GLOB openblas_license ${TAEDA_OPENBLAS_FOLDER}/../../scipy_openblas32-*.dist-info/licenses/LICENSE.txt)
install(FILES ${openblas_license} RENAME OpenBLAS.txt DESTINATION taeda/licenses COMPONENT wheel)
install(FILES /usr/share/doc/libhwy-dev/copyright RENAME Highway.txt DESTINATION taeda/licenses
  COMPONENT wheel OPTIONAL)

# find_package(taeda) from the build folder too: -Dtaeda_DIR=build.
export(EXPORT taedaTargets NAMESPACE taeda:: FILE ${CMAKE_BINARY_DIR}/taedaTargets.cmake)
install(EXPORT taedaTargets NAMESPACE taeda:: DESTINATION ${package_dir} COMPONENT wheel)
configure_package_config_file(cmake/taedaConfig.cmake.in ${CMAKE_BINARY_DIR}/taedaConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/taedaConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/taedaConfig.cmake ${CMAKE_BINARY_DIR}/taedaConfigVersion.cmake
  DESTINATION ${package_dir} COMPONENT wheel)
