/* A plugin of qemu-system-arm: instructions by class, and what a flash cache would miss.

   A store to MARK writes a line with all counts so far to the file of the option out=. Counted apart: code
   below the option firmware_end=, that of its memcpy from copy_at= to copy_end=, and what lies above, in the
   heap (kernels, native code). Between two stores to PAUSE no instruction counts, between two to AWAY neither
   that nor what it reads: it stands for other hardware. With blocks=1 a mark also has the instructions since
   the last one, all of them and those above by the address of their block. A block of translated code counts
   as a whole when it is entered, so that a mark is right to within a block. Only what is used of the
   emulator's plugin interface, version 1, is declared here: Debian ships no header of it. */

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
typedef void (*exec_cb)(unsigned, void *);
typedef void (*mem_cb)(unsigned, uint32_t, uint64_t, void *);
extern void qemu_plugin_register_vcpu_tb_trans_cb(id_t64, tb_trans_cb);
extern void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, exec_cb, int, void *);
extern void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, mem_cb, int, int, void *);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
extern uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
extern struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
extern const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
extern size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
extern unsigned char qemu_plugin_mem_is_store(uint32_t);
API int qemu_plugin_version = 1;

#define MARK 0x40001008u
#define PAUSE 0x4000100Cu
#define AWAY 0x40001010u
#define FLASH_AT 0x21000000u
#define FLASH_END 0x22000000u

enum { OTHER, LOAD, STORE, MULTIPLE, WORDS, POP_PC, BRANCH, NOT_TAKEN, CALL, RETURN, CLASSES };
enum { FIRMWARE, KERNELS, COPIES, REGIONS };
static const char *const names[CLASSES] = {
    "other", "load", "store", "multiple", "words", "pop_pc", "branch", "not_taken", "call", "return"};
static const char *const regions[REGIONS] = {"firmware", "kernels", "copies"};

typedef struct block {
    uint32_t at, end;
    uint16_t n[CLASSES], all; /* by class; all instructions, each once */
    uint8_t region, conditional;
    uint64_t runs; /* since the last mark */
    struct block *next;
} block_t;

static uint64_t counts[REGIONS][CLASSES];
static uint64_t code_misses, data_misses, model_misses, model_reads;
static block_t *last, *kernel_blocks;
static uint64_t instructions;
static int by_block;
static uint32_t firmware_end, copy_at, copy_end;
static int paused, away;
static FILE *out;

/* 16 KiB, two ways, lines of 8 bytes, the older way replaced. */
#define SETS 1024
static uint32_t ways[SETS][2];

static int missed(uint32_t address)
{
    uint32_t line = (address >> 3) + 1, *way = ways[(address >> 3) & (SETS - 1)];
    if (way[0] == line)
        return 0;
    int found = way[1] == line;
    way[1] = way[0];
    way[0] = line;
    return !found;
}

static int bits(unsigned x)
{
    return __builtin_popcount(x);
}

/* Counts one instruction; returns 1 for a branch that may fall through. */
static int classify(const uint8_t *code, size_t size, uint16_t *n)
{
    unsigned w = code[0] | code[1] << 8;
    if (size == 2) {
        unsigned top = w >> 12;
        if (w >> 11 == 9 || top == 9 || top == 6 || top == 8 || top == 7) { /* LDR literal, sp, immediates */
            int load = w >> 11 == 9 || (w >> 11 & 1);
            n[load ? LOAD : STORE]++;
            return 0;
        }
        if (top == 5) { /* register offsets: STR STRH STRB LDRSB LDR LDRH LDRB LDRSH */
            n[(w >> 9 & 7) < 3 ? STORE : LOAD]++;
            return 0;
        }
        if (top == 12) { /* STM, LDM */
            n[MULTIPLE]++;
            n[WORDS] += bits(w & 0xFF);
            return 0;
        }
        if ((w & 0xF600) == 0xB400) { /* PUSH, POP */
            int pop = w >> 11 & 1, extra = w >> 8 & 1;
            n[WORDS] += bits(w & 0x1FF);
            n[pop && extra ? POP_PC : MULTIPLE]++;
            return 0;
        }
        if ((w & 0xF500) == 0xB100) { /* CBZ, CBNZ: a comparison and a branch on a Cortex-M0+ */
            n[OTHER]++;
            n[BRANCH]++;
            return 1;
        }
        if (top == 13 && (w >> 8 & 15) < 14) {
            n[BRANCH]++;
            return 1;
        }
        if (w >> 11 == 0x1C) {
            n[BRANCH]++;
            return 0;
        }
        if ((w & 0xFF00) == 0x4700) { /* BX, BLX */
            n[RETURN]++;
            return 0;
        }
        if ((w & 0xFF87) == 0x4687 || (w & 0xFF87) == 0x4487) { /* MOV pc, ADD pc */
            n[RETURN]++;
            return 0;
        }
        n[OTHER]++;
        return 0;
    }
    unsigned v = code[2] | code[3] << 8;
    if ((w & 0xF800) == 0xF000 && (v & 0x8000)) {
        if ((v & 0xD000) == 0xD000) { /* BL */
            n[CALL]++;
            return 0;
        }
        if ((v & 0xD000) == 0x9000) { /* B.W */
            n[BRANCH]++;
            return 0;
        }
        if ((v & 0xD000) == 0x8000 && (w >> 7 & 7) != 7) { /* B.W, conditional */
            n[BRANCH]++;
            return 1;
        }
        n[OTHER]++;
        return 0;
    }
    if ((w & 0xFE40) == 0xE800) { /* LDM, STM of any kind */
        if ((w & 0x0010) && (v & 0x8000))
            n[POP_PC]++;
        else
            n[MULTIPLE]++;
        n[WORDS] += bits(v);
        return 0;
    }
    if ((w & 0xFFF0) == 0xE8D0 && (v & 0xFFE0) == 0xF000) { /* TBB, TBH: a load and a jump */
        n[LOAD]++;
        n[RETURN]++;
        return 0;
    }
    if ((w & 0xFE40) == 0xE840) { /* two words */
        n[MULTIPLE]++;
        n[WORDS] += 2;
        return 0;
    }
    if ((w & 0xFE00) == 0xF800) {
        n[w & 0x10 ? LOAD : STORE]++;
        if ((w & 0x0070) == 0x0050 && v >> 12 == 15)
            n[RETURN]++;
        return 0;
    }
    n[OTHER]++;
    return 0;
}

