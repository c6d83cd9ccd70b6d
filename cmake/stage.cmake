# build/python/taeda: the package as Python sees it. Each file of python/taeda is a link to the
# source, so editing one needs no build; the extension module and generated files stand beside them.

set(TAEDA_STAGE ${CMAKE_BINARY_DIR}/python/taeda)
file(GLOB_RECURSE python_files CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/python/taeda
  ${CMAKE_SOURCE_DIR}/python/taeda/*.py ${CMAKE_SOURCE_DIR}/python/taeda/*.pyi
  ${CMAKE_SOURCE_DIR}/python/taeda/py.typed
  ${CMAKE_SOURCE_DIR}/python/taeda/_as_torch/*.egg-info/*)
file(GLOB_RECURSE stubs RELATIVE ${TAEDA_GENERATED}/stubs ${TAEDA_GENERATED}/stubs/*.pyi)

# Links to files that are gone would keep a deleted module alive.
file(GLOB_RECURSE staged LIST_DIRECTORIES false ${TAEDA_STAGE}/*.py ${TAEDA_STAGE}/*.pyi)
foreach(path ${staged})
  if(IS_SYMLINK ${path} AND NOT EXISTS ${path})
    file(REMOVE ${path})
  endif()
endforeach()
function(taeda_stage folder)
  foreach(name ${ARGN})
    get_filename_component(parent ${TAEDA_STAGE}/${name} DIRECTORY)
    file(MAKE_DIRECTORY ${parent})
    file(CREATE_LINK ${folder}/${name} ${TAEDA_STAGE}/${name} SYMBOLIC)
  endforeach()
endfunction()
taeda_stage(${CMAKE_SOURCE_DIR}/python/taeda ${python_files})
taeda_stage(${TAEDA_GENERATED}/stubs ${stubs})
