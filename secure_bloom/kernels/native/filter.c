/* Insert hashes into a split-block Bloom filter and check them.  BloomFilter.md, "Technical
 * Approach": a hash picks a block by its upper half, and one bit in each of the block's eight
 * 32-bit words by its lower half. */
#include "filter.h"

#if defined(__x86_64__) || defined(_M_X64)
#define HAS_AVX2_KERNELS 1
#include <immintrin.h>
#ifdef _MSC_VER
#include <intrin.h>
#define TARGET_AVX2
#else
#define TARGET_AVX2 __attribute__((target("avx2,bmi2")))
#endif
#endif

static const uint32_t SALT[8] = {0x47b6137bU, 0x44974d91U, 0x8824ad5bU, 0xa2b7289dU,
                                 0x705495c7U, 0x2df1424bU, 0x9efc4947U, 0x5c6bfb31U};

#ifdef __GNUC__

/* Half of a block: two of these are what NEON and SSE2 hold in registers. */
typedef uint32_t Lanes __attribute__((vector_size(16)));

static inline Lanes mask_of(uint32_t x, size_t half) {
    Lanes salt, one = {1, 1, 1, 1};
    memcpy(&salt, SALT + 4 * half, sizeof salt);
    return one << ((salt * x) >> 27);
}

static void insert_all(uint8_t *blocks, uint64_t z, const uint64_t *hashes, size_t count) {
    for (size_t i = 0; i < 2 * count; i++) {
        uint8_t *half = blocks + block_offset(hashes[i / 2], z) + 16 * (i % 2);
        Lanes words;
        memcpy(&words, half, sizeof words);
        words |= mask_of((uint32_t)hashes[i / 2], i % 2);
        memcpy(half, &words, sizeof words);
    }
}

static void check_all(const uint8_t *blocks, uint64_t z, const uint64_t *hashes, size_t count,
                      uint8_t *found) {
    for (size_t i = 0; i < count; i++) {
        const uint8_t *block = blocks + block_offset(hashes[i], z);
        Lanes low, high;
        memcpy(&low, block, sizeof low);
        memcpy(&high, block + 16, sizeof high);
        low = (mask_of((uint32_t)hashes[i], 0) & ~low) | (mask_of((uint32_t)hashes[i], 1) & ~high);
        found[i] = (low[0] | low[1] | low[2] | low[3]) == 0;
    }
}

#define SLOWEST "any processor"

#else

/* Not tested: MSVC has no vectors of its own, and processors without AVX2 get numpy. */
#define insert_all insert_all_avx2
#define check_all check_all_avx2
#define SLOWEST NULL

#endif

#ifdef HAS_AVX2_KERNELS

TARGET_AVX2 static inline __m256i mask_avx2(uint32_t x) {
    __m256i salt = _mm256_loadu_si256((const __m256i *)(const void *)SALT);
    __m256i product = _mm256_mullo_epi32(_mm256_set1_epi32((int)x), salt);
    return _mm256_sllv_epi32(_mm256_set1_epi32(1), _mm256_srli_epi32(product, 27));
}

TARGET_AVX2 static void insert_all_avx2(uint8_t *blocks, uint64_t z, const uint64_t *hashes,
                                        size_t count) {
    for (size_t i = 0; i < count; i++) {
        __m256i *block = (__m256i *)(void *)(blocks + block_offset(hashes[i], z));
        __m256i mask = mask_avx2((uint32_t)hashes[i]);
        _mm256_storeu_si256(block, _mm256_or_si256(_mm256_loadu_si256(block), mask));
    }
}

TARGET_AVX2 static void check_all_avx2(const uint8_t *blocks, uint64_t z, const uint64_t *hashes,
                                       size_t count, uint8_t *found) {
    for (size_t i = 0; i < count; i++) {
        const void *block = blocks + block_offset(hashes[i], z);
        __m256i bits = _mm256_loadu_si256((const __m256i *)block);
        found[i] = (uint8_t)_mm256_testc_si256(bits, mask_avx2((uint32_t)hashes[i]));
    }
}

static bool has_avx2(void) {
#ifdef _MSC_VER
    /* Not tested: AVX2 and BMI2 of leaf 7, and that the system saves the registers. */
    int leaf[4];
    __cpuidex(leaf, 1, 0);
    if (!(leaf[2] & 1 << 27) || (_xgetbv(0) & 6) != 6) return false;
    __cpuidex(leaf, 7, 0);
    return (leaf[1] & 1 << 5) != 0 && (leaf[1] & 1 << 8) != 0;
#else
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
#endif
}

#else

/* Only named here: calls are compiled away. */
#define insert_all_avx2 insert_all
#define check_all_avx2 check_all
static bool has_avx2(void) { return false; }

#endif

const char *processor_name(void) { return has_avx2() ? "AVX2" : SLOWEST; }

bool may_have(const uint8_t *blocks, uint64_t z, uint64_t hash) {
    uint8_t found;
    check_all(blocks, z, &hash, 1, &found);
    return found;
}

void insert_into(uint8_t *blocks, uint64_t z, const uint64_t *hashes, size_t count) {
    (has_avx2() ? insert_all_avx2 : insert_all)(blocks, z, hashes, count);
}

/* insert_hashes(blocks, hashes) */
int64_t insert_hashes(Arguments *in) {
    if (!is_filter(size_of(in, 0))) return REFUSED;
    insert_into(bytes_of(in, 0), size_of(in, 0) / BLOCK_SIZE, numbers_of(in, 1), count_of(in, 1));
    return 0;
}

/* check_hashes(blocks, hashes, found): set each of `found` to 1 if the hash may be in the filter. */
int64_t check_hashes(Arguments *in) {
    size_t z = size_of(in, 0) / BLOCK_SIZE, count = count_of(in, 1);
    if (!is_filter(size_of(in, 0)) || size_of(in, 2) != count) return REFUSED;
    (has_avx2() ? check_all_avx2 : check_all)(bytes_of(in, 0), z, numbers_of(in, 1), count,
                                              bytes_of(in, 2));
    return 0;
}
