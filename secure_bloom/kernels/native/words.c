/* Words of texts that may be values of a column: letters and digits count, marks and case do not.
 *
 * A text is folded: ASCII letters become small, characters of UTF-8 stay, all other bytes are gaps.
 * What is between two gaps is an atom.  Some atoms in a row, joined, are a word: a value in groups
 * of four or with other marks is the same word.  A word is asked of a filter if a value has its
 * length. */
#include "filter.h"
#include "xxh64.h"

/* Longer words are not asked, and atoms with more bytes between them are not joined. */
#define LONGEST 255
#define WIDEST_GAP 24
/* The bytes of a table with a bit for each of 65,536 heads. */
#define HEADS 8192
/* What is known of a folded value. */
enum { HAS_LETTER = 1, HAS_DIGIT = 2, HAS_AT = 4, HAS_PARTS = 8, IS_EXAMPLE = 16 };
/* The numbers of a hit: its hash, where it starts in the folded text, its length, and its place. */
enum { HASH, START, LENGTH, PLACE, HIT };
/* The numbers that find_words returns: bytes done, words asked. */
enum { DONE, ASKED };

static inline bool is_letter(uint8_t byte) { return (uint8_t)((byte | 0x20) - 'a') < 26; }
static inline bool is_digit(uint8_t byte) { return (uint8_t)(byte - '0') < 10; }
static inline bool continues(uint8_t byte) { return (byte & 0xC0) == 0x80; }

/* Whether a character is a mark or a space: U+0080 to U+00BF, U+2000 to U+206F, U+3000 to U+303F,
 * and of U+FEC0 to U+FEFF and U+FFC0 to U+FFFF those that no word has. */
static bool is_mark(const uint8_t *at) {
    if (*at == 0xC2) return true;
    if (*at == 0xE2) return at[1] == 0x80 || at[1] == 0x81;
    if (*at == 0xE3) return at[1] == 0x80;
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
    *read = 1;
    if (is_digit(*at) || is_letter(*at)) {
        *folded = is_digit(*at) ? *at : *at | 0x20;
        return 1;
    }
    if (*at < 0xC2) return 0;
    size_t size = character(at, left);
    if (size == 0) return 0;
    memcpy(folded, at, size);
    /* Capitals of Latin-1: U+00C0 to U+00DE, without the sign of multiplication. */
    if (at[0] == 0xC3 && at[1] < 0x9F && at[1] != 0x97) folded[1] = at[1] | 0x20;
    *read = size;
    return size;
}

static void reverse_bytes(uint8_t *start, uint8_t *end) {
    while (start < --end) {
        uint8_t kept = *start;
        *start++ = *end;
        *end = kept;
    }
}

/* Reverse the order of the characters of a folded value. */
static void reverse(uint8_t *word, size_t size) {
    reverse_bytes(word, word + size);
    for (size_t i = 0; i < size;) {
        size_t start = i;
        while (i < size && continues(word[i])) i++;
        i += i < size;
        reverse_bytes(word + start, word + i);
    }
}

static bool ends_with(const uint8_t *word, size_t size, const char *end) {
    size_t length = strlen(end);
    return size >= length && memcmp(word + size - length, end, length) == 0;
}

