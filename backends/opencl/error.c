/* SPDX-License-Identifier: Apache-2.0
 *
 * error.c - what each error of OpenCL means to a caller of the library.
 *
 * The library checks its arguments before OpenCL sees them, so that CL_INVALID_* is not the caller's
 * mistake: drivers return it once a context is lost, hence VN_FAILED.
 */
#include "opencl.h"

static const struct error { int code; vn_status status; const char *name; } errors[] = {
#define E(name, status) { name, VN_##status, #name }
    E(CL_DEVICE_NOT_FOUND,                          NO_DEVICE),
    E(CL_DEVICE_NOT_AVAILABLE,                      FAILED),
    E(CL_COMPILER_NOT_AVAILABLE,                    UNSUPPORTED),
    E(CL_MEM_OBJECT_ALLOCATION_FAILURE,             NO_MEMORY),
    E(CL_OUT_OF_RESOURCES,                          NO_MEMORY),
    E(CL_OUT_OF_HOST_MEMORY,                        NO_MEMORY),
    E(CL_PROFILING_INFO_NOT_AVAILABLE,              UNSUPPORTED),
    E(CL_MEM_COPY_OVERLAP,                          FAILED),
    E(CL_BUILD_PROGRAM_FAILURE,                     FAILED),
    E(CL_MAP_FAILURE,                               FAILED),
    E(CL_MISALIGNED_SUB_BUFFER_OFFSET,              INVALID),
    E(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, FAILED),
    E(CL_COMPILE_PROGRAM_FAILURE,                   FAILED),
    E(CL_LINKER_NOT_AVAILABLE,                      UNSUPPORTED),
    E(CL_LINK_PROGRAM_FAILURE,                      FAILED),
    E(CL_INVALID_VALUE,                             FAILED),
    E(CL_INVALID_DEVICE_TYPE,                       FAILED),
    E(CL_INVALID_PLATFORM,                          FAILED),
    E(CL_INVALID_DEVICE,                            FAILED),
    E(CL_INVALID_CONTEXT,                           FAILED),
    E(CL_INVALID_QUEUE_PROPERTIES,                  UNSUPPORTED),
    E(CL_INVALID_COMMAND_QUEUE,                     FAILED),
    E(CL_INVALID_MEM_OBJECT,                        FAILED),
    E(CL_INVALID_BINARY,                            FAILED),
    E(CL_INVALID_BUILD_OPTIONS,                     FAILED),
    E(CL_INVALID_PROGRAM,                           FAILED),
    E(CL_INVALID_PROGRAM_EXECUTABLE,                FAILED),
    E(CL_INVALID_KERNEL_NAME,                       FAILED),
    E(CL_INVALID_KERNEL_DEFINITION,                 FAILED),
    E(CL_INVALID_KERNEL,                            FAILED),
    E(CL_INVALID_ARG_INDEX,                         FAILED),
    E(CL_INVALID_ARG_VALUE,                         FAILED),
    E(CL_INVALID_ARG_SIZE,                          FAILED),
    E(CL_INVALID_KERNEL_ARGS,                       FAILED),
    E(CL_INVALID_WORK_DIMENSION,                    FAILED),
    E(CL_INVALID_WORK_GROUP_SIZE,                   UNSUPPORTED),
    E(CL_INVALID_WORK_ITEM_SIZE,                    UNSUPPORTED),
    E(CL_INVALID_GLOBAL_OFFSET,                     FAILED),
    E(CL_INVALID_EVENT_WAIT_LIST,                   FAILED),
    E(CL_INVALID_EVENT,                             FAILED),
    E(CL_INVALID_OPERATION,                         FAILED),
    E(CL_INVALID_BUFFER_SIZE,                       NO_MEMORY),
    E(CL_INVALID_GLOBAL_WORK_SIZE,                  UNSUPPORTED),
    E(CL_INVALID_PROPERTY,                          FAILED),
    E(CL_INVALID_COMPILER_OPTIONS,                  FAILED),
    E(CL_INVALID_LINKER_OPTIONS,                    FAILED),
#undef E
    { -1001, VN_NO_DEVICE, "CL_PLATFORM_NOT_FOUND_KHR" },
    { -9999, VN_FAILED,    "NVIDIA's illegal read or write of a buffer" },
};

static const struct error unknown = { 0, VN_FAILED, "an error without a name" };

static const struct error *find(cl_int code)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == code)
            return &errors[i];
    return &unknown;
}

const char *vn__cl_error_name(cl_int error)
{
    return find(error)->name;
}

vn_status vn__cl_status(cl_int error, const char *call)
{
    const struct error *e;

    if (error == CL_SUCCESS)
        return VN_OK;
    e = find(error);
    return vn__fail(e->status, "%s: %s (%d)", call, e->name, error);
}
