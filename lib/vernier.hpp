/* SPDX-License-Identifier: Apache-2.0
 *
 * vernier.hpp - vernier.h for C++17: handles that close themselves, typed arrays, views, errors.
 *
 *     auto dev = vernier::device::open();                     // or open("gpu")
 *     auto q   = vernier::queue::open(dev);
 *     auto a   = vernier::array<float>::open(dev, m * k);     // and b, and c
 *
 *     a.write(q, host_a);                                     // a std::vector, std::array, std::span...
 *     vernier::gemm(q, 1, a.matrix(m, k), b.matrix(k, n), 0, c.matrix(m, n),
 *                   vernier::gemm_options().activation(VN_RELU));
 *     c.read(q, host_c);
 *
 * Each function comes twice.  gemm() and open() throw vernier::error, whose what() is the library's sentence.
 * try_gemm() never throws and returns a vernier::status; try_open() returns a vernier::result: an object, or
 * the status.  Both are [[nodiscard]].  Without exceptions (-fno-exceptions) there are only the latter.
 *
 * In an application's own OpenCL context, queue and buffers, from() opens by any function of C:
 *
 *     auto dev = vernier::device::from(vn_opencl_device_open, context, device);
 *     auto q   = vernier::queue::from(vn_opencl_queue_open, dev, command_queue);
 *     auto x   = vernier::array<float>::from(vn_opencl_buffer_open, dev, memory);
 *
 * All is inline over the C functions.  A handle has the size of a pointer, a tensor is the vn_tensor, and
 * nothing allocates but the sentence of an exception.  Handles are moved, not copied; an empty one is false.
 * They convert to the pointers of C, and views to vn_tensor, so that all functions of vernier.h,
 * vernier_opencl.h and vernier_cuda.h take them; own() makes a handle of what those opened.  What functions
 * do, and when they fail, is in vernier.h.
 */
#ifndef VERNIER_HPP
#define VERNIER_HPP

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <type_traits>
#include <utility>

#include "vernier.h"

#if defined(__cpp_exceptions)
#  define VERNIER_EXCEPTIONS 1
#  include <stdexcept>
#else
#  define VERNIER_EXCEPTIONS 0
#endif