/* Whether a folded address is one of the domains that documents use.  RFC 2606. */
static bool is_example(const uint8_t *word, size_t size) {
    static const char *const ends[] = {"examplecom", "exampleorg", "examplenet", "exampleedu",
                                       "test", "invalid", "example", "localhost"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (ends_with(word, size, ends[i])) return true;
    return false;
}

/* fold_values(offsets, prefix, data, backwards, folded, ends, hashes, kinds): fold each
 * data[offsets[i] + prefix:offsets[i + 1]]; the folded values follow each other, ends[i] is the end
 * of value i.  DAMAGED for offsets as hash_spans does. */
int64_t fold_values(Arguments *in) {
    const int64_t *offsets = numbers_of(in, 0);
    int64_t size = (int64_t)size_of(in, 1), prefix = in->numbers[0];
    uint8_t *folded = bytes_of(in, 2), *kinds = bytes_of(in, 5);
    int64_t *ends = numbers_of(in, 3);
    uint64_t *hashes = numbers_of(in, 4);
    size_t count = count_of(in, 3), done = 0;
    if (prefix < 0 || count_of(in, 0) != count + 1 || count_of(in, 4) != count ||
        size_of(in, 5) != count)
        return REFUSED;
    if (offsets[0] < 0) return DAMAGED;
    for (size_t i = 0; i < count; i++) {
        int64_t start = offsets[i], end = offsets[i + 1];
        if (end > size || end < start || end - start < prefix) return DAMAGED;
        const uint8_t *at = bytes_of(in, 1) + start + prefix;
        size_t left = (size_t)(end - start - prefix), read, begun = done;
        uint8_t kind = 0;
        bool is_after_gap = false;
        if (left > size_of(in, 2) - done) return REFUSED;
        for (; left > 0; at += read, left -= read) {
            size_t written = fold_one(at, left, folded + done, &read);
            if (*at == '@') kind |= HAS_AT;
            if (written == 0) {
                is_after_gap = done > begun;
                continue;
            }
            if (is_after_gap) kind |= HAS_PARTS;
            kind |= is_digit(*at) ? HAS_DIGIT : HAS_LETTER;
            is_after_gap = false;
            done += written;
        }
        if (kind & HAS_AT && is_example(folded + begun, done - begun)) kind |= IS_EXAMPLE;
        if (in->numbers[1]) reverse(folded + begun, done - begun);
        hashes[i] = hash_bytes(folded + begun, done - begun);
        ends[i] = (int64_t)done;
        kinds[i] = kind;
    }
    return (int64_t)done;
}

/* An atom: where it starts in the folded text and in the text, and whether it can be joined to the
 * atom before it. */
typedef struct {
    uint32_t start, place_and_join;
} Atom;

#define JOINED UINT32_C(0x80000000)

/* The byte that each ASCII letter or digit is folded to, and 0 for all other bytes. */
static void list_small(uint8_t small[256]) {
    memset(small, 0, 256);
    for (uint8_t byte = '0'; byte <= '9'; byte++) small[byte] = byte;
    for (uint8_t byte = 'a'; byte <= 'z'; byte++) small[byte] = small[byte - 0x20] = byte;
}

/* Fold a text and list its atoms, with one that starts and ends at the end.  An atom starts after a
 * gap, and after an escape such as \n.  The loop has few branches: an atom is some bytes long, so a
 * processor would guess half of its ends wrong. */
static size_t list_atoms(const uint8_t *text, size_t size, uint8_t *folded, Atom *atoms,
                         size_t *folded_size) {
    uint8_t small[256];
    list_small(small);
    size_t count = 0, done = 0, gap = WIDEST_GAP + 1, escaped = SIZE_MAX;
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = text[i];
        size_t read = 1, kept = small[byte] != 0;
        uint32_t joined = gap <= WIDEST_GAP ? JOINED : 0;
        folded[done] = small[byte];
        if (byte >= 0xC2) kept = fold_one(text + i, size - i, folded + done, &read);
        if (byte == '\\' && i + 2 < size && is_letter(text[i + 1])) escaped = i + 2;
        bool starts = kept != 0 && (gap != 0 || i == escaped);
        atoms[count] = (Atom){(uint32_t)done, (uint32_t)i | joined};
        count += starts;
        gap = kept != 0 ? 0 : gap + 1;
        done += kept;
        i += read - 1;
    }
    *folded_size = done;
    atoms[count] = (Atom){(uint32_t)done, (uint32_t)size};
    return count;
}

/* Words that wait until their blocks of the filter are in the cache. */
#define WAITING 32
typedef struct {
    int64_t words[WAITING][HIT];
    size_t count;
} Waiting;

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

static inline void prefetch(const uint8_t *at) {
#ifdef __GNUC__
    __builtin_prefetch(at);
#else
    (void)at;
#endif
}

/* The longest length that is wanted. */
static size_t longest(const uint8_t lengths[32]) {
    size_t length = LONGEST;
    while (length > 0 && !(lengths[length / 8] >> (length % 8) & 1)) length--;
    return length;
}

/* The bit of the first four bytes of a word in a table of 65,536. */
static inline bool has_head(const uint8_t *heads, const uint8_t *word) {
    uint32_t bit = read4(word) * 0x9E3779B1u >> 16;
    return heads[bit / 8] >> (bit % 8) & 1;
}

