/* Runs of the RLE / bit-packing hybrid.  Parquet, Encodings.md, "RLE". */
#ifndef SECURE_BLOOM_VALUES_H
#define SECURE_BLOOM_VALUES_H

#include "native.h"

/* How many of the first `values` levels of `width` bits, 1 to 8, are `wanted`; or DAMAGED. */
int64_t count_levels(const uint8_t *data, size_t size, unsigned width, uint64_t wanted,
                     uint64_t values);
/* The end of `count` BYTE_ARRAYs in PLAIN, each after its length of 4 bytes; or DAMAGED.  Unless it
 * is NULL, `offsets` gets where each starts, and the end of the last. */
int64_t walk_byte_arrays(const uint8_t *data, size_t size, uint64_t count, int64_t *offsets);

#endif