namespace vernier {

/* ---- errors --------------------------------------------------------------- */

/* What a call returned; true where that is VN_OK. */
class [[nodiscard]] status {
public:
    constexpr status(vn_status code = VN_OK) noexcept : code_(code) {}
    constexpr vn_status code() const noexcept { return code_; }
    constexpr explicit operator bool() const noexcept { return code_ == VN_OK; }
    const char *name() const noexcept { return vn_status_name(code_); }
    /* The sentence of this thread's last call: valid until its next. */
    static const char *sentence() noexcept { return vn_last_error(); }

private:
    vn_status code_;
};

#if VERNIER_EXCEPTIONS
class error : public std::runtime_error {
public:
    explicit error(vn_status code) : std::runtime_error(vn_last_error()), code_(code) {}
    vn_status code() const noexcept { return code_; }

private:
    vn_status code_;
};

inline void check(status s)
{
    if (!s)
        throw error(s.code());
}
#endif

/* What was opened, or why it was not. */
template <class T> class [[nodiscard]] result {
public:
    result(T &&value) noexcept : value_(std::move(value)) {}
    result(vernier::status why) noexcept : status_(why) {}
    explicit operator bool() const noexcept { return bool(status_); }
    vernier::status status() const noexcept { return status_; }
    T &operator*() & noexcept { return value_; }            /* empty where it is false */
    T &&operator*() && noexcept { return std::move(value_); }
    T *operator->() noexcept { return &value_; }
#if VERNIER_EXCEPTIONS
    T value() &&
    {
        check(status_);
        return std::move(value_);
    }
#endif

private:
    T value_;
    vernier::status status_;
};

/* ---- handles -------------------------------------------------------------- */

template <class Self, class T, void (*Close)(T *)> class handle {
public:
    handle() noexcept = default;
    handle(handle &&from) noexcept : it_(from.release()) {}
    handle &operator=(handle &&from) noexcept
    {
        reset(from.release());
        return *this;
    }
    ~handle() { reset(); }

    static Self own(T *it) noexcept             /* closes it from here on */
    {
        Self self;

        static_cast<handle &>(self).it_ = it;
        return self;
    }
    /* What a function of C opens, whose first parameter is the address of the handle. */
    template <class Open, class... Arguments>
    static result<Self> try_from(Open open, const Arguments &...arguments) noexcept
    {
        return opened([&](T **out) { return open(out, arguments...); });
    }
#if VERNIER_EXCEPTIONS
    template <class Open, class... Arguments> static Self from(Open open, const Arguments &...arguments)
    {
        return try_from(open, arguments...).value();
    }
#endif
    T *get() const noexcept { return it_; }
    operator T *() const noexcept { return it_; }
    explicit operator bool() const noexcept { return it_ != nullptr; }
    T *release() noexcept { return std::exchange(it_, nullptr); }
    void reset(T *to = nullptr) noexcept
    {
        T *const was = std::exchange(it_, to);

        if (was && was != to)
            Close(was);
    }

protected:
    T *it_ = nullptr;

    template <class Open> static result<Self> opened(Open open) noexcept
    {
        T *it = nullptr;
        const vernier::status s = open(&it);

        if (!s)
            return s;
        return own(it);
    }
};

class device : public handle<device, vn_device, vn_device_close> {
public:
    static result<device> try_open(const char *spec = nullptr) noexcept
    {
        return opened([=](vn_device **out) { return vn_device_open(out, spec); });
    }
    vernier::status try_describe(vn_device_info &out) const noexcept { return vn_device_describe(&out, it_); }
#if VERNIER_EXCEPTIONS
    static device open(const char *spec = nullptr) { return try_open(spec).value(); }
    vn_device_info describe() const
    {
        vn_device_info info;

        check(try_describe(info));
        return info;
    }
#endif
};

class event : public handle<event, vn_event, vn_event_close> {
public:
    static result<event> try_record(vn_queue *q) noexcept
    {
        return opened([=](vn_event **out) { return vn_event_record(out, q); });
    }
    vernier::status try_finish() const noexcept { return vn_event_finish(it_); }
    vernier::status try_seconds_since(double &out, const event &from) const noexcept
    {
        return vn_event_seconds(&out, from.it_, it_);
    }
#if VERNIER_EXCEPTIONS
    static event record(vn_queue *q) { return try_record(q).value(); }
    void finish() const { check(try_finish()); }
    double seconds_since(const event &from) const
    {
        double out = 0;

        check(try_seconds_since(out, from));
        return out;
    }
#endif
};

class queue : public handle<queue, vn_queue, vn_queue_close> {
public:
    static result<queue> try_open(vn_device *d) noexcept
    {
        return opened([=](vn_queue **out) { return vn_queue_open(out, d); });
    }
    vernier::status try_finish() const noexcept { return vn_queue_finish(it_); }
    vernier::status try_wait(vn_event *e) const noexcept { return vn_queue_wait(it_, e); }
    vernier::status try_limit_workspace(std::size_t bytes) const noexcept
    {
        return vn_queue_limit_workspace(it_, bytes);
    }
    vernier::status try_use_workspace(vn_buffer *b) const noexcept { return vn_queue_use_workspace(it_, b); }
    vernier::status try_prepare(bool on) const noexcept { return vn_queue_prepare(it_, on); }
    std::size_t workspace() const noexcept { return vn_queue_workspace(it_); }
    const char *explain() const noexcept { return vn_queue_explain(it_); }
#if VERNIER_EXCEPTIONS
    static queue open(vn_device *d) { return try_open(d).value(); }
    void finish() const { check(try_finish()); }
    void wait(vn_event *e) const { check(try_wait(e)); }
    event record() const { return event::record(it_); }
    void limit_workspace(std::size_t bytes) const { check(try_limit_workspace(bytes)); }
    void use_workspace(vn_buffer *b) const { check(try_use_workspace(b)); }
    void prepare(bool on) const { check(try_prepare(on)); }
#endif
};

/* ---- types ------------------------------------------------------------------ */

/* The bits of an element of 16 bits, for arrays of them. */
enum class f16 : std::uint16_t {};
enum class bf16 : std::uint16_t {};

template <class T> struct type_of;
template <> struct type_of<float>  { static constexpr vn_type value = VN_F32; };
template <> struct type_of<double> { static constexpr vn_type value = VN_F64; };
template <> struct type_of<f16>    { static constexpr vn_type value = VN_F16; };
template <> struct type_of<bf16>   { static constexpr vn_type value = VN_BF16; };

template <class T> inline constexpr vn_type type_of_v = type_of<std::remove_cv_t<T>>::value;

/* ---- views ------------------------------------------------------------------ */

struct extents {
    int rank = 0;
    std::int64_t at[VN_RANK] = {};

