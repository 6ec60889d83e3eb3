/* Words of texts that may be values of a column: letters and digits count, marks and case do not.
 *
 * A text is folded: ASCII letters become small, characters of UTF-8 stay, all other bytes are gaps.
 * What is between two gaps is an atom.  Some atoms in a row, joined, are a word: a value in groups
 * of four or with other marks is the same word. */
#include "filter.h"
#include "xxh64.h"
#ifdef _MSC_VER
#include <intrin.h>
#define __builtin_ctzll _tzcnt_u64
#define __builtin_bswap64 _byteswap_uint64
#define __builtin_prefetch(at) ((void)(at))
#endif

/* Longer words are not asked, and atoms with more bytes between them are not joined. */
#define LONGEST 255
#define WIDEST_GAP 24
/* The bytes of a table with a bit for each of 65,536 heads or tails. */
#define HEADS 8192
/* The lowest byte of a hash is left free for what is known of the word. */
#define HASH_MASK (~UINT64_C(0xFF))
/* What is known of a folded value. */
enum { HAS_LETTER = 1, HAS_DIGIT = 2, HAS_AT = 4, HAS_PARTS = 8, IS_EXAMPLE = 16 };
/* The numbers of a hit: its hash, where it starts in the folded text, its length, and its place. */
enum { HASH, START, LENGTH, PLACE, HIT };

static inline bool is_letter(uint8_t byte) { return (uint8_t)((byte | 0x20) - 'a') < 26; }
static inline bool is_digit(uint8_t byte) { return (uint8_t)(byte - '0') < 10; }
static inline bool continues(uint8_t byte) { return (byte & 0xC0) == 0x80; }

/* Whether a character is a mark or a space: U+0080 to U+00BF, U+2000 to U+206F, U+3000 to U+303F,
 * and of U+FEC0 to U+FEFF and U+FFC0 to U+FFFF those that no word has. */
static bool is_mark(const uint8_t *at) {
    if (*at == 0xC2 || (*at == 0xE3 && at[1] == 0x80)) return true;
    if (*at == 0xE2) return at[1] == 0x80 || at[1] == 0x81;
    return *at == 0xEF && ((at[1] == 0xBB && at[2] == 0xBF) || (at[1] == 0xBF && at[2] >= 0xB0));
}

/* The bytes of the character of UTF-8 that starts at `at`, 2 to 4; 0 if none does. */
static size_t character(const uint8_t *at, size_t left) {
    size_t size = *at < 0xC2 ? 0 : *at < 0xE0 ? 2 : *at < 0xF0 ? 3 : *at < 0xF5 ? 4 : 0;
    if (size == 0 || size > left) return 0;
    for (size_t i = 1; i < size; i++)
        if (!continues(at[i])) return 0;
    return is_mark(at) ? 0 : size;
}

/* Fold what starts at `at`: the bytes written, 0 for a gap.  `read` gets the bytes read. */
static inline size_t fold_one(const uint8_t *at, size_t left, uint8_t *folded, size_t *read) {
    size_t size = character(at, left);
    *read = size > 0 ? size : 1;
    *folded = is_digit(*at) ? *at : *at | 0x20;
    if (size == 0) return is_digit(*at) || is_letter(*at);
    memcpy(folded, at, size);
    /* Capitals of Latin-1: U+00C0 to U+00DE, without the sign of multiplication. */
    if (at[0] == 0xC3 && at[1] < 0x9F && at[1] != 0x97) folded[1] = at[1] | 0x20;
    return size;
}

/* Whether a folded address is one of the domains that documents use.  RFC 2606. */
static bool is_example(const uint8_t *word, size_t size) {
    static const char *const ends[] = {"examplecom", "exampleorg", "examplenet", "exampleedu",
                                       "test", "invalid", "example", "localhost"};
    for (size_t i = 0, length; i < sizeof ends / sizeof *ends; i++)
        if ((length = strlen(ends[i])) <= size && !memcmp(word + size - length, ends[i], length))
            return true;
    return false;
}

/* Turn a word round, unless it is a number: digits backwards are another number.  A word and the
 * same one backwards have one hash, that of the one which comes first. */
