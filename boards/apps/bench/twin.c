// The two inner loops of attention over mpy_kv's int8 rows as a C programmer writes them: what the
// kernels qk and av of mpy_kv/kernels are measured against, by `kvlab bench kernels --target qemu`.
//
// The same job on the same bytes, with the same results to the bit: see plain.py there for both
// definitions. The query comes unpacked, one signed byte a channel; sums are 32 bits wide; a row is one
// slice, and its length is known to the compiler. KV_... are the indexes of mpy_kv/kernels/params.py.

#include "py/dynruntime.h"

#define INLINE static inline __attribute__((always_inline))

enum { BATCH = 8, RUN_CODES = 0, RUN_COUNT = 2, RUN_FIELDS = 4 };

// Dots of q with every visible row.
INLINE void qk(const uint8_t *restrict buf, const int32_t *restrict a, const int8_t *restrict q,
    int32_t *restrict dots, const int width) {
    int32_t offset = 0;
    for (int c = 0; c < width; c++) {
        offset += 128 * q[c];
    }
    const int32_t *run = a + KV_RUN;
    for (int r = 0; r < a[KV_RUNS]; r++, run += RUN_FIELDS) {
        const uint8_t *row = buf + a[KV_CODES] + run[RUN_CODES];
        for (int n = run[RUN_COUNT]; n > 0; n--, row += width) {
            int32_t sum = 0;
            for (int c = 0; c < width; c++) {
                sum += row[c] * q[c];
            }
            *dots++ = sum - offset;
        }
    }
}

// A batch's lanes in units of all batches, added to the sums; the lanes are empty again.
INLINE void flush(int32_t *restrict sums, int32_t *restrict lanes, int32_t factor, int32_t shift,
    const int width) {
    for (int c = 0; c < width; c++) {
        sums[c] += lanes[c] * factor >> shift;
        lanes[c] = 0;
    }
}

// Both parts of a batch that is split, whose second counts 32nds of the first; of another one the first.
INLINE void flush_parts(int32_t *restrict sums, int32_t *restrict lanes, int32_t *restrict fine,
    int32_t unit, const int width) {
    flush(sums, lanes, unit & 0xFFFF, unit >> 16 & 31, width);
    if (unit >> 24 == 1) {
        flush(sums, fine, unit & 0xFFFF, (unit >> 16 & 31) + 5, width);
    }
}

// Small weights times the rows, summed over the tokens; batches count from the oldest and may span runs.
INLINE void av(const uint8_t *restrict buf, const int32_t *restrict a, int32_t *restrict sums,
    const int width) {
    const int32_t *weights = (const int32_t *)(buf + a[KV_DOTS]);
    const int32_t *units = (const int32_t *)(buf + a[KV_UNITS]);
    int32_t lanes[width], fine[width];
    for (int c = 0; c < width; c++) {
        lanes[c] = fine[c] = sums[c] = 0;
    }
    int left = BATCH;
    const int32_t *run = a + KV_RUN;
    for (int r = 0; r < a[KV_RUNS]; r++, run += RUN_FIELDS) {
        const uint8_t *row = buf + a[KV_VCODES] + run[RUN_CODES];
        for (int n = run[RUN_COUNT]; n > 0; n--, row += width) {
            const int32_t weight = *weights++;
            for (int c = 0; c < width; c++) {
                lanes[c] += row[c] * (weight & 0xFFFF);
            }
            if (weight >> 16) {
                for (int c = 0; c < width; c++) {
                    fine[c] += row[c] * (weight >> 16);
                }
            }
            if (--left == 0) {
                flush_parts(sums, lanes, fine, *units++, width);
                left = BATCH;
            }
        }
    }
    if (left < BATCH) {
        flush_parts(sums, lanes, fine, *units, width);
    }
}

static void *bytes_of(mp_obj_t object, mp_uint_t flags) {
    mp_buffer_info_t info;
    mp_get_buffer_raise(object, &info, flags);
    return info.buf;
}

// qkN(buf, a, q, dots)
#define EXPORT_QK(NAME, WIDTH) \
    static mp_obj_t NAME(size_t count, const mp_obj_t *args) { \
        (void)count; \
        qk(bytes_of(args[0], MP_BUFFER_READ), bytes_of(args[1], MP_BUFFER_READ), \
            bytes_of(args[2], MP_BUFFER_READ), bytes_of(args[3], MP_BUFFER_WRITE), WIDTH); \
        return mp_const_none; \
    } \
    static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(NAME##_obj, 4, 4, NAME)

// avN(buf, a, sums)
#define EXPORT_AV(NAME, WIDTH) \
    static mp_obj_t NAME(size_t count, const mp_obj_t *args) { \
        (void)count; \
        av(bytes_of(args[0], MP_BUFFER_READ), bytes_of(args[1], MP_BUFFER_READ), \
            bytes_of(args[2], MP_BUFFER_WRITE), WIDTH); \
        return mp_const_none; \
    } \
    static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(NAME##_obj, 3, 3, NAME)

EXPORT_QK(qk8, 8);
EXPORT_QK(qk64, 64);
EXPORT_AV(av8, 8);
EXPORT_AV(av64, 64);

mp_obj_t mpy_init(mp_obj_fun_bc_t *self, size_t n_args, size_t n_kw, mp_obj_t *args) {
    MP_DYNRUNTIME_INIT_ENTRY
    mp_store_global(MP_QSTR_qk8, MP_OBJ_FROM_PTR(&qk8_obj));
    mp_store_global(MP_QSTR_qk64, MP_OBJ_FROM_PTR(&qk64_obj));
    mp_store_global(MP_QSTR_av8, MP_OBJ_FROM_PTR(&av8_obj));
    mp_store_global(MP_QSTR_av64, MP_OBJ_FROM_PTR(&av64_obj));
    MP_DYNRUNTIME_INIT_EXIT
}
