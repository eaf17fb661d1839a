/* The arithmetic of one type T, whose names OF() makes; included once for each (arithmetic.c). */
static double OF(max)(const void *s, size_t n) { return (double)pe_kernels()->OF(max)(s, n); }
static double OF(exp)(void *s, size_t n, double max, double *weighted)
{
    return pe_kernels()->OF(exp)(s, n, (T)max, weighted);
}
static void OF(scale)(void *s, size_t n, double factor) { pe_kernels()->OF(scale)(s, n, (T)factor); }
static void OF(add)(void *s, const void *b, size_t n, double factor) { pe_kernels()->OF(add)(s, b, n, (T)factor); }
static void OF(cap)(void *s, size_t n, double cap) { pe_kernels()->OF(cap)(s, n, (T)cap); }
static void OF(sigmoid)(const void *s, size_t n, void *out) { pe_kernels()->OF(sigmoid)(s, n, out); }
static void OF(gather_add)(void *s, const void *table, const int32_t *index, size_t n, double factor)
{
    pe_kernels()->OF(gather_add)(s, table, index, n, (T)factor);
}
static void OF(pack)(const void *b, size_t b_stride, size_t n, size_t k, void *panels)
{
    pe_kernels()->OF(pack)(b, b_stride, n, k, panels);
}
static void OF(products)(size_t m, size_t first, size_t n, size_t k, double scale, const void *a, size_t a_stride,
                         const void *panels, void *c, size_t c_stride)
{
    pe_kernels()->OF(products)(m, first, n, k, (T)scale, a, a_stride, panels, c, c_stride);
}
static void OF(pick_add)(void *s, const void *table, const int32_t *index, size_t n)
{
    pe_kernels()->OF(pick_add)(s, table, index, n);
}
static void OF(pick_across_add)(void *s, size_t s_stride, const void *table, size_t t_stride, const int32_t *index,
                                size_t n_rows, size_t n, double factor)
{
    pe_kernels()->OF(pick_across_add)(s, s_stride, table, t_stride, index, n_rows, n, (T)factor);
}
static const struct pe_arithmetic OF(arithmetic) = {
    .dtype = DTYPE,
    .size = sizeof(T),
    .abt = OF(pe_gemm_abt),
    .ab = OF(pe_gemm_ab),
    .pack = OF(pack),
    .products = OF(products),
    .max = OF(max),
    .exp = OF(exp),
    .scale = OF(scale),
    .add = OF(add),
    .cap = OF(cap),
    .sigmoid = OF(sigmoid),
    .gather_add = OF(gather_add),
    .pick_add = OF(pick_add),
    .pick_across_add = OF(pick_across_add),
};