static void entered(unsigned cpu, void *data)
{
    block_t *b = data;
    if (last && !paused && last->conditional && b->at == last->end) {
        counts[last->region][BRANCH]--;
        counts[last->region][NOT_TAKEN]++;
    }
    last = b;
    if (paused)
        return;
    b->runs++;
    instructions += b->all;
    uint64_t *sum = counts[b->region];
    for (int i = 0; i < CLASSES; i++)
        sum[i] += b->n[i];
    if (b->region != KERNELS)
        for (uint32_t at = b->at & ~7u; at < b->end; at += 8)
            code_misses += missed(at);
}

static void print_blocks(void)
{
    const char *between = "";
    fprintf(out, ", \"instructions\": %llu, \"blocks\": [", (unsigned long long)instructions);
    for (block_t *b = kernel_blocks; b; b = b->next) {
        if (b->runs) {
            fprintf(out, "%s[%lu, %llu]", between, (unsigned long)b->at, (unsigned long long)(b->runs * b->all));
            between = ", ";
        }
        b->runs = 0;
    }
    fprintf(out, "]");
    instructions = 0;
}

static void accessed(unsigned cpu, uint32_t info, uint64_t address, void *data)
{
    uint32_t at = address;
    if (qemu_plugin_mem_is_store(info)) {
        if (at == PAUSE)
            paused = !paused;
        if (at == AWAY)
            paused = away = !away;
        if (at != MARK || !out)
            return;
        fprintf(out, "{");
        for (int r = 0; r < REGIONS; r++) {
            fprintf(out, "\"%s\": {", regions[r]);
            for (int i = 0; i < CLASSES; i++)
                fprintf(out, "%s\"%s\": %llu", i ? ", " : "", names[i], (unsigned long long)counts[r][i]);
            fprintf(out, "}, ");
        }
        fprintf(out, "\"misses\": {\"code\": %llu, \"data\": %llu, \"model\": %llu}, \"model_reads\": %llu",
                (unsigned long long)code_misses, (unsigned long long)data_misses,
                (unsigned long long)model_misses, (unsigned long long)model_reads);
        if (by_block)
            print_blocks();
        fprintf(out, "}\n");
        fflush(out);
        return;
    }
    if (away)
        return;
    if (at < firmware_end)
        data_misses += missed(at);
    else if (at >= FLASH_AT && at < FLASH_END) {
        model_reads++;
        model_misses += missed(at);
    }
}

static void translated(id_t64 id, struct qemu_plugin_tb *tb)
{
    block_t *b = calloc(1, sizeof *b); /* as long as the emulator lives: the block may run at any time */
    size_t n = qemu_plugin_tb_n_insns(tb);
    b->at = b->end = (uint32_t)qemu_plugin_tb_vaddr(tb);
    b->region = b->at >= firmware_end ? KERNELS : FIRMWARE;
    if (b->at >= copy_at && b->at < copy_end)
        b->region = COPIES;
    b->all = n;
    if (b->region == KERNELS) {
        b->next = kernel_blocks;
        kernel_blocks = b;
    }
    for (size_t i = 0; i < n; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        size_t size = qemu_plugin_insn_size(insn);
        b->conditional = classify(qemu_plugin_insn_data(insn), size, b->n);
        b->end += size;
        qemu_plugin_register_vcpu_mem_cb(insn, accessed, 0, 3, NULL);
    }
    qemu_plugin_register_vcpu_tb_exec_cb(tb, entered, 0, b);
}

API int qemu_plugin_install(id_t64 id, const info_t *info, int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (!strncmp(argv[i], "out=", 4))
            out = fopen(argv[i] + 4, "w");
        else if (!strncmp(argv[i], "firmware_end=", 13))
            firmware_end = strtoul(argv[i] + 13, NULL, 0);
        else if (!strncmp(argv[i], "blocks=", 7))
            by_block = atoi(argv[i] + 7);
        else if (!strncmp(argv[i], "copy_at=", 8))
            copy_at = strtoul(argv[i] + 8, NULL, 0);
        else if (!strncmp(argv[i], "copy_end=", 9))
            copy_end = strtoul(argv[i] + 9, NULL, 0);
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    return out && firmware_end ? 0 : -1;
}