static bool turn(const uint8_t *word, size_t size, uint8_t turned[LONGEST]) {
    size_t digits = 0, i = 0, n = 1;
    while (digits < size && is_digit(word[digits])) digits++;
    if (digits == size || size > LONGEST) return false;
    for (uint64_t some; i + 8 <= size && !((some = read8(word + i)) & UINT64_C(0x8080808080808080)); i += 8) {
        some = __builtin_bswap64(some);
        memcpy(turned + size - i - 8, &some, 8);
    }
    for (; i < size; i += n, n = 1) {
        while (i + n < size && continues(word[i + n])) n++;
        memcpy(turned + size - i - n, word + i, n);
    }
    return true;
}

/* The bits of a word in a table of 65,536 of heads, and in one of tails that follows it: of the
 * first four bytes, and of the last four with the length. */
static inline uint32_t head_bit(const uint8_t *word) { return read4(word) * 0x9E3779B1u >> 16; }
static inline uint32_t tail_bit(const uint8_t *end, size_t size) {
    return (read4(end - 4) + (uint32_t)size * 0x85EBCA6Bu) * 0x9E3779B1u >> 16;
}
static inline bool has_bit(const uint8_t *bits, uint32_t bit) { return bits[bit / 8] >> (bit % 8) & 1; }

static void add_shape(uint8_t *shapes, const uint8_t *word, size_t size) {
    if (size < 4) return;
    uint32_t head = head_bit(word), tail = tail_bit(word + size, size);
    shapes[head / 8] |= (uint8_t)(1 << head % 8);
    shapes[HEADS + tail / 8] |= (uint8_t)(1 << tail % 8);
}

/* The byte that each ASCII letter or digit is folded to, and 0 for all other bytes. */
static void list_small(uint8_t small[256]) {
    memset(small, 0, 256);
    for (uint8_t byte = '0'; byte <= '9'; byte++) small[byte] = byte;
    for (uint8_t byte = 'a'; byte <= 'z'; byte++) small[byte] = small[byte - 0x20] = byte;
}

/* fold_values(offsets, data, folded, ends, hashes, kinds, shapes): fold each value, the way round
 * that comes first; ends[i] is the end of folded value i, `shapes` gets the bits of heads and
 * tails.  DAMAGED for offsets as hash_spans does. */
int64_t fold_values(Arguments *in) {
    const int64_t *offsets = numbers_of(in, 0);
    int64_t size = (int64_t)size_of(in, 1);
    uint8_t *folded = bytes_of(in, 2), *kinds = bytes_of(in, 5), small[256], turned[LONGEST];
    int64_t *ends = numbers_of(in, 3);
    uint64_t *hashes = numbers_of(in, 4);
    size_t count = count_of(in, 3), done = 0;
    if (count_of(in, 0) != count + 1 || count_of(in, 4) != count || size_of(in, 5) != count ||
        size_of(in, 6) != 2 * HEADS)
        return REFUSED;
    if (offsets[0] < 0) return DAMAGED;
    list_small(small);
    for (size_t i = 0; i < count; i++) {
        int64_t start = offsets[i], end = offsets[i + 1];
        if (end > size || end < start) return DAMAGED;
        const uint8_t *at = bytes_of(in, 1) + start;
        size_t left = (size_t)(end - start), read, begun = done;
        uint8_t kind = 0, gap = 0;
        if (left > size_of(in, 2) - done) return REFUSED;
        for (; left > 0; at += read, left -= read) {
            size_t written = small[*at] != 0;
            folded[done] = small[*at];
            read = 1;
            if (*at >= 0xC2) written = fold_one(at, left, folded + done, &read);
            if (*at == '@') kind |= HAS_AT;
            /* A gap counts once something follows it. */
            if (written == 0) gap = done > begun ? HAS_PARTS : 0;
            else kind |= gap | (is_digit(*at) ? HAS_DIGIT : HAS_LETTER);
            done += written;
        }
        uint8_t *word = folded + begun;
        size_t length = done - begun;
        if (kind & HAS_AT && is_example(word, length)) kind |= IS_EXAMPLE;
        add_shape(bytes_of(in, 6), word, length);
        if (turn(word, length, turned)) {
            add_shape(bytes_of(in, 6), turned, length);
            if (memcmp(turned, word, length) < 0) memcpy(word, turned, length);
        }
        hashes[i] = hash_bytes(word, length) & HASH_MASK;
        ends[i] = (int64_t)done;
        kinds[i] = kind;
    }
    return (int64_t)done;
}

/* An atom: where it starts in the folded text and in the text, and whether it can be joined to the
 * atom before it. */
