/* SPDX-License-Identifier: Apache-2.0
 *
 * device.c - the list of OpenCL devices, and the facts of each.
 */
#include "os.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined __x86_64__ || defined __i386__
#include <cpuid.h>
#endif

#include "opencl.h"

/* ---- asking a device ------------------------------------------------------- */

/* Keeps the first error, so that a series of queries needs one check, at its end. */
struct inquiry {
    cl_device_id   id;
    cl_platform_id platform;
    cl_int         error;
    const char    *asked;         /* "clGetDeviceInfo(CL_DEVICE_NAME)" */
};

#define ASK(q, what)                  ask(q, what, "clGetDeviceInfo(" #what ")")
#define ASK_IF_KNOWN(q, what)         ask_if_known(q, what, "clGetDeviceInfo(" #what ")")
#define ASK_TEXT(q, what, out)        ask_text(q, what, "clGetDeviceInfo(" #what ")", out, sizeof(out))
#define ASK_PLATFORM(q, what, out)    ask_text(q, what, "clGetPlatformInfo(" #what ")", out, sizeof(out))

static cl_int answer(const struct inquiry *q, cl_uint what, size_t room, void *out, size_t *bytes)
{
    const int of_platform = what < CL_DEVICE_TYPE;    /* the two ranges of constants are disjoint */

    return of_platform ? clGetPlatformInfo(q->platform, what, room, out, bytes)
                       : clGetDeviceInfo(q->id, what, room, out, bytes);
}

static void note(struct inquiry *q, cl_int error, const char *asked)
{
    if (error && !q->error) {
        q->error = error;
        q->asked = asked;
    }
}

/* An integer of 32 or 64 bits: a cl_bool, cl_uint, cl_ulong, bitfield or size_t. */
static cl_ulong ask(struct inquiry *q, cl_device_info what, const char *asked)
{
    union { cl_uint narrow; cl_ulong wide; } v = { 0 };
    size_t bytes = 0;

    if (q->error)
        return 0;
    note(q, answer(q, what, sizeof v, &v, &bytes), asked);
    if (q->error)
        return 0;
    return bytes == sizeof v.narrow ? v.narrow : v.wide;
}

/* 0 where the device does not know the query. */
static cl_ulong ask_if_known(struct inquiry *q, cl_device_info what, const char *asked)
{
    struct inquiry trial = *q;
    const cl_ulong v = ask(&trial, what, asked);

    if (trial.error != CL_INVALID_VALUE)
        *q = trial;
    return v;
}

/* The whole text, malloc'd; NULL after an error. */
static char *ask_whole(struct inquiry *q, cl_uint what, const char *asked)
{
    size_t bytes = 0;
    char *text = NULL;

    if (q->error)
        return NULL;
    note(q, answer(q, what, 0, NULL, &bytes), asked);
    if (!q->error && !(text = calloc(1, bytes + 1)))
        note(q, CL_OUT_OF_HOST_MEMORY, asked);
    if (!q->error)
        note(q, answer(q, what, bytes, text, NULL), asked);
    if (q->error) {
        free(text);
        return NULL;
    }
    return text;
}

static void ask_text(struct inquiry *q, cl_uint what, const char *asked, char *out, size_t room)
{
    char *text = ask_whole(q, what, asked);

    snprintf(out, room, "%s", text ? text + strspn(text, " ") : "");
    free(text);
}

static int has_extension(struct inquiry *q, const char *name)
{
    char *text = ask_whole(q, CL_DEVICE_EXTENSIONS, "clGetDeviceInfo(CL_DEVICE_EXTENSIONS)");
    const size_t length = strlen(name);
    int found = 0;

    for (const char *at = text; at && !found && (at = strstr(at, name)); at += length)
        found = (at == text || at[-1] == ' ') && (at[length] == ' ' || !at[length]);
    free(text);
    return found;
}

/* ---- facts ----------------------------------------------------------------- */

#define COMPUTE_CAPABILITY_MAJOR_NV 0x4000
#define COMPUTE_CAPABILITY_MINOR_NV 0x4001

