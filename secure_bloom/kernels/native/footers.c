/* Scan a FileMetaData once: its row groups as numbers, and the offset of each column chunk.  Then
 * read some fields of many chunks, and walk the page headers of one.  parquet.thrift, FileMetaData,
 * RowGroup and PageHeader. */
#include "compact.h"

/* Field ids of FileMetaData and RowGroup; tests/kernels compare them with thrift/parquet.thrift. */
enum { VERSION = 1, SCHEMA = 2, NUM_ROWS = 3, ROW_GROUPS = 4 };
enum { COLUMNS = 1, ORDINAL = 7 };

/* The numbers of a scan, in their order: `rest` is where the row groups end.  After them come the
 * numbers of each row group, and then the offset of each column chunk, row group by row group. */
typedef struct {
    int64_t length, schema_start, schema_end, rest;
    int64_t group_count, column_count, version, num_rows;
} Head;

typedef struct {
    int64_t num_rows, total_byte_size, ordinal, file_offset, total_compressed_size;
} Group;

#define HEAD_NUMBERS ((int64_t)(sizeof(Head) / 8))
#define GROUP_NUMBERS ((int64_t)(sizeof(Group) / 8))

/* Where the offsets of a row group's chunks go, how many there are (ABSENT before the first row
 * group), and the room that is left. */
typedef struct {
    int64_t *offsets, columns, room;
} Chunks;

/* Enter the offset of each structure of the list at `at`; each row group has as many of them. */
static int64_t scan_chunks(Bytes in, int64_t at, Chunks *chunks) {
    int kind;
    int64_t count;
    at = read_list_header(in, at, &kind, &count);
    if (at >= 0 && chunks->columns == ABSENT) chunks->columns = count;
    if (at < 0 || kind != WIRE_STRUCT || count != chunks->columns || count > chunks->room)
        return NOWHERE;
    for (int64_t i = 0; at >= 0 && i < count; i++) {
        chunks->offsets[i] = at;
        at = end_of_structures(in, at, 1);
    }
    return at;
}

/* The place of a number of a RowGroup; NULL for a field that is passed over. */
static int64_t *number_of(Group *group, Field field) {
    int64_t *const places[] = {NULL, NULL, &group->total_byte_size, &group->num_rows, NULL,
                               &group->file_offset, &group->total_compressed_size, &group->ordinal};
    int kind = field.id == ORDINAL ? WIRE_I16 : WIRE_I64;
    return field.id <= ORDINAL && field.kind == kind ? places[field.id] : NULL;
}

/* Enter a RowGroup; NOWHERE if it lacks a required field, or has negative rows. */
static int64_t scan_group(Bytes in, int64_t at, Group *group, Chunks *chunks) {
    Field field = {WIRE_STOP, 0};
    bool has_columns = false;
    *group = (Group){ABSENT, ABSENT, ABSENT, ABSENT, ABSENT};
    while ((at = read_field_header(in, at, &field)) >= 0 && field.kind != WIRE_STOP) {
        int64_t *number = number_of(group, field);
        if (field.id == COLUMNS && field.kind == WIRE_LIST) {
            has_columns = true;
            at = scan_chunks(in, at, chunks);
        } else if (number != NULL) {
            at = read_number(in, at, field.kind, number);
        } else {
            at = end_of_value(in, at, field.kind);
        }
    }
    bool is_whole = has_columns && group->num_rows >= 0 && group->total_byte_size != ABSENT;
    return is_whole ? at : NOWHERE;
}

/* Enter all row groups of the list at `at`; `room` is that after the head. */
static int64_t scan_groups(Bytes in, int64_t at, Head *head, int64_t room) {
    int kind;
    int64_t count;
    at = read_list_header(in, at, &kind, &count);
    /* A count is below 2^18. */
    if (at < 0 || kind != WIRE_STRUCT || count * GROUP_NUMBERS > room) return NOWHERE;
    Group *groups = (Group *)(void *)(head + 1);
    Chunks chunks = {(int64_t *)(groups + count), count > 0 ? ABSENT : 0,
                     room - count * GROUP_NUMBERS};
    for (int64_t i = 0; i < count; i++) {
        at = scan_group(in, at, groups + i, &chunks);
        if (at < 0) return NOWHERE;
        chunks.offsets += chunks.columns;
        chunks.room -= chunks.columns;
    }
    head->group_count = count;
    head->column_count = chunks.columns;
    return at;
}

