/*
 * What parquet-java itself finds in a file: its verdict on values of one column chunk, many in one
 * call, and all that a file holds.  Compiled by Janino: raw types, no lambdas.
 */
package secure_bloom.spark.tests;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.math.BigInteger;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.Iterator;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.HadoopReadOptions;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.column.page.DataPage;
import org.apache.parquet.column.page.DataPageV1;
import org.apache.parquet.column.page.DataPageV2;
import org.apache.parquet.column.page.DictionaryPage;
import org.apache.parquet.column.page.PageReadStore;
import org.apache.parquet.column.page.PageReader;
import org.apache.parquet.column.values.bloomfilter.BloomFilter;
import org.apache.parquet.hadoop.BadConfigurationException;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.internal.column.columnindex.OffsetIndex;
import org.apache.parquet.io.api.Binary;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;

public class BloomJudge {

    /**
     * One byte for each value: 1 "may be there", 0 "is not"; null when the chunk has no filter.
     * The values come as INT32, INT64: 8 bytes; FLOAT, DOUBLE: 8 bytes; others: length (4), bytes;
     * all big-endian.
     */
    public static byte[] verdicts(
            Configuration conf, String file, int rowGroup, String column, byte[] values, int count)
            throws IOException {
        ParquetFileReader reader = open(conf, file);
        try {
            ColumnChunkMetaData chunk = chunk(reader, rowGroup, column);
            BloomFilter filter = reader.getBloomFilterDataReader(rowGroup).readBloomFilter(chunk);
            if (filter == null) {
                return null;
            }
            PrimitiveTypeName type = chunk.getPrimitiveType().getPrimitiveTypeName();
            DataInputStream in = new DataInputStream(new ByteArrayInputStream(values));
            byte[] verdicts = new byte[count];
            for (int i = 0; i < count; i++) {
                verdicts[i] = (byte) (filter.findHash(hash(filter, type, in)) ? 1 : 0);
            }
            return verdicts;
        } finally {
            reader.close();
        }
    }

    /**
     * Schema, texts, row groups, statistics, indexes, filters and pages, a line for each, whatever
     * their protection; of bytes a digest.  Offsets and sizes as stored are left out.
     */
    public static String contents(Configuration conf, String file) throws Exception {
        ParquetFileReader reader = open(conf, file);
        try {
            StringBuilder out = new StringBuilder();
            MessageType schema = reader.getFileMetaData().getSchema();
            out.append(schema).append(new TreeMap(reader.getFileMetaData().getKeyValueMetaData()));
            for (int i = 0; i < reader.getRowGroups().size(); i++) {
                BlockMetaData block = (BlockMetaData) reader.getRowGroups().get(i);
                out.append("\nrow group ").append(i).append(", rows ").append(block.getRowCount());
                Iterator chunks = block.getColumns().iterator();
                while (chunks.hasNext()) {
                    describe(reader, i, (ColumnChunkMetaData) chunks.next(), out);
                }
                describePages(reader, i, schema, out);
            }
            return out.toString();
        } finally {
            reader.close();
        }
    }

    private static void describe(
            ParquetFileReader reader, int rowGroup, ColumnChunkMetaData chunk, StringBuilder out)
            throws Exception {
        out.append("\ncolumn ").append(chunk.getPath().toDotString());
        out.append(", ").append(chunk.getCodec()).append(", ").append(chunk.getEncodings());
        out.append(", values ").append(chunk.getValueCount()).append(", ").append(chunk.getStatistics());
        out.append(", column index ").append(reader.readColumnIndex(chunk)).append(", rows of pages");
        OffsetIndex pages = reader.readOffsetIndex(chunk);
        for (int i = 0; pages != null && i < pages.getPageCount(); i++) {
            out.append(' ').append(pages.getFirstRowIndex(i));
        }
        BloomFilter filter = reader.getBloomFilterDataReader(rowGroup).readBloomFilter(chunk);
        ByteArrayOutputStream bits = new ByteArrayOutputStream();
        if (filter != null) {
            filter.writeTo(bits);
        }
        out.append(", filter ").append(digest(bits.toByteArray()));
    }

    private static void describePages(
            ParquetFileReader reader, int rowGroup, MessageType schema, StringBuilder out)
            throws Exception {
        PageReadStore store;
        try {
            store = reader.readRowGroup(rowGroup);
        } catch (BadConfigurationException noCodec) {
            out.append("\npages: ").append(noCodec.getMessage());
            return;
        }
        Iterator columns = schema.getColumns().iterator();
        while (columns.hasNext()) {
            ColumnDescriptor column = (ColumnDescriptor) columns.next();
            PageReader pages = store.getPageReader(column);
            out.append("\npages of ").append(Arrays.toString(column.getPath()));
            DictionaryPage dictionary = pages.readDictionaryPage();
            if (dictionary != null) {
                out.append(" dictionary ").append(digest(dictionary.getBytes().toByteArray()));
            }
            for (DataPage page = pages.readPage(); page != null; page = pages.readPage()) {
                out.append(' ').append(page.getValueCount()).append(' ').append(body(page));
            }
        }
    }

    private static String body(DataPage page) throws Exception {
        if (page instanceof DataPageV1) {
            DataPageV1 one = (DataPageV1) page;
            return one.getValueEncoding() + " " + digest(one.getBytes().toByteArray());
        }
        DataPageV2 two = (DataPageV2) page;
        return two.getDataEncoding() + " " + digest(two.getRepetitionLevels().toByteArray())
                + digest(two.getDefinitionLevels().toByteArray())
                + digest(two.getData().toByteArray());
    }

    private static String digest(byte[] bytes) throws Exception {
        byte[] sum = MessageDigest.getInstance("SHA-256").digest(bytes);
        return bytes.length + ":" + new BigInteger(1, sum).toString(36) + " ";
    }

    private static ParquetFileReader open(Configuration conf, String file) throws IOException {
        Path path = new Path(file);
        return ParquetFileReader.open(
                HadoopInputFile.fromPath(path, conf),
                // With the path, the builder asks the crypto factory for decryption properties.
                HadoopReadOptions.builder(conf, path).build());
    }

    private static ColumnChunkMetaData chunk(ParquetFileReader reader, int rowGroup, String column) {
        BlockMetaData block = (BlockMetaData) reader.getRowGroups().get(rowGroup);
        Iterator chunks = block.getColumns().iterator();
        while (chunks.hasNext()) {
            ColumnChunkMetaData chunk = (ColumnChunkMetaData) chunks.next();
            if (chunk.getPath().toDotString().equals(column)) {
                return chunk;
            }
        }
        throw new IllegalArgumentException("no column " + column);
    }

    private static long hash(BloomFilter filter, PrimitiveTypeName type, DataInputStream in)
            throws IOException {
        if (type == PrimitiveTypeName.INT32) {
            return filter.hash((int) in.readLong());
        }
        if (type == PrimitiveTypeName.INT64) {
            return filter.hash(in.readLong());
        }
        if (type == PrimitiveTypeName.FLOAT) {
            return filter.hash((float) in.readDouble());
        }
        if (type == PrimitiveTypeName.DOUBLE) {
            return filter.hash(in.readDouble());
        }
        byte[] bytes = new byte[in.readInt()];
        in.readFully(bytes);
        return filter.hash(Binary.fromConstantByteArray(bytes));
    }
}
