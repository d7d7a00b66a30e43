/* SPDX-License-Identifier: Apache-2.0
 *
 * cpp.cpp - vernier.hpp: what it computes, what it throws or returns, and that it allocates nothing.
 *
 * With -fno-exceptions the same tests run without those of exceptions.  tests/api/cpp.sh builds both.
 */
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include <vernier.hpp>

static long checks, failures, allocations;

#define CHECK(it) (checks++, (it) ? (void)0 : fail(#it, __LINE__))

static void fail(const char *it, int line)
{
    failures++;
    std::printf("not ok: line %d: %s (%s)\n", line, it, vn_last_error());
}

#if !defined(__SANITIZE_ADDRESS__)          /* which has operators of its own */
void *operator new(std::size_t bytes)
{
    void *const p = std::malloc(bytes ? bytes : 1);

    allocations++;
    if (!p)
        std::abort();
    return p;
}

void operator delete(void *p) noexcept { std::free(p); }
void operator delete(void *p, std::size_t) noexcept { std::free(p); }
#endif

static_assert(sizeof(vernier::array<float>) == sizeof(void *));
static_assert(sizeof(vernier::tensor) == sizeof(vn_tensor));
static_assert(!std::is_copy_constructible_v<vernier::queue> && !std::is_copy_assignable_v<vernier::queue>);
static_assert(std::is_nothrow_move_assignable_v<vernier::queue>);

/* A B of small integers. */
static std::vector<float> product(const std::vector<float> &a, const std::vector<float> &b, int m, int n,
                                  int k)
{
    std::vector<float> c(static_cast<std::size_t>(m * n));

    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++)
            for (int l = 0; l < k; l++)
                c[i * n + j] += a[i * k + l] * b[l * n + j];
    return c;
}

static std::vector<float> integers(int count, int step)
{
    std::vector<float> v(static_cast<std::size_t>(count));

    for (int i = 0; i < count; i++)
        v[i] = static_cast<float>(i * step % 7 - 3);
    return v;
}

enum { M = 5, N = 7, K = 6 };

static void test_products(vernier::device &dev, vernier::queue &q)
{
    const std::vector<float> a = integers(M * K, 3), b = integers(K * N, 5), right = product(a, b, M, N, K);
    std::array<float, M * N> c{};
    auto x = *vernier::array<float>::try_open(dev, M * K), y = *vernier::array<float>::try_open(dev, K * N),
         z = *vernier::array<float>::try_open(dev, M * N);
    const auto o = vernier::gemm_options().variant("gemm");

    CHECK(x.try_write(q, a) && y.try_write(q, b));
    CHECK(vernier::try_gemm(q, 1, x.matrix(M, K), y.matrix(K, N), 0, z.matrix(M, N), o));
    CHECK(z.try_read(q, c) && !std::memcmp(c.data(), right.data(), sizeof c));
    CHECK(std::strstr(q.explain(), "\"variant\": \"gemm\""));

    /* A's and C's transposes, C by rows that lie further apart, the last rows of A */
    CHECK(vernier::try_gemm(q, 1, y.matrix(K, N).transpose(), x.view({ M, K }).permute(1, 0), 0,
                            z.view({ N, M }, { 1, N }), o));
    CHECK(z.try_read(q, c) && !std::memcmp(c.data(), right.data(), sizeof c));
    CHECK(z.try_fill(q, -1.0f, M * N));
    CHECK(vernier::try_gemm(q, 1, x.matrix(M, K).slice(0, 2, 3), y.matrix(K, N), 0,
                            z.matrix(M, N).slice(0, 2, 3), o));
    CHECK(z.try_read(q, c) && !std::memcmp(&c[2 * N], &right[2 * N], 3 * N * sizeof(float)));
    CHECK(c[0] == -1 && c[2 * N - 1] == -1);

    /* moved handles; the queue's work goes on */
    vernier::array<float> moved = std::move(x);
    CHECK(!x && moved && moved.get());
    x = std::move(moved);
    CHECK(x && !moved);

    const long before = allocations;
    for (int i = 0; i < 100; i++)
        CHECK(vernier::try_gemm(q, 1, x.matrix(M, K), y.matrix(K, N), 0, z.matrix(M, N), o));
    CHECK(q.try_finish());
    CHECK(allocations == before);
}