typedef struct { uint32_t start, place_and_join; } Atom;
#define JOINED UINT32_C(0x80000000)
static inline int64_t place_of(Atom atom) { return atom.place_and_join & ~JOINED; }

/* How far a text is folded: its atoms, and where the last kept byte and the last escape ended. */
typedef struct {
    uint8_t *folded;
    Atom *atoms;
    size_t done, count, end, escaped;
} Folding;

/* Take `size` folded bytes from `at` on, which are already there. */
static inline void take_run(Folding *to, size_t at, size_t size) {
    uint32_t joined = to->count > 0 && at - to->end <= WIDEST_GAP ? JOINED : 0;
    to->atoms[to->count] = (Atom){(uint32_t)to->done, (uint32_t)at | joined};
    to->count += to->done == 0 || at != to->end || at == to->escaped;
    to->done += size;
    to->end = at + size;
}

#define STEP 64 /* bytes of a text */
/* Fold STEP bytes of ASCII, without a branch for each: false if others, or escapes, are there. */
static bool fold_step(const uint8_t *text, size_t at, Folding *to) {
    uint8_t low[STEP + 16] = {0}, kept[STEP], others = 0;
    for (size_t i = 0; i < STEP; i++) {
        uint8_t byte = text[at + i], small = byte | 0x20;
        bool letter = (uint8_t)(small - 'a') < 26;
        low[i] = letter ? small : byte;
        kept[i] = letter | ((uint8_t)(byte - '0') < 10);
        others |= (byte & 0x80) | (byte == '\\');
    }
    if (others) return false;
    uint64_t mask = 0;
    for (size_t i = 0; i < STEP; i += 8)
        mask |= (read8(kept + i) * UINT64_C(0x0102040810204080) >> 56) << i;
    while (mask != 0) {
        size_t start = (size_t)__builtin_ctzll(mask);
        uint64_t after = mask + (UINT64_C(1) << start);
        size_t end = after == 0 ? STEP : (size_t)__builtin_ctzll(after);
        for (size_t i = start; i < end; i += 16) memcpy(to->folded + to->done + i - start, low + i, 16);
        take_run(to, at + start, end - start);
        mask &= after;
    }
    return true;
}

/* Fold a text and list its atoms, with one that starts and ends at the end.  An atom starts after a
 * gap, and after an escape such as \n. */
static Folding list_atoms(const uint8_t *text, size_t size, uint8_t *folded, Atom *atoms) {
    Folding to = {folded, atoms, 0, 0, 0, SIZE_MAX};
    for (size_t i = 0, read; i < size;) {
        size_t stop = i + STEP;
        if (stop <= size && fold_step(text, i, &to)) i = stop;
        for (; i < size && i < stop; i += read) {
            size_t written = fold_one(text + i, size - i, folded + to.done, &read);
            if (text[i] == '\\' && i + 2 < size && is_letter(text[i + 1])) to.escaped = i + 2;
            if (written > 0) take_run(&to, i, written);
        }
    }
    atoms[to.count] = (Atom){(uint32_t)to.done, (uint32_t)size};
    return to;
}

/* Words that wait until their blocks of the filter are in the cache. */
#define WAITING 32
typedef struct { int64_t words[WAITING][HIT]; size_t count; } Waiting;

/* Whether a filter may have a hash; most hashes are ruled out by the first or second word. */
static inline bool passes(const uint8_t *block, uint32_t x) {
    static const uint32_t salt[8] = {0x47b6137bU, 0x44974d91U, 0x8824ad5bU, 0xa2b7289dU,
                                     0x705495c7U, 0x2df1424bU, 0x9efc4947U, 0x5c6bfb31U};
    for (size_t i = 0; i < 8; i++)
        if (!(read4(block + 4 * i) >> (x * salt[i] >> 27) & 1)) return false;
    return true;
}

static size_t ask_waiting(Waiting *waiting, const uint8_t *blocks, uint64_t z, int64_t *hits) {
    size_t found = 0;
    for (size_t i = 0; i < waiting->count; i++) {
        uint64_t hash = (uint64_t)waiting->words[i][HASH];
        if (!passes(blocks + block_offset(hash, z), (uint32_t)hash)) continue;
        memcpy(hits + HIT * found++, waiting->words[i], sizeof waiting->words[i]);
    }
    waiting->count = 0;
    return found;
}