static void arch_of_nvidia(struct vn_facts *f, struct inquiry *q)
{
    const int major = (int)ASK(q, COMPUTE_CAPABILITY_MAJOR_NV);
    const int minor = (int)ASK(q, COMPUTE_CAPABILITY_MINOR_NV);

    snprintf(f->arch, sizeof f->arch, "sm_%d%d", major, minor);
}

/* AMD's devices have names such as "gfx90a:sramecc+:xnack-". */
static void arch_of_amd(struct vn_facts *f, struct inquiry *q)
{
    ASK_TEXT(q, CL_DEVICE_NAME, f->arch);
    f->arch[strcspn(f->arch, ":")] = '\0';
}

/* Under a hypervisor the name of a processor says little.  What a core does in a cycle depends on the family
 * that CPUID has. */
static void name_family(struct vn_facts *f)
{
#if defined __x86_64__ || defined __i386__
    const size_t length = strlen(f->name);
    unsigned a, b, c, d;

    if (__get_cpuid(1, &a, &b, &c, &d))
        snprintf(f->name + length, sizeof f->name - length, ", family %u", (a >> 8 & 15) + (a >> 20 & 255));
#else
    (void)f;
#endif
}

static void arch_of_cpu(struct vn_facts *f, struct inquiry *q)
{
    const int vector = (int)ASK(q, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT);

    name_family(f);

    f->vector = vector > 1 ? vector : 1;
    snprintf(f->arch, sizeof f->arch, "f32x%d", f->vector);
}

static void arch_of_any(struct vn_facts *f, struct inquiry *q)
{
    (void)q;
    snprintf(f->arch, sizeof f->arch, "%s", f->family);
}

/* A family is a vendor's device with that vendor's compiler, which its atoms need: another driver of the
 * same GPU (Mesa's) lacks the extension, and is "other". Oclgrind reports CPU and GPU in one, and so is
 * "other", too.                                                                         */
static const struct family {
    const char    *name;
    cl_device_type type;
    cl_uint        vendor;        /* 0: any */
    const char    *extension;     /* NULL: none */
    void         (*arch)(struct vn_facts *f, struct inquiry *q);
} families[] = {
    { "cpu",    CL_DEVICE_TYPE_CPU, 0,      NULL,                            arch_of_cpu    },
    { "nvidia", CL_DEVICE_TYPE_GPU, 0x10de, "cl_nv_device_attribute_query",  arch_of_nvidia },
    { "amd",    CL_DEVICE_TYPE_GPU, 0x1002, "cl_amd_device_attribute_query", arch_of_amd    },
    { "intel",  CL_DEVICE_TYPE_GPU, 0x8086, "cl_intel_subgroups",            arch_of_any    },
    { "other",  0,                  0,      NULL,                            arch_of_any    },
};

static cl_device_type type_of(struct inquiry *q)
{
    return ASK(q, CL_DEVICE_TYPE) & (CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_ACCELERATOR);
}

static const struct family *family_of(struct inquiry *q)
{
    const cl_device_type type = type_of(q);
    const cl_ulong vendor = ASK(q, CL_DEVICE_VENDOR_ID);
    const struct family *f = families;

    while (f->type && (f->type != type || (f->vendor && f->vendor != vendor)
                       || (f->extension && !has_extension(q, f->extension))))
        f++;
    return f;
}

static void choose_options(char *out, size_t room, struct inquiry *q, int in_line)
{
    const int rounds = !!(ASK(q, CL_DEVICE_SINGLE_FP_CONFIG) & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT);

    snprintf(out, room, "-cl-std=CL1.2%s%s", rounds ? " -cl-fp32-correctly-rounded-divide-sqrt" : "",
             in_line ? " -DGRID_IN_LINE" : "");
}

static void describe_toolchain(struct vn_facts *f, struct inquiry *q, const char *options)
{
    char driver[48], version[80], language[32], platform[40], platform_version[112];

    ASK_TEXT(q, CL_DRIVER_VERSION, driver);
    ASK_TEXT(q, CL_DEVICE_VERSION, version);
    ASK_TEXT(q, CL_DEVICE_OPENCL_C_VERSION, language);
    ASK_PLATFORM(q, CL_PLATFORM_NAME, platform);
    ASK_PLATFORM(q, CL_PLATFORM_VERSION, platform_version);
    snprintf(f->toolchain, sizeof f->toolchain, "%s|%s|%s|%s|%s|%s|%s", driver, version, f->name, options,
             platform, platform_version, language);
}