static void test_host_memory(vernier::device &dev, vernier::queue &q)
{
    std::vector<float> a = integers(M * K + 1, 3), b = integers(K * N, 5), c(M * N + 3, -1.0f);
    const std::vector<float> right = product({ a.begin() + 1, a.end() }, b, M, N, K);
    auto x = vernier::span<float>::try_open(dev, a.data() + 1, M * K);

    if (x.status().code() == VN_UNSUPPORTED) {
        std::printf("host memory left out: %s\n", vernier::status::sentence());
        return;
    }
    auto y = vernier::span<float>::try_open(dev, b), z = vernier::span<float>::try_open(dev, c);

    CHECK(x && y && z);
    CHECK(vernier::try_gemm(q, 1, x->matrix(M, K), y->matrix(K, N), 0, z->view({ M, N }, { N, 1 }, 2),
                            vernier::gemm_options().variant("gemm")) && q.try_finish());
    CHECK(!std::memcmp(c.data() + 2, right.data(), right.size() * sizeof(float)));
    CHECK(c[0] == -1 && c[1] == -1 && c.back() == -1);
    CHECK(!vernier::span<float>::try_open(dev, static_cast<float *>(nullptr), 4));
    CHECK(!vernier::span<float>::try_open(dev, b.data(), static_cast<std::size_t>(-1)));
}

/* y = x w in 1-D, w = 1 1 1, with zeros around; then its softmax, which sums to 1. */
static void test_operations(vernier::device &dev, vernier::queue &q)
{
    const std::array<float, 5> x = { 0, 1, 2, 3, 4 }, right = { 1, 3, 6, 9, 7 };
    std::array<float, 5> y{};
    auto in = *vernier::array<float>::try_open(dev, 5), w = *vernier::array<float>::try_open(dev, 3),
         out = *vernier::array<float>::try_open(dev, 5);
    float sum = 0;

    CHECK(in.try_write_async(q, x) && w.try_fill(q, 1, 3));
    CHECK(vernier::try_conv_forward(q, 1, in.view({ 1, 1, 5 }), w.view({ 1, 1, 3 }), 0, out.view({ 1, 1, 5 }),
                                    vernier::conv_options().pad({ 1 })));
    auto pack = vernier::pack::try_open(q, VN_CONV_FORWARD, in.view({ 1, 1, 5 }), w.view({ 1, 1, 3 }),
                                        out.view({ 1, 1, 5 }), vernier::conv_options().pad({ 1 }));
    CHECK(pack && vernier::try_conv_forward(q, 1, in.view({ 1, 1, 5 }), w.view({ 1, 1, 3 }), 0,
                                            out.view({ 1, 1, 5 }),
                                            vernier::conv_options().pad({ 1 }).packed_w(*pack)));
    CHECK(out.try_read_async(q, y));
    auto e = vernier::event::try_record(q);
    CHECK(e && e->try_finish() && y == right);
    CHECK(vernier::try_copy(q, in, 0, out, 0, sizeof y));
    CHECK(vernier::try_softmax(q, in.matrix(1, 5), in.matrix(1, 5), vernier::softmax_options().scale(0.5)));
    CHECK(in.try_read(q, y));
    for (const float v : y)
        sum += v;
    CHECK(sum > 0.999f && sum < 1.001f && y[3] > y[4]);
}

