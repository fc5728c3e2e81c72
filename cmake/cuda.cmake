# libtower_cuda.so, the plug-in with CUDA devices; nothing else of the build needs CUDA.
#
# nvcc is called as the tool it is: enabling CUDA as a language would cost every fresh build the test of a compiler. The
# plug-in links only the static CUDA runtime, so that it opens on machines without a driver, and quickly; cuBLASLt and
# cuDNN are opened when a kernel first needs them.
set(TOWER_WITH_CUDA AUTO CACHE STRING "The CUDA plug-in: AUTO, ON or OFF")
set(TOWER_CUDA_ARCHITECTURES 90 CACHE STRING
    "Cards the CUDA plug-in has machine code for, of 75;80;86;89;90;100;120; newer ones use the PTX of the last")

if(TOWER_SANITIZE OR TOWER_COVERAGE OR TOWER_WITH_CUDA STREQUAL "OFF")
    message(STATUS "Tower: without CUDA devices, as asked")
    file(REMOVE ${CMAKE_BINARY_DIR}/src/libtower_cuda.so) # of a build before: it would be found
    return()
endif()
find_program(NVCC nvcc HINTS ENV CUDA_PATH ENV CUDACXX PATH_SUFFIXES bin)
if(NVCC)
    get_filename_component(CUDA_ROOT ${NVCC} REALPATH)
    get_filename_component(CUDA_ROOT ${CUDA_ROOT}/../.. ABSOLUTE)
    find_path(CUDA_INCLUDE cuda_runtime_api.h HINTS ${CUDA_ROOT} PATH_SUFFIXES include targets/x86_64-linux/include)
    find_library(CUDART_STATIC cudart_static HINTS ${CUDA_ROOT} PATH_SUFFIXES lib64 lib targets/x86_64-linux/lib)
endif()
if(NOT NVCC OR NOT CUDA_INCLUDE OR NOT CUDART_STATIC)
    if(TOWER_WITH_CUDA STREQUAL "ON")
        message(FATAL_ERROR "TOWER_WITH_CUDA=ON, but nvcc with its headers and static runtime was not found")
    endif()
    message(STATUS "Tower: without CUDA devices (no nvcc found)")
    return()
endif()
file(STRINGS ${CUDA_INCLUDE}/cuda_runtime_api.h CUDA_VERSION REGEX "define CUDART_VERSION +[0-9]+")
string(REGEX REPLACE ".* " "" CUDA_VERSION "${CUDA_VERSION}")
if(CUDA_VERSION LESS 12030)
    if(TOWER_WITH_CUDA STREQUAL "ON")
        message(FATAL_ERROR "TOWER_WITH_CUDA=ON, but ${NVCC} is of CUDA ${CUDA_VERSION}; expected 12030 (12.3) or newer")
    endif()
    message(STATUS "Tower: without CUDA devices (CUDA ${CUDA_VERSION} is older than 12.3)")
    return()
endif()
set(CUDA_FLAGS -O3 -std=c++17 -fmad=false -lineinfo --Werror all-warnings
    -Xcompiler=-Wall,-Wextra,-Werror,-fPIC,-fvisibility=hidden)
foreach(architecture ${TOWER_CUDA_ARCHITECTURES})
    list(APPEND CUDA_FLAGS -gencode arch=compute_${architecture},code=sm_${architecture})
    set(newest ${architecture})
endforeach()
list(APPEND CUDA_FLAGS -gencode arch=compute_${newest},code=compute_${newest})
# No kernel spills registers to memory: held for what it was looked at with, and no more than told elsewhere.
list(APPEND CUDA_FLAGS -Xptxas=-warn-spills)
if(TOWER_CUDA_ARCHITECTURES STREQUAL "90" AND CUDA_VERSION MATCHES "^13")
    list(APPEND CUDA_FLAGS -Xptxas=-Werror)
endif()

