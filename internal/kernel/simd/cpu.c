#include "cpu.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const char *missing[DL_LEVELS];
static int bf16_dot, bf16_dot_fast;

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

static uint64_t xcr0(void) {
	uint32_t a, d;
	__asm__ __volatile__("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
	return (uint64_t)d << 32 | a;
}

static int bit(uint32_t v, int i) { return (int)(v >> i & 1); }

// request_tiles asks Linux for tile state (feature 18 of XSAVE).
static const char *request_tiles(void) {
#if defined(__linux__)
	enum { REQ_XCOMP_PERM = 0x1023, XTILEDATA = 18 };
	if (syscall(SYS_arch_prctl, REQ_XCOMP_PERM, XTILEDATA) == 0) return NULL;
	return "the operating system refuses the use of AMX tiles (arch_prctl)";
#else
	return "AMX tiles are supported on Linux only";
#endif
}

static void detect(void) {
	uint32_t a, b, c, d, b7 = 0, c7, d7 = 0, a71 = 0;
	for (int i = DL_AVX2; i < DL_LEVELS; i++) missing[i] = "the processor has no AVX2 and FMA";
	if (!__get_cpuid(1, &a, &b, &c, &d)) return;
	int osxsave = bit(c, 27), avx = bit(c, 28), fma = bit(c, 12), f16c = bit(c, 29);
	if (__get_cpuid_count(7, 0, &a, &b7, &c7, &d7) && a >= 1) {
		uint32_t x, y, z;
		__get_cpuid_count(7, 1, &a71, &x, &y, &z);
	}
	if (!avx || !fma || !f16c || !bit(b7, 5)) return;
	uint64_t x = osxsave ? xcr0() : 0;
	if ((x & 0x6) != 0x6) {
		for (int i = DL_AVX2; i < DL_LEVELS; i++) missing[i] = "the operating system does not save AVX registers";
		return;
	}
	missing[DL_AVX2] = NULL;

	if (!bit(b7, 16) || !bit(b7, 17) || !bit(b7, 30) || !bit(b7, 31)) {
		missing[DL_AVX512] = missing[DL_AMX] = "the processor has no AVX-512 (F, DQ, BW, VL)";
		return;
	}
	if ((x & 0xe6) != 0xe6) {
		missing[DL_AVX512] = missing[DL_AMX] = "the operating system does not save AVX-512 registers";
		return;
	}
	missing[DL_AVX512] = NULL;
	bf16_dot = bit(a71, 5);
	__get_cpuid(0, &a, &b, &c, &d);
	bf16_dot_fast = bf16_dot && b == signature_AMD_ebx;

#if defined(DL_EMULATE_AMX)
	(void)d7, (void)request_tiles;
	missing[DL_AMX] = bf16_dot ? NULL : "the processor has no AVX-512 with bf16, which emulated AMX tiles need";
#else
	if (!bit(d7, 22) || !bit(d7, 24) || !bf16_dot)
		missing[DL_AMX] = "the processor has no AMX tiles with bf16 products";
	else if ((x >> 17 & 3) != 3)
		missing[DL_AMX] = "the operating system does not save AMX tiles";
	else
		missing[DL_AMX] = request_tiles();
#endif
}
#else
static void detect(void) {
	for (int i = DL_AVX2; i < DL_LEVELS; i++) missing[i] = "the processor is not an x86-64";
}
#endif

const char *dl_cpu_missing(int level) {
	pthread_once(&once, detect);
	if (level < 0 || level >= DL_LEVELS) return "there is no such level";
	return missing[level];
}

int dl_cpu_bf16_dot_fast(void) {
	pthread_once(&once, detect);
	return bf16_dot_fast;
}

int dl_cpu_vec_level(int level) { return level >= DL_AVX512 && dl_cpu_bf16_dot() ? DL_AVX512_BF16 : level; }

int dl_cpu_bf16_dot(void) {
	pthread_once(&once, detect);
	return bf16_dot;
}