/* Of one key, the only value, whatever the scores are. */
static void test_attention(vernier::device &dev, vernier::queue &q)
{
    const std::array<float, 8> x = { 1, 2, 3, 4, 5, 6, 7, 8 };
    std::array<float, 8> y{};
    auto in = *vernier::array<float>::try_open(dev, 8), out = *vernier::array<float>::try_open(dev, 8);
    const vernier::tensor queries = in.view({ 1, 2, 1, 4 });

    CHECK(in.try_write(q, x));
    CHECK(vernier::try_attention(q, queries, queries, queries, out.view({ 1, 2, 1, 4 }),
                                 vernier::attention_options().causal(VN_CAUSAL_LAST)));
    CHECK(out.try_read(q, y) && y == x);

    /* The weight of one key is 1: the gradient of the values is that of the result, those of others are 0. */
    auto lse = *vernier::array<float>::try_open(dev, 2), d_out = *vernier::array<float>::try_open(dev, 8),
         d_values = *vernier::array<float>::try_open(dev, 8);
    const auto o = vernier::attention_options().causal(VN_CAUSAL_LAST).lse(lse.view({ 1, 2, 1 }));

    CHECK(vernier::try_attention(q, queries, queries, queries, out.view({ 1, 2, 1, 4 }), o));
    CHECK(d_out.try_fill(q, 3, 8));
    CHECK(vernier::try_attention_backward(q, queries, queries, queries, out.view({ 1, 2, 1, 4 }),
                                          d_out.view({ 1, 2, 1, 4 }), vernier::tensor(), vernier::tensor(),
                                          d_values.view({ 1, 2, 1, 4 }), o));
    CHECK(d_values.try_read(q, y));
    for (const float v : y)
        CHECK(v == 3);
}

/* Two classes with equal logits: the loss is log 2, the gradient is half, and less 1 at the target. */
static void test_cross_entropy(vernier::device &dev, vernier::queue &q)
{
    const std::array<std::int32_t, 2> targets = { 1, -100 };
    const std::array<float, 4> wanted = { 0.5f, -0.5f, 0, 0 };
    std::array<float, 4> got{};
    std::array<float, 2> losses{};
    auto x = *vernier::array<float>::try_open(dev, 4), dx = *vernier::array<float>::try_open(dev, 4),
         loss = *vernier::array<float>::try_open(dev, 2);
    auto t = *vernier::integers<std::int32_t>::try_open(dev, 2);

    CHECK(x.try_fill(q, 3, 4) && t.try_write(q, targets));
    CHECK(vernier::try_cross_entropy(q, x.matrix(2, 2), t.view(2), loss.view({ 2 }), dx.matrix(2, 2),
                                     vernier::cross_entropy_options().ignore(-100)));
    CHECK(loss.try_read(q, losses) && dx.try_read(q, got));
    CHECK(std::abs(losses[0] - 0.6931472f) < 1e-6f && losses[1] == 0);
    for (int i = 0; i < 4; i++)
        CHECK(std::abs(got[i] - wanted[i]) < 1e-6f);
    CHECK(!vernier::try_cross_entropy(q, x.matrix(2, 2), t.view(1), loss.view({ 2 }), vernier::tensor()));
}

/* Handles that functions of C open. */
static void test_from(vernier::device &dev, vernier::queue &q)
{
    auto b = vernier::array<float>::try_from(vn_buffer_open, dev, sizeof(float) * 4);
    auto other = vernier::queue::try_from(vn_queue_open, dev);
    const std::array<float, 4> x = { 1, 2, 3, 4 };
    std::array<float, 4> y{};

    CHECK(b && other && b->try_write(q, x) && b->try_read(*other, y) && x == y);
    CHECK(vernier::device::try_from(vn_device_open, "no such device").status().code() == VN_NO_DEVICE);
}

/* A product in a workspace of the caller's, and what refuses it. */
static void test_workspace(vernier::device &dev, vernier::queue &q)
{
    auto room = *vernier::array<float>::try_open(dev, 1 << 20);

    CHECK(q.try_use_workspace(room) && q.workspace() == sizeof(float) << 20);
    CHECK(!vernier::try_gemm(q, 1, room.matrix(2, 2), room.matrix(2, 2), 0, room.matrix(2, 2)));
    CHECK(q.try_use_workspace(nullptr) && q.workspace() == 0);
}