/* Enter where the elements of the schema start and end. */
static int64_t scan_schema(Bytes in, int64_t at, Head *head) {
    int kind;
    int64_t count;
    at = read_list_header(in, at, &kind, &count);
    if (at < 0 || kind != WIRE_STRUCT || count == 0) return NOWHERE;
    head->schema_start = at;
    return head->schema_end = end_of_structures(in, at, count);
}

/* scan(plain, numbers): enter the scan of the FileMetaData at the start of `plain`.  Its end, or
 * DAMAGED if it is damaged or unusual, or if there is no room for the numbers. */
int64_t scan(Arguments *arguments) {
    Bytes in = {bytes_of(arguments, 0), (int64_t)size_of(arguments, 0)};
    int64_t room = (int64_t)count_of(arguments, 1) - HEAD_NUMBERS, at = 0;
    Field field = {WIRE_STOP, 0};
    Head *head = numbers_of(arguments, 1);
    if (room < 0) return DAMAGED;
    *head = (Head){ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT};
    while ((at = read_field_header(in, at, &field)) >= 0 && field.kind != WIRE_STOP) {
        if (field.id == VERSION && field.kind == WIRE_I32)
            at = read_number(in, at, WIRE_I32, &head->version);
        else if (field.id == SCHEMA && field.kind == WIRE_LIST)
            at = scan_schema(in, at, head);
        else if (field.id == NUM_ROWS && field.kind == WIRE_I64)
            at = read_number(in, at, WIRE_I64, &head->num_rows);
        else if (field.id == ROW_GROUPS && field.kind == WIRE_LIST)
            at = head->rest = scan_groups(in, at, head, room);
        else
            at = end_of_value(in, at, field.kind);
    }
    head->length = at;
    return head->schema_end >= 0 && head->rest >= 0 ? at : DAMAGED;
}

/* A table has an entry for each structure and field id: the wanted wire type, or WIRE_STOP to pass
 * over the field, and an action.  Action -n: the value is structure n of the table.  Action n: its
 * number goes into slot n - 1; texts have two slots, start and end.  Entry 0: the slot of the end. */
#define FIELD_IDS 32

typedef struct {
    int16_t kind, action;
} Entry;

typedef struct {
    const Entry *entries;
    int64_t structures, slots;
} Table;

/* Enter a value into its slots. */
static int64_t enter_value(Bytes in, int64_t at, int kind, int64_t slot, int64_t *row, Table table) {
    bool is_number = kind <= WIRE_FALSE || (kind >= WIRE_I16 && kind <= WIRE_I64);
    if (slot + (is_number ? 1 : 2) > table.slots) return NOWHERE;
    /* The type of a boolean field is its value. */
    if (kind <= WIRE_FALSE) row[slot] = kind == WIRE_TRUE;
    if (is_number) return kind <= WIRE_FALSE ? at : read_number(in, at, kind, row + slot);
    return read_extent(in, at, kind, row + slot, row + slot + 1);
}

/* Enter the fields of the structure at `at` into `row`.  A wanted field of another wire type makes
 * the structure unusual. */
static int64_t read_structure(Bytes in, int64_t at, Table table, int64_t *row) {
    struct {
        int64_t structure;
        int id;
    } above[MAX_DEPTH];
    int depth = 0, slot = table.entries[0].action;
    int64_t structure = 0;
    Field field = {WIRE_STOP, 0};
    while ((at = read_field_header(in, at, &field)) >= 0) {
        if (field.kind == WIRE_STOP) {
            if (depth == 0 && slot > 0 && slot <= table.slots) row[slot - 1] = at;
            if (depth == 0) return at;
            structure = above[--depth].structure;
            field.id = above[depth].id;
            continue;
        }
        Entry entry = {WIRE_STOP, 0};
        if (field.id > 0 && field.id < FIELD_IDS)
            entry = table.entries[structure * FIELD_IDS + field.id];
        if (entry.kind == WIRE_STOP) {
            at = end_of_value(in, at, field.kind);
        } else if (entry.kind != (field.kind == WIRE_FALSE ? WIRE_TRUE : field.kind)) {
            return NOWHERE;
        } else if (entry.action > 0) {
            at = enter_value(in, at, field.kind, entry.action - 1, row, table);
        } else if (depth < MAX_DEPTH && -entry.action < table.structures) {
            above[depth].structure = structure;
            above[depth++].id = field.id;
            structure = -entry.action;
            field.id = 0;
        } else {
            return NOWHERE;
        }
    }
    return NOWHERE;
}

