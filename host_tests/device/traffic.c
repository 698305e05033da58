/* A plugin of qemu-system-arm: bytes loaded and stored between two marks, by the address of their word.

   A store to MARK writes all words that were touched since the last one to the file of the option out=, a line
   each: "address loaded stored", and a line "mark" behind them. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))
typedef uint64_t id_t64;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef struct { const char *target_name; } info_t;
typedef void (*tb_trans_cb)(id_t64, struct qemu_plugin_tb *);
typedef void (*mem_cb)(unsigned, uint32_t, uint64_t, void *);
extern void qemu_plugin_register_vcpu_tb_trans_cb(id_t64, tb_trans_cb);
extern void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, mem_cb, int, int, void *);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
extern struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
extern unsigned char qemu_plugin_mem_is_store(uint32_t);
extern unsigned qemu_plugin_mem_size_shift(uint32_t);
API int qemu_plugin_version = 1;

#define MARK 0x40001008u

/* What stands for RAM and for flash: 4 MiB each. */
#define PART 0x400000u
static const uint32_t parts[] = {0, 0x20000000u, 0x21000000u};
#define PARTS (sizeof parts / sizeof *parts)

static uint32_t touched[PARTS][2][PART / 4]; /* by word */
static FILE *out;

static void accessed(unsigned cpu, uint32_t info, uint64_t address, void *data)
{
    uint32_t at = address;
    int store = qemu_plugin_mem_is_store(info);
    for (size_t p = 0; p < PARTS; p++)
        if (at - parts[p] < PART)
            touched[p][store][(at - parts[p]) >> 2] += 1u << qemu_plugin_mem_size_shift(info);
    if (!store || at != MARK)
        return;
    for (size_t p = 0; p < PARTS; p++)
        for (uint32_t i = 0; i < PART / 4; i++) {
            uint32_t loaded = touched[p][0][i], stored = touched[p][1][i];
            if (loaded || stored)
                fprintf(out, "%lu %lu %lu\n", (unsigned long)(parts[p] + 4 * i), (unsigned long)loaded,
                        (unsigned long)stored);
        }
    fprintf(out, "mark\n");
    fflush(out);
    memset(touched, 0, sizeof touched);
}

static void translated(id_t64 id, struct qemu_plugin_tb *tb)
{
    size_t n = qemu_plugin_tb_n_insns(tb);
    for (size_t i = 0; i < n; i++)
        qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(tb, i), accessed, 0, 3, NULL);
}

API int qemu_plugin_install(id_t64 id, const info_t *info, int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (!strncmp(argv[i], "out=", 4))
            out = fopen(argv[i] + 4, "w");
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    return out ? 0 : -1;
}