/* find_words(text, is_last, lengths, heads, blocks, folded, atoms, hits, answers): ask the words of
 * a text.
 *
 * `lengths` has a bit for each length from 0 to 255, and `heads` for the first four bytes of words:
 * shorter words are asked with what follows them.  `folded` is four bytes longer than the text,
 * `atoms` has a number more.  Returns the hits; `answers` gets how many bytes are done and how many
 * words were asked.  Without `is_last` the words that may go on after the text are not done, nor
 * are those after the last hit that has room. */
int64_t find_words(Arguments *in) {
    size_t size = size_of(in, 0), room = count_of(in, 6) / HIT, folded_size, found = 0;
    const uint8_t *lengths = bytes_of(in, 1), *heads = bytes_of(in, 2), *blocks = bytes_of(in, 3);
    uint8_t *folded = bytes_of(in, 4);
    Atom *atoms = numbers_of(in, 5);
    int64_t *hits = numbers_of(in, 6), *answers = numbers_of(in, 7);
    if (size >= JOINED || size_of(in, 1) != 32 || size_of(in, 2) != HEADS ||
        !is_filter(size_of(in, 3)) || room < LONGEST + WAITING || size_of(in, 4) < size + 4 ||
        count_of(in, 5) < size + 1 || count_of(in, 7) < 2)
        return REFUSED;
    uint64_t z = size_of(in, 3) / BLOCK_SIZE, asked = 0;
    size_t count = list_atoms(bytes_of(in, 0), size, folded, atoms, &folded_size), i = 0;
    size_t most = longest(lengths);
    memset(folded + folded_size, 0, 4);
    Waiting waiting = {.count = 0};
    for (; i < count; i++) {
        size_t start = atoms[i].start;
        if (!in->numbers[0] && folded_size - start <= LONGEST) break;
        if (room - found < LONGEST + WAITING) break;
        if (!has_head(heads, folded + start)) continue;
        for (size_t j = i; j < count && (j == i || atoms[j].place_and_join & JOINED); j++) {
            size_t length = atoms[j + 1].start - start;
            if (length > most) break;
            if (!(lengths[length / 8] >> (length % 8) & 1)) continue;
            uint64_t hash = hash_bytes(folded + start, length);
            prefetch(blocks + block_offset(hash, z));
            int64_t *word = waiting.words[waiting.count++];
            word[HASH] = (int64_t)hash;
            word[START] = (int64_t)start;
            word[LENGTH] = (int64_t)length;
            word[PLACE] = (int64_t)(atoms[i].place_and_join & ~JOINED);
            asked++;
            if (waiting.count == WAITING) found += ask_waiting(&waiting, blocks, z, hits + HIT * found);
        }
    }
    found += ask_waiting(&waiting, blocks, z, hits + HIT * found);
    answers[DONE] = i < count ? (int64_t)(atoms[i].place_and_join & ~JOINED) : (int64_t)size;
    answers[ASKED] = (int64_t)asked;
    return (int64_t)found;
}

static inline bool is_encoded(uint8_t byte) {
    return is_letter(byte) || is_digit(byte) || byte == '+' || byte == '/' || byte == '-' ||
           byte == '_';
}

/* find_runs(text, least, spans): the start and end of each run of at least `least` characters of
 * Base64, which hexadecimal digits are too.  Returns how many, at most those that `spans` holds. */
int64_t find_runs(Arguments *in) {
    const uint8_t *text = bytes_of(in, 0);
    int64_t *spans = numbers_of(in, 1), least = in->numbers[0];
    size_t size = size_of(in, 0), room = count_of(in, 1) / 2, found = 0;
    if (least < 1) return REFUSED;
    for (size_t i = 0; i < size && found < room;) {
        /* A run of this length has the byte that is `least` - 1 after its first one. */
        size_t probe = i + (size_t)least - 1;
        if (probe >= size) break;
        if (!is_encoded(text[probe])) {
            i = probe + 1;
            continue;
        }
        size_t start = probe, end = probe + 1;
        while (start > i && is_encoded(text[start - 1])) start--;
        while (end < size && is_encoded(text[end])) end++;
        if (end - start >= (size_t)least) {
            spans[2 * found] = (int64_t)start;
            spans[2 * found++ + 1] = (int64_t)end;
        }
        i = end + 1;
    }
    return (int64_t)found;
}