    /* More than VN_RANK make a rank that every operation refuses. */
    template <class... Int, class = std::enable_if_t<(std::is_convertible_v<Int, std::int64_t> && ...)>>
    extents(Int... n) noexcept : rank(static_cast<int>(sizeof...(n)))
    {
        const std::int64_t all[] = { static_cast<std::int64_t>(n)..., 0 };

        for (int i = 0; i < rank && i < VN_RANK; i++)
            at[i] = all[i];
    }
};

/* The vn_tensor, with what makes views of it. */
struct tensor : vn_tensor {
    tensor() noexcept : vn_tensor() {}
    tensor(const vn_tensor &t) noexcept : vn_tensor(t) {}
    tensor(vn_buffer *b, vn_type t, const extents &shape) noexcept
        : vn_tensor(vn_packed(b, t, shape.rank, shape.at)) {}
    tensor(vn_buffer *b, vn_type t, const extents &shape, const extents &strides,
           std::int64_t begin = 0) noexcept
        : tensor(b, t, shape)
    {
        start = begin;
        if (strides.rank != shape.rank)
            extent[0] = -1;                     /* which every operation refuses */
        for (int i = 0; i < VN_RANK; i++)
            stride[i] = strides.at[i];
    }

    tensor slice(int dim, std::int64_t from, std::int64_t count) const noexcept
    {
        return vn_slice(*this, dim, from, count);
    }
    template <class... Int> tensor permute(Int... order) const noexcept
    {
        const int list[] = { static_cast<int>(order)... };

        return vn_permute(*this, sizeof...(order) == static_cast<std::size_t>(rank) ? list : nullptr);
    }
    tensor transpose() const noexcept { return vn_transpose(*this); }
};

/* ---- buffers ------------------------------------------------------------------ */

/* A buffer of elements of T.  Host memory is anything with data() and size(), whose elements are written to,
 * or read from, those of the array from `at` on.                                                          */
template <class T> class array : public handle<array<T>, vn_buffer, vn_buffer_close> {
    using base = handle<array<T>, vn_buffer, vn_buffer_close>;
    using base::it_;

    template <class Span> static constexpr void check_span()
    {
        using element = std::remove_pointer_t<decltype(std::data(std::declval<Span &>()))>;

        static_assert(std::is_same_v<std::remove_cv_t<element>, T>,
                      "the host's memory needs elements of the array's type");
    }
    static std::size_t bytes_of(std::size_t elements) noexcept
    {
        return elements > static_cast<std::size_t>(-1) / sizeof(T) ? static_cast<std::size_t>(-1)
                                                                   : elements * sizeof(T);
    }

public:
    static constexpr vn_type type = type_of_v<T>;

    static result<array> try_open(vn_device *d, std::size_t elements) noexcept
    {
        return base::opened([=](vn_buffer **out) { return vn_buffer_open(out, d, bytes_of(elements)); });
    }
    template <class Span>
    vernier::status try_write(vn_queue *q, const Span &from, std::size_t at = 0) const noexcept
    {
        check_span<const Span>();
        return vn_write(q, it_, bytes_of(at), std::data(from), bytes_of(std::size(from)));
    }
    template <class Span> vernier::status try_read(vn_queue *q, Span &&to, std::size_t at = 0) const noexcept
    {
        check_span<std::remove_reference_t<Span>>();
        return vn_read(q, std::data(to), it_, bytes_of(at), bytes_of(std::size(to)));
    }
    template <class Span>
    vernier::status try_write_async(vn_queue *q, const Span &from, std::size_t at = 0) const noexcept
    {
        check_span<const Span>();
        return vn_write_async(q, it_, bytes_of(at), std::data(from), bytes_of(std::size(from)));
    }
    template <class Span>
    vernier::status try_read_async(vn_queue *q, Span &&to, std::size_t at = 0) const noexcept
    {
        check_span<std::remove_reference_t<Span>>();
        return vn_read_async(q, std::data(to), it_, bytes_of(at), bytes_of(std::size(to)));
    }
    vernier::status try_fill(vn_queue *q, T value, std::size_t elements, std::size_t at = 0) const noexcept
    {
        return vn_fill(q, it_, bytes_of(at), bytes_of(elements), &value, sizeof value);
    }
#if VERNIER_EXCEPTIONS
    static array open(vn_device *d, std::size_t elements) { return try_open(d, elements).value(); }
    template <class Span> void write(vn_queue *q, const Span &from, std::size_t at = 0) const
    {
        check(try_write(q, from, at));
    }
    template <class Span> void read(vn_queue *q, Span &&to, std::size_t at = 0) const
    {
        check(try_read(q, to, at));
    }
    template <class Span> void write_async(vn_queue *q, const Span &from, std::size_t at = 0) const
    {
        check(try_write_async(q, from, at));
    }
    template <class Span> void read_async(vn_queue *q, Span &&to, std::size_t at = 0) const
    {
        check(try_read_async(q, to, at));
    }
    void fill(vn_queue *q, T value, std::size_t elements, std::size_t at = 0) const
    {
        check(try_fill(q, value, elements, at));
    }
#endif

    /* Views from its beginning: packed, or with strides, all in elements. */
    tensor view(const extents &shape) const noexcept { return tensor(it_, type, shape); }
    tensor view(const extents &shape, const extents &strides, std::int64_t start = 0) const noexcept
    {
        return tensor(it_, type, shape, strides, start);
    }
    tensor matrix(std::int64_t rows, std::int64_t cols) const noexcept
    {
        return vn_matrix(it_, type, rows, cols);
    }
    tensor matrix(std::int64_t rows, std::int64_t cols, std::int64_t ld) const noexcept
    {
        return vn_matrix_ld(it_, type, rows, cols, ld);
    }
};

/* The host's own elements as a buffer, wherever they begin; on CPUs.  They must outlive it. */
template <class T> class span : public handle<span<T>, vn_buffer, vn_buffer_close> {
    using base = handle<span<T>, vn_buffer, vn_buffer_close>;
    using base::it_;

    std::int64_t start_ = 0;

public:
    static constexpr vn_type type = type_of_v<T>;

    static result<span> try_open(vn_device *d, T *data, std::size_t elements) noexcept
    {
        const std::size_t lead = reinterpret_cast<std::uintptr_t>(data) % VN_HOST_ALIGN;
        char *const memory = data ? reinterpret_cast<char *>(data) - lead : nullptr;
        const bool fits = elements <= (static_cast<std::size_t>(-1) - lead) / sizeof(T);
        const std::size_t bytes = fits ? lead + elements * sizeof(T) : static_cast<std::size_t>(-1);
        result<span> r = base::opened([=](vn_buffer **out) {
            return vn_buffer_open_host(out, d, memory, bytes);
        });

        r->start_ = static_cast<std::int64_t>(lead / sizeof(T));
        return r;
    }
    template <class Span> static result<span> try_open(vn_device *d, Span &&s) noexcept
    {
        return try_open(d, std::data(s), std::size(s));
    }
#if VERNIER_EXCEPTIONS
    static span open(vn_device *d, T *data, std::size_t elements)
    {
        return try_open(d, data, elements).value();
    }
    template <class Span> static span open(vn_device *d, Span &&s)
    {
        return open(d, std::data(s), std::size(s));
    }
#endif

    tensor view(const extents &shape) const noexcept
    {
        tensor t(it_, type, shape);

        t.start = start_;
        return t;
    }
    tensor view(const extents &shape, const extents &strides, std::int64_t start = 0) const noexcept
    {
        return tensor(it_, type, shape, strides, start_ + start);
    }
    tensor matrix(std::int64_t rows, std::int64_t cols) const noexcept { return view({ rows, cols }); }
    tensor matrix(std::int64_t rows, std::int64_t cols, std::int64_t ld) const noexcept
    {
        tensor t(vn_matrix_ld(it_, type, rows, cols, ld));

        t.start = start_;
        return t;
    }
};

/* A buffer of integers of 32 or 64 bits, such as the targets of cross_entropy(). */
template <class Int> class integers : public handle<integers<Int>, vn_buffer, vn_buffer_close> {
    static_assert(std::is_integral_v<Int> && std::is_signed_v<Int> && (sizeof(Int) == 4 || sizeof(Int) == 8),
                  "targets are integers of 32 or 64 bits, with a sign");
    using base = handle<integers<Int>, vn_buffer, vn_buffer_close>;
    using base::it_;

public:
    static result<integers> try_open(vn_device *d, std::size_t count) noexcept
    {
        constexpr std::size_t most = static_cast<std::size_t>(-1);

        return base::opened([=](vn_buffer **out) {
            return vn_buffer_open(out, d, count > most / sizeof(Int) ? most : count * sizeof(Int));
        });
    }
    template <class Span>
    vernier::status try_write(vn_queue *q, const Span &from, std::size_t at = 0) const noexcept
    {
        static_assert(std::is_same_v<std::remove_cv_t<std::remove_pointer_t<decltype(std::data(from))>>, Int>,
                      "the host's memory needs elements of the buffer's type");
        return vn_write(q, it_, at * sizeof(Int), std::data(from), std::size(from) * sizeof(Int));
    }
#if VERNIER_EXCEPTIONS
    static integers open(vn_device *d, std::size_t count) { return try_open(d, count).value(); }
    template <class Span> void write(vn_queue *q, const Span &from, std::size_t at = 0) const
    {
        check(try_write(q, from, at));
    }
#endif

    vn_ints view(std::int64_t count, std::int64_t start = 0, std::int64_t stride = 1) const noexcept
    {
        return { it_, start, count, stride, static_cast<int>(sizeof(Int)), 0 };
    }
};

/* ---- options ------------------------------------------------------------------ */

/* The structs of C, filled in member by member: gemm_options().bias(b).activation(VN_RELU).  Functions take
 * these, or a pointer to the struct.                                                                     */
class gemm_options {
public:
    gemm_options() noexcept : o_() { o_.size = sizeof o_; }
    gemm_options &math(vn_math m) noexcept { return o_.math = m, *this; }
    gemm_options &bias(const vn_tensor &t) noexcept { return o_.bias = t, *this; }
    gemm_options &activation(vn_activation a) noexcept { return o_.activation = a, *this; }
    gemm_options &variant(const char *name) noexcept { return o_.variant = name, *this; }
    gemm_options &packed_b(const vn_pack *p) noexcept { return o_.packed_b = p, *this; }
    gemm_options &residual(const vn_tensor &t) noexcept { return o_.residual = t, *this; }
    gemm_options &scale(const vn_tensor &t) noexcept { return o_.scale = t, *this; }
    operator const vn_gemm_options *() const noexcept { return &o_; }

private:
    vn_gemm_options o_;
};

class conv_options {
public:
    /* One for each spatial dimension, the outermost first. */
    using per_dimension = std::initializer_list<int>;

