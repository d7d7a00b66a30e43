/* SPDX-License-Identifier: Apache-2.0
 *
 * summa.c - one product over several machines: C = A B, N x N, on a grid of MPI's processes, each with a
 * device.
 *
 *     mpicc -std=gnu99 -I.. summa.c $(pkg-config --cflags --libs vernier) -lm -o summa
 *     mpirun -n 4 ./summa 4096 256
 *
 * SUMMA (van de Geijn and Watts, 1997): process (r, c) of a grid of R x S owns block (r, c) of A, B and C.
 * For each panel of K, the owners of those columns of A broadcast them along their row of the grid, the
 * owners of those rows of B along their column, and everyone adds the product of both to its block of C.
 * While the device multiplies one panel, MPI carries the next: there are two places for panels, on the host
 * and on the device.
 *
 * Each process receives N^2 / R + N^2 / S elements and computes 2 N^3 / (R S) operations.  So it scales as
 * long as that many elements arrive within the time of the product: at P processes in a square grid the time
 * is 2 N^3 / (P flops per second), or 8 N^2 / (sqrt(P) bytes per second) where that is more.
 */
#include <mpi.h>
#include <string.h>

#include "../example.h"

enum { PLACES = 2 };

struct panel {
    float       *a, *b;           /* rows x width, width x cols */
    vn_buffer   *on_a, *on_b;
    MPI_Request  arrival[2];
    vn_event    *used;            /* the product that read it; or NULL */
};

struct grid {
    int      rows, cols, row, col;
    MPI_Comm along_row, along_col;
};

/* The elements of A and B are small integers, so that every sum is exact in f32. */
static float a_of(int i, int k)
{
    return (float)((i * 3 + k * 5) % 7 - 3);
}

static float b_of(int k, int j)
{
    return (float)((k * 2 + j * 11) % 5 - 2);
}

/* The most square grid, its coordinates, and a communicator for each row and each column of it. */
static struct grid grid_of(void)
{
    struct grid g = { .rows = 1 };
    int rank, size;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int r = 1; r * r <= size; r++)
        if (size % r == 0)
            g.rows = r;
    g.cols = size / g.rows;
    g.row = rank / g.cols;
    g.col = rank % g.cols;
    MPI_Comm_split(MPI_COMM_WORLD, g.row, g.col, &g.along_row);
    MPI_Comm_split(MPI_COMM_WORLD, g.col, g.row, &g.along_col);
    return g;
}

/* Devices of a machine are dealt out to its processes; $VERNIER_DEVICE gives all of them the one that it
 * names. */
static vn_device *device_of_rank(void)
{
    vn_device_info info = { .spec = "" };
    vn_device *d;
    MPI_Comm machine;
    int local;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
    MPI_Comm_rank(machine, &local);
    MPI_Comm_free(&machine);
    if (!getenv("VERNIER_DEVICE") && vn_device_count() > 0)
        must(vn_device_get(&info, local % vn_device_count()));
    must(vn_device_open(&d, *info.spec ? info.spec : NULL));
    return d;
}

/* Begins the broadcast of panel k .. k + width: whoever owns it fills its place first. */
static void carry(struct panel *p, const struct grid *g, int n, int k, int width)
{
    const int rows = n / g->rows, cols = n / g->cols;
    const int owner_a = k / cols, owner_b = k / rows;

    if (p->used) {                              /* the place is free when its product is done */
        must(vn_event_finish(p->used));
        vn_event_close(p->used);
        p->used = NULL;
    }
    if (g->col == owner_a)
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < width; j++)
                p->a[i * width + j] = a_of(g->row * rows + i, k + j);
    if (g->row == owner_b)
        for (int i = 0; i < width; i++)
            for (int j = 0; j < cols; j++)
                p->b[i * cols + j] = b_of(k + i, g->col * cols + j);
    MPI_Ibcast(p->a, rows * width, MPI_FLOAT, owner_a, g->along_row, &p->arrival[0]);
    MPI_Ibcast(p->b, width * cols, MPI_FLOAT, owner_b, g->along_col, &p->arrival[1]);
}

/* Queues the product of a panel that has arrived; the first one begins C. */
static void multiply(struct panel *p, vn_queue *q, vn_buffer *c, int rows, int cols, int width, int is_first)
{
    must(vn_write_async(q, p->on_a, 0, p->a, sizeof(float) * (size_t)rows * (size_t)width));
    must(vn_write_async(q, p->on_b, 0, p->b, sizeof(float) * (size_t)width * (size_t)cols));
    must(vn_gemm(q, 1, vn_matrix(p->on_a, VN_F32, rows, width), vn_matrix(p->on_b, VN_F32, width, cols),
                 is_first ? 0 : 1, vn_matrix(c, VN_F32, rows, cols), NULL));
    must(vn_event_record(&p->used, q));
}