# An nvcc may be too old for the architectures or for the compiler it stands on.
if(NOT DEFINED CUDA_CHECKED OR NOT CUDA_CHECKED STREQUAL "${NVCC} ${CUDA_FLAGS}")
    file(WRITE ${CMAKE_BINARY_DIR}/cuda/empty.cu "__global__ void empty() {}\n")
    execute_process(COMMAND ${NVCC} ${CUDA_FLAGS} -c -o ${CMAKE_BINARY_DIR}/cuda/empty.o ${CMAKE_BINARY_DIR}/cuda/empty.cu
                    RESULT_VARIABLE CUDA_CODE OUTPUT_VARIABLE CUDA_TEXT ERROR_VARIABLE CUDA_TEXT)
    if(NOT CUDA_CODE EQUAL 0)
        if(TOWER_WITH_CUDA STREQUAL "ON")
            message(FATAL_ERROR "TOWER_WITH_CUDA=ON, but ${NVCC} cannot compile:\n${CUDA_TEXT}")
        endif()
        message(STATUS "Tower: without CUDA devices (${NVCC} cannot compile for ${TOWER_CUDA_ARCHITECTURES} here)")
        return()
    endif()
    set(CUDA_CHECKED "${NVCC} ${CUDA_FLAGS}" CACHE INTERNAL "what nvcc could compile")
endif()
message(STATUS "Tower: CUDA devices for architectures ${TOWER_CUDA_ARCHITECTURES} (${NVCC})")

file(GLOB CUDA_C CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/device/cuda/*.c)
file(GLOB CUDA_KERNELS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/device/cuda/*.cu)
set(CUDA_OBJECTS)
foreach(source ${CUDA_KERNELS})
    get_filename_component(name ${source} NAME_WE)
    set(object ${CMAKE_BINARY_DIR}/cuda/${name}.o)
    add_custom_command(OUTPUT ${object} DEPENDS ${source} DEPFILE ${object}.d
                       COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/cuda
                       COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${NVCC} ${CUDA_FLAGS} -I${CMAKE_SOURCE_DIR}/include
                               -I${CMAKE_SOURCE_DIR}/src -MD -MF ${object}.d -c -o ${object} ${source}
                       COMMENT "Building CUDA kernels ${name}" VERBATIM)
    list(APPEND CUDA_OBJECTS ${object})
endforeach()

# What its kernels share with the CPU's.
set(CUDA_SHARED stream/distort.c stream/examples.c device/state/random.c)
list(TRANSFORM CUDA_SHARED PREPEND ${CMAKE_SOURCE_DIR}/src/)

find_path(CUDNN_INCLUDE cudnn.h HINTS ${CUDA_INCLUDE})
if(NOT CUDNN_INCLUDE)
    message(STATUS "Tower: CUDA devices without convolutions (no cudnn.h found)")
endif()
find_path(NCCL_INCLUDE nccl.h HINTS ${CUDA_INCLUDE})
if(NOT NCCL_INCLUDE)
    message(STATUS "Tower: CUDA devices without NCCL (no nccl.h found)")
endif()

tower_add_plugin(tower_cuda cuda ${CUDA_C} ${CUDA_SHARED} ${CUDA_OBJECTS})
target_include_directories(tower_cuda SYSTEM PRIVATE ${CUDA_INCLUDE})
if(CUDNN_INCLUDE)
    target_include_directories(tower_cuda SYSTEM PRIVATE ${CUDNN_INCLUDE})
    target_compile_definitions(tower_cuda PRIVATE TOWER_WITH_CUDNN)
endif()
if(NCCL_INCLUDE)
    target_include_directories(tower_cuda SYSTEM PRIVATE ${NCCL_INCLUDE})
    target_compile_definitions(tower_cuda PRIVATE TOWER_WITH_NCCL)
endif()
get_filename_component(CUDA_LIBRARIES ${CUDART_STATIC} DIRECTORY) # where cuBLASLt is looked for at run time
target_link_libraries(tower_cuda PRIVATE ${CUDART_STATIC} rt)
target_link_options(tower_cuda PRIVATE -Wl,--no-undefined)
set_target_properties(tower_cuda PROPERTIES LINKER_LANGUAGE CXX
                      BUILD_RPATH ${CUDA_LIBRARIES} INSTALL_RPATH ${CUDA_LIBRARIES}
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/src)
install(TARGETS tower_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