    conv_options() noexcept : o_() { o_.size = sizeof o_; }
    conv_options &stride(per_dimension v) noexcept { return copy(o_.stride, v); }
    conv_options &dilation(per_dimension v) noexcept { return copy(o_.dilation, v); }
    conv_options &pad(per_dimension v) noexcept { return pad(v, v); }
    conv_options &pad(per_dimension before, per_dimension after) noexcept
    {
        return copy(o_.pad_before, before).copy(o_.pad_after, after);
    }
    conv_options &groups(int n) noexcept { return o_.groups = n, *this; }
    conv_options &math(vn_math m) noexcept { return o_.math = m, *this; }
    conv_options &bias(const vn_tensor &t) noexcept { return o_.bias = t, *this; }
    conv_options &activation(vn_activation a) noexcept { return o_.activation = a, *this; }
    conv_options &residual(const vn_tensor &t) noexcept { return o_.residual = t, *this; }
    conv_options &packed_w(const vn_pack *p) noexcept { return o_.packed_w = p, *this; }
    conv_options &variant(const char *name) noexcept { return o_.variant = name, *this; }
    operator const vn_conv_options *() const noexcept { return &o_; }

private:
    vn_conv_options o_;

    /* Of more than three, the first is made one that every operation refuses. */
    conv_options &copy(int (&to)[3], per_dimension from) noexcept
    {
        int i = 0;

        for (const int v : from)
            if (i < 3)
                to[i++] = v;
        if (from.size() > 3)
            to[0] = -1;
        return *this;
    }
};

class softmax_options {
public:
    softmax_options() noexcept : o_() {}
    softmax_options &axis(int from_last) noexcept { return o_.axis = from_last, *this; }
    softmax_options &log(bool on = true) noexcept { return o_.log = on, *this; }
    softmax_options &scale(double s) noexcept { return o_.scale = s, *this; }
    softmax_options &mask(const vn_tensor &t) noexcept { return o_.mask = t, *this; }
    softmax_options &causal(bool on = true) noexcept { return o_.causal = on, *this; }
    softmax_options &variant(const char *name) noexcept { return o_.variant = name, *this; }
    operator const vn_softmax_options *() const noexcept { return &o_; }

private:
    vn_softmax_options o_;
};

class attention_options {
public:
    attention_options() noexcept : o_() { o_.size = sizeof o_; }
    attention_options &scale(double s) noexcept { return o_.scale = s, *this; }
    attention_options &causal(vn_causal c) noexcept { return o_.causal = c, *this; }
    attention_options &window(std::int64_t keys) noexcept { return o_.window = keys, *this; }
    attention_options &softcap(double s) noexcept { return o_.softcap = s, *this; }
    attention_options &mask(const vn_tensor &t) noexcept { return o_.mask = t, *this; }
    attention_options &lse(const vn_tensor &t) noexcept { return o_.lse = t, *this; }
    attention_options &sinks(const vn_tensor &t) noexcept { return o_.sinks = t, *this; }
    attention_options &key_lengths(const vn_ints &t) noexcept { return o_.key_lengths = t, *this; }
    attention_options &query_lengths(const vn_ints &t) noexcept { return o_.query_lengths = t, *this; }
    attention_options &pages(const vn_ints &t) noexcept { return o_.pages = t, *this; }
    attention_options &math(vn_math m) noexcept { return o_.math = m, *this; }
    attention_options &variant(const char *name) noexcept { return o_.variant = name, *this; }
    operator const vn_attention_options *() const noexcept { return &o_; }

private:
    vn_attention_options o_;
};

class cross_entropy_options {
public:
    cross_entropy_options() noexcept : o_() { o_.size = sizeof o_; }
    cross_entropy_options &smoothing(double s) noexcept { return o_.smoothing = s, *this; }
    cross_entropy_options &z_loss(double z) noexcept { return o_.z_loss = z, *this; }
    cross_entropy_options &ignore(std::int64_t target) noexcept { return o_.ignore = target, *this; }
    cross_entropy_options &weights(const vn_tensor &t) noexcept { return o_.weights = t, *this; }
    cross_entropy_options &lse(const vn_tensor &t) noexcept { return o_.lse = t, *this; }
    cross_entropy_options &variant(const char *name) noexcept { return o_.variant = name, *this; }
    operator const vn_cross_entropy_options *() const noexcept { return &o_; }

private:
    vn_cross_entropy_options o_;
};

/* ---- operations ----------------------------------------------------------------- */

class pack : public handle<pack, vn_pack, vn_pack_close> {
public:
    static result<pack> try_open(vn_queue *q, const vn_tensor &b, std::int64_t m,
                                 const vn_gemm_options *o = nullptr) noexcept
    {
        return opened([&](vn_pack **out) { return vn_pack_open(out, q, b, m, o); });
    }
    /* A filter: w of that convolution. */
    static result<pack> try_open(vn_queue *q, vn_conv_direction d, const vn_tensor &x, const vn_tensor &w,
                                 const vn_tensor &y, const vn_conv_options *o = nullptr) noexcept
    {
        return opened([&](vn_pack **out) { return vn_conv_pack_open(out, q, d, x, w, y, o); });
    }
    std::size_t bytes() const noexcept { return vn_pack_bytes(it_); }
#if VERNIER_EXCEPTIONS
    static pack open(vn_queue *q, const vn_tensor &b, std::int64_t m, const vn_gemm_options *o = nullptr)
    {
        return try_open(q, b, m, o).value();
    }
    static pack open(vn_queue *q, vn_conv_direction d, const vn_tensor &x, const vn_tensor &w,
                     const vn_tensor &y, const vn_conv_options *o = nullptr)
    {
        return try_open(q, d, x, w, y, o).value();
    }
#endif
};

#if VERNIER_EXCEPTIONS
#  define VERNIER_BOTH(name, parameters, passed, call) \
    inline status try_##name parameters noexcept { return call; } \
    inline void name parameters { check(try_##name passed); }
#else
#  define VERNIER_BOTH(name, parameters, passed, call) \
    inline status try_##name parameters noexcept { return call; }
#endif

VERNIER_BOTH(gemm, (vn_queue *q, double alpha, const vn_tensor &a, const vn_tensor &b, double beta,
                    const vn_tensor &c, const vn_gemm_options *o = nullptr),
             (q, alpha, a, b, beta, c, o), vn_gemm(q, alpha, a, b, beta, c, o))
VERNIER_BOTH(conv_forward, (vn_queue *q, double alpha, const vn_tensor &x, const vn_tensor &w, double beta,
                            const vn_tensor &y, const vn_conv_options *o = nullptr),
             (q, alpha, x, w, beta, y, o), vn_conv_forward(q, alpha, x, w, beta, y, o))
VERNIER_BOTH(conv_backward_data, (vn_queue *q, double alpha, const vn_tensor &dy, const vn_tensor &w,
                                  double beta, const vn_tensor &dx, const vn_conv_options *o = nullptr),
             (q, alpha, dy, w, beta, dx, o), vn_conv_backward_data(q, alpha, dy, w, beta, dx, o))
VERNIER_BOTH(conv_backward_filter, (vn_queue *q, double alpha, const vn_tensor &x, const vn_tensor &dy,
                                    double beta, const vn_tensor &dw, const vn_conv_options *o = nullptr),
             (q, alpha, x, dy, beta, dw, o), vn_conv_backward_filter(q, alpha, x, dy, beta, dw, o))
VERNIER_BOTH(softmax, (vn_queue *q, const vn_tensor &x, const vn_tensor &y,
                       const vn_softmax_options *o = nullptr),
             (q, x, y, o), vn_softmax(q, x, y, o))
VERNIER_BOTH(softmax_backward, (vn_queue *q, const vn_tensor &y, const vn_tensor &dy, const vn_tensor &dx,
                                const vn_softmax_options *o = nullptr),
             (q, y, dy, dx, o), vn_softmax_backward(q, y, dy, dx, o))
VERNIER_BOTH(attention, (vn_queue *q, const vn_tensor &queries, const vn_tensor &keys,
                         const vn_tensor &values, const vn_tensor &out,
                         const vn_attention_options *o = nullptr),
             (q, queries, keys, values, out, o), vn_attention(q, queries, keys, values, out, o))
VERNIER_BOTH(attention_backward, (vn_queue *q, const vn_tensor &queries, const vn_tensor &keys,
                                  const vn_tensor &values, const vn_tensor &out, const vn_tensor &d_out,
                                  const vn_tensor &d_queries, const vn_tensor &d_keys,
                                  const vn_tensor &d_values, const vn_attention_options *o),
             (q, queries, keys, values, out, d_out, d_queries, d_keys, d_values, o),
             vn_attention_backward(q, queries, keys, values, out, d_out, d_queries, d_keys, d_values, o))
/* Without a gradient dx is tensor(). */
VERNIER_BOTH(cross_entropy, (vn_queue *q, const vn_tensor &x, const vn_ints &targets, const vn_tensor &loss,
                             const vn_tensor &dx, const vn_cross_entropy_options *o = nullptr),
             (q, x, targets, loss, dx, o), vn_cross_entropy(q, x, targets, loss, dx, o))
VERNIER_BOTH(copy, (vn_queue *q, vn_buffer *to, std::size_t to_at, const vn_buffer *from, std::size_t from_at,
                    std::size_t bytes),
             (q, to, to_at, from, from_at, bytes), vn_copy(q, to, to_at, from, from_at, bytes))

#undef VERNIER_BOTH
}
#endif