/* read_fields(data, offsets, is_run, table, slots, rows)
 * Enter a row of `slots` numbers for each structure; DAMAGED if one is damaged or unusual.  In a run
 * of structures each one ends before the next offset. */
int64_t read_fields(Arguments *in) {
    Bytes data = {bytes_of(in, 0), (int64_t)size_of(in, 0)};
    const int64_t *offsets = numbers_of(in, 1);
    int64_t *rows = numbers_of(in, 3);
    bool is_run = in->numbers[0] != 0;
    Table table = {numbers_of(in, 2), (int64_t)(size_of(in, 2) / (FIELD_IDS * sizeof(Entry))),
                   in->numbers[1]};
    if (table.structures < 1 || table.slots < 1) return REFUSED;
    int64_t count = (int64_t)count_of(in, 3) / table.slots, at = 0;
    if (count > (int64_t)count_of(in, 1) - is_run) return REFUSED;
    for (int64_t i = 0; i < count * table.slots; i++) rows[i] = ABSENT;
    for (int64_t i = 0; at >= 0 && i < count; i++) {
        Bytes own = data;
        if (is_run && offsets[i + 1] < own.size) own.size = offsets[i + 1];
        at = read_structure(own, offsets[i], table, rows + i * table.slots);
    }
    return at < 0 ? DAMAGED : at;
}

/* The slots of a page: fields of PageHeader, the values and the encoding of each kind of page, the
 * encodings of levels, and where its header and its body start. */
enum { TYPE, PLAIN_SIZE, STORED_SIZE, DATA, DICTIONARY = DATA + 2, DATA_V2 = DICTIONARY + 2,
       IS_COMPRESSED = DATA_V2 + 2, LEVELS, PAGE_START = LEVELS + 2, PAGE_BODY, PAGE_SLOTS };

/* Whether a page needs no second look.  `limit` is the most memory that it may take, and `room` is
 * that for its body, of which a dictionary page must lie within `held` bytes. */
static bool is_usual_page(int64_t *page, int64_t room, int64_t held, int64_t limit, bool is_stored) {
    /* By PageType; NULL for the page of an index. */
    int64_t *const places[] = {page + DATA, NULL, page + DICTIONARY, page + DATA_V2};
    int64_t size = page[STORED_SIZE], type = page[TYPE];
    int64_t *counts = type >= 0 && type < 4 ? places[type] : NULL;
    if (counts == NULL || counts[0] < 0 || counts[1] < 0 || size < 0 || size > room) return false;
    if (counts == page + DICTIONARY && size > held) return false;
    is_stored |= counts == page + DATA_V2 && page[IS_COMPRESSED] == 0;
    memmove(page + DATA, counts, 2 * sizeof *page);
    return page[PLAIN_SIZE] >= 0 && page[PLAIN_SIZE] <= limit &&
           (!is_stored || size == page[PLAIN_SIZE]);
}

/* walk_pages(data, table, room, values, limit, is_stored, rows): enter a row for each page from the
 * start of `data` on, until they hold so many values; how many rows.  It stops before a page that
 * is damaged or unusual, or whose header `data` does not hold.  `room` bytes are left of the chunk,
 * and its pages are not compressed if they are stored. */
int64_t walk_pages(Arguments *in) {
    Bytes data = {bytes_of(in, 0), (int64_t)size_of(in, 0)};
    Table table = {numbers_of(in, 1), (int64_t)(size_of(in, 1) / (FIELD_IDS * sizeof(Entry))),
                   PAGE_SLOTS};
    const int64_t *n = in->numbers;
    int64_t count = 0, most = (int64_t)count_of(in, 2) / PAGE_SLOTS, at = 0, seen = 0;
    if (table.structures < 1 || n[0] < data.size) return REFUSED;
    for (int64_t *row = numbers_of(in, 2); count < most && seen < n[1]; row += PAGE_SLOTS, count++) {
        for (int slot = 0; slot < PAGE_SLOTS; slot++) row[slot] = ABSENT;
        int64_t body = at < data.size ? read_structure(data, at, table, row) : NOWHERE;
        if (body < 0) break;
        if (!is_usual_page(row, n[0] - body, data.size - body, n[2], n[3] != 0)) break;
        row[PAGE_START] = at;
        /* The entries of a dictionary are no values of the chunk. */
        seen += row[DICTIONARY] >= 0 ? 0 : row[DATA];
        at = body + row[STORED_SIZE];
    }
    return count;
}