static int clamp_to_int(cl_ulong v)
{
    return v > INT32_MAX ? INT32_MAX : (int)v;
}

static const struct family *describe_facts(struct vn_facts *f, struct inquiry *q, const char *options)
{
    const struct family *family = family_of(q);

    ASK_TEXT(q, CL_DEVICE_NAME, f->name);
    snprintf(f->family, sizeof f->family, "%s", family->name);
    f->vector      = 1;
    f->units       = clamp_to_int(ASK(q, CL_DEVICE_MAX_COMPUTE_UNITS));
    f->items       = clamp_to_int(ASK(q, CL_DEVICE_MAX_WORK_GROUP_SIZE));
    f->local_bytes  = (size_t)ASK(q, CL_DEVICE_LOCAL_MEM_SIZE);
    f->buffer_bytes = (size_t)ASK(q, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    f->types        = 1u << VN_F32 | 1u << VN_F16 | 1u << VN_BF16;
    if (ASK_IF_KNOWN(q, CL_DEVICE_DOUBLE_FP_CONFIG))
        f->types |= 1u << VN_F64;
    family->arch(f, q);
    describe_toolchain(f, q, options);
    return family;
}

#define PCI_BUS_ID_NV    0x4008
#define PCI_SLOT_ID_NV   0x4009             /* the device on the bus; its function is 0 */
#define PCI_DOMAIN_ID_NV 0x400a
#define DEVICE_UUID      0x106a             /* cl_khr_device_uuid: 16 bytes */

/* The identifiers by which the same GPU is found in the list of another backend. */
static void describe_identity(vn_device_info *i, struct inquiry *q)
{
    unsigned char uuid[16];

    if (has_extension(q, "cl_khr_device_uuid") && !answer(q, DEVICE_UUID, sizeof uuid, uuid, NULL))
        for (int b = 0; b < 16; b++)
            snprintf(i->uuid + 2 * b, 3, "%02x", uuid[b]);
    if (has_extension(q, "cl_nv_device_attribute_query")) {
        const unsigned domain = (unsigned)ASK_IF_KNOWN(q, PCI_DOMAIN_ID_NV) & 0xffff;
        const unsigned bus = (unsigned)ASK_IF_KNOWN(q, PCI_BUS_ID_NV) & 0xff;
        const unsigned slot = (unsigned)ASK_IF_KNOWN(q, PCI_SLOT_ID_NV) & 0xff;

        snprintf(i->pci, sizeof i->pci, "%04x:%02x:%02x.0", domain, bus, slot);
    }
}

static void describe_info(vn_device_info *i, struct inquiry *q)
{
    ASK_TEXT(q, CL_DEVICE_NAME, i->name);
    ASK_TEXT(q, CL_DEVICE_VENDOR, i->vendor);
    ASK_TEXT(q, CL_DRIVER_VERSION, i->driver);
    ASK_PLATFORM(q, CL_PLATFORM_NAME, i->platform);
    i->compute_units = clamp_to_int(ASK(q, CL_DEVICE_MAX_COMPUTE_UNITS));
    i->memory        = (int64_t)ASK(q, CL_DEVICE_GLOBAL_MEM_SIZE);
    i->local_memory  = (int64_t)ASK(q, CL_DEVICE_LOCAL_MEM_SIZE);
    i->is_cpu        = !!(type_of(q) & CL_DEVICE_TYPE_CPU);
    i->has_f64       = ASK_IF_KNOWN(q, CL_DEVICE_DOUBLE_FP_CONFIG) != 0;
    describe_identity(i, q);
}

/* Any GPU before any other accelerator before any CPU; among equals, by peak throughput. A software
 * renderer reports vectors of one float, and so comes last.                             */
static double rank_of(struct inquiry *q)
{
    const cl_device_type type = type_of(q);
    const double kind = type & CL_DEVICE_TYPE_CPU ? 0 : type & CL_DEVICE_TYPE_GPU ? 2 : 1;
    const double units = (double)ASK(q, CL_DEVICE_MAX_COMPUTE_UNITS);
    const double clock = (double)ASK(q, CL_DEVICE_MAX_CLOCK_FREQUENCY);
    const double vector = (double)ASK(q, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT);

    return kind * 1e12 + (units + 1) * (clock + 1) * (vector + 1);
}

/* ---- the list -------------------------------------------------------------- */

/* The list only grows: an index means the same device for as long as the process lives, even where a
 * platform failed at first and is queried again.                                      */
static struct { cl_device_id id; struct vn_listing listing; } *listed;
static int             listed_count, list_is_whole;
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;

enum { PLATFORMS = 64, DEVICES = 256 };       /* far more than a host can hold */

static int index_of(cl_device_id id)
{
    for (int i = 0; i < listed_count; i++)
        if (listed[i].id == id)
            return i;
    return -1;
}

/* The next functions add to the list, and return 0 if something should be queried again. */
static int list_device(cl_platform_id platform, cl_device_id id)
{
    struct inquiry q = { .id = id, .platform = platform };
    struct vn_listing l = { .rank = 0 };
    void *grown;
    int usable;

    if (index_of(id) >= 0)
        return 1;
    usable = ASK(&q, CL_DEVICE_AVAILABLE) && ASK(&q, CL_DEVICE_COMPILER_AVAILABLE);
    if (q.error || !usable)
        return !q.error;
    describe_info(&l.info, &q);
    l.rank = rank_of(&q);
    if (q.error || !(grown = realloc(listed, (size_t)(listed_count + 1) * sizeof *listed)))
        return 0;
    listed = grown;
    listed[listed_count].id = id;
    listed[listed_count++].listing = l;
    return 1;
}

static int list_platform(cl_platform_id platform)
{
    cl_device_id ids[DEVICES];
    cl_uint count = 0;
    int whole = 1;
    const cl_int error = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, DEVICES, ids, &count);

    if (error)
        return error == CL_DEVICE_NOT_FOUND;
    for (cl_uint i = 0; i < count && i < DEVICES; i++)
        whole &= list_device(platform, ids[i]);
    return whole;
}