static void test_errors(vernier::device &dev, vernier::queue &q)
{
    auto a = *vernier::array<float>::try_open(dev, 16);
    const vernier::status s = vernier::try_gemm(q, 1, a.matrix(4, 4), a.matrix(4, 4), 0, a.matrix(4, 4));

    CHECK(!s && s.code() == VN_INVALID && !std::strcmp(s.name(), "VN_INVALID"));
    CHECK(std::strstr(vernier::status::sentence(), "vn_gemm: C overlaps A"));
    auto none = vernier::device::try_open("no such device");
    CHECK(!none && none.status().code() == VN_NO_DEVICE && !*none);
    CHECK(!vernier::array<double>::try_open(dev, static_cast<std::size_t>(-1) / 2));
    CHECK(!vernier::try_softmax(q, a.view({ 1, 1, 1, 1, 1, 1, 1 }), a.matrix(1, 1)));
    CHECK(!vernier::try_softmax(q, a.view({ 2, 2 }, { 1 }), a.matrix(2, 2)));
    CHECK(!vernier::try_softmax(q, a.matrix(2, 2).permute(0), a.matrix(2, 2)));
    CHECK(!vernier::try_softmax(q, a.matrix(2, 4, 3), a.matrix(2, 4)));
    CHECK(!vernier::try_conv_forward(q, 1, a.view({ 1, 1, 1 }), a.view({ 1, 1, 1 }), 0, a.view({ 1, 1, 1 }),
                                     vernier::conv_options().stride({ 1, 1, 1, 1 })));
#if VERNIER_EXCEPTIONS
    int caught = 0;

    try {
        vernier::gemm(q, 1, a.matrix(4, 4), a.matrix(4, 4), 0, a.matrix(4, 4));
    } catch (const vernier::error &e) {
        caught += e.code() == VN_INVALID && std::strstr(e.what(), "vn_gemm: C overlaps A");
    }
    try {
        vernier::device::open("no such device");
    } catch (const std::runtime_error &e) {
        caught += std::strstr(e.what(), "vn_device_open: spec") != nullptr;
    }
    try {
        vernier::queue::open(nullptr);
    } catch (const vernier::error &e) {
        caught += e.code() == VN_INVALID;
    }
    CHECK(caught == 3);
#endif
}

#if VERNIER_EXCEPTIONS
/* The program of the header's first comment. */
static void test_exceptions(vernier::device &dev)
{
    const std::vector<float> host_a = integers(M * K, 3), host_b = integers(K * N, 5);
    std::vector<float> host_c(M * N), right = product(host_a, host_b, M, N, K);
    auto q = vernier::queue::open(dev);
    auto a = vernier::array<float>::open(dev, M * K);
    auto b = vernier::array<float>::open(dev, K * N);
    auto c = vernier::array<float>::open(dev, M * N);
    const auto begin = q.record();

    a.write(q, host_a);
    b.write(q, host_b);
    vernier::gemm(q, 1, a.matrix(M, K), b.matrix(K, N), 0, c.matrix(M, N),
                  vernier::gemm_options().activation(VN_RELU).variant("gemm"));
    c.read(q, host_c);
    for (float &v : right)
        v = v > 0 ? v : 0;
    CHECK(host_c == right);
    CHECK(q.record().seconds_since(begin) >= 0 && dev.describe().compute_units > 0);

    auto pack = vernier::pack::open(q, b.matrix(K, N), M);
    vernier::gemm(q, 1, a.matrix(M, K), b.matrix(K, N), 0, c.matrix(M, N),
                  vernier::gemm_options().packed_b(pack).activation(VN_RELU).variant("gemm"));
    c.read(q, host_c);
    CHECK(host_c == right);
}
#endif

int main()
{
    auto opened = vernier::device::try_open();

    if (!opened) {
        const bool skipped = opened.status().code() == VN_NO_DEVICE;

        std::printf("%s: %s\n", skipped ? "skipped" : "cannot start", vn_last_error());
        return skipped ? 77 : 1;
    }
    vernier::device dev = std::move(*opened);
    vernier::queue q = std::move(*vernier::queue::try_open(dev));

    test_products(dev, q);
    test_host_memory(dev, q);
    test_operations(dev, q);
    test_attention(dev, q);
    test_cross_entropy(dev, q);
    test_from(dev, q);
    test_workspace(dev, q);
    test_errors(dev, q);
#if VERNIER_EXCEPTIONS
    test_exceptions(dev);
#endif
    std::printf("%ld checks, %ld failed\nCOUNT cpp %ld\n", checks, failures, checks);
    return failures != 0;
}