/* How many elements of this block are wrong, of all if it is small, else of some. */
static long wrong_elements(const float *c, const struct grid *g, int n)
{
    const int rows = n / g->rows, cols = n / g->cols, step = (int)((long)rows * cols * n / 20000000) + 1;
    long wrong = 0;

    for (long at = 0; at < (long)rows * cols; at += step) {
        const int i = g->row * rows + (int)(at / cols), j = g->col * cols + (int)(at % cols);
        double sum = 0;

        for (int k = 0; k < n; k++)
            sum += (double)a_of(i, k) * b_of(k, j);
        wrong += c[at] != sum;
    }
    return wrong;
}

static double product(float *result, const struct grid *g, vn_device *d, int n, int width)
{
    const int rows = n / g->rows, cols = n / g->cols, panels = n / width;
    struct panel place[PLACES];
    double begin;
    vn_queue *q;
    vn_buffer *c;

    must(vn_queue_open(&q, d));
    must(vn_buffer_open(&c, d, sizeof(float) * (size_t)rows * (size_t)cols));
    for (int i = 0; i < PLACES; i++) {
        struct panel *const p = &place[i];

        *p = (struct panel){ .a = numbers((size_t)rows * (size_t)width, 1),
                             .b = numbers((size_t)width * (size_t)cols, 2) };
        must(vn_buffer_open(&p->on_a, d, sizeof(float) * (size_t)rows * (size_t)width));
        must(vn_buffer_open(&p->on_b, d, sizeof(float) * (size_t)width * (size_t)cols));
        multiply(p, q, c, rows, cols, width, i == 0);       /* builds both kernels; C begins anew below */
    }
    must(vn_queue_finish(q));
    MPI_Barrier(MPI_COMM_WORLD);

    begin = MPI_Wtime();
    carry(&place[0], g, n, 0, width);
    for (int i = 0; i < panels; i++) {
        struct panel *const p = &place[i % PLACES];

        MPI_Waitall(2, p->arrival, MPI_STATUSES_IGNORE);
        multiply(p, q, c, rows, cols, width, i == 0);
        if (i + 1 < panels)                                 /* while the device multiplies */
            carry(&place[(i + 1) % PLACES], g, n, (i + 1) * width, width);
    }
    must(vn_read(q, result, c, 0, sizeof(float) * (size_t)rows * (size_t)cols));
    MPI_Barrier(MPI_COMM_WORLD);
    begin = MPI_Wtime() - begin;

    for (int i = 0; i < PLACES; i++) {
        vn_event_close(place[i].used);
        vn_buffer_close(place[i].on_a);
        vn_buffer_close(place[i].on_b);
        free(place[i].a);
        free(place[i].b);
    }
    vn_buffer_close(c);
    vn_queue_close(q);
    return begin;
}

int main(int argc, char **argv)
{
    const int n = argc > 1 ? atoi(argv[1]) : 256, width = argc > 2 ? atoi(argv[2]) : 32;

    MPI_Init(&argc, &argv);

    struct grid g = grid_of();
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (n <= 0 || width <= 0 || n % g.rows || n % g.cols || n / g.rows % width || n / g.cols % width) {
        if (rank == 0)
            fprintf(
                stderr,
                "N is %d and the panel %d; the grid of %d x %d needs N to be a multiple of its sides, and "
                "each block of the panel\n",
                n, width, g.rows, g.cols);
        MPI_Finalize();
        return 2;
    }

    vn_device *const d = device_of_rank();
    float *const c = numbers((size_t)(n / g.rows) * (size_t)(n / g.cols), 3);
    const double seconds = product(c, &g, d, n, width);
    long wrong = wrong_elements(c, &g, n);

    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf(
            "summa: %d x %d on a grid of %d x %d, panels of %d: %.3g s, %.3g GFLOP/s, %ld wrong elements\n",
            n, n, g.rows, g.cols, width, seconds, 2e-9 * n * n * n / seconds, wrong);
    free(c);
    vn_device_close(d);
    MPI_Comm_free(&g.along_row);
    MPI_Comm_free(&g.along_col);
    MPI_Finalize();
    return wrong != 0;
}