static int list_platforms(void)
{
    enum { NO_PLATFORM = -1001 };             /* from the loader, where there is no driver */
    cl_platform_id ids[PLATFORMS];
    cl_uint count = 0;
    int whole = 1;
    const cl_int error = clGetPlatformIDs(PLATFORMS, ids, &count);

    if (error)
        return error == NO_PLATFORM;
    for (cl_uint i = 0; i < count && i < PLATFORMS; i++)
        whole &= list_platform(ids[i]);
    return whole;
}

int vn__cl_count(void)
{
    int count;

    pthread_mutex_lock(&list_lock);
    if (!list_is_whole)
        list_is_whole = list_platforms();
    count = listed_count;
    pthread_mutex_unlock(&list_lock);
    return count;
}

/* What is said where there is no device: drivers that list none do not say why. */
static vn_status no_device(void)
{
    cl_platform_id ids[PLATFORMS];
    char names[256] = "", name[64];
    const char *const folder = secure_getenv("POCL_CACHE_DIR");
    cl_uint count = 0;
    size_t used = 0;
    int pocl = 0;

    if (clGetPlatformIDs(PLATFORMS, ids, &count))
        count = 0;
    for (cl_uint i = 0; i < count && i < PLATFORMS && used < sizeof names; i++) {
        struct inquiry q = { .platform = ids[i] };

        ASK_PLATFORM(&q, CL_PLATFORM_NAME, name);
        pocl |= !strcmp(name, VN_POCL);
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", name);
    }
    if (!count)
        return vn__fail(VN_NO_DEVICE, "no OpenCL device was found, since there is no driver; install one "
                        "(for any CPU: pocl-opencl-icd)");
    if (!pocl)
        return vn__fail(VN_NO_DEVICE, "no OpenCL device was found: the drivers %s list none; install one "
                        "that does (for any CPU: pocl-opencl-icd)", names);
    return vn__fail(VN_NO_DEVICE, "no OpenCL device was found: the drivers %s list none; " VN_POCL
                    " lists none where it cannot write to its cache folder, which is %s%s", names,
                    folder ? folder : "$XDG_CACHE_HOME/pocl or ~/.cache/pocl",
                    folder ? " (POCL_CACHE_DIR)" : "; POCL_CACHE_DIR names another");
}