/* find_words(text, is_last, longest, shapes, blocks, folded, atoms, hits, answers): ask the words of
 * a text.  Where zeros begin a number, the words without them are asked too.
 *
 * `longest` is the length of the longest word, `shapes` has their heads and tails (fold_values).
 * `folded` is 64 bytes longer than the text, `atoms` has a number more.  Returns the hits; `answers`
 * gets how many bytes are done and how many words were asked.  Without `is_last` the words that may
 * go on after the text are not done, nor are those after the last hit that has room. */
int64_t find_words(Arguments *in) {
    size_t size = size_of(in, 0), room = count_of(in, 5) / HIT, found = 0;
    const uint8_t *heads = bytes_of(in, 1), *tails = heads + HEADS, *blocks = bytes_of(in, 2);
    uint8_t *folded = bytes_of(in, 3), turned[LONGEST];
    Atom *atoms = numbers_of(in, 4);
    int64_t *hits = numbers_of(in, 5), *answers = numbers_of(in, 6), most = in->numbers[1];
    if (size >= JOINED || size_of(in, 1) != 2 * HEADS || !is_filter(size_of(in, 2)) || most < 0 ||
        most > LONGEST || room < LONGEST + WAITING || size_of(in, 3) < size + STEP ||
        count_of(in, 4) < size + 1 || count_of(in, 6) < 2)
        return REFUSED;
    uint64_t z = size_of(in, 2) / BLOCK_SIZE, asked = 0;
    Folding text = list_atoms(bytes_of(in, 0), size, folded, atoms);
    size_t count = text.count, i = 0;
    memset(folded + text.done, 0, 4);
    Waiting waiting = {.count = 0};
    for (size_t zeros = 0, next; i < count; zeros = next, i += zeros == 0) {
        size_t start = atoms[i].start + zeros, stop = zeros ? start : atoms[i + 1].start;
        for (next = 0; folded[start + next] == '0' && start + next < stop;) next++;
        if (next > 0 && (start + next >= stop || !is_digit(folded[start + next]))) next = 0;
        if (!in->numbers[0] && text.done - start <= LONGEST) break;
        if (room - found < LONGEST + WAITING) break;
        if (!has_bit(heads, head_bit(folded + start))) continue;
        for (size_t j = i; j < count && (j == i || atoms[j].place_and_join & JOINED); j++) {
            size_t length = atoms[j + 1].start - start;
            const uint8_t *first = folded + start, *end = first + length;
            if (length > (size_t)most) break;
            if (length < 4 || !has_bit(tails, tail_bit(end, length))) continue;
            if (((*first | end[-1]) & 0x80 || *first >= end[-1]) && turn(first, length, turned) &&
                memcmp(turned, first, length) < 0)
                first = turned;
            uint64_t hash = hash_bytes(first, length) & HASH_MASK;
            __builtin_prefetch(blocks + block_offset(hash, z));
            int64_t word[HIT] = {(int64_t)hash, (int64_t)start, (int64_t)length, place_of(atoms[i]) + (int64_t)zeros};
            memcpy(waiting.words[waiting.count++], word, sizeof word);
            asked++;
            if (waiting.count == WAITING) found += ask_waiting(&waiting, blocks, z, hits + HIT * found);
        }
    }
    found += ask_waiting(&waiting, blocks, z, hits + HIT * found);
    answers[0] = i < count ? place_of(atoms[i]) : (int64_t)size;
    answers[1] = (int64_t)asked;
    return (int64_t)found;
}

/* find_runs(text, alphabet, least, spans): the start and end of each run of at least `least` bytes of
 * an alphabet, which has a 1 for each.  Returns how many, at most those that `spans` holds. */
int64_t find_runs(Arguments *in) {
    const uint8_t *text = bytes_of(in, 0), *wanted = bytes_of(in, 1);
    int64_t *spans = numbers_of(in, 2), least = in->numbers[0];
    size_t size = size_of(in, 0), room = count_of(in, 2) / 2, found = 0;
    if (least < 1 || size_of(in, 1) != 256) return REFUSED;
    /* A run of this length has the byte that is `least` - 1 after its first one. */
    for (size_t i = 0, probe; found < room && (probe = i + (size_t)least - 1) < size;) {
        size_t start = probe + 1, end = probe;
        while (start > i && wanted[text[start - 1]]) start--;
        if (start != i) { i = start; continue; }
        while (end < size && wanted[text[end]]) end++;
        spans[2 * found] = (int64_t)i;
        spans[2 * found++ + 1] = (int64_t)end;
        i = end + 1;
    }
    return (int64_t)found;
}