static vn_status find(cl_device_id *id, struct vn_listing *l, int index)
{
    const int count = vn__cl_count();

    if (count == 0)
        return no_device();
    if (index < 0 || index >= count)
        return vn__fail(VN_NO_DEVICE, "there is no OpenCL device %d; there are %d", index, count);
    pthread_mutex_lock(&list_lock);
    *id = listed[index].id;
    *l = listed[index].listing;
    pthread_mutex_unlock(&list_lock);
    return VN_OK;
}

vn_status vn__cl_list(struct vn_listing *out, int index)
{
    cl_device_id id;

    return find(&id, out, index);
}

void vn__cl_spec(char *out, size_t room, cl_device_id id)
{
    int index;

    vn__cl_count();
    pthread_mutex_lock(&list_lock);
    index = index_of(id);
    pthread_mutex_unlock(&list_lock);
    if (index < 0)
        snprintf(out, room, "%s", vn__opencl.name);
    else
        snprintf(out, room, "%s:%d", vn__opencl.name, index);
}

/* ---- open ------------------------------------------------------------------ */

/* Retains the caller's context, if the device belongs to it. */
static vn_status borrow_context(cl_context context, cl_device_id id)
{
    cl_device_id ids[DEVICES];
    size_t bytes = 0;
    const cl_int error = clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof ids, ids, &bytes);

    if (error == CL_INVALID_CONTEXT)
        return vn__fail(VN_INVALID, "context is not a cl_context");
    if (error)
        return vn__cl_status(error, "clGetContextInfo(CL_CONTEXT_DEVICES)");
    for (size_t i = 0; i < bytes / sizeof *ids; i++)
        if (ids[i] == id)
            return vn__cl_status(clRetainContext(context), "clRetainContext");
    return vn__fail(VN_INVALID, "device is not one of the %zu devices of the context", bytes / sizeof *ids);
}

static vn_status describe(vn_device *d, struct vn_cl_device *own)
{
    struct inquiry q = { .id = own->id };
    int compiles;

    note(&q, clGetDeviceInfo(own->id, CL_DEVICE_PLATFORM, sizeof q.platform, &q.platform, NULL),
         "clGetDeviceInfo(CL_DEVICE_PLATFORM)");
    compiles = ASK(&q, CL_DEVICE_COMPILER_AVAILABLE) != 0;
    describe_info(&d->info, &q);
    own->in_line = vn__cl_needs_line(&d->info);
    choose_options(own->options, sizeof own->options, &q, own->in_line);
    own->limits_kernels = describe_facts(&d->facts, &q, own->options)->extension != NULL;
    own->hides_local = !strcmp(d->facts.family, "nvidia");
    if (own->hides_local)
        own->limits_kernels = 0;
    if (q.error)
        return vn__cl_status(q.error, q.asked);
    if (!compiles)
        return vn__fail(VN_UNSUPPORTED, "%s has no OpenCL C compiler", d->info.name);
    return VN_OK;
}

static vn_status open_context(struct vn_cl_device *own, int index, void *const native[2])
{
    struct vn_listing l;
    vn_status s;
    cl_int error;

    if (native) {
        own->id = native[1];
        if ((s = borrow_context(native[0], own->id)) == VN_OK)
            own->context = native[0];
        return s;
    }
    if ((s = find(&own->id, &l, index)))
        return s;
    own->context = clCreateContext(NULL, 1, &own->id, NULL, NULL, &error);
    return vn__cl_status(error, "clCreateContext");
}

vn_status vn__cl_open(vn_device *d, int index, void *const native[2])
{
    struct vn_cl_device *own = calloc(1, sizeof *own);
    vn_status s;

    if (!own)
        return vn__fail(VN_NO_MEMORY, "host memory ran out");
    s = open_context(own, index, native);
    if (s == VN_OK && (s = describe(d, own)))
        clReleaseContext(own->context);
    if (s) {
        free(own);
        return s;
    }
    d->impl = own;
    own->awake = vn__cl_awake_open(d);
    return VN_OK;
}

void vn__cl_close(vn_device *d)
{
    struct vn_cl_device *own = d->impl;

    vn__cl_awake_close(own->awake);
    clReleaseContext(own->context);
    free(own);
}
